//! `resize` of the same file by both programs: the copies are equal to the byte.

use std::fs;

use super::harness::Pair;

/// A file that has every kind of archive, its rings partly and wholly filled, is resized in every way.
pub fn check_bytes() {
    let pair = Pair::new();
    let Some(theirs) = &pair.theirs else { return };
    let run = |words: &str| {
        let answer = theirs.run(&words.split(' ').collect::<Vec<_>>(), b"");
        assert_eq!(answer.error, "", "{words}");
    };
    run(
        "create a.rrd -b 1000000000 -s 1 DS:x:GAUGE:3:U:U DS:y:GAUGE:3:U:U RRA:AVERAGE:0.5:1:10 RRA:MAX:0.5:4:60 \
         RRA:HWPREDICT:30:0.1:0.01:7",
    );
    for age in 1..=25 {
        run(&format!("update a.rrd {}:{}:{age}", 1_000_000_000 + age, age % 7));
    }
    fs::copy(theirs.directory.join("a.rrd"), pair.ours.directory.join("a.rrd")).expect("a copy");
    for archive in 0..7 {
        for change in
            ["GROW 1", "GROW 50", "SHRINK 1", "SHRINK 3", "SHRINK 5", "SHRINK 6", "SHRINK 9", "SHRINK 29"]
        {
            let words = format!("resize a.rrd {archive} {change}");
            let words: Vec<&str> = words.split(' ').collect();
            let [ours, want] = [&pair.ours, theirs].map(|side| {
                let answer = side.run(&words, b"");
                (answer.error, fs::read(side.directory.join("resize.rrd")).ok())
            });
            assert_eq!(ours.0, want.0, "{words:?}");
            assert!(ours.1 == want.1, "{words:?}: the copies differ");
        }
    }
}
