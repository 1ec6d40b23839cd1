//! `roundel cluster`: the nodes of a cluster, as one of them knows them.

mod succession;
mod verify;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use server::cluster::ClusterSettings;
use server::settings::parse_duration;

use super::serve::configured;
use super::{Result, print, replication};

/// Options of `cluster`.
#[derive(Debug, Args)]
#[command(
    about = "Show the nodes and partitions of a cluster, compare their copies, empty a node, and move to another log",
    long_about = "What a node of a cluster knows of all nodes, and what it is to do itself. docs/cluster.md says how a cluster is set up.",
    after_long_help = EXAMPLES
)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  roundel cluster topic --config /etc/roundel/roundel.toml --partitions 32
  roundel cluster status
  roundel cluster status --partitions
  roundel cluster verify --daemon node-1.example.org:42217         are all copies the same, row by row?
  roundel cluster drain --daemon unix:/run/roundel/roundel.sock    before the machine is taken away
  roundel cluster fill                                             it is to have its share again
  roundel cluster seal --next next.toml                            go on in another topic, or at other brokers
  roundel cluster split --next next.toml                           go on in a topic with more partitions";

#[derive(Debug, Subcommand)]
enum Command {
    /// Show who is there, who leads what, and what is not as it should be
    Status {
        #[command(flatten)]
        node: NodeOption,
        /// All partitions, not only those with fewer ready replicas than the others
        #[arg(long)]
        partitions: bool,
    },
    /// Have the node give all of its replicas to others; what it has, it keeps until they are ready
    Drain {
        #[command(flatten)]
        node: NodeOption,
    },
    /// Make the topic of Kafka that the configuration names, or the log in its directory
    Topic {
        /// Configuration of the daemon [default: roundel.toml if it exists]
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Partitions for RRDs, whose number stays; some times as many as there will ever be nodes
        #[arg(long, value_name = "COUNT", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=4096))]
        partitions: u32,
        /// Brokers that have each message
        #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=9))]
        copies: u32,
        /// How long messages are kept: for as long, a node may be away without having to copy what it has again
        #[arg(long, value_name = "TIME", default_value = "48h", value_parser = time)]
        keep: Duration,
    },
    /// Compare all rows of all RRDs on all nodes, while they are updated
    Verify(verify::VerifyArguments),
    /// End the present log, so that the cluster goes on in another one with as many partitions
    Seal(succession::SuccessionArguments),
    /// The same with a log of more partitions, into which those of the present one are divided
    Split(succession::SuccessionArguments),
    /// Have a node that was drained take its share again
    Fill {
        #[command(flatten)]
        node: NodeOption,
    },
}

#[derive(Debug, Args)]
struct NodeOption {
    /// The node [default: RRDCACHED_ADDRESS, else unix:var/rrdcached.sock]
    #[arg(long, value_name = "ADDRESS")]
    daemon: Option<String>,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result {
    match &arguments.command {
        Command::Status { node, partitions } => {
            let (_, lines) = replication::ask(node.daemon.as_deref(), "cluster", &[])?;
            print(status(&lines, *partitions))
        }
        Command::Drain { node } => {
            let (address, _) = replication::ask(node.daemon.as_deref(), "cluster", &[b"drain"])?;
            print(format!(
                "the node at \"{address}\" gives its replicas to others; roundel cluster status shows 0 of 0 once it has none\n"
            ))
        }
        Command::Topic { config, partitions, copies, keep } => {
            cluster_of(config.as_deref())?.create_log(*partitions, *copies, *keep)?;
            print(format!("the log is there, with {partitions} partitions for RRDs and one for the nodes\n"))
        }
        Command::Verify(arguments) => verify::run(arguments),
        Command::Seal(arguments) => succession::run(arguments, false),
        Command::Split(arguments) => succession::run(arguments, true),
        Command::Fill { node } => {
            let (address, _) = replication::ask(node.daemon.as_deref(), "cluster", &[b"fill"])?;
            print(format!("the node at \"{address}\" takes its share of the replicas again\n"))
        }
    }
}

/// The section `[cluster]` of a configuration.
fn cluster_of(config: Option<&Path>) -> std::result::Result<ClusterSettings, String> {
    let cluster = configured(config)?.cluster;
    cluster.ok_or_else(|| "the configuration has no section [cluster]".to_string())
}

fn time(text: &str) -> std::result::Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "give a number with s, m, h, d or w".to_string())
}

