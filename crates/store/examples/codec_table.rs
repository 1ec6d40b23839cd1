//! Prints how many bytes RRDs of the workloads W1 and W2 take with their archives full, and what coding
//! them costs. `cargo run --release -p store --example codec_table [RRDS [LENGTH [thorough|quick [detail]]]]`.
//!
//! The values are those of `crates/bench` (a level that changes every 30 steps and 11 bits of noise), put
//! through RRDtool's arithmetic, so that the rounding of every stage is in the rows.

use std::time::Instant;

use store::segment::{Key, SegmentWriter};
use store::stripe::codec::{self, ColumnHint, Scratch};

/// Sample time of round 0, as in `crates/bench`.
const FIRST_ROUND_SECONDS: u64 = 1_700_000_100;
/// Values in a column after merges: a segment spans a quarter of its retention, 150 to 300 rows here.
const COLUMN_VALUES: usize = 256;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Jitter {
    None,
    Micros,
    Seconds,
}

#[derive(Clone, Copy, PartialEq)]
enum Cf {
    Average,
    Min,
    Max,
}

/// A workload of one kind of source.
#[derive(Clone, Copy)]
struct Workload {
    name: &'static str,
    step: u64,
    counter: bool,
    jitter: Jitter,
    cfs: &'static [Cf],
    archives: &'static [(u64, usize)],
    /// Bytes of the values of one source in the `.rrd` file, and the header's share.
    file_bytes: f64,
}

struct Archive {
    cf: Cf,
    pdp_per_row: u64,
    row_count: usize,
    value: f64,
    rows: Vec<f64>,
}

fn hash(a: u64, b: u64) -> u64 {
    let mixed = (a ^ 0x9e37_79b9_7f4a_7c15) as u128 * (b ^ 0xd1b5_4a32_d192_ed03 ^ (a << 32)) as u128;
    let folded = (mixed as u64) ^ ((mixed >> 64) as u64);
    let again = folded as u128 * 0xa076_1d64_78bd_642f_u128;
    (again as u64) ^ ((again >> 64) as u64)
}

/// What arrived: readings, and their times in seconds.
#[derive(Default)]
struct Samples {
    readings: Vec<f64>,
    times: Vec<f64>,
}

/// All archives of one source, full: one archive of single PDPs and all others; and the newest samples.
fn simulate(workload: &Workload, rrd: u64) -> (Vec<Archive>, Samples) {
    let mut samples = Samples::default();
    let mut counter = 0.0;
    let mut archives = vec![];
    for &(pdp_per_row, row_count) in workload.archives {
        for &cf in workload.cfs {
            if pdp_per_row > 1 || cf == workload.cfs[0] {
                archives.push(Archive { cf, pdp_per_row, row_count, value: 0.0, rows: vec![] });
            }
        }
    }
    let rounds = workload.archives.iter().map(|(pdps, rows)| pdps * *rows as u64).max().unwrap_or(0) + 8000;
    let (mut last_second, mut last_micro) = (FIRST_ROUND_SECONDS - workload.step, 0u64);
    let mut open = 0.0;
    let series = hash(rrd, u64::MAX);
    for round in 0..rounds {
        let noise = hash(rrd, round);
        let level = hash(series, round / 30);
        let grid = FIRST_ROUND_SECONDS + round * workload.step;
        let (second, micro) = match workload.jitter {
            Jitter::None => (grid, 0),
            Jitter::Micros => (grid, (noise >> 40) % 1000),
            Jitter::Seconds => (grid + (noise >> 40) % (workload.step / 10).max(2), 0),
        };
        let interval = (second - last_second) as f64 + (micro as f64 - last_micro as f64) / 1e6;
        let increment = if workload.counter {
            (series % 1_000_000 + level % 1_000_000 + (noise & 0x7ff)) as f64
        } else {
            (series % 40_000 + level % 40_000 + (noise & 0x7ff)) as f64 / 100.0 * interval
        };
        if round + 1000 >= rounds {
            counter += increment;
            samples.readings.push(if workload.counter { counter } else { increment / interval });
            samples.times.push((second - FIRST_ROUND_SECONDS) as f64 + micro as f64 / 1e6);
        }
        let boundary = second - second % workload.step;
        if boundary > last_second {
            let before = (boundary - last_second) as f64 - last_micro as f64 / 1e6;
            let after = (second - boundary) as f64 + micro as f64 / 1e6;
            let pdp = (open + increment / interval * before) / workload.step as f64;
            open = increment / interval * after;
            let number = boundary / workload.step;
            archives.iter_mut().for_each(|archive| archive.push(pdp, number));
        } else {
            open += increment;
        }
        (last_second, last_micro) = (second, micro);
    }
    archives.iter_mut().for_each(|archive| {
        archive.rows.drain(..archive.rows.len() - archive.row_count);
    });
    (archives, samples)
}

