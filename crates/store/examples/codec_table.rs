//! Prints how many bytes RRDs of the workloads W1 and W2 take with their archives full, and what coding
//! them costs. `cargo run --release -p roundel-store --example codec_table [RRDS [LENGTH [quick|dense|thorough [detail]]]]`.
//!
//! The values are those of `crates/bench` (a level that changes every 30 steps and 11 bits of noise), put
//! through `rrd::update::Updater`, so that RRDtool's rounding of every stage is in the rows.

use std::time::Instant;

use roundel_store::testing::column::codec::{self, ColumnHint, Effort, Scratch};
use roundel_store::testing::segment::{Key, SegmentWriter};
use rrd::definition::{Consolidation, Definition, Ds, DsKind, DsType, PlainCf, Rra};
use rrd::live::{CdpPrep, HeadShape};
use rrd::reading::Reading;
use rrd::time::Timestamp;
use rrd::update::RowSink;

/// Sample time of round 0, as in `crates/bench`.
const FIRST_ROUND_SECONDS: i64 = 1_700_000_100;
/// Values in a column after merges: a segment spans a quarter of its retention, 150 to 300 rows here.
const COLUMN_VALUES: usize = 256;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Jitter {
    None,
    Micros,
    Seconds,
}

/// A workload of one kind of source.
#[derive(Clone, Copy)]
struct Workload {
    name: &'static str,
    step: u64,
    counter: bool,
    jitter: Jitter,
    cfs: &'static [PlainCf],
    archives: &'static [(u64, usize)],
    /// Bytes of the values of one source in the `.rrd` file, and the header's share.
    file_bytes: f64,
}

struct Archive {
    cf: PlainCf,
    pdp_per_row: u64,
    row_count: usize,
    rows: Vec<f64>,
}

fn hash(a: u64, b: u64) -> u64 {
    let mixed = (a ^ 0x9e37_79b9_7f4a_7c15) as u128 * (b ^ 0xd1b5_4a32_d192_ed03 ^ (a << 32)) as u128;
    let folded = (mixed as u64) ^ ((mixed >> 64) as u64);
    let again = folded as u128 * 0xa076_1d64_78bd_642f_u128;
    (again as u64) ^ ((again >> 64) as u64)
}

/// What arrived: readings, and how late they were.
#[derive(Default)]
struct Samples {
    readings: Vec<f64>,
    micros_late: Vec<f64>,
}

/// Collects the rows of every archive.
struct Rows<'a>(&'a mut [Archive]);

impl RowSink for Rows<'_> {
    fn rows(&mut self, rra: usize, _: i64, count: u64, cells: &[CdpPrep]) {
        assert_eq!(count, 1, "every update completes one PDP");
        self.0[rra].rows.push(cells[0].primary);
    }
}

fn definition(workload: &Workload, archives: &[Archive]) -> Definition {
    let ds_type = if workload.counter { DsType::Counter } else { DsType::Gauge };
    let kind = DsKind::Fed { ds_type, heartbeat: 2 * workload.step, min: 0.0, max: f64::NAN };
    let rra = archives.iter().map(|archive| Rra {
        cf: Consolidation::Plain { cf: archive.cf, xff: 0.5 },
        pdp_per_row: archive.pdp_per_row,
        row_count: archive.row_count as u64,
    });
    let ds = vec![Ds { name: "ds".into(), kind }];
    Definition { version: 3, units_per_second: 1, step: workload.step, ds, rra: rra.collect() }
}

/// All archives of one source, full: one archive of single PDPs and all others; and the newest samples.
fn simulate(workload: &Workload, rrd: u64) -> (Vec<Archive>, Samples) {
    let mut archives = vec![];
    for &(pdp_per_row, row_count) in workload.archives {
        for &cf in workload.cfs {
            if pdp_per_row > 1 || cf == workload.cfs[0] {
                archives.push(Archive { cf, pdp_per_row, row_count, rows: vec![] });
            }
        }
    }
    let definition = definition(workload, &archives);
    let shape = HeadShape::of(&definition);
    let mut words = vec![0; shape.word_count()];
    let head = shape.split_mut(&mut words);
    *head.last_update = Timestamp::whole(FIRST_ROUND_SECONDS - workload.step as i64);
    head.pdp[0].last_ds.set(b"0");
    let mut scratch = rrd::update::Scratch::default();
    let mut samples = Samples::default();
    let rounds = workload.archives.iter().map(|(pdps, rows)| pdps * *rows as u64).max().unwrap_or(0) + 8000;
    let series = hash(rrd, u64::MAX);
    let mut counter = 0;
    for round in 0..rounds {
        let noise = hash(rrd, round);
        let level = hash(series, round / 30);
        let late = match workload.jitter {
            Jitter::None => Timestamp::whole(0),
            Jitter::Micros => Timestamp::new(0, ((noise >> 40) % 1000) as u32),
            Jitter::Seconds => Timestamp::whole(((noise >> 40) % (workload.step / 10).max(2)) as i64),
        };
        let grid = FIRST_ROUND_SECONDS + (round * workload.step) as i64;
        let cents = series % 40_000 + level % 40_000 + (noise & 0x7ff);
        counter += series % 1_000_000 + level % 1_000_000 + (noise & 0x7ff);
        let text = if workload.counter {
            counter.to_string()
        } else {
            format!("{}.{:02}", cents / 100, cents % 100)
        };
        let time = Timestamp::new(grid + late.whole, late.micros);
        let reading = Reading { time, values: &[text.as_bytes()] };
        let mut sink = Rows(&mut archives);
        rrd::update::Updater {
            definition: &definition,
            shape: &shape,
            head: shape.split_mut(&mut words),
            seasons: &mut [],
            scratch: &mut scratch,
            sink: &mut sink,
        }
        .apply(&reading)
        .expect("a good reading");
        if round + 1000 >= rounds {
            samples.readings.push(if workload.counter { counter as f64 } else { cents as f64 / 100.0 });
            samples.micros_late.push(late.whole as f64 * 1e6 + f64::from(late.micros));
        }
    }
    archives.iter_mut().for_each(|archive| {
        archive.rows.drain(..archive.rows.len() - archive.row_count);
    });
    (archives, samples)
}

