//! Random command lines: options of each verb spelt, ordered, repeated and omitted in all ways, with odd
//! numbers, names and times. Most of them are invalid in one way or another.

use crate::harness::Draw;
use crate::random::{Command, words};
use crate::scenarios::stop_clock;

/// Commands per scenario, including the two that create RRDs.
const COMMANDS: usize = 18;

/// An option of a verb: its letter, its long name, and its argument, if any.
struct Spelling(Option<char>, &'static str, &'static [&'static str]);

const NAMES: &[&str] = &[
    "a.rrd",
    "a.rrd",
    "a.rrd",
    "a.rrd",
    "b c.rrd",
    "sub/d:e.rrd",
    "\u{fc}\u{20ac}.rrd",
    "./a.rrd",
    "sub/../a.rrd",
    "nope.rrd",
    "bad.rrd",
    "empty.rrd",
    "sub",
    "",
    "nodir/a.rrd",
    "a.rrd/x",
];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "5",
    "-1",
    "+1",
    "01",
    "0x10",
    "1e3",
    "1.5",
    ".5",
    " 4",
    "4 ",
    "x",
    "",
    "1x",
    "-0",
    "U",
    "nan",
    "inf",
    "99999999999999999999",
];
/// No time is now or long ago: a fetch would have millions of rows.
const TIMES: &[&str] = &[
    "1000000000",
    "1000000033",
    "999999000",
    "1000000000",
    "1000000100",
    "end-1h",
    "e-60",
    "20010909",
    "20010909 01:46",
    "01:46 20010909",
    "01:50 09/09/2001",
    "9.9.2001 01:50",
    "1:50am Sep 9 2001",
    "Sep 9 2001",
    "noon Sep 9 2001",
    "start+1h",
    "s+60s",
    "start+5min",
    "end-2d3h",
    "1000000000-5m",
    "1000000000+1d",
    "0",
    "x",
    "100",
    "end",
    "start",
    "12:61 20010909",
    "20011309",
    "midnight 20010909 + 1 hour",
    "00:00 1.1.2002 - 4 months",
];
const STEPS: &[&str] =
    &["1", "10", "30", "300", "5m", "1h", "1d", "0", "-10", "x", "", "1.5x", "10s", "1M", "7", "100"];
const SOURCES: &[&str] =
    &["d0:5", "d1:U", "d0:-3.5", "d9:1", "d0", "d0:x", ":5", "d0:", "d1:1e300", "", "d0:5:6"];

const UPDATE: &[Spelling] = &[
    Spelling(Some('t'), "template", &["d0", "d1", "d0:d1", "d1:d0", "d0:d0", "x", "", "d0:"]),
    Spelling(None, "skip-past-updates", &[]),
];
const RANGE: &[Spelling] = &[
    Spelling(Some('s'), "start", TIMES),
    Spelling(Some('e'), "end", TIMES),
    Spelling(Some('r'), "resolution", STEPS),
    Spelling(Some('a'), "align-start", &[]),
];
const DUMP: &[Spelling] = &[
    Spelling(Some('h'), "header", &["none", "xsd", "dtd", "x", "", "NONE"]),
    Spelling(Some('n'), "no-header", &[]),
];
const RESTORE: &[Spelling] =
    &[Spelling(Some('r'), "range-check", &[]), Spelling(Some('f'), "force-overwrite", &[])];
const INFO: &[Spelling] = &[Spelling(Some('F'), "noflush", &[])];
const FIRST: &[Spelling] = &[Spelling(None, "rraindex", NUMBERS)];
const LIST: &[Spelling] = &[
    Spelling(Some('r'), "recursive", &[]),
    Spelling(Some('F'), "noflush", &[]),
    Spelling(Some('d'), "daemon", &["", "unix:/nope"]),
];
const CREATE: &[Spelling] = &[
    Spelling(Some('b'), "start", TIMES),
    Spelling(Some('s'), "step", STEPS),
    Spelling(Some('O'), "no-overwrite", &[]),
];
const TUNE: &[Spelling] = &[
    Spelling(Some('h'), "heartbeat", SOURCES),
    Spelling(Some('i'), "minimum", SOURCES),
    Spelling(Some('a'), "maximum", SOURCES),
    Spelling(
        Some('d'),
        "data-source-type",
        &["d0:GAUGE", "d1:COUNTER", "d0:x", "d9:GAUGE", "d0", "d0:ABSOLUTE"],
    ),
    Spelling(
        Some('r'),
        "data-source-rename",
        &["d0:n0", "d0:d1", "d9:x", "d0", "d0:toolongnameofadatasource", "d1:d1"],
    ),
    Spelling(Some('p'), "deltapos", NUMBERS),
    Spelling(Some('n'), "deltaneg", NUMBERS),
    Spelling(Some('w'), "window-length", NUMBERS),
    Spelling(Some('f'), "failure-threshold", NUMBERS),
    Spelling(Some('x'), "alpha", NUMBERS),
    Spelling(Some('y'), "beta", NUMBERS),
    Spelling(Some('z'), "gamma", NUMBERS),
    Spelling(Some('v'), "gamma-deviation", NUMBERS),
    Spelling(Some('b'), "aberrant-reset", SOURCES),
    Spelling(Some('s'), "smoothing-window", &["0.1", "0", "1", "2", "x", ""]),
    Spelling(Some('S'), "smoothing-window-deviation", &["0.1", "0", "1", "2", "x", ""]),
];

/// The commands of one scenario.
pub fn scenario(draw: &mut Draw) -> Vec<Command> {
    let start =
        "-b 1000000000 -s 10 DS:d0:GAUGE:30:U:U DS:d1:DERIVE:30:0:U RRA:AVERAGE:0.5:1:20 RRA:MAX:0.5:6:9";
    let mut commands = vec![words(&format!("create a.rrd {start}"))];
    if draw.once_in(2) {
        commands[0].push("RRA:HWPREDICT:20:0.1:0.01:5".to_string());
    }
    let other = draw.of(&["b c.rrd", "sub/d:e.rrd", "\u{fc}\u{20ac}.rrd"]);
    let mut second = words(&format!("create x {start}"));
    second[1] = other.to_string();
    commands.push(second);
    commands.push(words("update a.rrd 1000000007:1:2 1000000018:3:9 1000000031:U:12 1000000052:8:90"));
    let zone = draw.of(&[
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Asia/Kolkata",
        "EST5EDT",
        ":Asia/Tokyo",
        "",
        "nowhere",
    ]);
    commands.push(vec!["set".to_string(), format!("TZ={zone}")]);
    commands.push(words(&format!("set LC_ALL={}", draw.of(&["C", "C.UTF-8", "de_DE.UTF-8", ""]))));
    while commands.len() < COMMANDS {
        commands.push(command(draw));
    }
    [stop_clock(), commands].concat()
}

fn command(draw: &mut Draw) -> Command {
    let name = |draw: &mut Draw| draw.of(NAMES).to_string();
    match draw.below(15) {
        0 => {
            let mut plain = vec![name(draw)];
            for _ in 0..draw.below(4) {
                let time = draw.of(&[
                    "1000000060",
                    "1000000075",
                    "1000000090.5",
                    "1000000200",
                    "999",
                    "",
                    "x",
                    "20010909",
                    "-5",
                ]);
                let mark = draw.of(&[":", ":", ":", "@", ""]);
                plain.push(format!(
                    "{time}{mark}{}",
                    draw.of(&["1:2", "1", "U:U", "1:2:3", "", ":", "1.5:7", "x:1"])
                ));
            }
            spelled(draw, "update", UPDATE, &plain)
        }
        1..=3 => {
            let cf =
                draw.of(&["AVERAGE", "AVERAGE", "MAX", "MIN", "HWPREDICT", "average", "", "x"]).to_string();
            let plain = vec![name(draw), cf];
            let mut all = spelled(draw, "fetch", RANGE, &plain);
            // A fetch up to now would have many rows, and another second for each program.
            all.splice(1..1, words("--start 1000000000 --end 1000000200"));
            all
        }
        4 => {
            let plain =
                if draw.once_in(3) { vec![name(draw), "out.xml".to_string()] } else { vec![name(draw)] };
            spelled(draw, "dump", DUMP, &plain)
        }
        5 => {
            let plain = vec![draw.of(&["out.xml", "-", "nope.xml", "bad.rrd"]).to_string(), name(draw)];
            spelled(draw, "restore", RESTORE, &plain)
        }
        6 => {
            let plain = vec![name(draw)];
            spelled(draw, draw_verb(plain[0].len()), INFO, &plain)
        }
        7 => {
            let plain = vec![name(draw)];
            spelled(draw, "first", FIRST, &plain)
        }
        8 => {
            let plain = vec![
                draw.of(&[
                    "sub",
                    "a.rrd",
                    "nope",
                    "sub/",
                    "./sub",
                    "./*.rrd",
                    "sub/*",
                    "./[a-c]*",
                    "sub/..",
                    "sub/../*.rrd",
                    "a..b",
                ])
                .to_string(),
            ];
            spelled(draw, "list", LIST, &plain)
        }
        9 => {
            let plain = [
                name(draw),
                draw.of(NUMBERS).to_string(),
                draw.of(&["GROW", "SHRINK", "grow", ""]).to_string(),
                draw.of(NUMBERS).to_string(),
            ];
            spelled(draw, "resize", &[], &plain)
        }
        10..=11 => {
            let plain = vec![name(draw)];
            spelled(draw, "tune", TUNE, &plain)
        }
        12 => {
            let plain = [
                draw.of(&["n.rrd", "sub/n.rrd", "a.rrd", "", "nodir/n.rrd", "sub"]).to_string(),
                "DS:d0:GAUGE:30:U:U".to_string(),
                format!(
                    "RRA:AVERAGE:{}:{}:{}",
                    draw.of(NUMBERS),
                    draw.of(&["1", "2", "1h"]),
                    draw.of(&["5", "7", "x", "0"])
                ),
            ];
            let mut all = spelled(draw, "create", CREATE, &plain);
            all.splice(1..1, words("--start 1000000000"));
            all
        }
        13 => {
            let mut all = words("xport --start 1000000000 --end 1000000100");
            all.extend(words(draw.of(&[
                "",
                "--json",
                "-t",
                "--json -t",
                "--enumds",
                "-m 5",
                "--maxrows 20",
                "--step 30",
                "-m x",
            ])));
            all.push(format!(
                "DEF:a={}:d0:{}",
                draw.of(&["a.rrd", "nope.rrd", "bad.rrd"]),
                draw.of(&["AVERAGE", "MAX", "MIN", "x"])
            ));
            all.extend(words(draw.of(&[
                "XPORT:a",
                "XPORT:a:x",
                "XPORT:b",
                "CDEF:b=a,2,* XPORT:b:y XPORT:a",
                "CDEF:b=a,+",
                "",
            ])));
            all
        }
        _ => {
            let verb = draw.of(&["last", "lastupdate", "first", "info", "flushcached", "update", "updatev"]);
            let plain: Vec<_> = (0..draw.below(3)).map(|_| name(draw)).collect();
            spelled(draw, verb, &[], &plain)
        }
    }
}

fn draw_verb(number: usize) -> &'static str {
    ["info", "last", "lastupdate"][number % 3]
}

