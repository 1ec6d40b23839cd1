//! Random command lines without a plan: any number of plausible and odd words after any verb, over a few RRDs of every
//! kind. Most are refused, some make strange RRDs which later ones read.

use crate::harness::Draw;
use crate::plots;
use crate::random::{Command, words};
use crate::scenarios::stop_clock;

/// Commands per scenario.
const COMMANDS: usize = 22;

const FILES: &[&str] = &[
    "a.rrd",
    "a.rrd",
    "a.rrd",
    "b.rrd",
    "b.rrd",
    "h.rrd",
    "n.rrd",
    "sub/n.rrd",
    "resize.rrd",
    "no.rrd",
    "bad.rrd",
    "empty.rrd",
];
const ODD: &[&str] = &[
    "",
    "-",
    "--",
    ":",
    "::",
    "=",
    "0",
    "-1",
    "1",
    "x",
    "N",
    "U",
    "nan",
    "inf",
    "-inf",
    "1e3",
    "1e400",
    "0x1f",
    "007",
    "+5",
    " ",
    " 5",
    "5 ",
    "1.5",
    ".",
    "..",
    "/no/such",
    "a.rrd",
    "a",
    "d0",
    "AVERAGE",
    "18446744073709551616",
    "9223372036854775807",
    "4294967296",
    "2147483648",
    "-2147483649",
    "1000000000",
    "%",
    "%s",
    "%lf",
    "\\",
    "\"",
    "'",
    "#",
    "*",
    "?",
    "[",
    "--help",
    "-h",
    "--version",
    "--start",
    "--step",
];
const TIMES: &[&str] = &[
    "1000000000",
    "999999990",
    "1000000055",
    "1000000300",
    "1000000300.5",
    "1000000001.999999",
    "1000000000-1h",
    "20010909 01:50",
    "end-5min",
    "start+5min",
    "e-90s",
    "s+1h",
    "09/09/2001",
    "9.9.2001 1:47",
    "Sep 9 2001 02:00",
    "01:47:20 20010909",
    "noon 20010909",
    "midnight 20010910",
    "teatime 9.9.2001",
    "1000000000 + 1 day",
    "1000000000 -2w+1d",
    "epoch",
    "-1",
    "0",
    "1",
    "end",
    "start",
    "x",
    "1000000000s",
    "20010909T01:50",
    "2001-09-09",
    "1e9",
    "1000000000+5m3s",
    "e-5m-3s",
    "1:61 20010909",
    "31.2.2002",
];
pub const CFS: &[&str] = &[
    "AVERAGE",
    "AVERAGE",
    "MIN",
    "MAX",
    "LAST",
    "HWPREDICT",
    "SEASONAL",
    "DEVPREDICT",
    "FAILURES",
    "average",
    "TOTAL",
];
pub const SOURCES: &[&str] = &["d0", "d0", "d0", "d1", "c", "x", "nope", ""];
const VALUES: &[&str] = &[
    "5",
    "7.25",
    "U",
    "-3",
    "1e10",
    "0",
    "nan",
    "inf",
    "-inf",
    "123456789012345678",
    "0x10",
    "+4",
    "",
    "x",
    "5x",
    "1,5",
    " 6",
    "-0",
    "1e-310",
    "4294967295",
    "18446744073709551615",
    "99999999999999999999",
];

pub fn of(draw: &mut Draw, from: &[&str]) -> String {
    draw.of(from).to_string()
}

