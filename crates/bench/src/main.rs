//! The load generator and the side-by-side runner (`bench/RESULTS.md`).
//!
//! Speaks plain rrdcached protocol, so that the same client drives Debian's rrdcached and Roundel.

#![forbid(unsafe_code)]

mod builds;
mod client;
mod cluster;
mod compare;
mod daemon;
mod figures;
mod gallery;
mod load;
mod report;
mod secure;
mod usage;
mod volume;
mod workload;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use indicatif::ProgressBar;

use crate::load::{Load, LoadPlan};
use crate::usage::ProcessUsage;
use crate::workload::{Jitter, Shape, Sources, Texture, Workload};

/// Results of the bench; errors are texts for people.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[derive(Parser)]
#[command(about = "Load for rrdcached's protocol, and Roundel beside its peers")]
struct Options {
    #[command(subcommand)]
    command: Commands,
}

#[derive(Subcommand)]
enum Commands {
    /// Load a daemon that is already running.
    Load(LoadOptions),
    /// Roundel beside its peers; writes bench/RESULTS.md. With --against, beside another build of ours.
    Compare(compare::CompareOptions),
    /// Graphs by Debian's rrdtool and by ours in one page.
    Gallery(gallery::GalleryOptions),
    /// What a cluster costs: a table for docs/cluster.md.
    Cluster(cluster::ClusterOptions),
}

#[derive(Args)]
struct LoadOptions {
    /// `unix:/PATH` or `HOST:PORT`.
    #[arg(long)]
    socket: String,
    #[arg(long, value_enum, default_value = "w1")]
    workload: Shape,
    /// RRDs [default: the workload's own number].
    #[arg(long)]
    rrds: Option<usize>,
    #[arg(long, default_value_t = 30)]
    rounds: u64,
    /// The first round, to continue where an earlier load ended.
    #[arg(long, default_value_t = 0)]
    first_round: u64,
    /// One answer per UPDATE instead of BATCH.
    #[arg(long)]
    plain: bool,
    /// Rounds per UPDATE line.
    #[arg(long, default_value_t = 1)]
    values_per_line: u64,
    #[arg(long, default_value_t = 1)]
    connections: usize,
    #[arg(long, value_enum, default_value = "none")]
    jitter: Jitter,
    #[arg(long, value_enum, default_value = "usual")]
    kind: Sources,
    #[arg(long, value_enum, default_value = "noisy")]
    texture: Texture,
    /// Values per second over all connections; 0 = full speed.
    #[arg(long, default_value_t = 0)]
    pace: u64,
    /// The RRDs exist already.
    #[arg(long)]
    no_create: bool,
    /// Process id of the daemon, to report its usage.
    #[arg(long)]
    pid: Option<u32>,
}

fn main() -> ExitCode {
    let result = match Options::parse().command {
        Commands::Load(options) => run_load(&options),
        Commands::Compare(options) => compare::run(&options),
        Commands::Gallery(options) => gallery::run(&options),
        Commands::Cluster(options) => cluster::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_load(options: &LoadOptions) -> Outcome<()> {
    let workload = Workload {
        shape: options.workload,
        sources: options.kind,
        texture: options.texture,
        jitter: options.jitter,
    };
    let count = options.rrds.unwrap_or_else(|| workload.rrd_count());
    let mut load = Load::connect(&options.socket, workload, count, options.connections)?;
    if !options.no_create {
        let wall = load.create(&ProgressBar::hidden())?;
        let rate = count as f64 / wall.as_secs_f64();
        println!("created   {count} RRDs in {wall:.2?}: {rate:.0}/s");
    }
    let plan = LoadPlan {
        first_round: options.first_round,
        rounds: options.rounds,
        values_per_line: options.values_per_line,
        batch: !options.plain,
        pace: options.pace,
    };
    let written = load.data_sets_written()?;
    let usage = || options.pid.map(ProcessUsage::of).transpose();
    let (before, own_before) = (usage()?, ProcessUsage::of(std::process::id())?);
    let sent = load.send(plan)?;
    let own = ProcessUsage::of(std::process::id())?.since(&own_before);
    let rate = |seconds: f64| sent.values as f64 / seconds / 1000.0;
    let per_value = |seconds: f64| seconds * 1e6 / sent.values as f64;
    println!(
        "accepted  {} values in {:.2?}: {:.0} k/s, {} refused; client CPU {:.2} us a value",
        sent.values,
        sent.wall,
        rate(sent.wall.as_secs_f64()),
        sent.refused,
        per_value(own.cpu.as_secs_f64())
    );
    let drained = sent.wall + load.drain(written + sent.values - sent.refused)?;
    println!("drained   after {drained:.2?}: {:.0} k/s", rate(drained.as_secs_f64()));
    if let (Some(before), Some(after)) = (before, usage()?) {
        let used = after.since(&before);
        println!(
            "daemon    CPU {:.2?} = {:.2} us a value; wrote {:.0} bytes a value; resident {} MB",
            used.cpu,
            per_value(used.cpu.as_secs_f64()),
            used.write_bytes as f64 / sent.values as f64,
            used.rss_bytes / 1_000_000
        );
    }
    Ok(())
}
