//! `roundel verify`: reads every checksum of a store, by itself or through the store's daemon.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use client::{Daemon, Wire};
use indicatif::{ProgressBar, ProgressStyle};
use rrd::when::calendar::utc_text;
use serde_json::json;
use store::verify::{self, Finding, LostRows, Watch};

use super::{Result, address};

/// How often a daemon is asked how far it is.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Names in a line of the report; --json has all.
const NAMES_SHOWN: usize = 5;

/// Options of `verify`.
#[derive(Debug, Args)]
#[command(
    about = "Check every checksum of a store, running or stopped",
    long_about = "Read every block of a store and check its checksum. Each damaged place is shown with its file and byte, and \
                  with the RRDs and the time of the rows that it costs. Nothing is written. The exit status is 0 when \
                  nothing is damaged, and 1 otherwise.",
    after_long_help = AFTER_HELP
)]
pub struct Arguments {
    /// A store that no daemon has open, or a directory with journals and .rrd files of the files layout
    #[arg(long, value_name = "DIR", conflicts_with = "daemon")]
    store: Vec<PathBuf>,
    /// The daemon that has the store open [default: RRDCACHED_ADDRESS, else unix:var/rrdcached.sock]
    #[arg(long, value_name = "ADDRESS")]
    daemon: Option<String>,
    /// Print one JSON object a line: file, byte, what, and if rows are lost rrds, from and to
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
What is checked:
  a store           STORE, manifests, checkpoints, logs, and every block of every segment
  the files layout  journals; .rrd files have no checksums, so only a header that cannot be and a wrong
                    length are found
A daemon checks what it is using, at full speed and beside its work; the command VERIFY of its socket must be
allowed. It also checks by itself: scrub in roundel.toml.

What then: roundel repair shows what can be restored. Reads of damaged rows fail, all others do not.

Examples:
  roundel verify                               the daemon of `roundel serve` here
  roundel verify --daemon unix:/run/roundel.sock --json
  roundel verify --store /var/lib/roundel      a store that is stopped, or a copy of one";

/// Runs it.
pub fn run(arguments: &Arguments) -> Result {
    let mut report = Report { json: arguments.json, count: 0, bar: bar(), failure: None };
    if arguments.store.is_empty() {
        ask_daemon(arguments.daemon.as_deref(), &mut report)?;
    } else {
        report.bar.set_length(arguments.store.iter().map(|path| verify::bytes(path)).sum());
        for path in &arguments.store {
            verify::path(path, &mut report).map_err(|error| error.to_string())?;
        }
    }
    report.bar.finish_and_clear();
    match (report.failure, report.count) {
        (Some(failure), _) => Err(failure),
        (None, 0) => {
            if !arguments.json {
                println!("nothing is damaged");
            }
            Ok(())
        }
        (None, count) => Err(format!("{count} damaged places; roundel repair shows what can be done")),
    }
}

/// A progress bar, if there is a terminal.
fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    let template = "{bar:40} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// Has the daemon verify its store, and follows it.
fn ask_daemon(given: Option<&str>, report: &mut Report) -> Result {
    let address = address::daemon(given)?.unwrap_or_else(|| address::SOCKET_HERE.to_string());
    let daemon = Daemon::new(address.as_bytes(), Wire::Text);
    let ask = |word: &[u8]| {
        let advice = "start it, or give --daemon ADDRESS or --store DIR";
        let answer = daemon.ask_ours("verify", &[word]);
        let answer = answer.map_err(|error| format!("the daemon at \"{address}\": {error}; {advice}"))?;
        answer.ok_or_else(|| format!("the daemon at \"{address}\" does not know VERIFY"))
    };
    ask(b"START")?;
    let mut known = 0usize;
    loop {
        let answer = ask(known.to_string().as_bytes())?;
        let mut lines = answer.lines.iter().map(|line| String::from_utf8_lossy(line));
        let status = lines.next().unwrap_or_default();
        let words: Vec<&str> = status.splitn(4, ' ').collect();
        let &[state, checked, total, ref why @ ..] = &words[..] else {
            return Err(format!("the daemon at \"{address}\" answers VERIFY with \"{status}\""));
        };
        report.bar.set_length(total.parse().unwrap_or(0));
        report.bar.set_position(checked.parse().unwrap_or(0));
        for line in lines {
            known += 1;
            if let Some(finding) = Finding::from_line(&line) {
                report.found(finding);
            }
        }
        match state {
            "running" => std::thread::sleep(POLL_INTERVAL),
            "done" => return Ok(()),
            _ => return Err(format!("the store could not be verified: {}", why.join(" "))),
        }
    }
}

/// Prints findings as they come.
struct Report {
    json: bool,
    count: u64,
    bar: ProgressBar,
    failure: Option<String>,
}

impl Watch for Report {
    fn checked(&mut self, bytes: u64) -> bool {
        self.bar.inc(bytes);
        self.failure.is_none()
    }

    fn found(&mut self, finding: Finding) {
        self.count += 1;
        let text = if self.json { json(&finding) } else { plain(&finding) };
        let failure = self.bar.suspend(|| writeln!(std::io::stdout(), "{text}").err());
        self.failure = self.failure.take().or(failure.map(|error| error.to_string()));
    }
}

fn plain(finding: &Finding) -> String {
    let mut text = format!("DAMAGE {finding}");
    if let Some(lost) = &finding.lost {
        text += &format!("\n  may lack rows from {} to {}: ", utc(lost.from), utc(lost.to));
        let shown = lost.rrds.len().min(NAMES_SHOWN);
        text += &lost.rrds[..shown].join(", ");
        match lost.count - shown as u64 {
            0 if shown == 0 => text += "no RRD that exists",
            0 => {}
            more => text += &format!(" and {more} other RRDs"),
        }
    }
    text
}

pub(super) fn utc(seconds: i64) -> String {
    utc_text(seconds, 0).unwrap_or_else(|| seconds.to_string())
}

fn json(finding: &Finding) -> String {
    let Finding { file, byte, what, lost } = finding;
    let mut object = json!({"file": file.to_string_lossy(), "byte": byte, "what": what});
    if let Some(LostRows { rrds, count, from, to }) = lost {
        object["rrds"] = json!(rrds);
        object["rrd_count"] = json!(count);
        object["from"] = json!(from);
        object["to"] = json!(to);
    }
    object.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_shown_as_text_and_json() {
        let rrds = (0..7).map(|number| format!("{number}\".rrd")).collect();
        let lost = Some(LostRows { rrds, count: 9, from: 0, to: 86_399 });
        let finding = Finding { file: "shard-000/x".into(), byte: 5, what: "bad\n".into(), lost };
        let text = plain(&finding);
        assert!(text.starts_with("DAMAGE shard-000/x byte 5: bad\n"), "{text}");
        assert!(
            text.contains("from 1970-01-01T00:00:00Z to 1970-01-01T23:59:59Z: 0\".rrd, 1\".rrd,"),
            "{text}"
        );
        assert!(text.ends_with("4\".rrd and 4 other RRDs"), "{text}");
        let object: serde_json::Value = serde_json::from_str(&json(&finding)).unwrap();
        let rrds: Vec<String> = (0..7).map(|number| format!("{number}\".rrd")).collect();
        let want = json!({
            "file": "shard-000/x", "byte": 5, "what": "bad\n", "rrds": rrds, "rrd_count": 9, "from": 0, "to": 86_399
        });
        assert_eq!(object, want);
    }
}
