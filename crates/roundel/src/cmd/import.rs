//! `roundel import`: standard `.rrd` files into a store, or the history that other tools kept. Bad files are listed at the end; the
//! others are imported.

#[cfg(feature = "exchange")]
mod history;
#[cfg(not(feature = "exchange"))]
#[path = "import/history_absent.rs"]
mod history;
mod options;

use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::Duration;

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use store::name::RrdName;
use store::placeholder;

use super::Result;
use super::peer::{self, Peer};

/// How often the progress of a daemon is asked for.
const STATUS_INTERVAL: Duration = Duration::from_millis(500);
/// The most failures shown at the end; others are only counted.
const FAILURES_SHOWN: usize = 20;

const EXAMPLES: &str = "\
Examples:
  Everything that RRDtool has below a directory:
    roundel import /var/lib/munin

  Graphite's own files; what is pushed to Roundel later goes on in the same RRDs:
    roundel import --format whisper /var/lib/graphite/whisper

  What Prometheus has kept, out of its blocks, all series of one job:
    promtool tsdb dump-openmetrics --match='{job=\"node\"}' /var/lib/prometheus | roundel import --format openmetrics -

  The same from a server over HTTP, of the last year; and from a Graphite:
    roundel import --format prometheus --match '{job=\"node\"}' -s -1y http://prometheus:9090
    roundel import --format graphite --match 'collectd.*.load.*' -s -1y http://graphite

History becomes the updates of new RRDs, so that every archive has its part. Where no [[create]] section or option says
otherwise, the step is the usual distance of the samples. The page docs/import.md has the formats one by one.";

/// What is imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SourceFormat {
    /// Standard .rrd files
    Rrd,
    /// What `rrdtool dump` wrote (.xml)
    Xml,
    /// Graphite's files (.wsp)
    Whisper,
    /// OpenMetrics or Prometheus text with a time at each sample; `-` is standard input
    Openmetrics,
    /// InfluxDB's line protocol with times in nanoseconds, as its export tools write it; `-` is standard input
    Influx,
    /// A Graphite server, by its URL
    Graphite,
    /// A Prometheus server or one that answers like it, by its URL
    Prometheus,
}

impl SourceFormat {
    /// Whether it has samples of many series, and not an RRD in each file.
    fn reads_samples(self) -> bool {
        !matches!(self, SourceFormat::Rrd | SourceFormat::Xml | SourceFormat::Whisper)
    }

    /// How the names of its files end.
    fn extension(self) -> &'static str {
        match self {
            SourceFormat::Xml => "xml",
            SourceFormat::Whisper => "wsp",
            _ => "rrd",
        }
    }
}

/// Options of `import`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// Directories (every file of the format below, named by its path inside) and files; URLs of servers
    #[arg(required_unless_present = "status")]
    from: Vec<PathBuf>,
    /// What is imported
    #[arg(long, value_enum, default_value = "rrd")]
    format: SourceFormat,
    /// Instead: show how many .rrd files of its own tree the daemon has still to take in (`adopt_unused`), and which it cannot
    #[arg(long, conflicts_with_all = ["from", "base", "no_overwrite", "archive"])]
    status: bool,
    /// The daemon's address, as in RRDCACHED_ADDRESS, or the directory of a store that no daemon holds [default:
    /// RRDCACHED_ADDRESS, else unix:var/rrdcached.sock]
    #[arg(long, value_name = "ADDRESS|DIR")]
    to: Option<String>,
    /// Names of single files are relative to this directory [default: the current one]
    #[arg(long, value_name = "DIR")]
    base: Option<PathBuf>,
    /// Keep RRDs that are already in the store
    #[arg(long)]
    no_overwrite: bool,
    /// Put files that lie in the daemon's own tree into the store's archive, and placeholders in their places, also with adopt =
    /// "keep". Without this, the daemon's `adopt` decides. Files elsewhere stay
    #[arg(long)]
    archive: bool,
    #[command(flatten)]
    history: options::HistoryArguments,
}

/// Files up to this size are imported in parallel; a larger one is imported alone. So memory holds at most
/// eight times this, or one file.
const SHARED_BYTES_MAX: u64 = 32 << 20;

/// A file to import.
struct Source {
    path: PathBuf,
    name: RrdName,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result {
    if arguments.status {
        return status(arguments.to.as_deref());
    }
    if arguments.format.reads_samples()
        || (cfg!(not(feature = "exchange")) && arguments.format != SourceFormat::Rrd)
    {
        return history::run(arguments);
    }
    let mut failures = Failures::default();
    let mut sources = Vec::new();
    let base = server::config::absolute(arguments.base.as_deref().unwrap_or(Path::new(".")))
        .map_err(|error| error.to_string())?;
    for from in &arguments.from {
        if from.is_dir() {
            walk(from, from, arguments.format, &mut sources, &mut failures);
        } else {
            push_file(from, &base, &mut sources, &mut failures);
        }
    }
    let peer = Peer::find(arguments.to.as_deref(), true)?;
    let bar = progress(sources.len() as u64);
    let imported = AtomicUsize::new(0);
    let skipped = AtomicUsize::new(0);
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(failures);
    let turns = RwLock::new(());
    let table = Mutex::new(history::table(&arguments.history)?);
    let work = || {
        while let Some(source) = sources.get(next.fetch_add(1, Ordering::Relaxed)) {
            match import_one(&peer, (&turns, &table), source, arguments) {
                Ok(true) => imported.fetch_add(1, Ordering::Relaxed),
                Ok(false) => skipped.fetch_add(1, Ordering::Relaxed),
                Err(error) => {
                    let text = format!("{}: {error}", source.path.display());
                    failures.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(text);
                    0
                }
            };
            bar.inc(1);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from).min(8) {
            scope.spawn(work);
        }
    });
    bar.finish_and_clear();
    let closed = peer.close();
    let failures = failures.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let skipped = skipped.into_inner();
    println!(
        "imported {} RRDs, passed over {skipped} placeholders, {} failed",
        imported.into_inner(),
        failures.count()
    );
    failures.report().and(closed)
}

