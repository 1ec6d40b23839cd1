//! The cost of one update: `parse_argument` and `Updater` on the geometries of W1 and W2 (`crates/bench/src/workload.rs`).
//!
//! `cargo bench -p roundel-rrd`. Prints nanoseconds per update, the median of the best of several rounds: for one RRD whose state
//! stays in the cache, and for many that push each other out of it.

use std::hint::black_box;
use std::time::Instant;

use roundel_rrd::create::new_live;
use roundel_rrd::definition::{Consolidation, Definition, Ds, DsKind, DsType, PlainCf, Rra};
use roundel_rrd::live::{CdpPrep, HeadShape};
use roundel_rrd::reading::parse_argument;
use roundel_rrd::time::Timestamp;
use roundel_rrd::update::{RowSink, Scratch, Updater};

const ROUNDS: usize = 7;
const UPDATES: usize = 2_000_000;
const START: i64 = 1_700_000_000;

/// Takes rows as cheaply as a sink can.
struct Sum(f64, u64);

impl RowSink for Sum {
    fn rows(&mut self, _: usize, _: i64, count: u64, cells: &[CdpPrep]) {
        self.0 += cells[0].primary;
        self.1 += count;
    }
}

fn definition(step: u64, types: &[DsType], cfs: &[PlainCf], rows: &[(u64, u64)], xff: f64) -> Definition {
    let ds = types.iter().enumerate().map(|(index, &ds_type)| Ds {
        name: format!("d{index}"),
        kind: DsKind::Fed { ds_type, heartbeat: step * 2, min: f64::NAN, max: f64::NAN },
    });
    let rra = cfs.iter().flat_map(|&cf| {
        rows.iter().map(move |&(pdp_per_row, row_count)| Rra {
            cf: Consolidation::Plain { cf, xff },
            pdp_per_row,
            row_count,
        })
    });
    Definition { version: 3, units_per_second: 1, step, ds: ds.collect(), rra: rra.collect() }
}

fn words(step: u64, sources: usize, from: usize, count: usize) -> Vec<Vec<u8>> {
    (from..from + count)
        .map(|index| {
            let noise = (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 53;
            let mut word =
                format!("{}:{}.{:02}", START + (index as i64 + 1) * step as i64, noise / 3, noise % 100);
            if sources == 2 {
                word += &format!(":{}", 123_456_789_012 + index as u64 * 98_765 + noise);
            }
            word.into_bytes()
        })
        .collect()
}

fn measure(name: &str, definition: &Definition, rrds: usize) {
    let shape = HeadShape::of(definition);
    let no_at = |_: &[u8]| Err(String::new());
    let per_rrd = (UPDATES / rrds).max(2);
    let mut best = [f64::INFINITY; 2];
    for round in 0..ROUNDS {
        let fresh = new_live(definition, START).words;
        let mut heads: Vec<Vec<u64>> = vec![fresh; rrds];
        let mut scratch = Scratch::default();
        let mut sink = Sum(0.0, 0);
        let all = words(definition.step, definition.ds.len(), round * 1000, per_rrd);
        let mut values = Vec::with_capacity(2);
        for (kind, best) in best.iter_mut().enumerate() {
            // The median over the words: other work on the machine disturbs a few of them, not most.
            let mut windows = Vec::with_capacity(all.len());
            for word in &all {
                let begin = Instant::now();
                for head in &mut heads {
                    values.clear();
                    let reading =
                        parse_argument(word, Timestamp::whole(0), definition, None, &no_at, &mut values);
                    let reading = reading.expect("the words above are sound");
                    if kind == 0 {
                        let (head, seasons) = (shape.split_mut(head), &mut [][..]);
                        let (shape, scratch, sink) = (&shape, &mut scratch, &mut sink);
                        Updater { definition, shape, head, seasons, scratch, sink }
                            .apply(&reading)
                            .expect("times rise and values are numbers");
                    } else {
                        black_box(&reading);
                    }
                }
                windows.push(begin.elapsed().as_nanos());
            }
            windows.sort_unstable();
            *best = best.min(windows[windows.len() / 2] as f64 / rrds as f64);
        }
        black_box(sink.0 + sink.1 as f64);
    }
    let [both, parse] = best;
    println!("{name}, {rrds} RRDs: {both:.0} ns, of which parse_argument {parse:.0} ns");
}

fn main() {
    use PlainCf::{Average, Max, Min};
    let w1 = definition(
        10,
        &[DsType::Gauge],
        &[Average, Min, Max],
        &[(1, 1200), (7, 1235), (50, 1210), (223, 1202), (2635, 1201)],
        0.1,
    );
    let w2 = definition(
        300,
        &[DsType::Gauge, DsType::Counter],
        &[Average, Max],
        &[(1, 600), (6, 700), (24, 775), (288, 797)],
        0.5,
    );
    for rrds in [64, 20_500] {
        measure("W1", &w1, rrds);
        measure("W2", &w2, rrds);
    }
}
