//! `roundel snapshot` of a store that runs, and of one that is stopped.

use super::{roundel, say, serve, text};

#[test]
fn a_snapshot_of_a_running_or_stopped_store_is_a_store() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let daemon = serve(directory);
    say(
        directory,
        &["CREATE a.rrd -b 1700000000 -s 10 DS:a:GAUGE:60:U:U RRA:AVERAGE:0.5:1:1000".to_string()],
    );
    let update = |step: i64| format!("UPDATE a.rrd {}:{step}", 1_700_000_000 + 10 * step);
    say(directory, &(1..50).map(update).collect::<Vec<_>>());
    let allowed = directory.join("snapshots");
    let path = allowed.join("one");
    let made = roundel(directory, &["snapshot", "--daemon", "unix:sock", path.to_str().unwrap()]);
    assert!(made.status.success() && text(&made).contains("bytes linked"), "{}", text(&made));
    say(directory, &(50..100).map(update).collect::<Vec<_>>());
    let named = roundel(directory, &["snapshot", "--daemon", "unix:sock", "two"]);
    assert!(named.status.success() && text(&named).contains("snapshots/two:"), "{}", text(&named));
    for refused in ["one", "../three", "snapshots/../three", "/tmp/three", "base/three"] {
        let refused = roundel(directory, &["snapshot", "--daemon", "unix:sock", refused]);
        assert!(!refused.status.success(), "{}", text(&refused));
    }
    assert_eq!(std::fs::read_dir(&allowed).unwrap().count(), 2);
    let in_use = roundel(directory, &["snapshot", "--store", "store", "three"]);
    assert!(!in_use.status.success() && text(&in_use).contains("--daemon"), "{}", text(&in_use));
    drop(daemon);
    let rest = roundel(directory, &["snapshot", "--store", "store", "three"]);
    assert!(rest.status.success(), "{}", text(&rest));
    for (copy, last) in [("snapshots/one", 49), ("snapshots/two", 99), ("three", 99)] {
        let good = roundel(directory, &["verify", "--store", copy]);
        assert!(good.status.success(), "{copy}: {}", text(&good));
        std::fs::rename(directory.join("store"), directory.join("store-before")).unwrap();
        std::fs::rename(directory.join(copy), directory.join("store")).unwrap();
        let daemon = serve(directory);
        say(directory, &["PING".to_string()]);
        let dumped =
            roundel(&directory.join("base"), &["rrdtool", "lastupdate", "a.rrd", "--daemon", "unix:../sock"]);
        assert!(text(&dumped).ends_with(&format!(": {last}\n")), "{copy}: {}", text(&dumped));
        drop(daemon);
        std::fs::rename(directory.join("store"), directory.join(format!("{last}-used-{}", copy.len())))
            .unwrap();
        std::fs::rename(directory.join("store-before"), directory.join("store")).unwrap();
    }
}
