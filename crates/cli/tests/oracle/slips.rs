//! Slips of Debian's rrdtool that ours does not copy (`docs/compatibility.md`): the answers of both.

use std::fs;

use super::harness::{Pair, Program};

/// Runs commands, which must succeed, and returns what the last one printed.
fn run(side: &Program, commands: &[&str]) -> String {
    let mut output = String::new();
    for command in commands {
        let answer = side.run(&command.split(' ').collect::<Vec<_>>(), b"");
        assert_eq!(answer.error, "", "{command}");
        output = answer.output;
    }
    output
}

/// The lines of a text that contain a word, trimmed.
fn lines(text: &str, word: &str) -> Vec<String> {
    text.lines().filter(|line| line.contains(word)).map(|line| line.trim().to_string()).collect()
}

/// Compares what `see` finds with our program and with Debian's.
fn check(see: impl Fn(&Program) -> Vec<String>, ours: &[&str], debian: &[&str]) {
    let pair = Pair::new();
    assert_eq!(see(&pair.ours), ours);
    if let Some(theirs) = &pair.theirs {
        assert_eq!(see(theirs), debian);
    }
}

pub fn check_all() {
    // The text after the end of a last_ds that tune has replaced.
    let left = |side: &Program| {
        run(
            side,
            &[
                "create a.rrd -b 1000000000 -s 10 DS:x:COUNTER:20:U:U RRA:AVERAGE:0.5:1:5",
                "update a.rrd 1000000010:1234567",
                "tune a.rrd -d x:GAUGE",
            ],
        );
        let bytes = fs::read(side.directory.join("a.rrd")).expect("the file");
        vec![bytes.windows(3).any(|bytes| bytes == b"\x0067").to_string()]
    };
    check(left, &["false"], &["true"]);
    let version = |side: &Program| {
        run(
            side,
            &[
                "create a.rrd -b 1000000000 -s 10 DS:x:DCOUNTER:20:U:U RRA:AVERAGE:0.5:1:5",
                "create b.rrd --template a.rrd",
            ],
        );
        lines(&run(side, &["info b.rrd"]), "rrd_version")
    };
    check(version, &["rrd_version = \"0005\""], &["rrd_version = \"0003\""]);
    let smoothing = |side: &Program| {
        run(side, &["create a.rrd -b 1000000000 -s 10 DS:x:GAUGE:20:U:U RRA:AVERAGE:0.5:1:5"]);
        side.run(&["tune", "a.rrd", "--smoothing-window", "0.1"], b"");
        lines(&run(side, &["info a.rrd"]), "rrd_version")
    };
    let listing = |side: &Program| {
        run(side, &["create a.rrd -b 1000000000 -s 10 DS:x:GAUGE:20:U:U RRA:AVERAGE:0.5:1:5"]);
        lines(&run(side, &["tune a.rrd -D"]), "hbt")
    };
    check(listing, &[], &["DS[x] typ: GAUGE\thbt: 20\tmin: -nan\tmax: -nan"]);
    check(smoothing, &["rrd_version = \"0003\""], &["rrd_version = \"0004\""]);
    check_texts();
    check_values();
    // A parameter of Holt-Winters that does not fit into 64 bits.
    let beyond = |side: &Program| {
        let create = "create a.rrd -b 1000000000 -s 10 DS:x:GAUGE:20:U:U RRA:HWPREDICT:10:0.1:0.1:5";
        run(side, &[create, "dump a.rrd a.xml"]);
        let path = side.directory.join("a.xml");
        let text = fs::read_to_string(&path).expect("the dump");
        let text = text.replace("_rra_idx>1</", "_rra_idx>18446744073709551616</");
        fs::write(path, text).expect("a changed dump");
        let error = side.run(&["restore", "a.xml", "b.rrd"], b"").error;
        assert!(error.contains("get_xml_ulong from '18446744073709551616'"), "{error}");
        vec![side.directory.join("b.rrd").exists().to_string()]
    };
    check(beyond, &["false"], &["true"]);
    // The end of a longer file that restore replaces.
    let longer = |side: &Program| {
        let create = "create a.rrd -b 1000000000 -s 10 DS:x:GAUGE:20:U:U RRA:AVERAGE:0.5:1:";
        run(
            side,
            &[&format!("{create}9"), "dump a.rrd a.xml", &format!("{create}29"), "restore -f a.xml a.rrd"],
        );
        vec![fs::metadata(side.directory.join("a.rrd")).expect("the file").len().to_string()]
    };
    check(longer, &["656"], &["816"]);
}

