//! What `roundel cluster verify` costs: how fast rows are compared, and how long updates take meanwhile. The figures are in `docs/cluster.md`.
//!
//! `verify_cost DIRECTORY RRDS ROUNDS SECONDS`: two replicas of one partition in this process, over a log in an empty directory. Each RRD has 2 data
//! sources and 3,000 rows in four archives; ROUNDS updates are made of each. Then one client sends an update of 50 RRDs, waits for the answer,
//! and sends the next 5 ms later: for SECONDS without a comparison, and for as long as comparisons take that follow one another.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use disk::RealDisk;
use roundel_cluster::check::{
    CheckAnswer, CheckRequest, PlacedReplica, PlacedState, Placement, Replicas, compare,
};
use roundel_cluster::log::ReplicatedLog;
use roundel_cluster::log::directory::DirectoryLog;
use roundel_cluster::partition::{Home, Replica, ReplicaOptions, SharedCopier};
use roundel_cluster::routes::NodeAddress;
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::when::Step;
use store::disk::Disk;
use store::engine::{CreateRequest, Engine, UpdateBatch};
use store::identity::Identity;
use store::name::RrdName;
use store::stripes::Options;

const START: i64 = 1_700_000_000;
/// Updates in a batch that is timed.
const BATCH: usize = 50;
const PAUSE: Duration = Duration::from_millis(5);

struct Place(PathBuf);

impl Home for Place {
    fn open(&self) -> std::io::Result<Arc<dyn Disk>> {
        Ok(Arc::new(RealDisk::create(&self.0)?))
    }

    fn directory(&self) -> Option<PathBuf> {
        Some(self.0.clone())
    }

    fn put_aside(&self) -> std::io::Result<String> {
        Err(std::io::Error::other("no replica differs here"))
    }
}

struct Pair([Replica; 2]);

impl Replicas for Pair {
    fn partition_count(&self) -> u32 {
        1
    }

    fn rrd_count(&self) -> u64 {
        0
    }

    fn placement(&self, _: u32) -> Placement {
        let placed = |index: usize| PlacedReplica {
            node: NodeAddress { name: index.to_string(), address: String::new() },
            is_own: false,
            state: PlacedState::Ready,
        };
        Placement { leader: Some("0".into()), replicas: vec![placed(0), placed(1)] }
    }

    fn ask(&self, placed: &PlacedReplica, _: u32, request: CheckRequest) -> Result<CheckAnswer, String> {
        let index = usize::from(placed.node.name == "1");
        self.0[index].check(request).map_err(|error| error.to_string())
    }
}

fn name(number: usize) -> String {
    format!("host-{}/port-{number}.rrd", number / 50)
}

/// Sends the updates of some RRDs for one time, and waits.
fn update(engine: &Arc<dyn Engine>, numbers: std::ops::Range<usize>, time: i64) {
    let mut batch = UpdateBatch::default();
    for number in numbers {
        let value = number as i64 * 7 + time % 977;
        batch.push(name(number).as_bytes(), format!("{time}:{value}:{}.5", value % 1013).as_bytes());
    }
    let (sender, done) = mpsc::sync_channel(1);
    engine.update(batch, Box::new(move |failures| _ = sender.send(failures.len())));
    assert_eq!(done.recv().expect("an answer"), 0, "an update failed");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, rrds, rounds, seconds] = arguments.as_slice() else {
        eprintln!("verify_cost DIRECTORY RRDS ROUNDS SECONDS");
        std::process::exit(2);
    };
    let number = |text: &String| text.parse::<usize>().expect("a number");
    let (rrds, rounds, seconds) = (number(rrds), number(rounds), number(seconds));
    let directory = Path::new(directory);
    let log = DirectoryLog::create(&directory.join("log"), 1).expect("an empty directory");
    let log: Arc<dyn ReplicatedLog> = Arc::new(log);
    let start = |index: u64| {
        let options = ReplicaOptions {
            partition: 0,
            partitions: 1,
            writer: index + 1,
            identity: Identity { id: *b"a partition's id", seed: 7, shard_count: 1 },
            store: Options::default(),
            home: Box::new(Place(directory.join(index.to_string()))),
            patience: Duration::from_secs(60),
            copier: SharedCopier::default(),
            backup: None,
        };
        Replica::start(options, Arc::clone(&log)).expect("a replica")
    };
    let pair = Pair([start(0), start(1)]);
    pair.0[0].want_lead(Some(u32::MAX));
    while !pair.0[0].leads() {
        std::thread::sleep(Duration::from_millis(10));
    }
    measure(&pair, rrds, rounds, Duration::from_secs(seconds as u64));
}

