//! The side-by-side table: which scenarios run, in which order, at which size.
//!
//! Every scenario starts its own daemons in its own directory under the work directory and leaves neither
//! running. The daemons of a scenario run side by side but are loaded in turn, never at once.

mod agent;
mod attack;
mod collectd;
mod collector;
mod device;
mod farm;
mod fetch;
mod gmond;
mod gosnmp;
mod graph;
mod graphite;
mod kept;
mod librrd;
mod million;
mod mrtg;
mod neighbours;
mod page;
mod promql;
mod query;
mod safe;
mod subject;
mod throughput;
mod tool;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::Outcome;
use crate::builds::{Build, Program};
use crate::daemon::Kind;
use crate::report::Report;
use crate::volume;
use crate::workload::{Shape, Workload};

/// How thorough the run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// A few minutes: fewer RRDs and runs.
    Quick,
    /// The complete table.
    Full,
}

/// Options of `bench compare`.
#[derive(Args)]
pub struct CompareOptions {
    /// Our executable; what else is measured is beside it.
    #[arg(long, default_value = "target/release/roundel")]
    roundel: PathBuf,
    /// Another build of ours in place of the peers: a directory like target/release, with roundel, and as far as it
    /// has them rrdtool, liblibrrd.so and examples/direct. Every row is then before | after | ratio.
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,
    /// How thorough the run is.
    #[arg(long, value_enum, default_value = "quick")]
    mode: Mode,
    /// Only these scenarios; the other rows of the results stay as they are.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Scenario>,
    /// The work directory; emptied at the start and removed at the end.
    #[arg(long, default_value = "bench/work")]
    work: PathBuf,
    /// The file to write: bench/RESULTS.md, with --against bench/AGAINST.md.
    #[arg(long)]
    results: Option<PathBuf>,
    /// Fraction of the RRDs of W1 and W2, to test the bench itself; its results mean nothing.
    #[arg(long, default_value_t = 1.0, hide = true)]
    scale: f64,
    /// RRDs of the million scenario.
    #[arg(long, default_value_t = 1_000_000)]
    million: usize,
}

/// Groups of rows that are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// W1: values/s, CPU, right after a restart, CREATE.
    W1,
    /// W2: the same.
    W2,
    /// W1 in the files layout.
    Files,
    /// Device bytes of a long run, W1.
    Device,
    /// Write requests and bytes at real-time pace, W1.
    Pace,
    /// FETCH, warm, cold, and under load.
    Fetch,
    /// A million RRDs: speed, memory, restart.
    Million,
    /// Disk kept with full archives, on the grid and off it.
    Kept,
    /// librrd and VictoriaMetrics, for orientation.
    Neighbours,
    /// `roundel query` over 10,000 files, beside rrdtool.
    Query,
    /// The command line on files, beside rrdtool and librrd.
    Tool,
    /// Graphs: in a session, one per process, and over HTTP.
    Graph,
    /// The C library, beside Debian's: files, daemons, collectd.
    Librrd,
    /// W1 while clients that mean harm attack.
    Attack,
    /// collectd's packets, beside collectd with its plugins network and rrdtool.
    Collectd,
    /// gmond's XML, beside gmetad.
    Gmond,
    /// An mrtg.cfg, beside MRTG and gosnmp.
    Mrtg,
    /// The page in Chromium, among a million RRDs, at rest and while W1 arrives.
    Page,
    /// PromQL, beside Prometheus and VictoriaMetrics.
    Promql,
    /// Graphite's `/render`, beside graphite-web.
    Graphite,
    /// W1 with TLS and a token, with a backup, with a follower; a restore.
    Safe,
}

/// The context of every scenario.
pub struct Bench {
    work: PathBuf,
    ours: Build,
    /// The build that takes the peers' place.
    before: Option<Build>,
    mode: Mode,
    million: usize,
    scale: f64,
    bars: MultiProgress,
    progress: ProgressBar,
    /// Results so far.
    pub report: Report,
}

impl Bench {
    /// The number for the mode.
    fn pick<T>(&self, quick: T, full: T) -> T {
        if self.mode == Mode::Quick { quick } else { full }
    }

    /// Reports progress, on the progress line or, without a terminal, on a line of its own.
    fn say(&self, text: &str) {
        self.progress.set_message(text.to_string());
        if self.progress.is_hidden() {
            eprintln!("bench: {text}");
        }
    }

    /// A second line for a long step of `count` parts, removed with the value.
    fn progress_of(&self, count: usize) -> ProgressBar {
        self.bars.add(ProgressBar::new(count as u64))
    }

    /// A directory of its own for a part of a scenario.
    fn place(&self, name: &str) -> PathBuf {
        self.work.join(name)
    }