/// Shows how far a daemon has taken in its tree, with a bar that follows it on a terminal.
fn status(address: Option<&str>) -> Result {
    let daemon = peer::connect(address, "start it, or name a daemon")?;
    let mut bar = None;
    let failures = loop {
        let mut lines = peer::ask(&daemon, "adoption", &[])?.into_iter();
        let counts = String::from_utf8(lines.next().unwrap_or_default()).unwrap_or_default();
        let counts: Vec<u64> = counts.split(' ').filter_map(|count| count.parse().ok()).collect();
        let [left, taken, failed] = counts[..] else {
            return Err("the daemon's answer is unknown".to_string());
        };
        let is_watched = std::io::stderr().is_terminal() && left > 0;
        if !is_watched {
            println!("{left} files left, {taken} taken in, {failed} failed");
            let mut failures = Failures::default();
            failures.extend(lines.map(|line| String::from_utf8_lossy(&line).into_owned()));
            break failures;
        }
        let bar = bar.get_or_insert_with(|| progress(taken + failed + left));
        bar.set_length(taken + failed + left);
        bar.set_position(taken + failed);
        std::thread::sleep(STATUS_INTERVAL);
    };
    failures.report()
}

/// What failed: a source of millions of bad lines takes no more memory than one of a few.
#[derive(Debug, Default)]
pub struct Failures {
    /// The first ones.
    shown: Vec<String>,
    count: usize,
}

impl Failures {
    /// One more.
    pub fn push(&mut self, failure: String) {
        self.count += 1;
        if self.shown.len() < FAILURES_SHOWN {
            self.shown.push(failure);
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Lists the first ones.
    ///
    /// # Errors
    /// When there are any: how many.
    pub fn report(&self) -> Result {
        for failure in &self.shown {
            eprintln!("{failure}");
        }
        match self.count {
            0 => Ok(()),
            count if count > FAILURES_SHOWN => {
                Err(format!("{count} failed; the first {FAILURES_SHOWN} are shown above"))
            }
            count => Err(format!("{count} failed")),
        }
    }
}

impl Extend<String> for Failures {
    fn extend<I: IntoIterator<Item = String>>(&mut self, failures: I) {
        failures.into_iter().for_each(|failure| self.push(failure));
    }
}

/// A progress bar, if there is a terminal.
pub fn progress(count: u64) -> ProgressBar {
    let bar = ProgressBar::new(count);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} RRDs, {per_sec}, {eta} left") {
        bar.set_style(style);
    }
    bar
}

/// Imports one file; returns false when it is a placeholder, which holds no data.
fn import_one(
    peer: &Peer,
    (turns, table): (&RwLock<()>, &Mutex<history::HistoryTable>),
    source: &Source,
    arguments: &Arguments,
) -> Result<bool, String> {
    let is_rrd = arguments.format == SourceFormat::Rrd;
    if is_rrd && peer.take_in(&source.name, &source.path, arguments.archive)? {
        return Ok(true);
    }
    let bytes = std::fs::metadata(&source.path).map_err(|error| error.to_string())?.len();
    // Both this process and the daemon hold the file until its last byte has arrived; what it becomes is about as large.
    let (_alone, _among_others) = if bytes > SHARED_BYTES_MAX {
        (Some(turns.write().unwrap_or_else(std::sync::PoisonError::into_inner)), None)
    } else {
        (None, Some(turns.read().unwrap_or_else(std::sync::PoisonError::into_inner)))
    };
    let bytes = std::fs::read(&source.path).map_err(|error| error.to_string())?;
    if !is_rrd {
        return history::import_file(peer, &source.name, &bytes, table, arguments).map(|()| true);
    }
    if bytes.starts_with(&placeholder::MAGIC) {
        return Ok(false);
    }
    peer.import(&source.name, &bytes, arguments.no_overwrite).map(|()| true)
}

fn walk(
    root: &Path,
    directory: &Path,
    format: SourceFormat,
    sources: &mut Vec<Source>,
    failures: &mut Failures,
) {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => return failures.push(format!("{}: {error}", directory.display())),
    };
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) => paths.push(entry.path()),
            Err(error) => failures.push(format!("{}: {error}", directory.display())),
        }
    }
    paths.sort();
    for path in paths {
        // Links are not followed: their target is imported under its own name, if it is in the tree.
        let Ok(found) = std::fs::symlink_metadata(&path) else { continue };
        if found.is_dir() {
            walk(root, &path, format, sources, failures);
        } else if found.is_file() && path.extension().is_some_and(|extension| extension == format.extension())
        {
            push_file(&path, root, sources, failures);
        }
    }
}

fn push_file(path: &Path, base: &Path, sources: &mut Vec<Source>, failures: &mut Failures) {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let inside = path.strip_prefix(base).or_else(|_| whole.strip_prefix(base));
    let inside = match (inside, path.file_name()) {
        (Ok(inside), _) => inside.as_os_str(),
        (Err(_), Some(name)) => name,
        (Err(_), None) => return failures.push(format!("{}: no file", path.display())),
    };
    match RrdName::new(inside.as_bytes()) {
        Ok(name) => sources.push(Source { path: path.to_path_buf(), name }),
        Err(error) => failures.push(format!("{}: cannot use the name: {error}", path.display())),
    }
}