/// A table of the nodes, and the partitions, all or those that lack a leader or ready replicas.
fn status<'l>(lines: &'l [String], all: bool) -> String {
    let nodes = lines.iter().filter_map(|line| line.strip_prefix("node "));
    let row = |line: &'l str| {
        let (line, protocol) = line.split_once(" protocol ").unwrap_or((line, "-"));
        line.splitn(5, ' ').chain([protocol]).collect()
    };
    let rows: Vec<Vec<&str>> = nodes.map(row).collect();
    let titles = vec!["node", "zone", "address", "state", "partitions", "protocol"];
    let mut text = table(&titles, &rows);
    let partitions: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("partition ")).collect();
    let ready = |line: &str| line.matches(":ready").count();
    let most = partitions.iter().map(|line| ready(line)).max().unwrap_or(0);
    let is_well = |line: &str| ready(line) == most && !line.contains(" leader - ");
    let shown: Vec<&&str> = partitions.iter().filter(|line| all || !is_well(line)).collect();
    match shown.is_empty() {
        true => {
            text += &format!("\n{} partitions, all led, with {most} ready replicas each\n", partitions.len())
        }
        false => {
            text += "\n";
            shown.iter().for_each(|line| text += &format!("partition {line}\n"));
        }
    }
    let troubles = lines.iter().filter_map(|line| line.strip_prefix("trouble ")?.split_once(' '));
    troubles.for_each(|(node, why)| text += &format!("node {node}: {why}; it is tried again\n"));
    text
}

/// Columns as wide as their longest word.
fn table(titles: &[&str], rows: &[Vec<&str>]) -> String {
    let all = || std::iter::once(titles).chain(rows.iter().map(Vec::as_slice));
    let widths: Vec<usize> = (0..titles.len())
        .map(|column| all().filter_map(|row| row.get(column)).map(|word| word.len()).max().unwrap_or(0))
        .collect();
    let line = |row: &[&str]| {
        let words = row.iter().zip(&widths).map(|(word, width)| format!("{word:width$}"));
        words.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    all().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_well_is_shown() {
        let lines = |second: &str| {
            [
                "node a east 10.0.0.1:1 alive leads 1 of 2 protocol 3".to_owned(),
                "node long-name west 10.0.0.2:1 silent leads 1 of 2".to_owned(),
                "partition 0 epoch 3 leader a replicas a:ready long-name:ready".to_owned(),
                format!("partition 1 epoch 3 leader {second}"),
            ]
        };
        let well = status(&lines("a replicas a:ready long-name:ready"), false);
        assert_eq!(
            well,
            "node       zone  address     state   partitions    protocol\n\
             a          east  10.0.0.1:1  alive   leads 1 of 2  3\n\
             long-name  west  10.0.0.2:1  silent  leads 1 of 2  -\n\n\
             2 partitions, all led, with 2 ready replicas each\n"
        );
        let ill = status(&lines("a replicas a:ready long-name:gone"), false);
        assert!(ill.ends_with("\n\npartition 1 epoch 3 leader a replicas a:ready long-name:gone\n"), "{ill}");
        assert!(status(&lines("- replicas a:ready long-name:ready"), false).contains("partition 1"));
        assert!(status(&lines("a replicas a:ready long-name:ready"), true).contains("partition 0"));
        let mut failing = lines("a replicas a:ready long-name:ready").to_vec();
        failing.push("trouble a partition 1 cannot be divided".to_owned());
        assert!(
            status(&failing, false).ends_with("\nnode a: partition 1 cannot be divided; it is tried again\n")
        );
    }
}
