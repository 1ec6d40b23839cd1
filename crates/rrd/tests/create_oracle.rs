//! `create` against Debian's rrdtool: the same arguments are refused with the same text, and the files have the
//! same bytes except for the ring positions, which RRDtool draws at random.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

mod support;

use roundel_rrd::codec::file;
use roundel_rrd::content::Rrd;
use roundel_rrd::create::new_live;
use roundel_rrd::definition::text::{CreateOptions, DefinitionError, Limits, parse_create};
use roundel_rrd::live::UNKNOWN;
use roundel_rrd::when::parse_step;
use support::Random;
use testkit::RrdTool;

const FILE: &str = "season.rrd";
const STEPS: [&str; 8] = ["1", "10", "300", "5m", "60", "7", "1h", "1d"];
const TYPES: [&str; 9] =
    ["GAUGE", "COUNTER", "DERIVE", "ABSOLUTE", "DCOUNTER", "DDERIVE", "GAUGE", "gauge", "FOO"];
const HEARTBEATS: [&str; 12] =
    ["600", "600", "20", "10m", "1d", "1M", "2y", "0", "x", "10x", "5mm", "18446744073709551616"];
const NUMBERS: [&str; 18] = [
    "U",
    "U",
    "U",
    "0",
    "1",
    "-5",
    "100",
    "1e3",
    "0.1",
    "nan",
    "-nan",
    "inf",
    "-inf",
    "1x",
    "x",
    "12345678901234567890123",
    "3.14159265358979",
    "1e-9",
];
const FRACTIONS: [&str; 12] =
    ["0.5", "0.1", "0.0035", "0.9", "0.25", "0.3333333333333", "0", "1", "-0.1", "nan", "x", "0.5x"];
const COUNTS: [&str; 14] = ["1", "10", "100", "5", "12", "7", "1d", "10m", "1h", "1w", "0", "-1", "x", "30m"];
const INDEXES: [&str; 9] = ["1", "2", "3", "4", "5", "2", "3", "0", "x"];
const EXPRESSIONS: [&str; 8] =
    ["a,b,+", "a", "a,2,*,b,ADDNAN", "x,1,+", "a,1", "a,TIME", "a,1.5,+", "b,a,GT"];

/// Mostly picks one of the first `good`: most arguments should be valid.
fn tame<'a>(random: &mut Random, from: &[&'a str], good: usize) -> &'a str {
    if random.chance(95) { random.pick(&from[..good]) } else { random.pick(from) }
}

fn source(random: &mut Random, name: &str) -> String {
    if random.chance(15) {
        return format!("DS:{name}:COMPUTE:{}", tame(random, &EXPRESSIONS, 3));
    }
    let kind = tame(random, &TYPES, 7);
    let heartbeat = tame(random, &HEARTBEATS, 7);
    let min = tame(random, &NUMBERS, 6);
    let max = tame(random, &["U", "U", "1000", "1e4", "inf", "U", "nan", "0", "x", "7:U"], 6);
    match random.below(40) {
        0 => format!("DS:{name}:{kind}:{heartbeat}"),
        1 => format!("DS:{name}:{kind}:{heartbeat}:{min}"),
        2 => format!("DS:{name}"),
        3 => format!("DS:{name}=b[3]:{kind}:{heartbeat}:{min}:{max}"),
        4 => format!("DS:{name}:{kind}:{heartbeat}:{}:{}", random.pick(&NUMBERS), random.pick(&NUMBERS)),
        _ => format!("DS:{name}:{kind}:{heartbeat}:{min}:{max}"),
    }
}

fn archive(random: &mut Random) -> String {
    let rows = tame(random, &COUNTS, 6);
    let fraction = tame(random, &FRACTIONS, 6);
    let index = random.pick(&INDEXES);
    let mut arg = match random.below(18) {
        0 => format!(
            "RRA:HWPREDICT:{rows}:{fraction}:{}:{}",
            tame(random, &FRACTIONS, 8),
            random.pick(&COUNTS)
        ),
        1 => format!("RRA:MHWPREDICT:{rows}:{fraction}:0.1:{}", tame(random, &COUNTS, 4)),
        2 => format!("RRA:HWPREDICT:{rows}:{fraction}:0.1:{}:{index}", tame(random, &COUNTS, 4)),
        3 => format!("RRA:SEASONAL:{rows}:{fraction}:{index}"),
        4 => format!("RRA:DEVSEASONAL:{rows}:{fraction}:{index}"),
        5 => format!("RRA:DEVPREDICT:{rows}:{index}"),
        6 => format!("RRA:FAILURES:{rows}:{}:{}:{index}", random.pick(&COUNTS), random.pick(&COUNTS)),
        _ => {
            let cf = tame(random, &["AVERAGE", "MIN", "MAX", "LAST", "AVG", "average"], 4);
            format!("RRA:{cf}:{fraction}:{}:{rows}", tame(random, &COUNTS, 9))
        }
    };
    match random.below(60) {
        0 => arg.push_str(":1"),
        1 => arg.push_str(":x:y:z"),
        2 | 3 => arg.push_str(":smoothing-window=0.25"),
        4 => arg.truncate(arg.rfind(':').unwrap_or(0)),
        5 => arg.truncate(8),
        _ => {}
    }
    arg
}

