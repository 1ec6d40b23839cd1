//! What a cluster costs: bytes in the replicated log, CPU of a replica beside that of a single server, replaying, joining.
//!
//! Two nodes on this machine. One is stopped while the other is loaded; what it then reads of the log is all that its CPU is spent on, which could not be
//! told from leading otherwise, for nodes share the partitions of which they lead.

mod nodes;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::ProgressBar;

use self::nodes::{Log, Pair};
use crate::Outcome;
use crate::builds::Program;
use crate::daemon::{Daemon, Kind};
use crate::figures::{Goal, Runs, Unit};
use crate::load::{Load, LoadPlan};
use crate::usage::{ProcessUsage, disk_bytes, wait_until_below};
use crate::workload::{Shape, Workload};

/// Options of `bench cluster`.
#[derive(Args)]
pub struct ClusterOptions {
    /// Our executable.
    #[arg(long, default_value = "target/release/roundel")]
    roundel: PathBuf,
    /// The work directory; emptied at the start and removed at the end.
    #[arg(long, default_value = "bench/work")]
    work: PathBuf,
    /// Brokers of Kafka (HOST:PORT,...) in place of a log in a directory.
    #[arg(long, value_name = "ADDRESSES", requires = "broker_data")]
    brokers: Option<String>,
    /// The data directory of one of them, to see how long the topic is.
    #[arg(long, value_name = "DIR")]
    broker_data: Option<PathBuf>,
    /// Runs of each workload.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Millions of values of a run.
    #[arg(long, default_value_t = 4)]
    values: u64,
    /// RRDs with which a node joins; 0: none does.
    #[arg(long, default_value_t = 1_000_000)]
    million: usize,
    /// Fraction of the RRDs of W1 and W2, to test the bench itself; its results mean nothing.
    #[arg(long, default_value_t = 1.0, hide = true)]
    scale: f64,
}

/// Cores that a node may use while it has nothing to do: with brokers it asks each partition twenty times a second.
const RESTING: f64 = 0.4;

/// What the runs of a workload gave.
#[derive(Default)]
struct Measured {
    /// Of the log, at full speed and at the pace of the workload in reality.
    bytes: Runs,
    paced_bytes: Runs,
    /// CPU seconds a value.
    single: Runs,
    leader: Runs,
    replica: Runs,
    /// Values a second by the clock.
    replayed: Runs,
}

/// Runs all of it.
pub fn run(options: &ClusterOptions) -> Outcome<()> {
    let program =
        Program { kind: Kind::RoundelBare, roundel: options.roundel.canonicalize()?, is_before: false };
    std::fs::remove_dir_all(&options.work).ok();
    std::fs::create_dir_all(&options.work)?;
    println!("load {} at the start\n", load_average());
    println!("| figure | runs | must | aim |\n|---|---|---|---|");
    for (shape, must, aim) in [(Shape::W1, 6.0, 3.0), (Shape::W2, 8.0, 4.0)] {
        let mut measured = Measured::default();
        for run in 0..options.runs {
            measure(options, &program, shape, run, &mut measured)?;
        }
        print_rows(shape, &measured, (must, aim));
    }
    if options.million > 0 {
        join(options, &program)?;
    }
    println!("\nload {} at the end", load_average());
    std::fs::remove_dir_all(&options.work)?;
    Ok(())
}

fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

fn log_of(options: &ClusterOptions, name: &str) -> Log {
    match (&options.brokers, &options.broker_data) {
        (Some(brokers), Some(data)) => {
            // Topics of other runs may be there still.
            let topic = format!("bench-{name}-{}", std::process::id());
            Log::Topic { brokers: brokers.clone(), topic, data: data.clone() }
        }
        _ => Log::Directory,
    }
}

/// A run: the same load for a single server, and for a node of a cluster; then a second node reads it.
fn measure(
    options: &ClusterOptions,
    program: &Program,
    shape: Shape,
    run: usize,
    measured: &mut Measured,
) -> Outcome<()> {
    let workload = Workload::usual(shape);
    let count = ((workload.rrd_count() as f64 * options.scale) as usize).max(1_000);
    let rounds = (options.values * 1_000_000 / count as u64).max(1);
    let place = options.work.join(format!("{shape:?}-{run}"));
    let per_value = |cpu: Duration| cpu.as_secs_f64() / (rounds * count as u64) as f64;

    let mut single = Daemon::new(program, &place.join("single"))?;
    single.start()?;
    let mut load = Load::connect(&single.address(), workload, count, 1)?;
    load.create(&ProgressBar::hidden())?;
    measured.single.push(per_value(send(&mut load, &single, rounds)?.cpu));
    single.stop()?;

    let name = format!("{shape:?}-{run}").to_lowercase();
    let mut pair = Pair::start(program, &place, log_of(options, &name))?;
    // A node that starts and has nothing to read: what is more, reading costs.
    wait_until_below(pair.second.pid()?, RESTING)?;
    let start = pair.second.usage()?.cpu;
    let mut load = Load::connect(&pair.first.address(), workload, count, 1)?;
    load.create(&ProgressBar::hidden())?;
    load.send(LoadPlan { rounds: 1, ..LoadPlan::default() })?;
    pair.stop_second()?;
    let before = pair.log_bytes()?;
    measured.leader.push(per_value(send(&mut load, &pair.first, rounds)?.cpu));
    let values = rounds * count as u64;
    measured.bytes.push((pair.log_bytes()? - before) as f64 / values as f64);
    let begun = Instant::now();
    pair.start_second()?;
    let replayed = wait_until_below(pair.second.pid()?, RESTING)?.saturating_duration_since(begun);
    measured.replica.push(per_value(pair.second.usage()?.cpu.saturating_sub(start)));
    measured.replayed.push(values as f64 / replayed.as_secs_f64());
    measured.paced_bytes.push(paced_bytes(&pair, &mut load, workload, count, 1 + rounds)?);
    pair.first.stop()?;
    pair.second.stop()?;
    std::fs::remove_dir_all(place)?;
    Ok(())
}

