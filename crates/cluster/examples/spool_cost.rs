//! What `ack = "spool"` costs beside `ack = "log"`: acknowledged updates a second, how long a batch takes, and CPU per update with its draining. The figures
//! are in `docs/cluster.md`.
//!
//! `spool_cost DIRECTORY CLIENTS SECONDS ROUNDS [brokers]`: one node that leads all eight partitions in this process, over a log in an empty directory, or over
//! three brokers of Kafka (`make peers` fetches them). Each client has 50 RRDs in a directory of its own, sends an update of each in one batch, waits for the answer,
//! and sends the next. For SECONDS each by the log and from the spool, by turns, ROUNDS times.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use roundel_cluster::engine::{ClusterEngine, ClusterOptions};
use roundel_cluster::handshake::Membership;
use roundel_cluster::log::ReplicatedLog;
use roundel_cluster::log::directory::DirectoryLog;
use roundel_cluster::log::kafka::{KafkaLog, KafkaOptions, NewTopic, create_topic};
use roundel_cluster::node::{BEAT, Node, NodeOptions};
use roundel_cluster::routes::Routes;
use roundel_cluster::spool::SpoolOptions;
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::when::Step;
use store::engine::{CreateRequest, Engine, UpdateBatch};
use store::name::RrdName;
use testkit::Kafka;

const START: i64 = 1_700_000_000;
/// Updates in a batch.
const BATCH: usize = 50;
const PARTITIONS: u32 = 8;

fn name(client: usize, number: usize) -> String {
    format!("host-{client}/port-{number}.rrd")
}

fn create(engine: &ClusterEngine, client: usize) {
    let limits = Limits::FILE;
    let options = CreateOptions { step: Step { units: 10, units_per_second: 1 }, limits, file_name: b"x" };
    let definition =
        parse_create(&options, &["DS:a:GAUGE:100:U:U", "RRA:AVERAGE:0.5:1:3000"]).expect("a definition");
    for number in 0..BATCH {
        let (sender, done) = mpsc::sync_channel(1);
        let request = CreateRequest { definition: definition.clone(), start: START, no_overwrite: true };
        let name = RrdName::new(name(client, number).as_bytes()).expect("a name");
        engine.create(name, request, Box::new(move |result| _ = sender.send(result)));
        done.recv().expect("an answer").expect("a new RRD");
    }
}

/// Ticks of CPU of this process, a hundredth of a second each.
fn ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let after = stat.rsplit_once(')').expect("a name in brackets").1;
    after.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
}

/// Sends batches until a time; returns how long each took.
fn send(engine: &ClusterEngine, client: usize, time: &mut i64, until: Instant) -> Vec<Duration> {
    let mut took = Vec::new();
    while Instant::now() < until {
        *time += 10;
        let mut batch = UpdateBatch::default();
        for number in 0..BATCH {
            let value = (number as i64 * 7 + *time) % 1013;
            batch.push(name(client, number).as_bytes(), format!("{time}:{value}").as_bytes());
        }
        let (sender, done) = mpsc::sync_channel(1);
        let began = Instant::now();
        engine.update(batch, Box::new(move |failures| _ = sender.send(failures.len())));
        assert_eq!(done.recv().expect("an answer"), 0, "an update failed");
        took.push(began.elapsed());
    }
    took
}

fn measure(what: &str, engine: &ClusterEngine, times: &mut [i64], span: Duration) {
    let (before, began) = (ticks(), Instant::now());
    let until = began + span;
    let mut took: Vec<Duration> = std::thread::scope(|scope| {
        let clients: Vec<_> = times
            .iter_mut()
            .enumerate()
            .map(|(client, time)| scope.spawn(move || send(engine, client, time, until)))
            .collect();
        clients.into_iter().flat_map(|client| client.join().expect("no panic")).collect()
    });
    let seconds = began.elapsed().as_secs_f64();
    engine.sync().expect("everything in the log");
    let drained = began.elapsed().as_secs_f64() - seconds;
    let updates = (took.len() * BATCH) as f64;
    took.sort_unstable();
    let at = |part: usize| took[(took.len() - 1) * part / 1000].as_secs_f64() * 1000.0;
    println!(
        "{what}: {:.0} updates/s, a batch {:.2} ms (p50), {:.1} ms (p99), {:.2} us of CPU per update; all in the log {drained:.2} s later",
        updates / seconds,
        at(500),
        at(990),
        (ticks() - before) as f64 * 10_000.0 / updates,
    );
}

/// Three brokers, and a log of theirs.
fn brokers() -> (Kafka, Arc<dyn ReplicatedLog>) {
    let kafka = Kafka::start(3, &[]).expect("three brokers");
    let options = KafkaOptions::new(kafka.addresses(), "cost");
    let retention = Duration::from_hours(1);
    let topic = NewTopic { partitions: PARTITIONS + 1, replication: 3, retention };
    create_topic(&options, topic).expect("a topic");
    let log = KafkaLog::new(options).expect("a log");
    (kafka, Arc::new(log))
}

fn node_options(directory: &Path) -> NodeOptions {
    NodeOptions {
        cluster: "cost".into(),
        name: "a".into(),
        zone: "a".into(),
        address: "127.0.0.1:1".into(),
        replication: 1,
        directory: directory.join("store"),
        store: store::stripes::Options::default(),
        patience: Duration::from_secs(30),
        beat: BEAT,
        backup: None,
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (kafka, directory, clients, seconds, rounds) = match arguments.as_slice() {
        [directory, clients, seconds, rounds] => (None, directory, clients, seconds, rounds),
        [directory, clients, seconds, rounds, word] if word == "brokers" => {
            (Some(brokers()), directory, clients, seconds, rounds)
        }
        _ => {
            eprintln!("spool_cost DIRECTORY CLIENTS SECONDS ROUNDS [brokers]");
            std::process::exit(2);
        }
    };
    let number = |text: &String| text.parse::<usize>().expect("a number");
    let (clients, seconds, rounds) = (number(clients), number(seconds), number(rounds));
    let directory = Path::new(directory);
    let log = kafka.as_ref().map_or_else(
        || {
            let log = DirectoryLog::create(&directory.join("log"), PARTITIONS + 1);
            Arc::new(log.expect("an empty directory")) as Arc<dyn ReplicatedLog>
        },
        |(_, log)| Arc::clone(log),
    );
    let options = node_options(directory);
    let node = Arc::new(Node::start(options, log).expect("a node"));
    let routes = Arc::clone(&node) as Arc<dyn Routes>;
    while !(0..PARTITIONS).all(|partition| routes.route(partition).leads_here) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let engine = || {
        let member = Membership::new("cost", "a", &[7; 32], None).expect("a secret");
        ClusterEngine::start(Arc::clone(&routes), member, ClusterOptions::default()).expect("threads")
    };
    let by_log = engine();
    let spool = SpoolOptions { directory: directory.join("spool"), bytes_max: 10 << 30 };
    let from_spool = engine().with_spool(spool).expect("a spool");
    (0..clients).for_each(|client| create(&by_log, client));
    let mut times = vec![START; clients];
    let load = std::fs::read_to_string("/proc/loadavg").expect("Linux");
    println!("{clients} clients, batches of {BATCH}; load {load}");
    for _ in 0..rounds {
        measure("log", &by_log, &mut times, Duration::from_secs(seconds as u64));
        measure("spool", &from_spool, &mut times, Duration::from_secs(seconds as u64));
    }
    drop((by_log, from_spool));
    node.stop();
}
