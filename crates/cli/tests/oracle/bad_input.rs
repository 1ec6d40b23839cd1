//! Damaged files and dumps, full disks, missing directories: the same exit status as Debian's rrdtool, no
//! crash, and no half-written file in place of a good one.

use testkit::{Share, shaken};

use crate::harness::{Answer, Pair};

/// Damaged copies per run, of files and of dumps each.
const ROUNDS: u64 = 150;

const CREATE: &str = "create a.rrd -b 1000000000 -s 10 DS:x:GAUGE:30:U:U DS:y:COUNTER:30:0:U \
    RRA:AVERAGE:0.5:1:5 RRA:MAX:0.5:3:4 RRA:HWPREDICT:8:0.1:0.1:4";

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// A pair with the same file in both directories, and its bytes.
fn pair_with_file() -> (Pair, Vec<u8>) {
    let pair = Pair::new();
    let maker = pair.theirs.as_ref().unwrap_or(&pair.ours);
    assert_eq!(maker.run(&words(CREATE), b"").status, Some(0));
    let update = "update a.rrd 1000000010:1:1 1000000025:2:30 1000000061:7:40";
    assert_eq!(maker.run(&words(update), b"").status, Some(0));
    let bytes = std::fs::read(maker.directory.join("a.rrd")).expect("it is there");
    (pair, bytes)
}

pub fn check_files() {
    let (pair, bytes) = pair_with_file();
    let commands =
        ["info a.rrd", "fetch a.rrd AVERAGE -s 1000000000 -e 1000000060", "update a.rrd 1000000070:1:50"];
    let mut refused = 0;
    let mut compared = Share::default();
    for seed in 1..=ROUNDS {
        let damaged = if seed % 3 == 0 {
            bytes[..bytes.len() * seed as usize / ROUNDS as usize].to_vec()
        } else {
            shaken(&bytes, seed)
        };
        for command in commands {
            for directory in pair.directories() {
                std::fs::write(directory.join("a.rrd"), &damaged).expect("a file");
            }
            let ours = pair.ours.run(&words(command), b"");
            assert!(matches!(ours.status, Some(0 | 1)), "seed {seed}, {command}: {ours:?}");
            let theirs = pair.theirs.as_ref().map(|program| program.run(&words(command), b""));
            refused += usize::from(ours.status == Some(1));
            // Inputs on which Debian's rrdtool crashes, or which it accepts although they are invalid, are
            // not compared.
            if let Some(theirs) = theirs {
                compared.add(theirs.status.is_some());
                let is_accepted = theirs.status == Some(1) && ours.status != Some(1);
                assert!(!is_accepted, "seed {seed}, {command}");
            }
            if ours.status == Some(1) {
                let left = std::fs::read(pair.ours.directory.join("a.rrd")).expect("it is there");
                assert!(left == damaged, "seed {seed}, {command}: a refused file was changed");
            }
        }
    }
    assert!(refused > 50, "only {refused} were refused: the files are not damaged enough");
    if pair.theirs.is_some() {
        compared.require("answers about files", 80);
    }
}

pub fn check_dumps() {
    let (pair, bytes) = pair_with_file();
    for directory in pair.directories() {
        std::fs::write(directory.join("a.rrd"), &bytes).expect("a file");
    }
    let xml = pair.ours.run(&["dump", "a.rrd"], b"").output.into_bytes();
    let mut compared = Share::default();
    for seed in 1..=ROUNDS {
        let damaged = shaken(&xml, seed);
        let mut answers = Vec::new();
        for program in std::iter::once(&pair.ours).chain(&pair.theirs) {
            std::fs::write(program.directory.join("x.xml"), &damaged).expect("a file");
            std::fs::write(program.directory.join("good.rrd"), &bytes).expect("a file");
            let answer = program.run(&["restore", "-f", "x.xml", "good.rrd"], b"");
            answers.push((answer, std::fs::read(program.directory.join("good.rrd")).expect("it is there")));
        }
        let (ours, left) = &answers[0];
        assert!(matches!(ours.status, Some(0 | 1)), "seed {seed}: {ours:?}");
        if ours.status == Some(1) {
            assert!(*left == bytes, "seed {seed}: a good file was changed by a bad dump");
        } else {
            assert_eq!(pair.ours.run(&["info", "good.rrd"], b"").status, Some(0), "seed {seed}");
        }
        let Some((theirs, _)) = answers.get(1) else { continue };
        compared.add(theirs.status.is_some());
        if theirs.status == Some(1) {
            let (want, line) = (&theirs.error, changed_line(&xml, &damaged));
            assert_eq!(ours.status, Some(1), "seed {seed}: Debian's says {want}of the line {line:?}");
        }
    }
    if pair.theirs.is_some() {
        compared.require("answers about dumps", 60);
    }
}

/// The first line that differs.
fn changed_line(good: &[u8], damaged: &[u8]) -> String {
    let (good, damaged) = (String::from_utf8_lossy(good), String::from_utf8_lossy(damaged));
    let mut good = good.lines();
    damaged.lines().find(|line| good.next() != Some(line)).unwrap_or_default().to_string()
}

pub fn check_system() {
    let (pair, bytes) = pair_with_file();
    for directory in pair.directories() {
        std::fs::write(directory.join("a.rrd"), &bytes).expect("a file");
    }
    let same = |command: &str| {
        let ours = pair.ours.run(&words(command), b"");
        if let Some(theirs) = &pair.theirs {
            assert_eq!(ours, theirs.run(&words(command), b""), "{command}");
        }
        ours
    };
    let missing = same("create no/dir.rrd DS:x:GAUGE:1:U:U RRA:LAST:0:1:1");
    assert_eq!(missing.status, Some(1));
    same("update no/dir.rrd 1:1");
    same("resize no/dir.rrd 0 GROW 1");
    same("dump a.rrd no/dir.xml");
    for directory in pair.directories() {
        // Through a link, because both remove what they could not write.
        std::os::unix::fs::symlink("/dev/full", directory.join("full")).expect("a link");
    }
    let full = same("dump a.rrd full");
    let text = "ERROR: error writing output file: No space left on device\n".to_string();
    assert_eq!(full, Answer { output: String::new(), error: text, status: Some(1) });
    for directory in pair.directories() {
        assert!(directory.join("full").symlink_metadata().is_err(), "a part of a dump is left");
    }
    assert_eq!(std::fs::read(pair.ours.directory.join("a.rrd")).expect("it is there"), bytes);
}