fn args(random: &mut Random) -> Vec<String> {
    let mut args = Vec::new();
    for name in ["a", "b", "long-Name_012345678"].iter().take(random.below(4) as usize) {
        args.push(source(random, name));
    }
    if random.chance(5) {
        args.push("DS:a:GAUGE:5:U:U".to_string());
    }
    for _ in 0..random.below(4) {
        args.push(archive(random));
    }
    if random.chance(20) {
        let period = random.below(20) + 1;
        let first = args.iter().filter(|arg| arg.starts_with("RRA:")).count() + 1;
        args.push(format!("RRA:HWPREDICT:100:0.1:0.0035:{period}:{}", first + 1));
        args.push(format!("RRA:SEASONAL:{period}:0.1:{first}"));
        args.push(format!("RRA:DEVSEASONAL:{period}:0.2:{first}:smoothing-window=0.1"));
        args.push(format!("RRA:DEVPREDICT:50:{}", first + 2));
        args.push(format!("RRA:FAILURES:20:3:8:{}", first + 2));
    }
    if random.chance(2) {
        args.push("nonsense".to_string());
    }
    args
}

/// Our file with their ring positions.
fn ours(definition: roundel_rrd::definition::Definition, start: i64, theirs: &file::FileParts) -> Vec<u8> {
    let mut live = new_live(&definition, start);
    for season in &mut live.seasons {
        season.current_row = theirs.current_rows[season.rra];
    }
    let ds_count = definition.ds.len();
    let archives = definition.rra.iter().map(|rra| match rra.cf.is_season() {
        true => Vec::new(),
        false => vec![UNKNOWN; rra.row_count as usize * ds_count],
    });
    let rrd = Rrd { archives: archives.collect(), definition, live };
    file::encode(&rrd, &theirs.current_rows).unwrap()
}

/// Whether RRDtool accepts this and then cannot work with it.
fn is_ours_alone(error: &DefinitionError) -> bool {
    matches!(error, DefinitionError::Mate { .. } | DefinitionError::Span(_) | DefinitionError::NoSeason)
}

#[test]
fn random_words_make_the_same_file_or_the_same_error() {
    let mut tool = RrdTool::start().unwrap();
    let (mut good, mut bad) = (0, 0);
    for seed in 0..6000 {
        let mut random = Random::new(seed);
        let step = random.pick(&STEPS);
        let start = 1_000_000_000 + random.below(1000) as i64;
        let args = args(&mut random);
        let case = format!("seed {seed}: --step {step} --start {start} {}", args.join(" "));
        let options = CreateOptions {
            step: parse_step(step, false).unwrap(),
            limits: Limits::FILE,
            file_name: FILE.as_bytes(),
        };
        let mine = parse_create(&options, &args);
        if mine.as_ref().is_err_and(is_ours_alone) {
            continue;
        }
        std::fs::remove_file(tool.path(FILE)).ok();
        let line = format!("create {FILE} --step {step} --start {start} {}", args.join(" "));
        let theirs = tool.run(&line);
        match mine {
            Err(error) => {
                assert_eq!(theirs, Err(error.to_string()), "{case}");
                bad += 1;
            }
            Ok(definition) => {
                theirs.unwrap_or_else(|error| panic!("{case}: {error}"));
                let bytes = std::fs::read(tool.path(FILE)).unwrap();
                let parts = file::decode(&bytes).unwrap_or_else(|error| panic!("{case}: {error}"));
                assert!(ours(definition, start, &parts) == bytes, "{case}: the files differ");
                good += 1;
            }
        }
    }
    assert!(good > 500 && bad > 500, "{good} good, {bad} bad");
}
