//! Random tunes of random RRDs: verdict, text and every bit of the file against Debian's rrdtool.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

mod support;

use roundel_rrd::codec::file;
use roundel_rrd::content::Rrd;
use roundel_rrd::tune::{tune, tune_content};
use support::Random;
use testkit::RrdTool;

const SEEDS: u64 = 200;
const TUNES: u64 = 12;
const FILE: &str = "t.rrd";
const NUMBERS: [&str; 26] = [
    "0.5",
    "0.1",
    "0.25",
    "0.05",
    "0",
    "1",
    "2",
    "3",
    "-1",
    "nan",
    "inf",
    "-inf",
    "x",
    "\"\"",
    "5x",
    "0.5x",
    "1e5",
    "1e-400",
    "1e400",
    "9",
    "28",
    "29",
    "+.3",
    "4294967298",
    "3.7",
    "1e",
];
const LIMITS: [&str; 18] = [
    "U", "UNKN", "U5", "0", "-5", "100", "1e3", "1E3", "1e3x", "nan", "1-2", "", "1.5.2", ".5", "-", "1e400",
    "010", "12:3",
];
const HEARTBEATS: [&str; 11] =
    ["30", "0", "-5", "1h", "", "x", "+7", "1.5", "010", "99999999999999999999", "20:30"];
const TYPES: [&str; 10] =
    ["GAUGE", "COUNTER", "DERIVE", "ABSOLUTE", "DCOUNTER", "DDERIVE", "FOO", "gauge", "", "GAUGE1"];
const NAMES: [&str; 7] = ["d0", "d1", "new", "a-b_9", "b.c", "", "z:y"];

fn make(tool: &mut RrdTool, random: &mut Random) {
    let start = 1_000_000_000 + random.below(1000);
    let ds_count = 1 + random.below(3);
    let mut create = format!("create {FILE} --start {start} --step 10");
    for ds in 0..ds_count {
        let kind = random.pick(&["GAUGE", "COUNTER", "DERIVE", "DCOUNTER"]);
        create += &format!(" DS:d{ds}:{kind}:30:U:U");
    }
    create += &format!(" RRA:AVERAGE:0.5:{}:5", 1 + random.below(3));
    for _ in 0..random.below(3) {
        let cf = random.pick(&["HWPREDICT", "MHWPREDICT"]);
        create += &format!(" RRA:{cf}:{}:0.1:0.0035:{}", 15 + random.below(10), 3 + random.below(6));
    }
    tool.run(&create).unwrap();
    let mut time = start;
    for _ in 0..random.below(60) {
        time += 1 + random.below(20);
        let values: String = (0..ds_count).map(|_| format!(":{}", time * 3 + random.below(400))).collect();
        tool.run(&format!("update {FILE} {time}{values}")).unwrap();
    }
}

/// Creates a file whose plain archives follow the Holt-Winters ones, which then keep their indexes (RRDtool does not
/// correct the references between them). Returns the number of sources and the plain archives.
fn make_for_layout(tool: &mut RrdTool, random: &mut Random) -> (u64, std::ops::Range<u64>) {
    let start = 1_000_000_000 + random.below(1000);
    let ds_count = 1 + random.below(4);
    let sources: String = (0..ds_count).map(|ds| format!(" DS:d{ds}:GAUGE:30:U:U")).collect();
    let mut archives = String::new();
    let first = if random.chance(40) { 5 } else { 0 };
    if first != 0 {
        archives += &format!(" RRA:HWPREDICT:{}:0.1:0.0035:{}", 15 + random.below(10), 3 + random.below(6));
    }
    let plain_count = 1 + random.below(4);
    for _ in 0..plain_count {
        let cf = random.pick(&["AVERAGE", "MIN", "MAX", "LAST"]);
        archives += &format!(" RRA:{cf}:0.5:{}:{}", 1 + random.below(5), 2 + random.below(12));
    }
    tool.run(&format!("create {FILE} --start {start} --step 10{sources}{archives}")).unwrap();
    let mut time = start;
    for _ in 0..random.below(80) {
        time += 1 + random.below(20);
        let values: String = (0..ds_count).map(|_| format!(":{}", random.below(400))).collect();
        tool.run(&format!("update {FILE} {time}{values}")).unwrap();
    }
    (ds_count, first..first + plain_count)
}

