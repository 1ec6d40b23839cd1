//! How fast the striped engine takes updates, without any protocol in front:
//! `cargo run --release -p roundel-store --example ingest -- w1|w2 RRDS ROUNDS DIR`.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Instant;

use roundel_store::disk::RealDisk;
use roundel_store::engine::{CreateRequest, Engine, UpdateBatch};
use roundel_store::name::RrdName;
use roundel_store::stripes::{Options, Stripes};
use rrd::definition::{Consolidation, Definition, Ds, DsKind, DsType, PlainCf, Rra};

const START: i64 = 1_700_000_000 / 300 * 300;
/// Lines of a batch, as the server cuts them.
const BATCH_LINES: usize = 1000;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, workload, rrds, rounds, dir] = &args[..] else {
        eprintln!("usage: ingest w1|w2 RRDS ROUNDS DIR");
        std::process::exit(2);
    };
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let (rrds, rounds) = (number(rrds), number(rounds));
    let definition = if workload == "w1" { w1() } else { w2() };
    std::fs::create_dir_all(dir).expect("a directory");
    let disk = RealDisk::open(Path::new(dir)).expect("a disk");
    let store = Stripes::open(Arc::new(disk), &Options::default()).expect("a store");
    create(&store, rrds, &definition);
    let begun = Instant::now();
    let (sender, receiver) = mpsc::channel();
    let mut waiting = 0;
    for round in 0..rounds {
        let time = START + (round as i64 + 1) * definition.step as i64;
        let mut batch = UpdateBatch::default();
        for rrd in 0..rrds {
            batch.push(name(rrd).as_bytes(), word(rrd, round, time, definition.ds.len()).as_bytes());
            if batch.lines.len() == BATCH_LINES || rrd + 1 == rrds {
                let sender = sender.clone();
                let reply =
                    Box::new(move |failures: Vec<_>| sender.send(failures.len()).expect("main waits"));
                store.update(std::mem::take(&mut batch), reply);
                waiting += 1;
            }
        }
    }
    let failed: usize = (0..waiting).map(|_| receiver.recv().expect("an answer")).sum();
    let seconds = begun.elapsed().as_secs_f64();
    let count = (rrds * rounds) as f64;
    println!("{count} updates, {failed} failed, {seconds:.2} s, {:.0} ns each", seconds * 1e9 / count);
    println!("{:?}", store.stats());
    println!(
        "shard thread: see `perf stat -t`; process: {:.0} ns CPU an update",
        cpu_seconds() * 1e9 / count
    );
    store.stop().expect("a clean stop");
}

fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

fn name(rrd: u64) -> String {
    format!("host-{:04}/metric-{:03}.rrd", rrd / 71, rrd % 71)
}

fn word(rrd: u64, round: u64, time: i64, ds_count: usize) -> String {
    let noise = (rrd ^ round << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 53;
    let gauge = 20_000 + (rrd % 700) * 100 + noise;
    match ds_count {
        1 => format!("{time}:{}.{:02}", gauge / 100, gauge % 100),
        _ => format!("{time}:{}.{:02}:{}", gauge / 100, gauge % 100, round * 5000 + noise),
    }
}

fn create(store: &Stripes, rrds: u64, definition: &Definition) {
    let (sender, receiver) = mpsc::channel();
    let begun = Instant::now();
    for rrd in 0..rrds {
        let sender = sender.clone();
        let request = CreateRequest { definition: definition.clone(), start: START - 10, no_overwrite: true };
        let reply = Box::new(move |result| sender.send(result).expect("main waits"));
        store.create(RrdName::new(name(rrd).as_bytes()).expect("a name"), request, reply);
    }
    (0..rrds).for_each(|_| receiver.recv().expect("an answer").expect("created"));
    println!("{:.0} creates/s", rrds as f64 / begun.elapsed().as_secs_f64());
}

fn fed(name: &str, ds_type: DsType, heartbeat: u64) -> Ds {
    let kind = DsKind::Fed { ds_type, heartbeat, min: f64::NAN, max: f64::NAN };
    Ds { name: name.into(), kind }
}

fn archives(cfs: &[PlainCf], spans: &[(u64, u64)], xff: f64) -> Vec<Rra> {
    let one = |&cf: &PlainCf| {
        spans.iter().map(move |&(pdp_per_row, row_count)| Rra {
            cf: Consolidation::Plain { cf, xff },
            pdp_per_row,
            row_count,
        })
    };
    cfs.iter().flat_map(one).collect()
}

fn w1() -> Definition {
    let cfs = [PlainCf::Average, PlainCf::Min, PlainCf::Max];
    let spans = [(1, 1200), (7, 1235), (50, 1210), (223, 1202), (2635, 1201)];
    let ds = vec![fed("value", DsType::Gauge, 20)];
    Definition { version: 3, units_per_second: 1, step: 10, ds, rra: archives(&cfs, &spans, 0.1) }
}

fn w2() -> Definition {
    let spans = [(1, 600), (6, 700), (24, 775), (288, 797)];
    let ds = vec![fed("ds0", DsType::Gauge, 600), fed("ds1", DsType::Counter, 600)];
    let rra = archives(&[PlainCf::Average, PlainCf::Max], &spans, 0.5);
    Definition { version: 3, units_per_second: 1, step: 300, ds, rra }
}
