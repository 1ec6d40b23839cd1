//! New RRDs that are filled from others: every bit of the file against Debian's rrdtool, over random sources.
//!
//! Not compared at random: rows that overlap another by a single second, which RRDtool loses or counts twice
//! (`single_seconds_are_not_lost`), and what Debian's rrdtool draws at random: where the rings of archives begin,
//! and the rows where seasons are smoothed.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

mod support;

use roundel_rrd::codec::file::{self, FileParts};
use roundel_rrd::content::Rrd;
use roundel_rrd::definition::Consolidation;
use roundel_rrd::definition::text::{CreateOptions, Limits, parse_create};
use roundel_rrd::prefill::{Forecasts, default_start, origins, prefill};
use roundel_rrd::tune::tune_content;
use roundel_rrd::when::parse_step;
use support::Random;
use testkit::RrdTool;

const SEEDS: u64 = 600;
const START: u64 = 1_000_000_000;
const CFS: [&str; 5] = ["AVERAGE", "AVERAGE", "MIN", "MAX", "LAST"];
const XFFS: [&str; 5] = ["0", "0.2", "0.5", "0.5", "0.9"];
const ROWS: [u64; 8] = [1, 1, 2, 3, 4, 5, 6, 12];

fn archives(random: &mut Random, count: u64) -> Vec<String> {
    let mut alike = (random.pick(&CFS).to_string(), ROWS[random.below(8) as usize], 1 + random.below(30));
    // Some are alike but for their xff.
    let shared = random.below(4) * 25;
    let mut archive = |random: &mut Random| {
        if !random.chance(shared) {
            alike = (random.pick(&CFS).to_string(), ROWS[random.below(8) as usize], 1 + random.below(30));
        }
        let (cf, per_row, rows) = &alike;
        format!("RRA:{cf}:{}:{per_row}:{rows}", random.pick(&XFFS))
    };
    (0..count).map(|_| archive(random)).collect()
}

/// A forecast of five archives; the other four follow all other archives.
fn predict(random: &mut Random) -> String {
    let cf = random.pick(&["HWPREDICT", "HWPREDICT", "MHWPREDICT"]);
    format!("RRA:{cf}:{}:0.1:0.02:{}", 10 + random.below(30), [3, 6, 6, 10][random.below(4) as usize])
}

/// Multiples of 5, so that no row overlaps another by a single second.
const STEPS: [u64; 9] = [10, 20, 30, 60, 5, 15, 25, 300, 3600];

/// A step: mostly 10, and otherwise one whose rows fit into those of others, or any.
fn step(random: &mut Random, usual: u64) -> u64 {
    if random.chance(usual) {
        return 10;
    }
    let fitting = random.chance(50);
    STEPS[random.below(if fitting { 4 } else { 9 }) as usize]
}

fn source(tool: &mut RrdTool, random: &mut Random, name: &str, step: u64) {
    let start = START + random.below(4) * 20 + if random.chance(30) { random.below(400) } else { 0 };
    let ds_count = 1 + random.below(2);
    let first = random.below(2);
    let heartbeat = random.pick(&[&2, &2, &1, &5]) * step;
    let kinds = ["GAUGE", "GAUGE", "GAUGE", "COUNTER", "DERIVE", "ABSOLUTE"];
    let sources: String = (first..first + ds_count)
        .map(|ds| format!(" DS:d{ds}:{}:{heartbeat}:U:U", random.pick(&kinds)))
        .collect();
    let count = 1 + random.below(5);
    let mut args = archives(random, count);
    let forecast = random.chance(40);
    if forecast {
        let at = random.below(args.len() as u64 + 1) as usize;
        args.insert(at, predict(random));
    }
    let args = args.join(" ");
    tool.run(&format!("create {name} --start {start} --step {step}{sources} {args}")).unwrap();
    let updates = random.below(55);
    let (jitter, gaps) = (random.chance(30), random.chance(30));
    let mut unknown = false;
    let mut line = format!("update {name}");
    let mut time = start - start % step;
    for update in 1..=updates {
        unknown ^= random.chance(15);
        time += step + if gaps && random.chance(5) { step * random.below(15) } else { 0 };
        let late = match update == updates {
            true => random.below(step) / 2 * random.below(2),
            false => random.below(step) * u64::from(jitter && random.chance(40)),
        };
        line += &format!(" {}", time + late);
        for ds in 0..ds_count {
            let value = format!("{}.{:03}", random.below(100), random.below(1000));
            let whole =
                sources.split(" DS:").nth(ds as usize + 1).is_some_and(|text| !text.contains("GAUGE"));
            let value = if whole { value.split('.').next().unwrap().to_string() } else { value };
            line += &if unknown && random.chance(60) { ":U".to_string() } else { format!(":{value}") };
        }
    }
    if updates > 0 {
        tool.run(&line).unwrap();
    }
}

