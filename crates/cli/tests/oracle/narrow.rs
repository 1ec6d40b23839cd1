//! The conditions of `listed.rs` hold for what they list, and for nothing beside it.

use std::path::Path;

use crate::harness::{Answer, Pair};
use crate::listed::Call;
use crate::random::{Files, files, normal};

/// What is changed in our answer and in our files.
type Change = fn(&mut Answer, &mut Files);

/// Runs commands with both programs. The last one is listed as it is, and no longer after the change.
fn check(commands: &[&str], change: Change) {
    let pair = Pair::new();
    let Some(theirs) = &pair.theirs else { return };
    let mut last = None;
    for command in commands {
        let words: Vec<String> = command.split(' ').map(str::to_string).collect();
        let directories = [&pair.ours, theirs].map(|program| program.directory.as_path());
        let before = files(directories[0]);
        let [ours, want] = [&pair.ours, theirs].map(|program| normal(&pair, program.run(&words, b"")));
        last = Some((words, ours, want, before, directories.map(files)));
    }
    let (words, mut ours, want, before, mut after) = last.expect("a command");
    let is_listed = |ours: &Answer, after: &[Files; 2]| {
        Call { words: &words, ours, theirs: &want, program: pair.ours.path(), before: &before, after }
            .is_listed()
    };
    assert!(is_listed(&ours, &after), "{commands:?}:\n{ours:?}\n{want:?}");
    change(&mut ours, &mut after[0]);
    assert!(!is_listed(&ours, &after), "{commands:?}: anything is listed");
}

/// The heartbeat of the first source of the RRD that the last command has made or changed.
fn heartbeat(_: &mut Answer, files: &mut Files) {
    let name = if files.contains_key(Path::new("b.rrd")) { "b.rrd" } else { "a.rrd" };
    files.get_mut(Path::new(name)).expect("an RRD")[168] ^= 1;
}

/// A value of the first of two sources, in the newest row.
fn value(_: &mut Answer, files: &mut Files) {
    let bytes = files.get_mut(Path::new("b.rrd")).expect("an RRD");
    let at = bytes.len() - 16;
    bytes[at] ^= 1;
}

fn output(answer: &mut Answer, _: &mut Files) {
    answer.output = answer.output.replace("0000", "0001");
}

/// The last row of a table.
fn row(_: &mut Answer, files: &mut Files) {
    let table = files.get_mut(Path::new("x.csv")).expect("a table");
    let digit = table.iter().rposition(u8::is_ascii_digit).expect("a number");
    table[digit] ^= 1;
}

pub fn check_all() {
    const CREATE: &str =
        "create a.rrd -b 1000000000 -s 10 DS:x:GAUGE:30:U:U RRA:AVERAGE:0.5:1:5 RRA:MAX:0.5:2:3";
    const COMPUTED: &str =
        "create a.rrd -b 1000000000 -s 10 DS:x:GAUGE:30:U:U DS:y:COMPUTE:x,2,* RRA:AVERAGE:0.5:1:5";
    const UPDATE: &str = "update a.rrd 1000000010:5 1000000020:7 1000000030:9 1000000040:1 1000000050:3";
    let newer = "create a.rrd -b 1000000000 -s 10 DS:x:DCOUNTER:20:U:U RRA:AVERAGE:0.5:1:5";
    check(&[newer, "create b.rrd -t a.rrd"], heartbeat);
    let filled = "create b.rrd -b 1000000050 -s 3 -r a.rrd DS:x:GAUGE:30:U:U RRA:AVERAGE:0.5:1:9";
    check(&[CREATE, UPDATE, filled], heartbeat);
    check(&[CREATE, UPDATE, "tune a.rrd DELRRA:0"], heartbeat);
    check(&[COMPUTED, UPDATE, "tune a.rrd -d y:GAUGE"], heartbeat);
    check(
        &[
            "create a.rrd -b 1000000000 -s 1 DS:x:GAUGE:20:U:U RRA:AVERAGE:0:100:50",
            "update a.rrd 1000000001:1 1000000050:2",
            "update a.rrd 5294967351:2",
        ],
        heartbeat,
    );
    let refused = COMPUTED.replace("x,2,*", "5,x");
    check(&[&refused, "update a.rrd 1000000010:5"], heartbeat);
    check(&[COMPUTED, UPDATE, "dump a.rrd a.xml", "restore -r a.xml b.rrd"], value);
    const LONGER: &str = "create b.rrd -b 1000000000 -s 10 DS:x:GAUGE:30:U:U RRA:AVERAGE:0.5:1:500";
    check(&[CREATE, UPDATE, "dump a.rrd a.xml", LONGER, "restore -f a.xml b.rrd"], heartbeat);
    check(&[COMPUTED, UPDATE, "dump a.rrd a.xml", LONGER, "restore -f -r a.xml b.rrd"], value);
    const RANGE: &str = "-s 1000000000 -e 1000000050 DEF:a=a.rrd:x:AVERAGE";
    let table = format!("graph x.csv -a CSV {RANGE} LINE1:a#ff0000:x SHIFT:a:20");
    check(&[CREATE, UPDATE, &table], row);
    let unsaved = format!("graphv no/x.svg -a SVG {RANGE} PRINT:a:MAX:%lf");
    check(&[CREATE, UPDATE, &unsaved], output);
    let exported = format!("xport {RANGE} SHIFT:a:-20 XPORT:a");
    check(&[CREATE, UPDATE, &exported], output);
    let time = format!(
        "graphv /dev/null {RANGE} PRINT:a:LAST:%c:strftime PRINT:a:MAX:%lf VDEF:v=a,MINIMUM PRINT:v:%lf"
    );
    check(&[CREATE, UPDATE, &time], output);
    let legend = format!("xport --json {RANGE} XPORT:a:\"x\"");
    check(&[CREATE, UPDATE, &legend], output);
}
