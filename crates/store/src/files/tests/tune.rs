//! Sources and archives that come and go: a new file in the place of the old one.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use rrd::codec::file::{decode, encode};

use super::*;

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_string).collect()
}

fn content(path: &Path) -> Rrd {
    decode(&std::fs::read(path).unwrap()).unwrap().rrd
}

/// The bits of an RRD, so that NaNs compare.
fn bits(rrd: &Rrd) -> Vec<u8> {
    encode(rrd, &rrd_file::content::rings(&rrd.definition, &rrd.live)).unwrap()
}

#[test]
fn removing_sources_and_archives_matches_rrdtool() {
    for tune in ["DEL:b", "DEL:a DEL:d", "DELRRA:2", "RRA#0:-20", "RRA#1:=7", "-h a:77 DEL:c", "DEL:nothing"]
    {
        let mut tool = RrdTool::start().unwrap();
        let base = base();
        make(&mut tool, base.path(), "w2.rrd", W2);
        let engine = open(base.path());
        let (mut time, mut random) = (START as f64, Random(11));
        for _ in 0..40 {
            let word = random_word(&mut random, &mut time, 4);
            assert_eq!(send(&engine, &[("w2.rrd", &word)]), []);
            tool.run(&format!("update w2.rrd {word}")).unwrap();
        }
        engine.tune(&name("w2.rrd"), &words(tune)).unwrap();
        // What waited went first, and nothing is written twice by a start that replays the journal.
        drop(engine);
        let engine = open(base.path());
        engine.flush(None).unwrap();
        tool.run(&format!("tune w2.rrd {tune}")).unwrap();
        let ours = base.path().join("tree/w2.rrd");
        assert!(bits(&content(&ours)) == bits(&content(&tool.path("w2.rrd"))), "{tune}");
    }
}

#[test]
fn added_sources_and_archives_accept_updates() {
    let mut tool = RrdTool::start().unwrap();
    let base = base();
    make(&mut tool, base.path(), "w1.rrd", W1);
    let path = base.path().join("tree/w1.rrd");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let engine = open(base.path());
    for second in 1..30 {
        assert_eq!(send(&engine, &[("w1.rrd", &format!("{}:{second}", START + 10 * second))]), []);
    }
    let mut want = engine.read(&name("w1.rrd")).unwrap();
    let tune = words("DS:new:GAUGE:30:0:U RRA:MIN:0.5:2:9");
    rrd::tune::tune_content(&mut want, &tune.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    let inode = std::fs::metadata(&path).unwrap().ino();
    engine.tune(&name("w1.rrd"), &tune).unwrap();
    let after = std::fs::metadata(&path).unwrap();
    assert_ne!(after.ino(), inode, "the old file was changed in place");
    assert_eq!(after.mode() & 0o777, 0o640);
    assert!(bits(&content(&path)) == bits(&want));
    // Updates fit the new definition, those of the old one are refused, and a kill loses neither.
    let time = START + 300;
    assert_eq!(send(&engine, &[("w1.rrd", &format!("{time}:1:5"))]), []);
    let refused = send(&engine, &[("w1.rrd", &format!("{}:1", time + 10))]);
    assert!(refused[0].2.contains("expected 2 data source readings (got 1)"), "{refused:?}");
    drop(engine);
    let engine = open(base.path());
    engine.flush(None).unwrap();
    let info = std::fs::copy(&path, tool.path("ours.rrd")).map(|_| tool.run("info ours.rrd"));
    let info = info.unwrap().unwrap();
    assert!(
        info.contains("ds[new].last_ds = \"5\"") && info.contains(&format!("last_update = {time}")),
        "{info}"
    );
    assert!(std::fs::read_dir(base.path().join("tree")).unwrap().count() == 1, "a temporary file is left");
}

#[test]
fn a_refused_tune_changes_nothing() {
    let mut tool = RrdTool::start().unwrap();
    let base = base();
    make(&mut tool, base.path(), "hw.rrd", HW);
    let engine = open(base.path());
    assert_eq!(send(&engine, &[("hw.rrd", &format!("{}:1", START + 5))]), []);
    engine.flush(None).unwrap();
    let path = base.path().join("tree/hw.rrd");
    let before = std::fs::read(&path).unwrap();
    for tune in [
        "DS:a_name_with_more_than_nineteen_letters:GAUGE:30:0:U",
        "DEL:v",
        "RRA:NOPE:0.5:1:5",
        "DS:v:GAUGE:30:0:U",
        "DELRRA:-1",
        "RRA#9:+70000000",
        "DEL:v DEL:c",
    ] {
        let refused = engine.tune(&name("hw.rrd"), &words(tune));
        assert!(
            matches!(refused, Err(StoreError::Tune(_) | StoreError::Unfit { .. })),
            "{tune}: {refused:?}"
        );
        assert!(std::fs::read(&path).unwrap() == before, "{tune}");
        assert_eq!(std::fs::read_dir(base.path().join("tree")).unwrap().count(), 1, "{tune}");
    }
    assert_eq!(send(&engine, &[("hw.rrd", &format!("{}:1", START + 15))]), []);
    let missing = engine.tune(&name("none.rrd"), &words("DEL:v"));
    assert!(matches!(missing, Err(StoreError::NoSuchRrd(_))), "{missing:?}");
}
