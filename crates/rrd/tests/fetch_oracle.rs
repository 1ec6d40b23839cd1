//! Random fetches from random RRDs: the plan and every value against Debian's rrdtool.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

mod support;

use roundel_rrd::codec::file;
use roundel_rrd::content::Rrd;
use roundel_rrd::definition::Cf;
use roundel_rrd::fetch::FetchRequest;
use roundel_rrd::live::UNKNOWN;
use roundel_rrd::plan;
use roundel_rrd::time::Timestamp;
use support::Random;
use testkit::RrdTool;

const SEEDS: u64 = 150;
const FETCHES: u64 = 40;
const FILE: &str = "f.rrd";
const EPOCH: u64 = 1_000_000_000;

/// Creates and fills a file. Returns its step.
fn make(tool: &mut RrdTool, random: &mut Random) -> u64 {
    let step = [1, 5, 10, 60, 300, 3600][random.below(6) as usize];
    let start = EPOCH + random.below(10_000);
    let ds_count = 1 + random.below(3);
    let mut create = format!("create {FILE} --start {start} --step {step}");
    for ds in 0..ds_count {
        create += &format!(" DS:d{ds}:GAUGE:{}:U:U", step * 3);
    }
    for _ in 0..1 + random.below(6) {
        let cf = random.pick(&["AVERAGE", "MIN", "MAX", "LAST"]);
        let pdp_per_row = [1, 1, 2, 3, 5, 6, 12][random.below(7) as usize];
        let rows = [1, 2, 5, 12, 30, 60][random.below(6) as usize];
        create += &format!(" RRA:{cf}:0.5:{pdp_per_row}:{rows}");
    }
    if random.chance(30) {
        create += &format!(" RRA:HWPREDICT:{}:0.1:0.0035:{}", 20 + random.below(30), 4 + random.below(12));
    }
    tool.run(&create).unwrap();
    let mut time = start;
    for _ in 0..random.below(200) {
        time += if random.chance(5) { step * (1 + random.below(20)) } else { 1 + random.below(step * 2) };
        let mut update = format!("update {FILE} {time}");
        for _ in 0..ds_count {
            let value = match random.below(12) {
                0 => "U".to_string(),
                1 => "-inf".to_string(),
                2 => format!("-{}.5e{}", random.below(1000), random.below(300)),
                _ => format!("{}.{}", random.below(100_000), random.below(1000)),
            };
            update += &format!(":{value}");
        }
        tool.run(&update).unwrap();
    }
    step
}

/// A row of an archive, unknown if the archive does not hold it.
fn row(rrd: &Rrd, rra: usize, number: i64, last_update: i64) -> Vec<f64> {
    let ds_count = rrd.definition.ds.len();
    let row_count = rrd.definition.rra[rra].row_count as i64;
    let age = rrd.definition.newest_row(rra, last_update) - number;
    if !(0..row_count).contains(&age) {
        return vec![UNKNOWN; ds_count];
    }
    let season = rrd.live.seasons.iter().find(|season| season.rra == rra);
    let (values, index) = match season {
        Some(season) => (&season.values, (season.current_row as i64 - age).rem_euclid(row_count)),
        None => (&rrd.archives[rra], row_count - 1 - age),
    };
    values[index as usize * ds_count..][..ds_count].to_vec()
}

/// The text of glibc's `%0.10e`.
fn c_format(value: f64) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_nan() {
        return format!("{sign}nan");
    }
    if value.is_infinite() {
        return format!("{sign}inf");
    }
    let text = format!("{value:.10e}");
    let (mantissa, exponent) = text.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

fn ours(rrd: &Rrd, cf: Cf, start: i64, end: i64, resolution: u64) -> Result<String, String> {
    let last_update: Timestamp = rrd.shape().split(&rrd.live.words).last_update;
    let plan = plan::plan(&rrd.definition, last_update.whole, &FetchRequest::new(cf, start, end, resolution))
        .map_err(|error| error.to_string())?;
    let mut text = String::from("           ");
    for ds in &rrd.definition.ds {
        text += &format!("{:>20}", ds.name);
    }
    text += "\n\n";
    let mut time = plan.start;
    for number in plan.rows.clone() {
        time += plan.step as i64;
        text += &format!("{time:>10}:");
        for value in row(rrd, plan.rra, number, last_update.whole) {
            text += &format!(" {}", c_format(value));
        }
        text.push('\n');
    }
    assert_eq!(time, plan.end);
    Ok(text)
}

/// A time before, within or after what the file holds.
fn around(random: &mut Random, last_update: i64, reach: i64) -> i64 {
    let offset = random.below((reach * 2) as u64) as i64 - reach - reach / 2;
    match random.below(6) {
        0 => last_update,
        1 => last_update + random.below(reach as u64) as i64,
        2 => last_update - random.below(20) as i64,
        _ => last_update + offset,
    }
}

fn compare(tool: &mut RrdTool, random: &mut Random) -> Result<(), String> {
    let step = make(tool, random);
    let rrd = file::decode(&std::fs::read(tool.path(FILE)).unwrap()).unwrap().rrd;
    let definition = &rrd.definition;
    let last_update = rrd.shape().split(&rrd.live.words).last_update.whole;
    for rra in 0..definition.rra.len() + 1 {
        let theirs = tool.run(&format!("first {FILE} --rraindex {rra}"));
        let mine = plan::first(definition, last_update, rra).map(|time| format!("{time}\n"));
        if theirs != mine.clone().map_err(|error| error.to_string()) {
            return Err(format!("first of {rra}: {theirs:?}, we {mine:?}"));
        }
    }
    let spans: Vec<i64> = definition.rra.iter().map(|rra| rra.span(step) * rra.row_count as i64).collect();
    for _ in 0..FETCHES {
        let reach = spans[random.below(spans.len() as u64) as usize].max(4);
        let (a, b) = (around(random, last_update, reach), around(random, last_update, reach));
        let (mut start, mut end) = (a.min(b), a.max(b));
        if random.chance(30) {
            let span = definition.rra[random.below(spans.len() as u64) as usize].span(step);
            start -= start % span;
            end -= end % span;
        }
        let resolution =
            [1, step, step * 2, step * 6, step * 10, 1 + random.below(step * 15)][random.below(6) as usize];
        let cf = Cf::ALL[if random.chance(70) { random.below(4) } else { random.below(10) } as usize];
        let line = format!("fetch {FILE} {} -s {start} -e {end} -r {resolution}", cf.name());
        let (theirs, mine) = (tool.run(&line), ours(&rrd, cf, start, end, resolution));
        if theirs != mine {
            let archives = &definition.rra;
            return Err(format!(
                "{line}\nlast update {last_update}, {archives:?}\n{theirs:?}\nours\n{mine:?}"
            ));
        }
    }
    Ok(())
}

#[test]
fn fetches_plan_and_answer_as_rrdtool_does() {
    let mut tool = RrdTool::start().unwrap();
    for seed in 0..SEEDS {
        if let Err(what) = compare(&mut tool, &mut Random::new(seed + 1)) {
            panic!("seed {seed}: {what}");
        }
    }
}
