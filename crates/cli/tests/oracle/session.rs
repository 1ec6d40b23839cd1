//! Sessions through a pipe.

use testkit::Share;
use testkit::random::seeds;

use crate::harness::{Answer, Draw, Pair};
use crate::random::{compare_files, first_difference};

/// Random sessions per run.
const SESSIONS: u64 = 40;
/// Lines per session.
const LINES: usize = 25;

pub fn check() {
    let mut compared = Share::default();
    for seed in seeds(SESSIONS) {
        let pair = Pair::new();
        let Some(theirs) = &pair.theirs else { return };
        let text = session(&mut Draw::new(seed));
        let normal = |answer: Answer| Answer {
            output: pair.normal(&without_usage(&answer.output)),
            error: String::new(),
            ..answer
        };
        let (ours, want) = (normal(pair.ours.run(&["-"], &text)), normal(theirs.run(&["-"], &text)));
        let shown = String::from_utf8_lossy(&text);
        assert!(ours == want, "seed {seed}: {}\nsession:\n{shown}", first_difference(&ours, &want));
        let (differing, dumps) = compare_files(&pair);
        compared.add_all(dumps);
        assert!(differing.is_empty(), "seed {seed}: {differing}\nsession:\n{shown}");
    }
    compared.require("dumps", 80);
    check_ends();
}

/// The start and end of sessions: without a directory, and in the middle of a line.
fn check_ends() {
    let pair = Pair::new();
    let Some(theirs) = &pair.theirs else { return };
    for words in [&["-"][..], &["-", ""]] {
        for text in ["pwd\n", "pwd", "pwd\n ", "   ", "\t", " \r", "\r ", " \0", "\0", " pwd ", "\n", " \n"] {
            let [ours, want] = [&pair.ours, theirs].map(|side| {
                let answer = side.run(words, text.as_bytes());
                pair.normal(&without_usage(&answer.output))
            });
            assert_eq!(ours, want, "{words:?}, {text:?}");
        }
    }
}

/// The usage page is in our own words.
pub fn without_usage(text: &str) -> String {
    let mut lines = String::new();
    let mut within = false;
    for line in text.split_inclusive('\n') {
        if line.starts_with("RRDtool 1.") {
            within = true;
            lines.push_str("usage\n");
        }
        if line.starts_with("OK u:") || line.starts_with("ERROR: ") {
            within = false;
        }
        if !within {
            lines.push_str(line);
        }
    }
    lines
}

fn session(draw: &mut Draw) -> Vec<u8> {
    let mut text =
        b"create a.rrd -b 1000000000 -s 10 DS:x:GAUGE:30:U:U DS:y:COUNTER:30:0:U RRA:AVERAGE:0.5:1:20 RRA:MAX:0.5:3:9\n"
            .to_vec();
    let mut clock = 1_000_000_000;
    for _ in 0..LINES {
        clock += 1 + draw.below(15);
        let line = match draw.below(22) {
            0..=4 => format!("update a.rrd {clock}:{}:{}", draw.below(100), clock * 3),
            5 => format!("update  'a.rrd' \"{clock}:U:1\"  "),
            6 => format!("updatev a.rrd {clock}:1:2"),
            7 => "fetch a.rrd AVERAGE -s 1000000000 -e 1000000200".to_string(),
            8 => draw
                .of(&["mkdir d", "cd d", "cd ..", "pwd", "cd nope", "mkdir d/e", "pwd x", "cd", "cd ."])
                .to_string(),
            9 => draw
                .of(&["info a.rrd", "last a.rrd", "lastupdate a.rrd", "first a.rrd", "dump a.rrd"])
                .to_string(),
            10 => draw
                .of(&["", " ", "bogus", "bogus x", "help", "help last", "'last' a.rrd", "\tlast a.rrd"])
                .to_string(),
            11 => draw
                .of(&[
                    "last 'a.rrd",
                    "last a.rrd \"",
                    "last a\".rr\"d",
                    "last '' x",
                    "last \\a.rrd",
                    "info 'q r'",
                ])
                .to_string(),
            12 => draw
                .of(&["last nope", "update a.rrd", "update a.rrd 1:1:1", "list nope", "tune a.rrd -h x:25"])
                .to_string(),
            13 => draw.of(&["list .", "ls"]).to_string(),
            14 => "dump a.rrd out.xml\nrestore -f out.xml b.rrd\ninfo b.rrd".to_string(),
            15 => draw
                .of(&[
                    "xport -s 1000000000 -e 1000000100 'DEF:a=a.rrd:x:AVERAGE' \"XPORT:a:in traffic\"",
                    "xport --json -s 1000000000 -e 1000000100 DEF:a=a.rrd:x:AVERAGE XPORT:a:'in traffic'",
                    "xport -s 1000000000 -e 1000000100 DEF:a=b\\ c.rrd:x:AVERAGE XPORT:a",
                    "fetch 'b c.rrd' \"AVERAGE\" --start 1000000000 --end '1000000050'",
                    "fetch a.rrd MAX -r 30 -a -s 1000000007 -e 1000000150",
                ])
                .to_string(),
            16 => "create 'b c.rrd' --start 1000000000 --step '10' \"DS:x:GAUGE:30:U:U\" RRA:AVERAGE:0.5:1:5"
                .to_string(),
            17 => format!("update \"b c.rrd\" --template x {clock}:{}", draw.below(9)),
            18 => format!("update a.rrd -t y:x {clock}:{}:7 {}:{}:8", clock * 3, clock + 1, clock * 4),
            19 => draw
                .of(&[
                    "tune a.rrd --maximum x:50",
                    "tune a.rrd -r x:z",
                    "tune a.rrd -r z:x",
                    "first a.rrd --rraindex 1",
                    "resize a.rrd 0 GROW 2",
                    "list -r .",
                    "flushcached a.rrd",
                    "create a.rrd",
                ])
                .to_string(),
            20 => draw
                .of(&[
                    "'",
                    "\"\"",
                    "update '' ''",
                    "a\tb",
                    "version",
                    "help bogus",
                    "--help",
                    "-v",
                    "QUIT",
                    "cd 'd'",
                    "mkdir 'd e'",
                    "cd \"d e\"",
                ])
                .to_string(),
            _ => format!("last a.rrd\0hidden\nlast a.rrd {}", draw.of(&["", "x"])),
        };
        text.extend_from_slice(line.as_bytes());
        text.extend_from_slice(draw.of(&[&b"\n"[..], b"\r\n", b" \n"]));
    }
    if draw.once_in(2) {
        text.extend_from_slice(draw.of(&[&b"quit\nlast a.rrd\n"[..], b"quit", b"quit now\n", b"last a.rrd"]));
    }
    text
}