/// The arguments in any order, with some of the options in any of their spellings.
fn spelled(draw: &mut Draw, verb: &str, options: &[Spelling], plain: &[String]) -> Command {
    let mut groups: Vec<Command> = plain.iter().map(|word| vec![word.clone()]).collect();
    let count = if options.is_empty() { 0 } else { draw.below(4) };
    for _ in 0..count {
        let Spelling(short, long, arguments) = &options[draw.below(options.len())];
        let argument = (!arguments.is_empty()).then(|| draw.of(arguments));
        let group = match (draw.below(3), short, argument) {
            (0, Some(short), None) => vec![format!("-{short}")],
            (0, Some(short), Some(argument)) => vec![format!("-{short}{argument}")],
            (1, Some(short), Some(argument)) => vec![format!("-{short}"), argument.to_string()],
            (2, _, Some(argument)) => vec![format!("--{long}={argument}")],
            (_, _, Some(argument)) => vec![format!("--{long}"), argument.to_string()],
            (_, _, None) => vec![format!("--{long}")],
        };
        let at = draw.below(groups.len() + 1);
        groups.insert(at, group);
    }
    if draw.once_in(8) {
        let odd =
            draw.of(&["--", "-", "--bogus", "-Q", "--start", "-s", "--x=1", "-h", "---", "--=", "extra"]);
        let at = draw.below(groups.len() + 1);
        groups.insert(at, vec![odd.to_string()]);
    }
    if draw.once_in(8) && !groups.is_empty() {
        let at = draw.below(groups.len());
        groups.remove(at);
    }
    std::iter::once(verb.to_string()).chain(groups.concat()).collect()
}