const W1: Workload = Workload {
    name: "W1 gauge",
    step: 10,
    counter: false,
    jitter: Jitter::None,
    cfs: &[PlainCf::Average, PlainCf::Min, PlainCf::Max],
    archives: &[(1, 1200), (7, 1235), (50, 1210), (223, 1202), (2635, 1201)],
    file_bytes: 148_648.0,
};
const W2: Workload = Workload {
    name: "W2 gauge",
    step: 300,
    counter: false,
    jitter: Jitter::None,
    cfs: &[PlainCf::Average, PlainCf::Max],
    archives: &[(1, 600), (6, 700), (24, 775), (288, 797)],
    file_bytes: 94_816.0 / 2.0,
};

fn main() {
    let mut words = std::env::args().skip(1);
    let rrds: u64 = words.next().and_then(|word| word.parse().ok()).unwrap_or(4);
    let length: usize = words.next().and_then(|word| word.parse().ok()).unwrap_or(COLUMN_VALUES);
    let effort = match words.next().as_deref() {
        Some("thorough") => Effort::Thorough,
        Some("dense") => Effort::Dense,
        _ => Effort::Quick,
    };
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
        measure(&workload, rrds, length, effort, detail);
    }
}

fn measure(workload: &Workload, rrds: u64, length: usize, effort: Effort, detail: bool) {
    let simulated = (0..rrds).map(|rrd| simulate(workload, rrd * 7919 + 5));
    let (all, samples): (Vec<Vec<Archive>>, Vec<Samples>) = simulated.unzip();
    let mut scratch = Scratch::new(effort);
    let (mut total, mut values, mut encode_ns, mut decode_ns) = (0, 0, 0, 0);
    let mut writer = SegmentWriter::new(Vec::new(), "table", 1).expect("memory takes all");
    if effort != Effort::Quick {
        writer.set_merging();
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
            println!(
                "    {:8?} {:5}: {:.3} B/value",
                archive.cf,
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
    let mut scratch = Scratch::new(Effort::Thorough);
    column.chunks(length).for_each(|part| codec::encode(part, hint, &mut scratch, &mut bytes));
    bytes.len()
}

/// The experiment of `design.md`: bytes of a sample (reading and time) against bytes of the row of its PDP.
fn samples_against_rows(workload: &Workload, all: &[Vec<Archive>], samples: &[Samples], length: usize) {
    let hint = ColumnHint { units_per_second: 1, step: workload.step, pdp_per_row: 1 };
    let per_value = |column: &[f64]| encoded_bytes(column, &hint, length) as f64 / column.len() as f64;
    let mean = |bytes: &dyn Fn(usize) -> f64| (0..all.len()).map(bytes).sum::<f64>() / all.len() as f64;
    println!(
        "    samples: {:.2} B a reading + {:.2} B a time, against {:.2} B a row",
        mean(&|index| per_value(&samples[index].readings)),
        mean(&|index| per_value(&samples[index].micros_late)),
        mean(&|index| per_value(&all[index][0].rows)),
    );
}

/// Whether the maximum of a row tells its average: bytes of the sum, and of the sum less count times maximum.
fn averages_from_maxima(workload: &Workload, all: &[Vec<Archive>], length: usize) {
    let hint = ColumnHint { units_per_second: 1, step: 1, pdp_per_row: 1 };
    for (average, archive) in all[0].iter().enumerate().filter(|(_, archive)| archive.cf == PlainCf::Average)
    {
        let rows = archive.pdp_per_row;
        let twin = |archive: &&Archive| archive.cf == PlainCf::Max && archive.pdp_per_row == rows;
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