fn read(tool: &RrdTool, name: &str) -> Rrd {
    file::decode(&std::fs::read(tool.path(name)).unwrap()).unwrap().rrd
}

/// The bytes of `ours` as a file, with what Debian's rrdtool draws at random taken from its file.
fn as_theirs(ours: &Rrd, theirs: &FileParts) -> Vec<u8> {
    let mut ours = ours.clone();
    for (ours, theirs) in ours.definition.rra.iter_mut().zip(&theirs.rrd.definition.rra) {
        if let (
            Consolidation::Seasonal { smooth_index, .. },
            Consolidation::Seasonal { smooth_index: theirs, .. },
        ) = (&mut ours.cf, &theirs.cf)
        {
            *smooth_index = *theirs;
        }
    }
    let ds_count = ours.definition.ds.len();
    for (ours, theirs) in ours.live.seasons.iter_mut().zip(&theirs.rrd.live.seasons) {
        let rows = ours.values.len() / ds_count;
        let moved = (theirs.current_row as usize + rows - ours.current_row as usize) % rows;
        ours.values.rotate_right(moved * ds_count);
        ours.current_row = theirs.current_row;
    }
    file::encode(&ours, &theirs.current_rows).unwrap()
}

fn show(rrd: &Rrd) -> String {
    let mut definition = rrd.definition.clone();
    for rra in &mut definition.rra {
        if let Consolidation::Seasonal { smooth_index, .. } = &mut rra.cf {
            *smooth_index = 0;
        }
    }
    let mut text = format!("{definition:?}\n");
    let shape = rrd.shape();
    let head = shape.split(&rrd.live.words);
    text += &format!("{:?}\n", head.last_update);
    head.pdp.iter().for_each(|pdp| text += &format!("{:?}\n", pdp));
    let ds_count = rrd.definition.ds.len();
    for (rra, archive) in rrd.archives.iter().enumerate() {
        let bits = |value: f64| format!("{value}={:x}", value.to_bits());
        for cdp in &head.cdp[rra * ds_count..][..ds_count] {
            let [a, b, c] = [cdp.primary, cdp.secondary, cdp.value].map(bits);
            text += &format!("cdp {a} {b} {c} {}\n", cdp.unknown_pdps);
        }
        if let Some(hw) = shape.hw_index(rra) {
            head.hw[hw * ds_count..][..ds_count].iter().for_each(|prep| text += &format!("{prep:?}\n"));
        }
        // Debian's rrdtool draws the start of a season's ring at random.
        let season = rrd.live.seasons.iter().find(|season| season.rra == rra);
        let archive = season.map_or(archive.clone(), |season| {
            let mut values = season.values.clone();
            let oldest = (season.current_row as usize + 1) * ds_count % values.len();
            values.rotate_left(oldest);
            values
        });
        text += &archive.iter().map(|value| format!("{}\n", bits(*value))).collect::<String>();
    }
    text
}