    /// Whether two builds of ours are compared.
    fn is_against(&self) -> bool {
        self.before.is_some()
    }

    /// rrdcached, or the other build's daemon of that kind; then ours.
    fn pair(&self, kind: Kind) -> [Program; 2] {
        let ours = Program { kind, roundel: self.ours.roundel(), is_before: false };
        let peer = match &self.before {
            Some(build) => Program { kind, roundel: build.roundel(), is_before: true },
            None => self.rrdcached(),
        };
        [peer, ours]
    }

    /// The other build's daemon where there is one, then ours.
    fn builds(&self, kind: Kind) -> Vec<Program> {
        self.pair(kind).into_iter().filter(|program| program.kind == kind).collect()
    }

    /// rrdcached itself, which also makes files as librrd does.
    fn rrdcached(&self) -> Program {
        Program { kind: Kind::Rrdcached, roundel: PathBuf::new(), is_before: false }
    }
}

/// Runs the chosen scenarios and writes the report after each.
pub fn run(options: &CompareOptions) -> Outcome<()> {
    volume::clear(&options.work)?;
    let work = options.work.canonicalize()?;
    let scenarios: Vec<Scenario> =
        if options.only.is_empty() { Scenario::value_variants().to_vec() } else { options.only.clone() };
    let bars = MultiProgress::new();
    let progress = bars.add(ProgressBar::new(scenarios.len() as u64));
    let style = ProgressStyle::with_template("[{elapsed_precise}] {bar:20} {pos}/{len} {wide_msg}")?;
    progress.set_style(style);
    progress.enable_steady_tick(std::time::Duration::from_millis(200));
    let mode = format!("{:?}, scenarios {:?}", options.mode, scenarios);
    let update = !options.only.is_empty();
    let before = options.against.as_deref().map(Build::open).transpose()?;
    let file = if before.is_some() { "bench/AGAINST.md" } else { "bench/RESULTS.md" };
    let file = options.results.clone().unwrap_or_else(|| PathBuf::from(file));
    let report = match &options.against {
        Some(before) => Report::against(&file, &mode, update, before),
        None => Report::new(&file, &mode, update),
    };
    let mut bench = Bench {
        work: work.clone(),
        ours: Build::open(options.roundel.parent().unwrap_or(Path::new("")))?,
        before,
        mode: options.mode,
        million: options.million,
        scale: options.scale.clamp(0.001, 1.0),
        bars,
        progress,
        report,
    };
    let mut failed = Vec::new();
    for scenario in scenarios {
        let start = Instant::now();
        if let Err(error) = bench.run(scenario) {
            bench.say(&format!("{scenario:?} failed: {error}"));
            bench.report.omit("Not measured", format!("{scenario:?}: {error}"));
            failed.push(scenario);
        }
        bench.say(&format!("{scenario:?} took {:.0?}", start.elapsed()));
        bench.progress.inc(1);
        bench.report.write()?;
    }
    bench.progress.finish_and_clear();
    if let Some(verdict) = bench.report.verdict() {
        println!("{verdict}");
    }
    volume::clear(&work)?;
    std::fs::remove_dir(&work)?;
    if failed.is_empty() { Ok(()) } else { Err(format!("scenarios failed: {failed:?}").into()) }
}

impl Bench {
    fn run(&mut self, scenario: Scenario) -> Outcome<()> {
        match scenario {
            Scenario::W1 => throughput::w1(self),
            Scenario::W2 => throughput::w2(self),
            Scenario::Files => throughput::files(self),
            Scenario::Device => device::long_run(self),
            Scenario::Pace => device::real_time(self),
            Scenario::Fetch => fetch::run(self),
            Scenario::Million => million::run(self),
            Scenario::Kept => kept::run(self),
            Scenario::Neighbours => neighbours::run(self),
            Scenario::Query => query::run(self),
            Scenario::Tool => tool::run(self),
            Scenario::Graph => graph::run(self),
            Scenario::Librrd => librrd::run(self),
            Scenario::Attack => attack::run(self),
            Scenario::Collectd => collectd::run(self),
            Scenario::Gmond => gmond::run(self),
            Scenario::Mrtg => mrtg::run(self),
            Scenario::Page => page::run(self),
            Scenario::Promql => promql::run(self),
            Scenario::Graphite => graphite::run(self),
            Scenario::Safe => safe::run(self),
        }
    }

    fn workload(&self, shape: Shape) -> (Workload, usize) {
        let workload = Workload::usual(shape);
        let count = match shape {
            Shape::W1 => workload.rrd_count(),
            Shape::W2 | Shape::Ganglia => self.pick(workload.rrd_count() / 4, workload.rrd_count()),
        };
        let count = (count as f64 * self.scale) as usize;
        (workload, count)
    }
}
