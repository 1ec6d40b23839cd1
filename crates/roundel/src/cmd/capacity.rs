//! `roundel capacity`: what so many RRDs need of a machine, by model and by simulation.

mod cluster;
mod figures;
mod picture;
mod source;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use pagecache::plan::{DiskRates, Layout, Machine};
use pagecache::presets::Preset;
use pagecache::simulate::{BATCH_MAX, Outcome, PASSES_MAX, Policy, Setup};
use pagecache::{MODEL_PAGE_BYTES, probe};

use super::{Result, print};

const AFTER_HELP: &str = "\
An update of a .rrd file touches the page of its header and, of each archive in which a row ends, the page of that row. Each of
them that is not in memory must be read first: a page fault. The more memory, the fewer: that is a staircase, with a step
for each kind of row that stays in memory. docs/capacity.md derives the formulas.

What RRDs are like, one of:
  --preset NAME     mrtg, collectd, ganglia, cacti, librenms: as these programs make them unless told otherwise
  --like PATH       as a .rrd file is, or most of those below a directory
  DS:... RRA:...    as `rrdtool create` would make them, with --step

Layouts:
  plain             .rrd files; a fault reads one page
  readahead         the same, and a fault reads --readahead around it: librrd before 1.3
  advice            the same with advice RANDOM: librrd since
  buffering         a program gathers --batch updates before it writes
  rrdcached         rrdcached -w: --batch updates, or --write-interval
  roundel-files     Roundel's files layout, --batch or --write-interval
  roundel-stripes   Roundel's stripes: updates read nothing and write in sequence

Examples:
  roundel capacity --preset mrtg --rrds 320k --memory 8G --iops 1000
  roundel capacity --like /var/lib/librenms --rrds 100k --memory 16G --measure /var/lib/librenms --layout rrdcached --write-interval 30m
  roundel capacity --preset collectd --rrds 20500 --memory 4G --iops 700 --graph faults.svg
  roundel capacity --preset mrtg --rrds 1M --memory 20G --simulate --seed 1
  roundel capacity --preset collectd --rrds 2M --nodes 4 --retention 48h";

/// Options of `capacity`.
#[derive(Debug, Args)]
#[command(about = "Say what so many RRDs need: page faults, memory, disk, and what to buy next", after_long_help = AFTER_HELP)]
pub struct Arguments {
    #[command(flatten)]
    source: source::GeometryArguments,
    /// How many RRDs, such as 320k or 1M
    #[arg(long, value_name = "COUNT", default_value = "100k", value_parser = count)]
    rrds: u64,
    /// Memory for the page cache or the store, such as 8G
    #[arg(long, value_name = "BYTES", default_value = "8G", value_parser = bytes)]
    memory: u64,
    /// Random requests per second of the disk
    #[arg(long, value_name = "COUNT", default_value_t = 200.0)]
    iops: f64,
    /// Megabytes per second of the disk, in sequence
    #[arg(long, value_name = "COUNT", default_value_t = 100.0)]
    mbps: f64,
    /// Measure the disk that holds this directory instead: writes 256 MiB there, takes about five seconds
    #[arg(long, value_name = "DIR", conflicts_with_all = ["iops", "mbps"])]
    measure: Option<PathBuf>,
    /// How RRDs are kept
    #[arg(long, value_enum, default_value = "advice")]
    layout: LayoutName,
    /// Bytes that a fault reads with --layout readahead
    #[arg(long, value_name = "BYTES", default_value = "128k", value_parser = bytes)]
    readahead: u64,
    /// Updates of an RRD that are written together
    #[arg(long, value_name = "COUNT", conflicts_with = "write_interval", value_parser = clap::value_parser!(u64).range(1..=BATCH_MAX))]
    batch: Option<u64>,
    /// The same as a time: -w of rrdcached
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = seconds)]
    write_interval: u64,
    /// Draw page faults against the number of RRDs; .svg or .png by the name
    #[arg(long, value_name = "FILE")]
    graph: Option<PathBuf>,
    /// Draw it on a dark ground
    #[arg(long, requires = "graph")]
    dark: bool,
    /// Put measured points into the graph: what lab/staircase.py wrote
    #[arg(long, value_name = "FILE", requires = "graph")]
    points: Option<PathBuf>,
    /// Run the updates through a simulated page cache, too
    #[arg(long)]
    simulate: bool,
    /// How the simulated cache chooses what it drops
    #[arg(long, value_enum, default_value = "lru", requires = "simulate")]
    policy: PolicyName,
    /// Where newest rows are in the simulation
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Passes that the simulation counts [default: up to 288]
    #[arg(long, value_name = "COUNT", requires = "simulate", value_parser = clap::value_parser!(u64).range(1..=PASSES_MAX))]
    passes: Option<u64>,
    #[command(flatten)]
    cluster: cluster::ClusterArguments,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LayoutName {
    Plain,
    Readahead,
    Advice,
    Buffering,
    Rrdcached,
    RoundelFiles,
    RoundelStripes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PolicyName {
    /// What was not touched for the longest time
    Lru,
    /// Linux' active and inactive lists and refaults
    Linux,
}

impl PolicyName {
    fn words(self) -> &'static str {
        match self {
            PolicyName::Lru => "an LRU cache",
            PolicyName::Linux => "Linux' two lists",
        }
    }
}

