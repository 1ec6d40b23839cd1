//! Where `roundel pagecache watch` records: a `.rrd` file of its own, or a daemon.

use std::path::{Component, Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use client::Daemon;
use pagecache::system::{COUNTER_NAMES, Counters};
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::when::Step;

use super::super::{Result, peer};

/// Rows: the interval for a day, then 10 minutes for 31 days, then 2 hours for 366.
const SPANS: [(u64, u64); 3] = [(1, 86_400), (600, 31 * 86_400), (7_200, 366 * 86_400)];

enum Target {
    File(PathBuf),
    Daemon(Box<Daemon>),
}

/// An RRD that takes the counters.
pub(super) struct Recorder {
    target: Target,
    name: String,
    count: u64,
    last: u64,
}

/// The RRD lies in the directory that was given, and nowhere else.
fn check_name(name: &str) -> Result {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(_)), None) => Ok(()),
        _ => Err(format!("cannot record to \"{name}\": give the name of a file without directories")),
    }
}

/// Readings at another interval would be unknown, or blurred: the heartbeat and the rows are made for one.
fn check_step(path: &Path, interval: u64) -> Result {
    let file = rrd_file::ReadFile::open(path, rrd_file::Locking::None)
        .map_err(|error| format!("cannot record to \"{}\": {error}", path.display()))?;
    match file.definition().step {
        step if step == interval => Ok(()),
        step => Err(other_step(&path.display().to_string(), &step.to_string(), interval)),
    }
}

/// The step in what a daemon answers to INFO: a line of the name, the type and the value.
fn step_of_info(lines: &[Vec<u8>]) -> Option<u64> {
    let line = lines.iter().find(|line| line.starts_with(b"step "))?;
    std::str::from_utf8(line).ok()?.split_ascii_whitespace().next_back()?.parse().ok()
}

fn other_step(name: &str, step: &str, interval: u64) -> String {
    format!(
        "cannot record to \"{name}\" every {interval} s: it was made for every {step} s; give --interval {step}, or another --name"
    )
}

/// The words of `rrdtool create`.
fn words(interval: u64) -> Vec<String> {
    let sources = COUNTER_NAMES.iter().map(|name| format!("DS:{name}:DERIVE:{}:0:U", 3 * interval));
    let mut words: Vec<String> = sources.collect();
    for cf in ["AVERAGE", "MAX"] {
        for (resolution, span) in SPANS {
            let pdps = resolution.div_ceil(interval).max(1);
            words.push(format!("RRA:{cf}:0.5:{pdps}:{}", span.div_ceil(pdps * interval)));
        }
    }
    words
}

impl Recorder {
    /// Opens or makes the RRD.
    pub(super) fn start(to: &str, name: &str, interval: u64) -> Result<Recorder> {
        let words = words(interval);
        let target = if Path::new(to).is_dir() {
            check_name(name)?;
            let path = Path::new(to).join(name);
            if path.exists() {
                check_step(&path, interval)?;
            } else {
                let options = CreateOptions {
                    step: Step { units: interval, units_per_second: 1 },
                    limits: Limits::FILE,
                    file_name: name.as_bytes(),
                };
                let definition = parse_create(&options, &words).map_err(|error| error.to_string())?;
                let start = now() as i64 - 1;
                rrd_file::create(&path, &definition, start, rrd_file::Existing::Refuse)
                    .map_err(|error| error.to_string())?;
            }
            Target::File(path)
        } else {
            let daemon = peer::connect(Some(to), "start it, or name a directory that exists")?;
            let step = interval.to_string();
            let mut all: Vec<&[u8]> = vec![name.as_bytes(), b"-s", step.as_bytes(), b"-O"];
            all.extend(words.iter().map(|word| word.as_bytes()));
            // One that is there is used on.
            if daemon.ask("last", &[name.as_bytes()]).is_err() {
                daemon.ask("create", &all).map_err(|error| format!("cannot create {name}: {error}"))?;
            } else if let Ok(answer) = daemon.ask("info", &[name.as_bytes()])
                && let Some(step) = step_of_info(&answer.lines).filter(|step| *step != interval)
            {
                return Err(other_step(name, &step.to_string(), interval));
            }
            Target::Daemon(Box::new(daemon))
        };
        Ok(Recorder { target, name: name.to_string(), count: 0, last: 0 })
    }

    /// Records the counters of now; what is not counted is unknown.
    pub(super) fn record(&mut self, counters: &Counters) -> Result {
        let seconds = now();
        if seconds <= self.last {
            return Ok(());
        }
        let values = counters.values().map(|value| value.map_or("U".to_string(), |value| value.to_string()));
        let reading = format!("{seconds}:{}", values.join(":"));
        match &self.target {
            Target::File(path) => {
                let options = rrd_file::UpdateOptions::default();
                rrd_file::update(path, &[&reading], &options).map_err(|error| error.to_string())?;
            }
            Target::Daemon(daemon) => daemon
                .update(self.name.as_bytes(), &[reading.as_bytes()])
                .map_err(|error| format!("cannot update {}: {error}", self.name))?,
        }
        self.last = seconds;
        self.count += 1;
        Ok(())
    }

    /// What was recorded, as a text.
    pub(super) fn end(self) -> String {
        let whereto = match &self.target {
            Target::File(path) => path.display().to_string(),
            Target::Daemon(daemon) => {
                format!("{} of {}", self.name, String::from_utf8_lossy(daemon.address()))
            }
        };
        format!("recorded {} readings in {whereto}\n", self.count)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_rrd_is_used_on_at_its_interval_only() {
        let directory = tempfile::tempdir().unwrap();
        let to = directory.path().to_str().unwrap();
        let start = |name: &str, interval| Recorder::start(to, name, interval).map(|_| ());
        assert_eq!((start("x.rrd", 10), start("x.rrd", 10)), (Ok(()), Ok(())));
        let refused = start("x.rrd", 60).unwrap_err();
        assert!(refused.contains("every 10 s") && refused.contains("--interval 10"), "{refused}");
        for bad in ["../evil.rrd", "/evil.rrd", "a/b.rrd", "..", ""] {
            assert!(start(bad, 10).unwrap_err().contains("without directories"), "{bad}");
        }
    }

    #[test]
    fn a_daemon_says_the_step() {
        let lines = [&b"filename 2 x.rrd"[..], b"step 1 10", b"last_update 1 99"].map(<[u8]>::to_vec);
        assert_eq!((step_of_info(&lines), step_of_info(&lines[..1])), (Some(10), None));
    }

    #[test]
    fn every_interval_makes_an_rrd() {
        for interval in [1, 10, 60, 7_201, 86_400] {
            let options = CreateOptions {
                step: Step { units: interval, units_per_second: 1 },
                limits: Limits::FILE,
                file_name: b"",
            };
            let definition = parse_create(&options, &words(interval)).unwrap();
            assert_eq!((definition.ds.len(), definition.rra.len()), (12, 6));
        }
    }
}