/// Loads a daemon with rounds after the first, and says what it used until all of it was written.
fn send(load: &mut Load, daemon: &Daemon, rounds: u64) -> Outcome<ProcessUsage> {
    let before = daemon.usage()?;
    let sent = load.send(LoadPlan { first_round: 1, rounds, ..LoadPlan::default() })?;
    if sent.refused > 0 {
        return Err(format!("{} of {} values were refused", sent.refused, sent.values).into());
    }
    load.drain(0)?;
    wait_until_below(daemon.pid()?, RESTING)?;
    Ok(daemon.usage()?.since(&before))
}

/// Bytes a value at about the rate that the workload has in reality, sent in ten batches a second.
fn paced_bytes(pair: &Pair, load: &mut Load, workload: Workload, count: usize, first: u64) -> Outcome<f64> {
    let pace = (count as i64 / workload.step_seconds()).max(10) as u64;
    let before = pair.log_bytes()?;
    let rounds = (PACED_SECONDS * pace).div_ceil(count as u64).max(1);
    // Of W2, a round in so short a time is fifteen times as fast.
    let fast = pace.max(count as u64 / PACED_SECONDS);
    let sent = load.send(LoadPlan { first_round: first, rounds, pace: fast, ..LoadPlan::default() })?;
    Ok((pair.log_bytes()? - before) as f64 / sent.values as f64)
}

/// About how long a paced load takes.
const PACED_SECONDS: u64 = 20;

fn print_rows(shape: Shape, measured: &Measured, (must, aim): (f64, f64)) {
    let row = |figure: &str, runs: &Runs, unit: Unit, must: Goal, aim: Goal| {
        println!("| {shape:?}, {figure} | {} | {must} | {aim} |", runs.text(unit));
    };
    let none = || (Goal::None, Goal::None);
    let bytes = |bound| Goal::AtMost(bound, Unit::Bytes);
    row("bytes per value in the log", &measured.bytes, Unit::Bytes, bytes(must), bytes(aim));
    row("the same, paced", &measured.paced_bytes, Unit::Bytes, none().0, none().1);
    row("CPU per value, a single server", &measured.single, Unit::Seconds, none().0, none().1);
    row("CPU per value, the node that leads", &measured.leader, Unit::Seconds, none().0, none().1);
    row("CPU per value, a replica", &measured.replica, Unit::Seconds, none().0, none().1);
    let ratio = measured.replica.per(&measured.single);
    let times = |bound| Goal::AtMost(bound, Unit::Number);
    row("CPU of a replica, times that of a single server", &ratio, Unit::Number, times(1.3), times(1.1));
    let rate = Runs::one(1.0).per(&measured.replica);
    row(
        "values a replica applies per second of CPU",
        &rate,
        Unit::PerSecond,
        Goal::AtLeast(1e6),
        Goal::AtLeast(2e6),
    );
    row(
        "values/s by the clock, from its start until it rests",
        &measured.replayed,
        Unit::PerSecond,
        none().0,
        none().1,
    );
}

/// A node joins one that has many RRDs.
fn join(options: &ClusterOptions, program: &Program) -> Outcome<()> {
    let place = options.work.join("join");
    let workload = Workload::usual(Shape::W2);
    let mut pair = Pair::alone(program, &place, log_of(options, "join"))?;
    let mut load = Load::connect(&pair.first.address(), workload, options.million, 1)?;
    let created = load.create(&ProgressBar::hidden())?;
    load.send(LoadPlan { rounds: 3, ..LoadPlan::default() })?;
    load.drain(0)?;
    wait_until_below(pair.first.pid()?, RESTING)?;
    let bytes = disk_bytes(&pair.first.directory().join("store"))?;
    let begun = Instant::now();
    pair.start_second()?;
    let joined = begun.elapsed();
    let seconds = |bound| Goal::AtMost(bound, Unit::Seconds);
    println!(
        "| a node joins, {} RRDs of W2, until it has and answers for all of them | {} | {} | {} |",
        options.million,
        Unit::Seconds.text(joined.as_secs_f64()),
        seconds(30.0),
        seconds(10.0)
    );
    println!(
        "| the store that it copies; creating the RRDs took | {}; {} | - | - |",
        Unit::Bytes.text(bytes as f64),
        Unit::Seconds.text(created.as_secs_f64())
    );
    pair.first.stop()?;
    pair.second.stop()?;
    Ok(())
}