/// A count of at least 1 with k or M.
fn count(text: &str) -> Result<u64> {
    scaled(text, 1_000)
        .filter(|count| *count >= 1)
        .ok_or_else(|| "a number such as 20500, 320k or 1M".to_string())
}

/// Bytes with k, M, G or T, each 1024 times the one before; with kB, MB, GB or TB, as the answers have them, 1000 times.
fn bytes(text: &str) -> Result<u64> {
    let (number, unit) = match text.strip_suffix("iB").or(text.strip_suffix("ib")) {
        Some(number) => (number, 1_024),
        None => match text.strip_suffix(['B', 'b']) {
            Some(number) => (number.trim_end(), 1_000),
            None => (text, 1_024),
        },
    };
    scaled(number, unit).ok_or_else(|| "a number of bytes such as 512M or 8G".to_string())
}

fn scaled(text: &str, unit: u64) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let power = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    let value = digits.trim_end().parse::<f64>().ok()? * (unit as f64).powi(power);
    // Larger numbers are no counts and no machines.
    (value.is_finite() && (0.0..1e15).contains(&value)).then_some(value as u64)
}

fn seconds(text: &str) -> Result<u64> {
    let step = rrd::when::parse_step(text, false).map_err(|_| "a time such as 300, 30m or 1h".to_string())?;
    Ok(step.units)
}

impl Arguments {
    fn layout(&self, name: LayoutName, step: f64) -> Layout {
        let batch = self.batch.unwrap_or((self.write_interval as f64 / step) as u64).clamp(1, BATCH_MAX);
        match name {
            LayoutName::Plain => Layout::Plain,
            LayoutName::Readahead => Layout::Readahead { pages: (self.readahead / MODEL_PAGE_BYTES).max(1) },
            LayoutName::Advice => Layout::Advice,
            LayoutName::Buffering => Layout::Buffering { batch },
            LayoutName::Rrdcached => Layout::Rrdcached { batch },
            LayoutName::RoundelFiles => Layout::RoundelFiles { batch },
            LayoutName::RoundelStripes => Layout::RoundelStripes,
        }
    }

    /// Options that the layout does not have are mistakes.
    fn check_layout(&self) -> Result {
        let has_batch =
            matches!(self.layout, LayoutName::Buffering | LayoutName::Rrdcached | LayoutName::RoundelFiles);
        if self.batch.is_some() && !has_batch {
            return Err(
                "--batch needs --layout buffering, rrdcached or roundel-files: the others write each update"
                    .to_string(),
            );
        }
        if self.simulate && self.layout == LayoutName::RoundelStripes {
            return Err("--simulate needs a layout of files: an update of stripes reads nothing".to_string());
        }
        Ok(())
    }

    fn disk(&self) -> Result<DiskRates> {
        let Some(directory) = &self.measure else {
            let is_positive = |rate: f64| rate.is_finite() && rate > 0.0;
            if !is_positive(self.iops) || !is_positive(self.mbps) {
                return Err(
                    "--iops and --mbps must be numbers that are greater than 0, and no infinity".to_string()
                );
            }
            return Ok(DiskRates { iops: self.iops, megabytes: self.mbps });
        };
        let bar = bar("measuring the disk");
        let rates = probe::measure(directory, &mut |done| bar.set_position((1000.0 * done) as u64))
            .map_err(|error| format!("cannot measure the disk of \"{}\": {error}", directory.display()))?;
        bar.finish_and_clear();
        Ok(rates)
    }