fn measure(pair: &Pair, rrds: usize, rounds: usize, span: Duration) {
    let engine = pair.0[0].engine().expect("a store");
    fill(&engine, rrds, rounds);
    println!("{rrds} RRDs, {rounds} rounds; load {}", load());
    let mut time = START + (rounds as i64 + 1) * 10;
    let ended = AtomicBool::new(false);
    let alone = std::thread::scope(|scope| {
        let timed = scope.spawn(|| timed(&engine, rrds, &mut time, &ended));
        std::thread::sleep(span);
        ended.store(true, Ordering::Relaxed);
        timed.join().expect("no panic")
    });
    tell("alone", alone);
    ended.store(false, Ordering::Relaxed);
    let beside = std::thread::scope(|scope| {
        let timed = scope.spawn(|| timed(&engine, rrds, &mut time, &ended));
        let until = Instant::now() + span;
        let mut count = 0;
        while Instant::now() < until {
            count += 1;
            let began = Instant::now();
            let found = compare(pair, 0, count << 40, false, &mut |_| true);
            assert!(found.is_well(), "{found:?}");
            let took = began.elapsed().as_secs_f64();
            println!(
                "compared {} RRDs, {} rows in {took:.2} s: {:.0} RRDs/s, {:.2} M rows/s",
                found.rrds,
                found.rows,
                found.rrds as f64 / took,
                found.rows as f64 / took / 1e6
            );
        }
        ended.store(true, Ordering::Relaxed);
        timed.join().expect("no panic")
    });
    tell("beside a comparison", beside);
    println!("load {}", load());
}

fn fill(engine: &Arc<dyn Engine>, rrds: usize, rounds: usize) {
    let step = Step { units: 10, units_per_second: 1 };
    let options = CreateOptions { step, limits: Limits::STORE, file_name: b"x" };
    let words = [
        "DS:in:GAUGE:60:U:U",
        "DS:out:GAUGE:60:U:U",
        "RRA:AVERAGE:0.5:1:1200",
        "RRA:AVERAGE:0.5:6:700",
        "RRA:AVERAGE:0.5:24:600",
        "RRA:MAX:0.5:24:500",
    ];
    let definition = parse_create(&options, &words).expect("a definition");
    for number in 0..rrds {
        let name = RrdName::new(name(number).as_bytes()).expect("a name");
        let request = CreateRequest { definition: definition.clone(), start: START, no_overwrite: true };
        engine.create(name, request, Box::new(drop));
    }
    for round in 1..=rounds {
        for first in (0..rrds).step_by(2000) {
            update(engine, first..rrds.min(first + 2000), START + round as i64 * 10);
        }
    }
    engine.sync().expect("the log");
}

/// How long each batch took, until it is ended.
fn timed(engine: &Arc<dyn Engine>, rrds: usize, time: &mut i64, ended: &AtomicBool) -> Vec<Duration> {
    let (mut took, mut first) = (Vec::new(), 0);
    *time += 10;
    while !ended.load(Ordering::Relaxed) {
        let began = Instant::now();
        update(engine, first..rrds.min(first + BATCH), *time);
        took.push(began.elapsed());
        first += BATCH;
        if first >= rrds {
            (first, *time) = (0, *time + 10);
        }
        std::thread::sleep(PAUSE);
    }
    took
}

fn tell(what: &str, mut took: Vec<Duration>) {
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_secs_f64() * 1000.0;
    println!(
        "{what}: {} batches, p50 {:.2} ms, p90 {:.2}, p99 {:.2}, p99.9 {:.2}, longest {:.2}",
        took.len(),
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(1.0)
    );
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}
