//! Two nodes of a cluster, over a log in a directory or a topic.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::builds::Program;
use crate::client::Client;
use crate::daemon::Daemon;

/// Partitions for RRDs: those of a log in a directory.
const PARTITIONS: usize = 8;
/// How long the nodes may take for anything.
const LIMIT: Duration = Duration::from_secs(600);
/// How often they are asked.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The replicated log.
pub enum Log {
    /// In a directory beside the nodes.
    Directory,
    /// Of Kafka.
    Topic {
        /// Addresses with commas between.
        brokers: String,
        /// The topic, which is made.
        topic: String,
        /// The data directory of one of the brokers.
        data: PathBuf,
    },
}

/// The nodes `first` and `second`, of which only one leads while the other is stopped.
pub struct Pair {
    /// The one that is loaded.
    pub first: Daemon,
    /// The one that follows.
    pub second: Daemon,
    log: Log,
    directory: PathBuf,
}

impl Pair {
    /// Both, with all partitions on each.
    pub fn start(program: &Program, directory: &Path, log: Log) -> Outcome<Pair> {
        let mut pair = Pair::alone(program, directory, log)?;
        pair.start_second()?;
        Ok(pair)
    }

    /// The first, which leads all partitions; the second was never there.
    pub fn alone(program: &Program, directory: &Path, log: Log) -> Outcome<Pair> {
        std::fs::create_dir_all(directory)?;
        std::fs::write(directory.join("secret"), "the secret of the bench's cluster\n")?;
        let node = |name: &str| -> Outcome<Daemon> {
            let mut daemon = Daemon::new(program, &directory.join(name))?;
            daemon.configure(&section(name, directory, &log)?);
            Ok(daemon)
        };
        let (first, second) = (node("first")?, node("second")?);
        let mut pair = Pair { first, second, log, directory: directory.to_owned() };
        pair.make_topic(program)?;
        pair.first.start()?;
        pair.wait_until("the first node to lead", |pair| {
            Ok(count(&pair.first, " leader first ")? == PARTITIONS)
        })?;
        Ok(pair)
    }

    fn make_topic(&self, program: &Program) -> Outcome<()> {
        if matches!(self.log, Log::Directory) {
            return Ok(());
        }
        let config = self.directory.join("topic.toml");
        std::fs::write(&config, section("first", &self.directory, &self.log)?)?;
        let partitions = PARTITIONS.to_string();
        let mut command = Command::new(&program.roundel);
        command.args(["cluster", "topic", "--partitions", &partitions, "--config"]).arg(config);
        let made = command.output()?;
        if made.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&made.stderr).into()) }
    }

    /// Starts the second node and waits until it has read everything. Returns how long that took.
    pub fn start_second(&mut self) -> Outcome<Duration> {
        let begun = Instant::now();
        self.second.start()?;
        self.wait_until(
            "the second node to be ready",
            |pair| Ok(pair.partitions_of_second()? == PARTITIONS),
        )?;
        Ok(begun.elapsed())
    }

    /// How many partitions the second node says it has ready, where there is a leader.
    fn partitions_of_second(&self) -> Outcome<usize> {
        count(&self.second, " second:ready")
    }

    /// Stops the second node and waits until the first leads everything.
    pub fn stop_second(&mut self) -> Outcome<()> {
        self.second.stop()?;
        self.wait_until("the first node to lead", |pair| {
            Ok(count(&pair.first, " leader first ")? == PARTITIONS)
        })
    }

    /// Bytes of the log for RRDs.
    pub fn log_bytes(&self) -> Outcome<u64> {
        let mut bytes = 0;
        for partition in 0..PARTITIONS {
            match &self.log {
                Log::Directory => {
                    let path = self.directory.join("log").join(format!("partition-{partition:05}"));
                    bytes += path.metadata().map_or(0, |metadata| metadata.len());
                }
                Log::Topic { topic, data, .. } => {
                    for entry in std::fs::read_dir(data.join(format!("{topic}-{partition}")))? {
                        let entry = entry?;
                        if entry.path().extension().is_some_and(|extension| extension == "log") {
                            bytes += entry.metadata()?.len();
                        }
                    }
                }
            }
        }
        Ok(bytes)
    }

    fn wait_until(&self, what: &str, is_so: impl Fn(&Pair) -> Outcome<bool>) -> Outcome<()> {
        let begun = Instant::now();
        while !is_so(self)? {
            if begun.elapsed() > LIMIT {
                return Err(format!("waited {LIMIT:?} for {what}").into());
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

/// How many partitions have a leader and these words in the line that a node says of them.
fn count(node: &Daemon, words: &str) -> Outcome<usize> {
    let answer = Client::connect(&node.address())?.ask("CLUSTER")?;
    let lines = answer.lines.iter().filter(|line| line.starts_with("partition "));
    Ok(lines.filter(|line| line.contains(words) && !line.contains(" leader - ")).count())
}

/// The configuration of a node.
fn section(name: &str, directory: &Path, log: &Log) -> Outcome<String> {
    let directory = directory.canonicalize()?;
    let directory = directory.display();
    let free = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let log = match log {
        Log::Directory => format!("directory = \"{directory}/log\"\n"),
        Log::Topic { brokers, topic, .. } => {
            let brokers = brokers.replace(',', "\", \"");
            format!("[cluster.kafka]\nbrokers = [\"{brokers}\"]\ntopic = \"{topic}\"\n")
        }
    };
    Ok(format!(
        "[cluster]\nname = \"bench\"\nnode = \"{name}\"\nzone = \"zone-{name}\"\nlisten = \"{free}\"\n\
         secret_file = \"{directory}/secret\"\nack_timeout = \"60s\"\n{log}"
    ))
}