/// The commands of one scenario.
pub fn scenario(draw: &mut Draw) -> Vec<Command> {
    let step = [2, 10, 10, 60][draw.below(4)];
    let base = format!("-b 1000000000 -s {step}");
    let heartbeat = step * 3;
    let mut commands = vec![
        words("set LC_ALL=C"),
        words(&format!("set TZ={}", draw.of(&["UTC", "Europe/Berlin", "America/St_Johns"]))),
        words(&format!(
            "create a.rrd {base} DS:d0:GAUGE:{heartbeat}:U:U DS:d1:{}:{heartbeat}:0:U RRA:AVERAGE:0.5:1:{} RRA:{}:0.5:{}:{}",
            draw.of(&["COUNTER", "DERIVE", "ABSOLUTE", "GAUGE"]),
            10 + draw.below(30),
            draw.of(&["MAX", "MIN", "LAST", "AVERAGE"]),
            2 + draw.below(5),
            1 + draw.below(12)
        )),
        words(&format!(
            "create b.rrd {base} DS:d0:{}:{heartbeat}:U:{} DS:c:COMPUTE:d0,{} RRA:LAST:0.3:{}:{} RRA:AVERAGE:0:2:9",
            draw.of(&["GAUGE", "DCOUNTER", "DDERIVE", "COUNTER"]),
            draw.of(&["U", "100", "1e3"]),
            draw.of(&["2,*", "UN,0,d0,IF", "LOG", "POP,5", "d0,+"]),
            1 + draw.below(3),
            3 + draw.below(9)
        )),
    ];
    let mut clock = 1_000_000_000;
    let mut line = "update a.rrd".to_string();
    let mut other = "update b.rrd".to_string();
    for _ in 0..5 + draw.below(12) {
        clock += 1 + draw.below(step * 2);
        line += &format!(" {clock}:{}:{}", draw.of(&["U", "1", "2.5", "70"]), draw.below(100_000));
        other += &format!(" {clock}:{}", draw.below(1000));
    }
    commands.extend([words(&line), words(&other)]);
    while commands.len() < COMMANDS {
        let all = command(draw, &mut clock, step);
        commands.push(spoil(draw, all));
    }
    [stop_clock(), commands].concat()
}

/// Changes a command line: removes, repeats, swaps, replaces or adds a word, or changes one within.
fn spoil(draw: &mut Draw, mut all: Command) -> Command {
    let changes = [0, 0, 0, 1, 1, 2][draw.below(6)];
    for _ in 0..changes {
        let at = 1 + draw.below(all.len());
        match draw.below(7) {
            0 if at < all.len() => drop(all.remove(at)),
            1 if at < all.len() => all.insert(at, all[at].clone()),
            2 if at + 1 < all.len() => all.swap(at, at + 1),
            3 if at < all.len() => all[at] = of(draw, ODD),
            4 if at < all.len() => {
                let (word, mut place) = (all[at].clone(), draw.below(all[at].len() + 1));
                while !word.is_char_boundary(place) {
                    place -= 1;
                }
                all[at].insert_str(place, draw.of(ODD));
            }
            5 if at < all.len() && all[at].is_ascii() && !all[at].is_empty() => {
                let place = draw.below(all[at].len());
                all[at].remove(place);
            }
            _ => all.insert(at, of(draw, ODD)),
        }
    }
    // Rows of years, or up to now, would take long and differ by the clock: the last range counts.
    if matches!(all[0].as_str(), "fetch" | "xport" | "graph" | "graphv") {
        all.retain(|word| word != "--");
        all.splice(1..1, words("--start 1000000000 --end 1000000200"));
        all.extend(words("-s 1000000000 -e 1000000300"));
    }
    all
}