impl Archive {
    fn push(&mut self, pdp: f64, number: u64) {
        let complete = number.is_multiple_of(self.pdp_per_row);
        match self.cf {
            Cf::Average if complete => self.rows.push((self.value + pdp) / self.pdp_per_row as f64),
            Cf::Min if complete => self.rows.push(self.value.min(pdp)),
            Cf::Max if complete => self.rows.push(self.value.max(pdp)),
            Cf::Average => self.value += pdp,
            Cf::Min => self.value = self.value.min(pdp),
            Cf::Max => self.value = self.value.max(pdp),
        }
        if complete {
            self.value = match self.cf {
                Cf::Average => 0.0,
                Cf::Min => f64::INFINITY,
                Cf::Max => f64::NEG_INFINITY,
            };
        }
    }
}

const W1: Workload = Workload {
    name: "W1 gauge",
    step: 10,
    counter: false,
    jitter: Jitter::None,
    cfs: &[Cf::Average, Cf::Min, Cf::Max],
    archives: &[(1, 1200), (7, 1235), (50, 1210), (223, 1202), (2635, 1201)],
    file_bytes: 148_648.0,
};
const W2: Workload = Workload {
    name: "W2 gauge",
    step: 300,
    counter: false,
    jitter: Jitter::None,
    cfs: &[Cf::Average, Cf::Max],
    archives: &[(1, 600), (6, 700), (24, 775), (288, 797)],
    file_bytes: 94_816.0 / 2.0,
};

fn main() {
    let mut words = std::env::args().skip(1);
    let rrds: u64 = words.next().and_then(|word| word.parse().ok()).unwrap_or(4);
    let length: usize = words.next().and_then(|word| word.parse().ok()).unwrap_or(COLUMN_VALUES);
    let thorough = words.next().is_some_and(|word| word == "thorough");
    let detail = words.next().is_some();
    let counter = |name, workload| Workload { name, counter: true, ..workload };
    for workload in [
        W1,
        counter("W1 counter", W1),
        Workload { jitter: Jitter::Micros, ..W1 },
        Workload { jitter: Jitter::Micros, ..counter("W1 counter", W1) },
        W2,
        counter("W2 counter", W2),
        Workload { jitter: Jitter::Seconds, ..W2 },
        Workload { jitter: Jitter::Seconds, ..counter("W2 counter", W2) },
    ] {
        measure(&workload, rrds, length, thorough, detail);
    }
}

fn measure(workload: &Workload, rrds: u64, length: usize, thorough: bool, detail: bool) {
    let simulated = (0..rrds).map(|rrd| simulate(workload, rrd * 7919 + 5));
    let (all, samples): (Vec<Vec<Archive>>, Vec<Samples>) = simulated.unzip();
    let mut scratch = Scratch::new(thorough);
    let (mut total, mut values, mut encode_ns, mut decode_ns) = (0, 0, 0, 0);
    let mut writer = SegmentWriter::new(Vec::new(), "table", 1).expect("memory takes all");
    if thorough {
        writer.set_thorough();
    }
    for source in 0..all[0].len() {
        let mut bytes = Vec::new();
        let mut source_values = 0;
        for (slot, archives) in all.iter().enumerate() {
            let archive = &archives[source];
            let hint =
                ColumnHint { units_per_second: 1, step: workload.step, pdp_per_row: archive.pdp_per_row };
            for (index, column) in archive.rows.chunks(length).enumerate() {
                let key = Key { group: 0, source: source as u16, slot: slot as u32 };
                writer.push(key, (index * length) as i64, &[column], &hint).expect("memory takes all");
                let from = bytes.len();
                let start = Instant::now();
                codec::encode(column, &hint, &mut scratch, &mut bytes);
                encode_ns += start.elapsed().as_nanos();
                let mut back = Vec::with_capacity(column.len());
                let start = Instant::now();
                let taken = codec::decode(&bytes[from..], column.len(), &mut back).expect("just written");
                decode_ns += start.elapsed().as_nanos();
                assert_eq!(taken, bytes.len() - from);
                assert!(column.iter().zip(&back).all(|(a, b)| a.to_bits() == b.to_bits()), "lossy");
                source_values += column.len();
            }
        }
        if detail {
            let archive = &all[0][source];
            let cf = match archive.cf {
                Cf::Average => "avg",
                Cf::Min => "min",
                Cf::Max => "max",
            };
            println!(
                "    {cf} {:5}: {:.3} B/value",
                archive.pdp_per_row,
                bytes.len() as f64 / source_values as f64
            );
        }
        total += bytes.len();
        values += source_values;
    }
    let (_, file) = writer.finish().expect("memory takes all");
    println!(
        "{:11} {:8?}: {:.3} B/value, {:6.0} B/RRD of {:6.0} = 1/{:.2} (segment 1/{:.2}); encode {:.1} ns, decode {:.1} ns",
        workload.name,
        workload.jitter,
        total as f64 / values as f64,
        total as f64 / rrds as f64,
        workload.file_bytes,
        workload.file_bytes * rrds as f64 / total as f64,
        workload.file_bytes * rrds as f64 / file.len() as f64,
        encode_ns as f64 / values as f64,
        decode_ns as f64 / values as f64,
    );
    if detail {
        samples_against_rows(workload, &all, &samples, length);
        averages_from_maxima(workload, &all, length);
    }
}

