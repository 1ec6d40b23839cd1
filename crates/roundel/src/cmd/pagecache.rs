//! `roundel pagecache watch`: page cache, pressure and disk of a running system over time, as RRDs.

mod recorder;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use pagecache::system::{Rates, Sampler};
use rrd::when::calendar::utc_text;

use self::recorder::Recorder;
use super::{Result, print};

/// Set by Ctrl-C, SIGTERM and SIGHUP.
static STOPPED: AtomicBool = AtomicBool::new(false);
/// How often it is looked at.
const NAP: Duration = Duration::from_millis(50);

const AFTER_HELP: &str = "\
What is printed, per second and since the line before:
  hit       share of page faults, of all programs, that found their page in memory
  faults    page faults that waited for a disk (pgmajfault)
  refaults  pages of files read again that had been dropped: while it is not 0, more memory would help
  dropped   pages of files dropped for want of memory
  mem, io   share of time in which some task waited for memory or for a disk (PSI: /proc/pressure)
  reads, writes, MB/s  of the disk that holds DIR

--to takes a directory, in which it makes pagecache.rrd, or a daemon's address, where the RRD is named pagecache.rrd (--name).
The RRD has a data source for each counter, rows of the interval for a day, of 10 minutes for a month and of 2 hours for a
year, AVERAGE and MAX.

Examples:
  roundel pagecache watch /var/lib/mrtg
  roundel pagecache watch /var/lib/mrtg --interval 60 --to /var/lib/roundel/watch
  roundel pagecache watch /var/lib/mrtg --cgroup /sys/fs/cgroup/system.slice/rrdcached.service --to unix:/run/roundel.sock";

/// Options of `pagecache`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show and record page cache, pressure and disk of this system until Ctrl-C
    #[command(after_long_help = AFTER_HELP)]
    Watch(WatchArguments),
}

/// Options of `pagecache watch`.
#[derive(Debug, Args)]
struct WatchArguments {
    /// A directory on the disk to watch
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Time from line to line, such as 10s or 1m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = interval)]
    interval: u64,
    /// Where to record: a directory, or the address of a daemon (unix:PATH, HOST, HOST:PORT)
    #[arg(long, value_name = "DIR|ADDRESS")]
    to: Option<String>,
    /// The name of the RRD
    #[arg(long, default_value = "pagecache.rrd", requires = "to")]
    name: String,
    /// The directory of a control group, instead of the whole system
    #[arg(long, value_name = "DIR")]
    cgroup: Option<PathBuf>,
    /// Stop after that many lines
    #[arg(long, value_name = "COUNT")]
    count: Option<u64>,
}

/// A time of at least a second, in seconds.
fn interval(text: &str) -> Result<u64> {
    // RRDtool's own steps end at the first letter, so that 1ms would be a minute.
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_plain = text.len() - number.len() <= 1 && number.bytes().all(|byte| byte.is_ascii_digit());
    rrd::when::parse_step(text, false)
        .ok()
        .map(|step| step.units)
        .filter(|seconds| is_plain && (1..=86_400).contains(seconds))
        .ok_or_else(|| "a time from 1s to 1d, such as 10s".to_string())
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result {
    let Command::Watch(arguments) = &arguments.command;
    let directory = &arguments.directory;
    let sampler = Sampler::new(directory, arguments.cgroup.as_deref()).map_err(|error| {
        format!("cannot watch {error}; name a directory, and with --cgroup one of a control group")
    })?;
    for missing in sampler.missing() {
        eprintln!("roundel: {missing} is not there: what it counts stays unknown");
    }
    // Before the RRD is there: who sees it may send a signal.
    stop_on_signals();
    let mut recorder = arguments
        .to
        .as_deref()
        .map(|to| Recorder::start(to, &arguments.name, arguments.interval))
        .transpose()?;
    let cannot = |error: std::io::Error| format!("cannot read the counters: {error}");
    let (mut before, mut at) = (sampler.sample().map_err(cannot)?, Instant::now());
    let mut next = at;
    for line in 0.. {
        if arguments.count.is_some_and(|count| line >= count) {
            break;
        }
        next += Duration::from_secs(arguments.interval);
        if !wait_until(next) {
            break;
        }
        let now = sampler.sample().map_err(cannot)?;
        let rates = Rates::between(&before, &now, at.elapsed().as_secs_f64());
        (before, at) = (now, Instant::now());
        if line % 20 == 0 {
            print(
                "time                      hit  faults  refaults   dropped   mem    io   reads  writes   MB/s\n",
            )?;
        }
        print(self::line(&rates))?;
        if let Some(recorder) = &mut recorder {
            recorder.record(&now)?;
        }
    }
    match recorder {
        Some(recorder) => print(recorder.end()),
        None => Ok(()),
    }
}

/// Waits; false when it was stopped meanwhile.
fn wait_until(time: Instant) -> bool {
    loop {
        if STOPPED.load(Ordering::Relaxed) {
            return false;
        }
        let left = time.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(NAP));
    }
}

fn line(rates: &Rates) -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    let number = |name: &str| rates.get(name).map_or("-".to_string(), |rate| format!("{rate:.1}"));
    // Microseconds per second.
    let share = |name: &str| rates.get(name).map_or("-".to_string(), |rate| format!("{:.1}%", rate / 1e4));
    let bytes = rates.get("read_bytes").zip(rates.get("written_bytes")).map(|(read, written)| read + written);
    format!(
        "{} {:>7} {:>7} {:>9} {:>9} {:>5} {:>5} {:>7} {:>7} {:>6}\n",
        utc_text(seconds, 0).unwrap_or_default(),
        rates.hit_rate().map_or("-".to_string(), |rate| format!("{:.2}%", 100.0 * rate)),
        number("major_faults"),
        number("refaults"),
        number("dropped"),
        share("memory_some"),
        share("io_some"),
        number("reads"),
        number("writes"),
        bytes.map_or("-".to_string(), |bytes| format!("{:.2}", bytes / 1e6)),
    )
}

extern "C" fn note_signal(_: libc::c_int) {
    STOPPED.store(true, Ordering::Relaxed);
}

/// Has Ctrl-C, SIGTERM and SIGHUP end the loop after what it is doing.
fn stop_on_signals() {
    let handler = note_signal as extern "C" fn(libc::c_int);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only stores to an atomic, which is permitted in one.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_times_of_a_second_to_a_day() {
        for (text, want) in [("1", 1), ("10s", 10), ("1m", 60), ("1h", 3_600), ("1d", 86_400)] {
            assert_eq!(interval(text), Ok(want), "{text}");
        }
        for bad in ["", "0", "1ms", "10 s", "1.5", "2d", "-1", "m", "1M1"] {
            assert!(interval(bad).is_err(), "{bad}");
        }
    }
}