/// Arguments that change the layout. Not covered: rows that RRDtool makes up, and archives that are deleted before
/// others, whose rows RRDtool then mixes up.
fn layout_args(random: &mut Random, ds_count: u64, plain: &std::ops::Range<u64>) -> Vec<String> {
    let mut args = Vec::new();
    for _ in 0..1 + random.below(3) {
        let rra = plain.start + random.below(plain.end - plain.start);
        let last = plain.end - 1;
        let several = plain.end - plain.start > 1;
        args.push(match random.below(12) {
            0 => format!("DS:n{}:GAUGE:20:0:U", random.below(3)),
            1 => format!("DS:n{}:{}:7:U:5", random.below(3), random.pick(&["DCOUNTER", "DDERIVE", "DERIVE"])),
            2 | 3 if ds_count > 1 => format!("DEL:d{}", 1 + random.below(ds_count)),
            4 | 5 if several => format!("DELRRA:{last}"),
            6 => format!("RRA#{rra}:-{}", random.below(2)),
            7 if several => format!("RRA#{last}:=0"),
            8 => format!("RRA#{rra}:{}", random.pick(&["=1", "-0", "+0x", "= 1"])),
            9 if plain.end == 1 => format!("RRA#0:+{}", random.below(9)),
            10 => format!("--heartbeat=d0:{}", random.below(100)),
            _ if random.chance(50) => random.pick(&BAD_LAYOUT).to_string(),
            _ => "DELRRA:99".to_string(),
        });
    }
    args
}

const BAD_LAYOUT: [&str; 16] = [
    "foo",
    "DEL:",
    "DELRRA:-1",
    "DELRRA:",
    "RRA#0",
    "RRA#",
    "RRA#0:*1",
    "RRA#x:+1",
    "RRA#0:+x",
    "RRA#0:5",
    "DS:d0:GAUGE:20:U:U",
    "DS:n:FOO:20:U:U",
    "DS:n",
    "RRA:FOO:0.5:1:1",
    "RRA:AVERAGE:0.5",
    "DEL:nope",
];

fn args(random: &mut Random) -> Vec<String> {
    let mut args = Vec::new();
    for _ in 0..1 + random.below(3) {
        let ds = random.pick(&["d0", "d0", "d0", "d1", "d2", "nope", "", "a.b"]).to_string();
        let number = random.pick(&NUMBERS).to_string();
        let (short, long, argument) = match random.below(18) {
            0 => ("h", "heartbeat", format!("{ds}:{}", random.pick(&HEARTBEATS))),
            1 => ("i", "minimum", format!("{ds}:{}", random.pick(&LIMITS))),
            2 => ("a", "maximum", format!("{ds}:{}", random.pick(&LIMITS))),
            3 => ("d", "data-source-type", format!("{ds}:{}", random.pick(&TYPES))),
            4 => ("r", "data-source-rename", format!("{ds}:{}", random.pick(&NAMES))),
            5 => ("p", "deltapos", number),
            6 => ("n", "deltaneg", number),
            7 => ("f", "failure-threshold", number),
            8 => ("w", "window-length", number),
            9 => ("x", "alpha", number),
            10 => ("y", "beta", number),
            11 => ("z", "gamma", number),
            12 => ("v", "gamma-deviation", number),
            13 => ("s", "smoothing-window", number),
            14 => ("S", "smoothing-window-deviation", number),
            15 => ("b", "aberrant-reset", if ds.is_empty() { "\"\"".to_string() } else { ds }),
            16 => ("t", "step", number),
            _ => (random.pick(&["k", "b", "q"]), random.pick(&["alph", "heartbeats", "gamma"]), number),
        };
        match random.below(4) {
            0 if !argument.starts_with('"') => args.push(format!("--{long}={argument}")),
            0 | 1 => args.extend([format!("--{long}"), argument]),
            2 if !argument.starts_with('"') => args.push(format!("-{short}{argument}")),
            _ => args.extend([format!("-{short}"), argument]),
        }
        if random.chance(3) {
            args.push(random.pick(&["foo", "-", "--"]).to_string());
        }
    }
    args
}