fn encoded_bytes(column: &[f64], hint: &ColumnHint, length: usize) -> usize {
    let mut bytes = Vec::new();
    let mut scratch = Scratch::new(true);
    column.chunks(length).for_each(|part| codec::encode(part, hint, &mut scratch, &mut bytes));
    bytes.len()
}

/// The experiment of `design.md`: bytes of a sample (reading and time) against bytes of the row of its PDP.
fn samples_against_rows(workload: &Workload, all: &[Vec<Archive>], samples: &[Samples], length: usize) {
    let hint = ColumnHint { units_per_second: 1, step: workload.step, pdp_per_row: 1 };
    let per_value = |column: &[f64]| encoded_bytes(column, &hint, length) as f64 / column.len() as f64;
    let mean = |bytes: &dyn Fn(usize) -> f64| (0..all.len()).map(bytes).sum::<f64>() / all.len() as f64;
    // A time is kept as how late it was: small integers of microseconds.
    let late = |index: usize| -> Vec<f64> {
        samples[index].times.iter().map(|time| (time % workload.step as f64 * 1e6).round()).collect()
    };
    println!(
        "    samples: {:.2} B a reading + {:.2} B a time, against {:.2} B a row",
        mean(&|index| per_value(&samples[index].readings)),
        mean(&|index| per_value(&late(index))),
        mean(&|index| per_value(&all[index][0].rows)),
    );
}

/// Whether the maximum of a row tells its average: bytes of the sum, and of the sum less count times maximum.
fn averages_from_maxima(workload: &Workload, all: &[Vec<Archive>], length: usize) {
    let hint = ColumnHint { units_per_second: 1, step: 1, pdp_per_row: 1 };
    for (average, archive) in all[0].iter().enumerate().filter(|(_, archive)| archive.cf == Cf::Average) {
        let rows = archive.pdp_per_row;
        let twin = |archive: &&Archive| archive.cf == Cf::Max && archive.pdp_per_row == rows;
        if rows == 1 || workload.jitter != Jitter::None {
            continue;
        }
        let unit = if workload.counter { workload.step as f64 } else { 100.0 };
        let (mut alone, mut against, mut count) = (0, 0, 0);
        for archives in all {
            let Some(maximum) = archives.iter().find(twin) else { continue };
            let sums: Vec<f64> =
                archives[average].rows.iter().map(|value| (value * unit * rows as f64).round()).collect();
            let differences: Vec<f64> = sums
                .iter()
                .zip(&maximum.rows)
                .map(|(sum, value)| sum - (value * unit).round() * rows as f64)
                .collect();
            alone += encoded_bytes(&sums, &hint, length);
            against += encoded_bytes(&differences, &hint, length);
            count += sums.len();
        }
        let per_value = |bytes: usize| bytes as f64 / count.max(1) as f64;
        println!(
            "    average over {rows}: {:.2} B alone, {:.2} B against the maximum",
            per_value(alone),
            per_value(against)
        );
    }
}