    /// The simulation of a machine, unless its layout has no page cache.
    fn simulated(&self, machine: &Machine) -> Result<Option<Outcome>> {
        if !self.simulate || machine.layout == Layout::RoundelStripes {
            return Ok(None);
        }
        let bar = bar("simulating");
        let setup = self.setup(machine)?;
        let outcome = setup.run(&mut |done| {
            bar.set_position((1000.0 * done) as u64);
            true
        })?;
        bar.finish_and_clear();
        Ok(Some(outcome))
    }

    fn setup(&self, machine: &Machine) -> Result<Setup> {
        let rrds =
            u32::try_from(machine.rrds).map_err(|_| format!("cannot simulate {} RRDs", machine.rrds))?;
        let besides = machine.bytes_besides_pages();
        Ok(Setup {
            geometry: machine.geometry.clone(),
            rrds,
            cache_pages: machine.memory.saturating_sub(besides) / MODEL_PAGE_BYTES,
            policy: match self.policy {
                PolicyName::Lru => Policy::Lru,
                PolicyName::Linux => Policy::Linux {
                    random_advice: matches!(
                        machine.layout,
                        Layout::Advice | Layout::Rrdcached { .. } | Layout::Buffering { .. }
                    ),
                },
            },
            readahead: match machine.layout {
                Layout::Readahead { pages } => pages.min(u64::from(u32::MAX)) as u32,
                _ => 1,
            },
            batch: machine.layout.batch(),
            passes: self.passes.unwrap_or(0),
            seed: self.seed,
        })
    }
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result {
    arguments.check_layout()?;
    let (geometry, described) = arguments.source.geometry()?;
    if let Some(cluster) = arguments.cluster.plan(&geometry, arguments.rrds)? {
        let answer = cluster::Answer { described, cluster: &cluster, needs: cluster.needs() };
        return print(if arguments.json { answer.json().to_string() + "\n" } else { answer.text() });
    }
    let layouts =
        [LayoutName::Advice, LayoutName::Rrdcached, LayoutName::RoundelFiles, LayoutName::RoundelStripes];
    let layouts = layouts.map(|name| arguments.layout(name, geometry.step));
    let machine = Machine {
        layout: arguments.layout(arguments.layout, geometry.step),
        geometry,
        rrds: arguments.rrds,
        memory: arguments.memory,
        disk: arguments.disk()?,
    };
    let outcome = arguments.simulated(&machine)?;
    let answer = figures::Answer {
        described,
        load: machine.load(),
        rungs: machine.rungs(),
        rrds_max: machine.rrds_max(),
        purchases: machine.purchases(&layouts),
        outcome,
        policy: arguments.policy.words(),
        machine: &machine,
    };
    print(if arguments.json { answer.json().to_string() + "\n" } else { answer.text() })?;
    match &arguments.graph {
        Some(path) => picture::draw(path, arguments, &machine),
        None => Ok(()),
    }
}

fn bar(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(1_000);
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:40} {percent}%, {eta} left") {
        bar.set_style(style);
    }
    bar.with_message(what)
}

/// The presets' names, for the help of an option.
fn preset(text: &str) -> Result<Preset> {
    let names = || Preset::ALL.map(Preset::name).join(", ");
    Preset::from_name(text).ok_or_else(|| format!("one of {}", names()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_bytes_have_units() {
        assert_eq!((count("20500"), count("320k"), count("1.5M")), (Ok(20_500), Ok(320_000), Ok(1_500_000)));
        assert_eq!((bytes("128k"), bytes("8G")), (Ok(131_072), Ok(8 << 30)));
        assert_eq!(
            (bytes("9.9GB"), bytes("9.9 GB"), bytes("2GiB")),
            (Ok(9_900_000_000), Ok(9_900_000_000), Ok(2 << 30))
        );
        for bad in ["", "k", "-1", "0", "1e99", "nan", "inf", "5x", "1kk", "999999999999T"] {
            assert!(count(bad).is_err(), "{bad}");
        }
        assert!(seconds("5 parsecs").is_err());
    }
}