/// The slips of graph and xport.
fn check_texts() {
    let itself = |side: &Program| {
        run(
            side,
            &[
                "create a.rrd -b 1000000000 -s 10 DS:x:GAUGE:20:U:U RRA:AVERAGE:0.5:1:5",
                "update a.rrd 1000000010:1",
            ],
        );
        let words = "xport -s 1000000000 -e 1000000020 DEF:a=a.rrd:x:AVERAGE CDEF:c=a,c,+ XPORT:c";
        let answer = side.run(&words.split(' ').collect::<Vec<_>>(), b"");
        vec![format!("{:?} {}", answer.status, answer.error.trim())]
    };
    check(itself, &["Some(1) ERROR: don't understand 'c,+'"], &["None "]);
    let time = |side: &Program| {
        run(
            side,
            &[
                "create a.rrd -b 1000000000 -s 10 DS:x:GAUGE:20:U:U RRA:AVERAGE:0.5:1:5",
                "update a.rrd 1000000010:1",
            ],
        );
        let words =
            "graph /dev/null -s 1000000000 -e 1000000020 DEF:a=a.rrd:x:AVERAGE PRINT:a:LAST:%Y:strftime";
        vec![run(side, &[words]).contains('-').to_string()]
    };
    check(time, &["true"], &["false"]);
    let long = |side: &Program| {
        run(side, &["create a.rrd -b 1000000000 -s 10 DS:x:GAUGE:20:U:U RRA:AVERAGE:0.5:1:5"]);
        let words =
            "xport -s 1000000000 -e 1000000020 DEF:a=a.rrd:x:AVERAGE VDEF:v=a,LAST PRINT:v:%300lf XPORT:a";
        vec![run(side, &[words]).contains("</print>").to_string()]
    };
    check(long, &["true"], &["false"]);
}

/// The slips that change values.
fn check_values() {
    let computed = |side: &Program| {
        run(
            side,
            &[
                "create a.rrd -b 1000000000 -s 10 DS:x:GAUGE:20:U:U DS:y:COMPUTE:x,2,* RRA:AVERAGE:0.5:1:5",
                "update a.rrd 1000000010:5 1000000020:6",
                "dump a.rrd a.xml",
                "restore -r a.xml b.rrd",
            ],
        );
        lines(&run(side, &["fetch b.rrd AVERAGE -s 1000000000 -e 1000000009"]), "1000000010")
    };
    let want = "1000000010: 5.0000000000e+00 1.0000000000e+01";
    check(computed, &[want], &["1000000010: 5.0000000000e+00 -nan"]);
    let failures = |side: &Program| {
        run(
            side,
            &[
                "create a.rrd -b 1000000000 -s 1 DS:x:GAUGE:3:U:U RRA:HWPREDICT:60:0.1:0.01:7:2 RRA:SEASONAL:7:0.1:1 \
             RRA:DEVSEASONAL:7:0.1:1 RRA:DEVPREDICT:60:3 RRA:FAILURES:60:5:20:3",
            ],
        );
        for age in 1..=60 {
            let value = age % 7 + if age > 30 { age * 50 } else { 0 };
            run(side, &[&format!("update a.rrd {}:{value}", 1_000_000_000 + age)]);
        }
        lines(&run(side, &["dump a.rrd a.xml", "restore a.xml b.rrd", "dump b.rrd"]), "history")
    };
    let ours = "<history>00100000011111111111</history>";
    check(failures, &[ours], &["<history>00100000010000000000</history>"]);
    let gap = |side: &Program| {
        let end = 1_000_000_050 + (1u64 << 32) + 5;
        run(
            side,
            &[
                "create a.rrd -b 1000000000 -s 1 DS:x:GAUGE:20:U:U RRA:AVERAGE:0:100:50",
                "update a.rrd 1000000001:1 1000000050:2",
                &format!("update a.rrd {end}:2"),
            ],
        );
        lines(&run(side, &["info a.rrd"]), "unknown_datapoints")
    };
    let counted = |count: u32| format!("rra[0].cdp_prep[0].unknown_datapoints = {count}");
    check(gap, &[&counted(51)], &[&counted(54)]);
}