fn compare(tool: &mut RrdTool, random: &mut Random) -> Result<(), String> {
    let new_step = step(random, 60);
    let names = ["a.rrd", "b.rrd", "c.rrd"];
    let count = 1 + random.below(3) * random.below(2);
    let mut options = String::new();
    for name in &names[..count as usize] {
        let step = step(random, 70);
        source(tool, random, name, step);
        options += &format!(" -r {name}");
    }
    let mut args = vec!["DS:d0:GAUGE:20:U:U".to_string()];
    args.push(
        random
            .pick(&[
                "DS:d1:GAUGE:20:U:U",
                "DS:x=d0[1]:GAUGE:20:U:U",
                "DS:x=d1[2]:GAUGE:20:U:U",
                "DS:x=d1:COUNTER:20:U:U",
                "DS:d1:DERIVE:20:U:U",
                "DS:x=d1[7]:GAUGE:20:U:U",
            ])
            .to_string(),
    );
    let archive_count = 1 + random.below(3);
    args.extend(archives(random, archive_count));
    if random.chance(40) {
        let at = 2 + random.below(args.len() as u64 - 1) as usize;
        args.insert(at, predict(random));
    }
    let start = match random.below(10) {
        0 | 1 => Some(START + 40 + random.below(400)),
        2 => Some(START + 10 * random.below(60)),
        3 => Some(START + random.below(20_000) - 500),
        _ => None,
    };
    let start_option = start.map(|start| format!("--start {start}")).unwrap_or_default();
    let line = format!("create t.rrd {options} --step {new_step} {start_option} {}", args.join(" "));
    tool.run(&line).unwrap();
    let bytes = std::fs::read(tool.path("t.rrd")).unwrap();
    let theirs = file::decode(&bytes).unwrap();

    let sources: Vec<Rrd> = names[..count as usize].iter().map(|name| read(tool, name)).collect();
    let sources: Vec<&Rrd> = sources.iter().collect();
    let options = CreateOptions {
        step: parse_step(&new_step.to_string(), false).unwrap(),
        limits: Limits::FILE,
        file_name: b"t.rrd",
    };
    let definition = parse_create(&options, &args).unwrap();
    let start = start.map_or_else(|| default_start(&sources).unwrap(), |start| start as i64);
    let origins = origins(&definition, &args);
    let ours = prefill(definition, start, &origins, &sources, Forecasts::Filled);
    if as_theirs(&ours, &theirs) == bytes {
        return Ok(());
    }
    let (theirs, ours) = (show(&theirs.rrd), show(&ours));
    let lines = theirs.lines().zip(ours.lines()).enumerate().filter(|(_, (theirs, ours))| theirs != ours);
    let lines: String =
        lines.take(12).map(|(at, (t, o))| format!("  line {at}\n   rrdtool {t}\n   we      {o}\n")).collect();
    let sources: Vec<_> = sources.iter().map(|rrd| &rrd.definition).collect();
    Err(format!("{line}\n{sources:#?}\n{lines}"))
}

#[test]
fn new_rrds_are_filled_as_rrdtool_fills_them() {
    let mut tool = RrdTool::start().unwrap();
    for seed in testkit::random::seeds(SEEDS) {
        if let Err(what) = compare(&mut tool, &mut Random::new(seed + 1)) {
            panic!("seed {seed}: {what}");
        }
    }
}