/// Guarantees that only ours gives: a base directory that cannot be left, and limited memory.
pub fn check_ours() {
    let pair = Pair::new();
    let outside = pair.ours.directory.join("../outside.rrd");
    let base = pair.ours.directory.join("base");
    std::fs::create_dir_all(base.join("sub")).expect("a directory");
    std::os::unix::fs::symlink("..", base.join("up")).expect("a link");
    let create = "-b 1000000000 DS:x:GAUGE:600:U:U RRA:AVERAGE:0.5:1:3";
    let made = pair.ours.run(&["-"], format!("create {} {create}\n", outside.display()).as_bytes());
    assert!(made.output.starts_with("OK "), "{made:?}");
    let outside = outside.canonicalize().expect("it is there").display().to_string();
    let lines = [
        (format!("create in.rrd {create}"), "OK"),
        ("last sub/../in.rrd".to_string(), "1000000000\nOK"),
        ("cd sub".to_string(), "OK"),
        ("last ../in.rrd".to_string(), "1000000000\nOK"),
        ("cd ..".to_string(), "OK"),
        ("cd ..".to_string(), "ERROR: chdir .. Permission denied"),
        ("cd up".to_string(), "ERROR: chdir up Permission denied"),
        ("mkdir up/new".to_string(), "ERROR: mkdir up/new: Permission denied"),
        (format!("info {outside}"), &format!("ERROR: opening '{outside}': Permission denied")),
        ("last up/../outside.rrd".to_string(), "-1\nERROR: opening 'up/../outside.rrd': Permission denied"),
        ("dump in.rrd ../out.xml".to_string(), "ERROR: opening '../out.xml': Permission denied"),
        (
            "create ../new.rrd DS:x:GAUGE:1:U:U RRA:LAST:0:1:1".to_string(),
            "ERROR: opening '../new.rrd': Permission denied",
        ),
        ("list ..".to_string(), "ERROR: opening '..': Permission denied"),
        ("restore ../x.xml y.rrd".to_string(), "ERROR: opening '../x.xml': Permission denied"),
        (
            "last in.rrd --daemon /x".to_string(),
            "-1\nERROR: --daemon: Permission denied in a session confined to a directory",
        ),
    ];
    let text: String = lines.iter().map(|(line, _)| format!("{line}\n")).collect();
    let answer = pair.ours.run(&["-", "base"], text.as_bytes());
    let want: String = lines.iter().map(|(_, answer)| format!("{answer}\n")).collect();
    assert_eq!(pair.normal(&answer.output), pair.normal(&want));
    assert_eq!(answer.status, Some(0));
    assert_eq!(pair.ours.run(&["-", "nope"], b"").status, Some(2));
}
