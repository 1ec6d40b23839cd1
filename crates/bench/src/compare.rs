//! The side-by-side table: which scenarios run, in which order, at which size.
//!
//! Every scenario starts its own daemons in its own directory under the work directory and leaves neither
//! behind. The daemons of a scenario run beside each other but are loaded in turn, never at once.

mod device;
mod fetch;
mod graph;
mod kept;
mod librrd;
mod million;
mod neighbours;
mod query;
mod subject;
mod throughput;
mod tool;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::Outcome;
use crate::report::Report;
use crate::volume;
use crate::workload::{Shape, Workload};

/// How much time there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// A few minutes: fewer RRDs and runs.
    Quick,
    /// The table as the issue has it.
    Full,
}

/// Options of `bench compare`.
#[derive(Args)]
pub struct CompareOptions {
    /// Our executable.
    #[arg(long, default_value = "target/release/roundel")]
    roundel: PathBuf,
    /// How much time there is.
    #[arg(long, value_enum, default_value = "quick")]
    mode: Mode,
    /// Only these scenarios; the other rows of the results stay as they are.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Scenario>,
    /// Where to work; emptied at the start and removed at the end.
    #[arg(long, default_value = "bench/work")]
    work: PathBuf,
    /// What to write.
    #[arg(long, default_value = "bench/RESULTS.md")]
    results: PathBuf,
    /// Part of the RRDs of W1 and W2, to try the bench itself; its results say nothing.
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
    /// Graphs: in a session, one a process, and over HTTP.
    Graph,
    /// The C library, beside Debian's: files, daemons, collectd.
    Librrd,
}

/// What every scenario needs.
pub struct Bench {
    work: PathBuf,
    roundel: PathBuf,
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

    /// Says what is going on, on the progress line or, without a terminal, on a line of its own.
    fn say(&self, text: &str) {
        self.progress.set_message(text.to_string());
        if self.progress.is_hidden() {
            eprintln!("bench: {text}");
        }
    }

    /// A second line for a long step of `count` parts; goes away with the value.
    fn progress_of(&self, count: usize) -> ProgressBar {
        self.bars.add(ProgressBar::new(count as u64))
    }

    /// A directory of its own for a part of a scenario.
    fn place(&self, name: &str) -> PathBuf {
        self.work.join(name)
    }

    fn roundel(&self) -> &Path {
        &self.roundel
    }
}

/// Runs the scenarios asked for and writes the report after each.
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
    let report = Report::new(&options.results, &mode, !options.only.is_empty());
    let mut bench = Bench {
        work: work.clone(),
        roundel: options.roundel.clone(),
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
            bench.report.note("Not measured", format!("{scenario:?}: {error}"));
            failed.push(scenario);
        }
        bench.say(&format!("{scenario:?} took {:.0?}", start.elapsed()));
        bench.progress.inc(1);
        bench.report.write()?;
    }
    bench.progress.finish_and_clear();
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
        }
    }

    fn workload(&self, shape: Shape) -> (Workload, usize) {
        let workload = Workload::usual(shape);
        let count = match shape {
            Shape::W1 => workload.rrd_count(),
            Shape::W2 => self.pick(workload.rrd_count() / 4, workload.rrd_count()),
        };
        let count = (count as f64 * self.scale) as usize;
        (workload, count)
    }
}
