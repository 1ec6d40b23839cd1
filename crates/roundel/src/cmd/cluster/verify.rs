//! `roundel cluster verify`: all rows of all replicas, compared.

use std::io::Write;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::{NodeOption, Result, replication};

/// How often the node is asked how far it is.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// RRDs of a partition in the report; --json has up to 1,000.
const NAMES_SHOWN: usize = 20;

/// Options of `cluster verify`.
#[derive(Debug, Args)]
#[command(
    long_about = "Compare the replicas of all partitions: name, definition, unfinished rows and all archived rows of every RRD, on every \
                  node, while they are read and updated. Each node hashes the same few RRDs at the same position of the log, and then \
                  the next ones.\n\n\
                  A replica with an RRD that is not the one that most have, or that the leader has where there is no majority, is put \
                  aside by its node, as partition-N.differs-1, and made again from another node, unless --keep is given. The exit status \
                  is 0 when all replicas were compared and are the same, and 1 otherwise.",
    after_long_help = EXAMPLES
)]
pub struct VerifyArguments {
    #[command(flatten)]
    node: NodeOption,
    /// Only this partition
    #[arg(long, value_name = "NUMBER")]
    partition: Option<u32>,
    /// Only say what differs: every node keeps the replica that it has
    #[arg(long)]
    keep: bool,
    /// Print one JSON object a line for each partition
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  roundel cluster verify
  roundel cluster verify --partition 3 --keep --daemon node-1.example.org:42217";

/// Runs it.
pub fn run(arguments: &VerifyArguments) -> Result {
    let daemon = arguments.node.daemon.as_deref();
    let partition = arguments.partition.map(|partition| partition.to_string());
    let mut words: Vec<&[u8]> = vec![b"verify", b"start"];
    words.extend(partition.as_deref().map(str::as_bytes));
    words.extend(arguments.keep.then_some(&b"keep"[..]));
    replication::ask(daemon, "cluster", &words)?;
    let mut report = Tally { json: arguments.json, bar: bar(), partitions: 0, ill: 0, rrds: 0, rows: 0 };
    loop {
        let known = report.partitions.to_string();
        let (address, lines) = replication::ask(daemon, "cluster", &[b"verify", known.as_bytes()])?;
        let status = lines.first().map_or("", String::as_str);
        let words: Vec<&str> = status.split(' ').collect();
        let &[state, done, total] = &words[..] else {
            return Err(format!("the node at \"{address}\" answers CLUSTER VERIFY with \"{status}\""));
        };
        report.bar.set_length(total.parse().unwrap_or(0));
        report.bar.set_position(done.parse().unwrap_or(0));
        for found in found(&lines[1..]) {
            report.print(&found)?;
        }
        if state == "done" {
            break;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    report.bar.finish_and_clear();
    report.conclude()
}

/// A progress bar, if there is a terminal.
fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} RRDs, {per_sec}, {eta} left") {
        bar.set_style(style);
    }
    bar
}

/// What was found in a partition.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    partition: String,
    rrds: u64,
    rows: u64,
    failure: String,
    /// Node, and what became of its replica.
    replicas: Vec<(String, String)>,
    /// Nodes, and the RRD of which they have another one.
    rrd_lines: Vec<(String, String)>,
}

/// The lines of an answer, by partition.
fn found(lines: &[String]) -> Vec<Found> {
    let mut all: Vec<Found> = Vec::new();
    for line in lines {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        if kind == "partition" {
            let mut words = rest.splitn(4, ' ');
            let mut next = || words.next().unwrap_or_default().to_owned();
            let partition = next();
            let [rrds, rows] = [next(), next()].map(|word| word.parse().unwrap_or(0));
            all.push(Found { partition, rrds, rows, failure: next(), ..Found::default() });
        } else if let (Some(last), Some((who, what))) = (all.last_mut(), rest.split_once(' ')) {
            let list = if kind == "rrd" { &mut last.rrd_lines } else { &mut last.replicas };
            list.push((who.to_owned(), what.to_owned()));
        }
    }
    all
}

impl Found {
    fn is_well(&self) -> bool {
        self.failure.is_empty()
            && self.rrd_lines.is_empty()
            && self.replicas.iter().all(|(_, verdict)| verdict == "equal")
    }