fn command(draw: &mut Draw, clock: &mut usize, step: usize) -> Command {
    let file = of(draw, FILES);
    match draw.below(25) {
        0..=4 => update(draw, clock, step),
        5..=7 => {
            let mut all = words(&format!("fetch {file} {}", draw.of(CFS)));
            range(draw, &mut all);
            if draw.once_in(3) {
                all.extend(["-r".to_string(), of(draw, &["1", "10", "60", "20", "2m", "7", "0", "1h"])]);
            }
            if draw.once_in(4) {
                all.push("-a".to_string());
            }
            all
        }
        8..=10 => create(draw, step),
        11 => words(&format!(
            "{} {file}",
            draw.of(&["info", "last", "lastupdate", "first", "flushcached", "dump", "resize"])
        )),
        12 => words(&format!("first {file} --rraindex {}", draw.of(&["0", "1", "2", "3", "7", "-1"]))),
        13 => words(&format!(
            "dump {file} {}",
            draw.of(&["out.xml", "-n", "-h none", "-h xsd out.xml", "out.xml extra"])
        )),
        14 => words(&format!(
            "restore {} {} {}",
            draw.of(&["", "-f", "-r -f", "-r"]),
            "out.xml",
            of(draw, &["n.rrd", "sub/n.rrd", "a.rrd"])
        )),
        15 => words(&format!(
            "resize {file} {} {} {}",
            draw.below(4),
            draw.of(&["GROW", "SHRINK"]),
            draw.below(9)
        )),
        16..=18 => tune(draw, file),
        19 => {
            words(&format!("list {}", draw.of(&[".", "sub", "-r .", "no", "a.rrd", "./*.rrd", "sub/n.rrd"])))
        }
        _ => plots::plot(draw),
    }
}

pub fn range(draw: &mut Draw, all: &mut Command) {
    for (option, long) in [("-s", "--start"), ("-e", "--end")] {
        if draw.once_in(2) {
            let spelling = if draw.once_in(2) { option } else { long };
            all.extend([spelling.to_string(), of(draw, TIMES)]);
        }
    }
}

fn update(draw: &mut Draw, clock: &mut usize, step: usize) -> Command {
    let mut all = vec![of(draw, &["update", "update", "updatev"]), of(draw, FILES)];
    let mut width = if all[1] == "b.rrd" { 1 } else { 2 };
    if draw.once_in(4) {
        width = 1 + draw.below(2);
        let names: Vec<String> = (0..width).map(|_| of(draw, &["d0", "d0", "d1", "x", ""])).collect();
        all.extend(["-t".to_string(), names.join(":")]);
    }
    if draw.once_in(6) {
        all.push("--skip-past-updates".to_string());
    }
    for _ in 0..1 + draw.below(4) {
        *clock += draw.below(step * 3);
        let time = match draw.below(9) {
            0 => format!("{clock}.{}", draw.below(1_000_000)),
            1 => of(draw, TIMES),
            _ => clock.to_string(),
        };
        let values: Vec<String> =
            (0..width + usize::from(draw.once_in(20))).map(|_| of(draw, VALUES)).collect();
        all.push(format!("{time}{}{}", if draw.once_in(12) { "@" } else { ":" }, values.join(":")));
    }
    all
}

fn source(draw: &mut Draw, index: usize, step: usize) -> String {
    match draw.below(12) {
        0 => format!(
            "DS:c{index}:COMPUTE:{}",
            draw.of(&["d0,2,*", "d0,UN", "d0,d0,+", "PREV", "d0,PREV(d0)", "1", "d9", "d0,TIME,+", ""])
        ),
        1 => format!(
            "DS:d{index}={}:GAUGE:{}:U:U",
            draw.of(&["d0", "d1", "d0[1]", "d0[2]", "x", "d0[", "d0[x]", ""]),
            step * 2
        ),
        2 => format!(
            "DS:{}:{}:{}:{}:{}",
            of(draw, SOURCES),
            draw.of(&["GAUGE", "gauge", "COUNTER", ""]),
            of(draw, ODD),
            of(draw, ODD),
            of(draw, ODD)
        ),
        _ => format!(
            "DS:d{index}:{}:{}:{}",
            draw.of(&["GAUGE", "COUNTER", "DERIVE", "ABSOLUTE", "DCOUNTER", "DDERIVE"]),
            step * (1 + draw.below(4)),
            draw.of(&["U:U", "0:U", "U:100", "-5:5", "5:-5", "0:0", "nan:nan", "1e3:1e5"])
        ),
    }
}

