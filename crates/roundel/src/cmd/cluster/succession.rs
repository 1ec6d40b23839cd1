//! `roundel cluster seal` and `roundel cluster split`: the cluster goes on in another log.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use server::cluster::{MoveStatus, begin_move};

use super::{Result, cluster_of};
use crate::cmd::print;

/// How often it is said how far the nodes are.
const LOOK: Duration = Duration::from_millis(500);
/// The same, without a terminal.
const TELL: Duration = Duration::from_secs(10);

/// Options of `cluster seal` and `cluster split`.
#[derive(Debug, Args)]
#[command(
    long_about = "Have the cluster go on in another log: another topic, other brokers, or, with split, a topic with a multiple of the partitions. Make \
                  that topic first (roundel cluster topic --config next.toml), which must be empty. It is named by the configuration that the \
                  nodes are to have afterwards, which is to differ in nothing else.\n\n\
                  From then on nothing is written to the present log. Each partition ends at one message, of which all nodes know; what was \
                  acknowledged before is in it. With split, each node then divides what it has, without copying from others. Nodes go on \
                  answering queries; changes wait for ten seconds, and are refused after that, until nodes run with the new log.\n\n\
                  It ends when all nodes are ready. Then give each node the new configuration, and restart it, in any order. If it is \
                  interrupted, say it again. There is no way back: another log can follow, and the present one cannot be taken up again.",
    after_long_help = EXAMPLES
)]
pub struct SuccessionArguments {
    /// Configuration of the daemons as they run now [default: roundel.toml if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The configuration that they are to have, which names the log that follows
    #[arg(long, value_name = "FILE")]
    next: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  roundel cluster topic --config next.toml --partitions 32
  roundel cluster seal --next next.toml                with as many partitions as there are now
  sed 's/topic = \"roundel\"/topic = \"roundel-2\"/' /etc/roundel/roundel.toml > next.toml
  roundel cluster topic --config next.toml --partitions 64
  roundel cluster split --config /etc/roundel/roundel.toml --next next.toml
  roundel cluster status --partitions                  shows what is sealed, and prepared for the next log";

/// Runs it.
pub fn run(arguments: &SuccessionArguments, splits: bool) -> Result {
    let (present, next) = (cluster_of(arguments.config.as_deref())?, cluster_of(Some(&arguments.next))?);
    if present.name != next.name {
        return Err(format!(
            "the cluster is named \"{}\" now and \"{}\" in \"{}\": a cluster keeps its name, which its stores have",
            present.name,
            next.name,
            arguments.next.display()
        ));
    }
    let mut moved = begin_move(&present, &next, splits)?;
    let bar = bar();
    let mut told = Instant::now();
    let status = loop {
        let status = moved.look(LOOK).map_err(|error| error.to_string())?;
        bar.set_length(status.replicas as u64);
        bar.set_position(status.ready as u64);
        bar.set_message(said(&status));
        if status.is_done {
            break status;
        }
        if bar.is_hidden() && told.elapsed() > TELL {
            told = Instant::now();
            eprintln!("{}", said(&status));
        }
    };
    bar.finish_and_clear();
    let (succession, partitions) = (&moved.succession, moved.partitions);
    let silent = match status.silent.is_empty() {
        true => String::new(),
        false => format!(
            ".\nBut nothing was heard of {}: start that with the present log once more, and say this again; what is not sealed, or divided, cannot go on",
            status.silent.join(", ")
        ),
    };
    print(format!(
        "all {partitions} partitions are sealed, and go on in \"{}\" with {} partitions. Give each node the new configuration, and restart it{silent}\n",
        succession.next, succession.partitions
    ))
}

fn said(status: &MoveStatus) -> String {
    let MoveStatus { sealed, replicas, ready, silent, waiting, troubles, .. } = status;
    let waiting = match (troubles.first(), waiting.first()) {
        (Some(trouble), _) => format!("; {trouble}"),
        (None, None) => String::new(),
        (None, Some((node, partition))) => {
            format!("; waits for {node}, partition {partition} (its log says why, if that takes long)")
        }
    };
    let silent = match silent.is_empty() {
        true => String::new(),
        false => format!("; silent: {}", silent.join(", ")),
    };
    format!("{sealed} partitions sealed; {ready} of {replicas} replicas ready{waiting}{silent}")
}

/// A progress bar, if there is a terminal.
fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {msg}") {
        bar.set_style(style);
    }
    bar
}
