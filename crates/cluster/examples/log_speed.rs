//! How fast a replicated log takes and gives messages: the figures of `docs/cluster.md`.
//!
//! `log_speed kafka PRODUCERS PARTITIONS BYTES SECONDS` starts three brokers (`make peers` fetches them), `log_speed directory DIRECTORY PARTITIONS
//! BYTES SECONDS` takes a directory. After five seconds that are not counted, one thread per partition appends messages one after the other, and one reads them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use roundel_cluster::log::directory::DirectoryLog;
use roundel_cluster::log::kafka::{KafkaLog, KafkaOptions, NewTopic, create_topic};
use roundel_cluster::log::{LogError, ReplicatedLog};
use testkit::Kafka;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, which, partitions, bytes, seconds] = arguments.as_slice() else {
        eprintln!("log_speed kafka|directory PRODUCERS|DIRECTORY PARTITIONS BYTES SECONDS");
        std::process::exit(2);
    };
    let number = |text: &String| text.parse::<usize>().expect("a number");
    let (partitions, bytes) = (number(partitions) as u32, number(bytes).max(16));
    let seconds = Duration::from_secs(number(seconds) as u64);
    if kind == "directory" {
        let log = DirectoryLog::create(Path::new(which), partitions).expect("a directory");
        return measure(&log, partitions, bytes, seconds);
    }
    let kafka = Kafka::start(3, &[]).expect("three brokers");
    let mut options = KafkaOptions::new(kafka.addresses(), "speed");
    options.producers = number(which);
    let retention = Duration::from_secs(3600);
    create_topic(&options, NewTopic { partitions, replication: 3, retention }).expect("a topic");
    let log = KafkaLog::new(options).expect("a log");
    measure(&log, partitions, bytes, seconds);
}

/// How long nothing is counted: Java compiles while it runs.
const WARM: Duration = Duration::from_secs(5);

/// Nanoseconds since the epoch: the threads of one machine have the same clock.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

fn measure(log: &dyn ReplicatedLog, partitions: u32, bytes: usize, seconds: Duration) {
    let ended = AtomicBool::new(false);
    let warm = Instant::now() + WARM;
    let (mut appends, mut reads) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        let ended = &ended;
        let writers: Vec<_> = (0..partitions)
            .map(|partition| scope.spawn(move || append(log, partition, bytes, (warm, ended))))
            .collect();
        let readers: Vec<_> = (0..partitions)
            .map(|partition| scope.spawn(move || read(log, partition, (warm, ended))))
            .collect();
        std::thread::sleep(WARM + seconds);
        ended.store(true, Ordering::Relaxed);
        writers.into_iter().for_each(|writer| appends.extend(writer.join().expect("a writer")));
        readers.into_iter().for_each(|reader| reads.extend(reader.join().expect("a reader")));
    });
    let rate = appends.len() as f64 / warm.elapsed().as_secs_f64();
    println!("{} appends, {rate:.0} a second, {:.1} MB/s", appends.len(), rate * bytes as f64 / 1e6);
    print_times("append to report", &mut appends);
    print_times("append to read", &mut reads);
    // Everything once more, from the beginning.
    let begun = Instant::now();
    let count: usize = std::thread::scope(|scope| {
        let readers: Vec<_> =
            (0..partitions).map(|partition| scope.spawn(move || read_all(log, partition))).collect();
        readers.into_iter().map(|reader| reader.join().expect("a reader")).sum()
    });
    let rate = count as f64 / begun.elapsed().as_secs_f64();
    println!("read again: {count} messages, {rate:.0} a second, {:.1} MB/s", rate * bytes as f64 / 1e6);
}

fn append(
    log: &dyn ReplicatedLog,
    partition: u32,
    bytes: usize,
    (warm, ended): (Instant, &AtomicBool),
) -> Vec<Duration> {
    let mut times = Vec::new();
    let mut message = vec![0; bytes];
    while !ended.load(Ordering::Relaxed) {
        message[..8].copy_from_slice(&now().to_le_bytes());
        let begun = Instant::now();
        log.append(partition, &message).expect("an append");
        if begun >= warm {
            times.push(begun.elapsed());
        }
    }
    times
}

fn read(log: &dyn ReplicatedLog, partition: u32, (warm, ended): (Instant, &AtomicBool)) -> Vec<Duration> {
    let from = log.bounds(partition).expect("bounds").start;
    let mut reader = log.reader(partition, from).expect("a reader");
    let mut times = Vec::new();
    while !ended.load(Ordering::Relaxed) {
        match reader.next(Duration::from_millis(100)) {
            Ok(Some(_)) if Instant::now() < warm => {}
            Ok(Some(stored)) => {
                let sent = u64::from_le_bytes(stored.bytes[..8].try_into().expect("eight bytes"));
                times.push(Duration::from_nanos(now().saturating_sub(sent)));
            }
            Ok(None) | Err(LogError::Unreachable(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    times
}

fn read_all(log: &dyn ReplicatedLog, partition: u32) -> usize {
    let bounds = log.bounds(partition).expect("bounds");
    let mut reader = log.reader(partition, bounds.start).expect("a reader");
    let mut count = 0;
    while (count as u64) < bounds.end - bounds.start {
        count += usize::from(reader.next(Duration::from_secs(1)).expect("a message").is_some());
    }
    count
}

fn print_times(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or_default();
    println!(
        "{what}: p50 {:.1?}, p99 {:.1?}, longest {:.1?}",
        at(0.5),
        at(0.99),
        times.last().copied().unwrap_or_default()
    );
}