fn create(draw: &mut Draw, step: usize) -> Command {
    let mut all = words(&format!("create {}", draw.of(&["n.rrd", "n.rrd", "sub/n.rrd", "h.rrd", "b.rrd"])));
    all.extend(["-b".to_string(), if draw.once_in(5) { of(draw, TIMES) } else { "1000000000".to_string() }]);
    if !draw.once_in(6) {
        all.extend(["-s".to_string(), if draw.once_in(6) { of(draw, ODD) } else { step.to_string() }]);
    }
    let filled = draw.once_in(3);
    if filled {
        all.extend(words(draw.of(&[
            "-r a.rrd",
            "-r b.rrd",
            "-r a.rrd -r b.rrd",
            "-t a.rrd",
            "-t b.rrd",
            "-r a.rrd -t a.rrd",
            "-r no.rrd",
            "-r bad.rrd",
            "-r a.rrd -t empty.rrd",
        ])));
    }
    for index in 0..draw.below(4) {
        all.push(source(draw, index, step));
    }
    for _ in 0..draw.below(4) {
        all.push(match draw.below(8) {
            0 => of(
                draw,
                &[
                    "RRA:HWPREDICT:20:0.1:0.01:5",
                    "RRA:MHWPREDICT:20:0.1:0.01:6",
                    "RRA:HWPREDICT:3:0.1:0.01:5",
                    "RRA:FAILURES:9:3:5:1",
                    "RRA:SEASONAL:5:0.1:1",
                ],
            ),
            1 => format!("RRA:{}:{}:{}:{}", of(draw, CFS), of(draw, ODD), of(draw, ODD), of(draw, ODD)),
            2 => format!(
                "RRA:{}:0.5:{}:{}",
                draw.of(CFS),
                draw.of(&["1m", "2m", "10", "1h", "1d"]),
                draw.of(&["10m", "1h", "5", "1d"])
            ),
            _ => format!(
                "RRA:{}:{}:{}:{}",
                draw.of(&["AVERAGE", "MIN", "MAX", "LAST"]),
                draw.of(&["0", "0.5", "0.9", "0.999", "1", "-0.1"]),
                1 + draw.below(7),
                1 + draw.below(15)
            ),
        });
    }
    all
}

fn tune(draw: &mut Draw, file: String) -> Command {
    let mut all = vec!["tune".to_string(), file];
    for _ in 0..1 + draw.below(2) {
        let source = of(draw, SOURCES);
        let number = of(draw, &["5", "0", "-1", "U", "1e3", "nan", "x", "", "0.5", "1", "2", "10", "30"]);
        match draw.below(12) {
            0..=3 => all.extend([
                of(draw, &["-h", "-i", "-a", "--heartbeat", "--minimum", "--maximum", "-b"]),
                format!("{source}:{number}"),
            ]),
            4 => all.extend([
                "-d".to_string(),
                format!(
                    "{source}:{}",
                    draw.of(&["GAUGE", "COUNTER", "DERIVE", "ABSOLUTE", "DCOUNTER", "COMPUTE", "x"])
                ),
            ]),
            5 => all.extend([
                "-r".to_string(),
                format!(
                    "{source}:{}",
                    draw.of(&["d0", "d1", "new", "d7", "a b", "toolongnameofadatasource", ""])
                ),
            ]),
            6..=8 => all.extend([
                of(
                    draw,
                    &[
                        "-p",
                        "-n",
                        "-w",
                        "-f",
                        "-x",
                        "-y",
                        "-z",
                        "-v",
                        "-s",
                        "-S",
                        "--alpha",
                        "--window-length",
                    ],
                ),
                number,
            ]),
            9 => all.push(of(
                draw,
                &["DEL:d1", "DEL:x", "DS:d5:GAUGE:20:U:U", "DS:d6:COUNTER:20:0:U", "DS:c6:COMPUTE:d0,2,*"],
            )),
            10 => all.push(of(
                draw,
                &[
                    "RRA#0:-1",
                    "RRA#1:-1",
                    "RRA#0:-3",
                    "RRA#7:+1",
                    "RRA#0:-99",
                    "DELRRA:0",
                    "DELRRA:7",
                    "DELRRA:x",
                    "RRA#:1",
                    "RRA#0",
                ],
            )),
            _ => all.push(of(draw, ODD)),
        }
    }
    all
}