    fn plain(&self) -> String {
        let Found { partition, rrds, rows, failure, replicas, rrd_lines } = self;
        let mut text = format!("partition {partition}: {rrds} RRDs, {rows} rows");
        for (node, verdict) in replicas {
            text += &format!("; {node} {}", said(verdict));
        }
        if !failure.is_empty() {
            text += &format!("; not compared: {failure}");
        }
        text.push('\n');
        for (nodes, name) in rrd_lines.iter().take(NAMES_SHOWN) {
            text += &format!("  {name} differs on {}\n", nodes.replace(',', " and "));
        }
        match rrd_lines.len().saturating_sub(NAMES_SHOWN) {
            0 => {}
            more => text += &format!("  and {more} other RRDs; --json names them\n"),
        }
        text
    }

    fn json(&self) -> String {
        let replicas = self.replicas.iter().map(|(node, verdict)| json!({"node": node, "verdict": verdict}));
        let nodes = |nodes: &str| nodes.split(',').map(str::to_owned).collect::<Vec<_>>();
        let rrds = self.rrd_lines.iter().map(|(of, name)| json!({"rrd": name, "nodes": nodes(of)}));
        let object = json!({
            "partition": self.partition.parse::<u32>().ok(), "rrds": self.rrds, "rows": self.rows,
            "failure": self.failure, "replicas": replicas.collect::<Vec<_>>(), "differing": rrds.collect::<Vec<_>>()
        });
        format!("{object}\n")
    }
}

/// What became of a replica, in words.
fn said(verdict: &str) -> String {
    let words: Vec<&str> = verdict.splitn(4, ' ').collect();
    match words[..] {
        ["differs", rrds, "put-aside"] => format!("differs in {rrds} RRDs, and is put aside and made again"),
        ["differs", rrds, "kept", why] => format!("differs in {rrds} RRDs, and is kept: {why}"),
        ["not-compared", ..] => verdict.replacen("not-compared", "not compared:", 1),
        _ => verdict.to_owned(),
    }
}

/// Prints what is found, and adds it up.
struct Tally {
    json: bool,
    bar: ProgressBar,
    partitions: usize,
    ill: usize,
    rrds: u64,
    rows: u64,
}

impl Tally {
    fn print(&mut self, found: &Found) -> Result {
        self.partitions += 1;
        self.ill += usize::from(!found.is_well());
        self.rrds += found.rrds;
        self.rows += found.rows;
        let text = if self.json { found.json() } else { found.plain() };
        let written = self.bar.suspend(|| std::io::stdout().write_all(text.as_bytes()));
        written.map_err(|error| error.to_string())
    }

    fn conclude(&self) -> Result {
        let Tally { json, partitions, ill, rrds, rows, .. } = self;
        if *ill > 0 {
            return Err(format!(
                "of {partitions} partitions, {ill} have replicas that differ or could not be compared"
            ));
        }
        if !json {
            println!("{partitions} partitions, {rrds} RRDs, {rows} rows: all replicas are the same");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_shown_with_node_and_name() {
        let lines = [
            "partition 0 2 40 ",
            "replica a equal",
            "replica b equal",
            "partition 1 7 140 ",
            "replica a equal",
            "replica b differs 2 put-aside",
            "replica c not-compared the node is silent",
            "rrd b x/with blank.rrd",
            "rrd b,c y.rrd",
            "partition 2 0 0 it has no leader",
            "replica a differs 1 kept it was not asked for",
        ];
        let all = found(&lines.map(str::to_owned));
        assert_eq!(all.iter().map(Found::is_well).collect::<Vec<_>>(), [true, false, false]);
        let text: String = all.iter().map(Found::plain).collect();
        assert_eq!(
            text,
            "partition 0: 2 RRDs, 40 rows; a equal; b equal\n\
             partition 1: 7 RRDs, 140 rows; a equal; b differs in 2 RRDs, and is put aside and made again; c not compared: the node is silent\n  \
             x/with blank.rrd differs on b\n  y.rrd differs on b and c\n\
             partition 2: 0 RRDs, 0 rows; a differs in 1 RRDs, and is kept: it was not asked for; not compared: it has no leader\n"
        );
        let object: serde_json::Value = serde_json::from_str(&all[1].json()).unwrap();
        assert_eq!(object["differing"][1], json!({"rrd": "y.rrd", "nodes": ["b", "c"]}));
        assert_eq!(object["replicas"][1], json!({"node": "b", "verdict": "differs 2 put-aside"}));
    }
}