/// Compat: a second that is all one row shares with another is lost or counted twice by Debian's rrdtool, and the
/// open row of an RRD with a step of one second is made from the second before it.
#[test]
fn single_seconds_are_not_lost() {
    let mut tool = RrdTool::start().unwrap();
    let mut compare = |span: u64, values: &[&str], step: u64, rra: &str| {
        tool.run(&format!(
            "create a.rrd --start {START} --step {span} DS:x:GAUGE:{}:U:U RRA:AVERAGE:0:1:50",
            2 * span
        ))
        .unwrap();
        let updates = values.iter().enumerate();
        let updates: Vec<String> =
            updates.map(|(at, value)| format!(" {}:{value}", START + span * (at as u64 + 1))).collect();
        tool.run(&format!("update a.rrd{}", updates.concat())).unwrap();
        let args = ["DS:x:GAUGE:20:U:U".to_string(), rra.to_string()];
        tool.run(&format!("create t.rrd -r a.rrd --step {step} {}", args.join(" "))).unwrap();
        let options = CreateOptions {
            step: parse_step(&step.to_string(), false).unwrap(),
            limits: Limits::FILE,
            file_name: b"",
        };
        let definition = parse_create(&options, &args).unwrap();
        let source = read(&tool, "a.rrd");
        let start = default_start(&[&source]).unwrap();
        let origins = origins(&definition, &args);
        let ours = prefill(definition, start, &origins, &[&source], Forecasts::Filled);
        [ours, read(&tool, "t.rrd")].map(|rrd| {
            let open = rrd.shape().split(&rrd.live.words).cdp[0];
            format!("{:?}, open {} {}", rrd.archives[0], open.value, open.unknown_pdps)
        })
    };
    let values = ["1", "2", "4", "8", "16", "32", "64", "128", "256"];
    let found = compare(1, &values, 1, "RRA:AVERAGE:0:2:2");
    assert_eq!(found, ["[24.0, 96.0], open 256 0", "[16.0, 64.0], open 128 0"]);
    let found = compare(3, &values, 4, "RRA:AVERAGE:0:1:2");
    assert_eq!(
        found,
        [
            "[46.666666666666664, 133.33333333333334], open NaN 0",
            "[46.666666666666664, 106.66666666666667], open NaN 0"
        ]
    );
    let found = compare(3, &["1", "2", "U", "8", "16", "32"], 7, "RRA:AVERAGE:0:1:2");
    assert_eq!(
        found,
        [
            "[1.7142857142857144, 12.952380952380953], open NaN 0",
            "[1.7142857142857144, 10.666666666666666], open NaN 0"
        ]
    );
}

/// Archives that tune adds to an RRD without gaps whose finest archive is long enough. RRDtool follows a different,
/// looser rule there and rounds differently, so complete rows are compared to twelve digits.
fn compare_tune(tool: &mut RrdTool, random: &mut Random) {
    let step = 10;
    tool.run(&format!(
        "create a.rrd --start {START} --step {step} DS:a:GAUGE:20:U:U DS:b:GAUGE:20:U:U RRA:AVERAGE:0.5:1:100"
    ))
    .unwrap();
    let updates = 60 + random.below(60);
    let mut value = || format!("{}.{:03}", random.below(100), random.below(1000));
    let values: Vec<String> =
        (1..=updates).map(|update| format!(" {}:{}:{}", START + update * step, value(), value())).collect();
    tool.run(&format!("update a.rrd{}", values.concat())).unwrap();
    let mut ours = read(tool, "a.rrd");
    let args = archives(random, 2);
    let line = format!("tune a.rrd {}", args.join(" "));
    tool.run(&line).unwrap();
    let theirs = read(tool, "a.rrd");
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    tune_content(&mut ours, &args).unwrap();
    for rra in 1..3 {
        let mut whole = 0;
        for (ours, theirs) in
            ours.archives[rra].iter().zip(&theirs.archives[rra]).filter(|(ours, _)| !ours.is_nan())
        {
            assert!((ours - theirs).abs() <= 1e-12 * theirs.abs(), "{line}: rrdtool {theirs}, we {ours}");
            whole += 1;
        }
        let (rows, span) = (ours.definition.rra[rra].row_count, ours.definition.rra[rra].pdp_per_row);
        let least = rows.min(updates.min(100) / span - 1);
        assert!(whole >= 2 * least, "{line}: {whole} values of {least} rows");
    }
}

#[test]
fn archives_that_tune_adds_are_filled() {
    let mut tool = RrdTool::start().unwrap();
    for seed in 0..100 {
        compare_tune(&mut tool, &mut Random::new(seed + 1));
    }
}