/// A text that shows every relevant bit of an RRD: NaNs of different sign are not equal here.
fn show(rrd: &Rrd) -> String {
    let bits =
        |values: &[f64]| values.iter().map(|value| format!("{:x} ", value.to_bits())).collect::<String>();
    let mut text = format!("{:?}\n{:x?}\n", rrd.definition, rrd.live.words);
    for season in &rrd.live.seasons {
        text += &format!("{} {} {}\n", season.rra, season.current_row, bits(&season.values));
    }
    for archive in &rrd.archives {
        text += &format!("{}\n", bits(archive));
    }
    text
}

/// Where two texts differ, by the number of the word.
fn differences(theirs: &str, ours: &str) -> String {
    let pairs = theirs.split_whitespace().zip(ours.split_whitespace()).enumerate();
    let differing = pairs.filter(|(_, (theirs, ours))| theirs != ours);
    differing.map(|(at, (theirs, ours))| format!("word {at}: rrdtool {theirs}, we {ours}\n")).collect()
}

fn compare(tool: &mut RrdTool, random: &mut Random) -> Result<(), String> {
    make(tool, random);
    let path = tool.path(FILE);
    let read = || file::decode(&std::fs::read(&path).unwrap()).map(|parts| parts.rrd);
    for _ in 0..TUNES {
        let before = std::fs::read(&path).unwrap();
        let mut ours = read().unwrap();
        let args = args(random);
        let line = format!("tune {FILE} {}", args.join(" "));
        let theirs = tool.run(&line).map(|_| ());
        let args: Vec<&str> = args.iter().map(|arg| if arg == "\"\"" { "" } else { arg }).collect();
        let mine = tune(&mut ours.definition, &mut ours.live, &args).map_err(|error| error.to_string());
        if theirs != mine {
            return Err(format!("{line}\nrrdtool {theirs:?}\nwe {mine:?}"));
        }
        if theirs.is_err() {
            // RRDtool leaves the arguments before the bad one in effect; we do not.
            std::fs::write(&path, before).unwrap();
            continue;
        }
        let theirs = read().map_err(|error| format!("{line}\n{error}"))?;
        let (theirs, mine) = (show(&theirs), show(&ours));
        if theirs != mine {
            return Err(format!("{line}\n{}\n{mine}", differences(&theirs, &mine)));
        }
    }
    Ok(())
}

/// Rotates each season so that its newest row comes last: RRDtool draws a new ring position.
fn unroll(mut rrd: Rrd) -> Rrd {
    let ds_count = rrd.definition.ds.len();
    for season in &mut rrd.live.seasons {
        season.values.rotate_left((season.current_row as usize + 1) * ds_count);
        season.current_row = 0;
    }
    rrd
}

fn compare_layout(tool: &mut RrdTool, random: &mut Random) -> Result<(), String> {
    let (ds_count, plain) = make_for_layout(tool, random);
    let path = tool.path(FILE);
    let read = || file::decode(&std::fs::read(&path).unwrap()).map(|parts| parts.rrd);
    let mut ours = read().unwrap();
    let args = layout_args(random, ds_count, &plain);
    let line = format!("tune {FILE} {}", args.iter().map(|arg| format!("\"{arg}\" ")).collect::<String>());
    let theirs = tool.run(&line).map(|_| ());
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mine = tune_content(&mut ours, &args).map_err(|error| error.to_string());
    if theirs != mine {
        return Err(format!("{line}\nrrdtool {theirs:?}\nwe {mine:?}"));
    }
    if theirs.is_ok() {
        let theirs = read().map_err(|error| format!("{line}\n{error}"))?;
        let (theirs, mine) = (show(&unroll(theirs)), show(&unroll(ours)));
        if theirs != mine {
            return Err(format!("{line}\n{}\n{mine}", differences(&theirs, &mine)));
        }
    }
    Ok(())
}

#[test]
fn layouts_are_tuned_as_rrdtool_does() {
    let mut tool = RrdTool::start().unwrap();
    for seed in 0..SEEDS {
        if let Err(what) = compare_layout(&mut tool, &mut Random::new(seed + 1)) {
            panic!("seed {seed}: {what}");
        }
    }
}

#[test]
fn settings_are_tuned_as_rrdtool_does() {
    let mut tool = RrdTool::start().unwrap();
    for seed in 0..SEEDS {
        if let Err(what) = compare(&mut tool, &mut Random::new(seed + 1)) {
            panic!("seed {seed}: {what}");
        }
    }
}
