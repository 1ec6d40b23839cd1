//! `fetch`, `first`, `last` against Debian's rrdtool on random RRDs and random ranges.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

mod support;

use oracle::RrdTool;
use rrd::codec::file;
use rrd::content::Rrd;
use rrd::definition::Cf;
use rrd::format::{DIGITS_TOOL, push_e};
use rrd::plan::{Plan, first, last, plan};
use support::Random;

const CFS: [&str; 6] = ["AVERAGE", "MIN", "MAX", "LAST", "AVERAGE", "HWPREDICT"];

/// The value of one cell of a plan's row, as a reader of the file finds it.
fn cell(rrd: &Rrd, plan: &Plan, row: i64, ds: usize) -> f64 {
    let head = rrd.shape();
    let newest = rrd.definition.newest_row(plan.rra, head.split(&rrd.live.words).last_update.whole);
    let count = rrd.definition.rra[plan.rra].row_count as i64;
    if row > newest || row <= newest - count {
        return rrd::live::UNKNOWN;
    }
    let ds_count = rrd.definition.ds.len();
    match rrd.live.seasons.iter().find(|season| season.rra == plan.rra) {
        Some(season) => {
            let ring = (season.current_row as i64 - (newest - row)).rem_euclid(count);
            season.values[ring as usize * ds_count + ds]
        }
        None => rrd.archives[plan.rra][(count - 1 - (newest - row)) as usize * ds_count + ds],
    }
}

/// The rows as `rrdtool fetch` prints them.
fn rows(rrd: &Rrd, plan: &Plan) -> String {
    let mut out = Vec::new();
    for row in plan.rows.clone() {
        let time = plan.start + (row - plan.rows.start + 1) * plan.step as i64;
        out.extend_from_slice(format!("{time:>10}:").as_bytes());
        for ds in 0..rrd.definition.ds.len() {
            out.push(b' ');
            push_e(&mut out, cell(rrd, plan, row, ds), DIGITS_TOOL);
        }
        out.push(b'\n');
    }
    String::from_utf8(out).unwrap()
}

/// A random RRD in `f.rrd`, updated a few times.
fn make(tool: &mut RrdTool, random: &mut Random) -> i64 {
    let step = random.pick(&["1", "5", "10", "60", "300"]);
    let unit: u64 = step.parse().unwrap();
    let mut time = 1_000_000_000 + random.below(1000);
    let mut line =
        format!("create f.rrd --start {time} --step {step} DS:a:GAUGE:600:U:U DS:b:GAUGE:{}:U:U", unit * 3);
    for _ in 0..random.below(5) + 1 {
        let (per_row, count) = (random.below(4) * random.below(4) + 1, random.below(30) + 1);
        line.push_str(&match random.below(8) {
            0 => " RRA:HWPREDICT:20:0.1:0.0035:5".to_string(),
            _ => format!(" RRA:{}:0.5:{per_row}:{count}", random.pick(&CFS[..4])),
        });
    }
    tool.run(&line).unwrap();
    for _ in 0..random.below(40) {
        time += random.below(unit * 3) + 1;
        tool.run(&format!(
            "update f.rrd {time}:{}.{}:{}",
            random.below(100),
            random.below(1000),
            random.below(9)
        ))
        .unwrap();
    }
    time as i64
}

#[test]
fn random_fetches_return_the_same_rows() {
    let mut tool = RrdTool::start().unwrap();
    let mut rows_seen = 0;
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let time = make(&mut tool, &mut random);
        let rrd = file::decode(&std::fs::read(tool.path("f.rrd")).unwrap()).unwrap().rrd;
        let updated = rrd.shape().split(&rrd.live.words).last_update.whole;
        assert_eq!(tool.run("last f.rrd").unwrap().trim(), last(&rrd.definition, updated).to_string());
        for rra in 0..rrd.definition.rra.len() + 1 {
            let mine = first(&rrd.definition, updated, rra).map(|time| format!("{time}\n"));
            let theirs = tool.run(&format!("first f.rrd --rraindex {rra}"));
            assert_eq!(mine.map_err(|error| error.to_string()), theirs, "seed {seed} rra {rra}");
        }
        for _ in 0..20 {
            let start = time - random.below(1500) as i64 + 200;
            let end = start + random.below(900) as i64;
            let wish = random.pick(&["1", "10", "20", "33", "60", "300", "3000"]);
            let cf = random.pick(&CFS);
            let line = format!("fetch f.rrd {cf} --start {start} --end {end} --resolution {wish}");
            let case = format!("seed {seed}: {line}");
            let theirs = tool.run(&line);
            let mine =
                plan(&rrd.definition, updated, Cf::from_name(cf).unwrap(), start, end, wish.parse().unwrap());
            match (mine, theirs) {
                (Ok(plan), Ok(text)) => {
                    let theirs = text.split_once("\n\n").map_or("", |(_, rows)| rows);
                    assert_eq!(rows(&rrd, &plan), theirs, "{case}: {plan:?}");
                    rows_seen += plan.rows.end - plan.rows.start;
                }
                (mine, theirs) => {
                    assert_eq!(mine.map_err(|error| error.to_string()).err(), theirs.err(), "{case}");
                }
            }
        }
    }
    assert!(rows_seen > 10_000, "only {rows_seen} rows");
}
