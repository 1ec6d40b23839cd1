//! The replicated log of production: a topic of Kafka, or of what speaks its protocol. `docs/cluster.md` says which settings it must have.
//!
//! Three kinds of connections to each broker, because a broker answers the requests of one in their order, and some take their time:
//! *producers* (each partition always has the same one, with one request at a time, so that its messages keep their order), the *consumer* (one for all readers of the
//! process: a fetch asks for all partitions of a broker at once, and each reader polls a queue of its own), and one for questions. Nothing is committed to
//! groups; a reader knows itself where it is.
//!
//! What librdkafka says of an append is passed on as it is: after an error, and rarely even without one, the message may be stored once, twice or not at all. Of reads
//! more is asked: the offsets are those of a topic that has no gaps, and whatever leaves one out is found and is an error.

mod create;
mod errors;
mod probe;
mod producer;
mod reader;
mod security;
mod talk;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::admin::AdminClient;
use rdkafka::config::RDKafkaLogLevel;

use super::brokers::BrokerSecurity;
use super::{LogError, LogReader, MESSAGE_BYTES_MAX, ReplicatedLog};
pub use create::{NewTopic, create_topic};
use errors::Blame;
use producer::Producers;
use reader::Readers;
use talk::Talk;

/// What Kafka adds to a message, at most: its own head and that of its batch.
const OVERHEAD_BYTES: usize = 4096;
/// What `docs/cluster.md` measured best.
const PRODUCERS: usize = 8;
/// Between two tries of a question whose answer a broker does not have at the moment.
const ASK_AGAIN: Duration = Duration::from_millis(50);
/// Settings on which the log's promises rest.
const OURS: &[&str] = &[
    "acks",
    "allow.auto.create.topics",
    "auto.offset.reset",
    "bootstrap.servers",
    "check.crcs",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.idempotence",
    "enable.partition.eof",
    "isolation.level",
    "max.in.flight",
    "max.in.flight.requests.per.connection",
    "message.timeout.ms",
    "request.required.acks",
    "transactional.id",
];

/// Which topic, and how it is reached.
#[derive(Clone, Debug)]
pub struct KafkaOptions {
    /// Some brokers, `host:port` with commas between; the others are asked of them.
    pub brokers: String,
    /// The topic's name.
    pub topic: String,
    /// TLS, and the login.
    pub security: BrokerSecurity,
    /// Further settings of librdkafka, but none of those that the log's promises rest on, and none that `security` says.
    pub properties: Vec<(String, String)>,
    /// After which an append that is not confirmed ends. Longer than the brokers need to replace one of them that died: half a minute is much for that.
    pub append_timeout: Duration,
    /// After which a request is sent again, to another broker if there is one, and a question ends. It also bounds how long a broker that was stopped, but not ended, holds up its partitions.
    pub request_timeout: Duration,
    /// How many producers share the partitions, each with a connection and a thread per broker. A connection confirms one partition's messages at a time.
    pub producers: usize,
}

impl KafkaOptions {
    /// A topic of some brokers, with the usual patience.
    #[must_use]
    pub fn new(brokers: impl Into<String>, topic: impl Into<String>) -> KafkaOptions {
        KafkaOptions {
            brokers: brokers.into(),
            topic: topic.into(),
            security: BrokerSecurity::default(),
            properties: Vec::new(),
            append_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(6),
            producers: PRODUCERS,
        }
    }

    /// What all clients have in common.
    fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set_log_level(RDKafkaLogLevel::Info);
        let request = self.request_timeout.as_millis().max(10).to_string();
        for (name, value) in [
            ("bootstrap.servers", self.brokers.as_str()),
            ("client.id", "roundel"),
            ("allow.auto.create.topics", "false"),
            // A request that takes longer makes the connection count as dead.
            ("socket.timeout.ms", &request),
            ("socket.keepalive.enable", "true"),
            ("socket.nagle.disable", "true"),
            ("reconnect.backoff.ms", "50"),
            ("reconnect.backoff.max.ms", "1000"),
            // Leaders move without a broker's death, too; who asks the old one is told, so that this is only for new partitions.
            ("topic.metadata.refresh.interval.ms", "30000"),
            ("log.connection.close", "false"),
        ] {
            config.set(name, value);
        }
        config
    }

    /// The settings of the user, last of all.
    fn finish(&self, mut config: ClientConfig) -> Result<ClientConfig, LogError> {
        security::set(&mut config, &self.security)?;
        for (name, value) in &self.properties {
            if OURS.contains(&name.as_str()) {
                let text = format!(
                    "the setting {name} of Kafka's client is not free: the log's promises rest on it"
                );
                return Err(LogError::Refused(text));
            }
            security::check_property(name)?;
            config.set(name, value);
        }
        Ok(config)
    }
}

/// A topic as a replicated log.
pub struct KafkaLog {
    options: KafkaOptions,
    blame: Blame,
    /// For questions.
    asker: Arc<AdminClient<Talk>>,
    producers: Producers,
    readers: Readers,
    /// Whether the topic has been seen: librdkafka keeps messages for one that it does not know for half a minute.
    seen: AtomicBool,
}

impl fmt::Debug for KafkaLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaLog").field("options", &self.options).finish_non_exhaustive()
    }
}

impl KafkaLog {
    /// Makes the clients. The brokers need not answer yet: whatever needs them says so.
    ///
    /// # Errors
    /// When a setting is none of librdkafka, or of the wrong kind, or a file of TLS cannot be used.
    pub fn new(options: KafkaOptions) -> Result<KafkaLog, LogError> {
        let blame = Blame::new(&options)?;
        let asker = Arc::new(asker(&options, &blame)?);
        let producers = Producers::new(&options, &blame)?;
        let readers = Readers::new(&options, &blame, &asker)?;
        Ok(KafkaLog { options, blame, asker, producers, readers, seen: AtomicBool::new(false) })
    }

    /// The number of partitions, as a broker has it now.
    fn ask_partitions(&self) -> Result<u32, LogError> {
        let topic = self.options.topic.as_str();
        let client = self.asker.inner();
        let metadata = client
            .fetch_metadata(Some(topic), self.options.request_timeout)
            .map_err(|error| self.blame.question("ask about", &error))?;
        let found = metadata.topics().iter().find(|found| found.name() == topic);
        let found = found.ok_or_else(|| self.blame.no_topic())?;
        if let Some(error) = found.error() {
            return Err(self.blame.code("ask about", error.into()));
        }
        self.seen.store(true, Ordering::Relaxed);
        Ok(found.partitions().len() as u32)
    }

    fn check_partition(&self, partition: u32) -> Result<i32, LogError> {
        if !self.seen.load(Ordering::Relaxed) {
            let count = self.ask_partitions()?;
            if partition >= count {
                return Err(self.blame.no_partition(partition, count));
            }
        }
        i32::try_from(partition).map_err(|_| self.blame.no_partition(partition, u32::MAX))
    }
}

impl ReplicatedLog for KafkaLog {
    fn partition_count(&self) -> Result<u32, LogError> {
        self.ask_partitions()
    }

    /// The cluster's id and the topic's name. That of the topic itself, which would be another after it was deleted and made again, cannot be
    /// asked for without unsafe code (librdkafka has it, rdkafka 0.39 does not). `docs/cluster.md` says how such a topic is found out.
    fn identity(&self) -> Result<String, LogError> {
        self.ask_partitions()?;
        let cluster = self.asker.inner().fetch_cluster_id(self.options.request_timeout);
        let cluster = cluster.ok_or_else(|| self.blame.no_answer("ask for the id of"))?;
        Ok(format!("kafka {cluster} {}", self.options.topic))
    }

    fn append(&self, partition: u32, message: &[u8]) -> Result<(), LogError> {
        if message.len() > MESSAGE_BYTES_MAX {
            let text = format!("a message of {} bytes: {MESSAGE_BYTES_MAX} are the most", message.len());
            return Err(LogError::Refused(text));
        }
        self.producers.append(self.check_partition(partition)?, message)
    }

    fn bounds(&self, partition: u32) -> Result<Range<u64>, LogError> {
        let number = self.check_partition(partition)?;
        ask_bounds(&self.asker, &self.options, &self.blame, number)
    }

    fn reader(&self, partition: u32, from: u64) -> Result<Box<dyn LogReader>, LogError> {
        let number = self.check_partition(partition)?;
        Ok(Box::new(self.readers.reader(number, from)?))
    }
}

/// Checks what can be checked of the settings without a broker: their names, and the files of TLS.
///
/// # Errors
/// What is wrong.
pub fn check(options: &KafkaOptions) -> Result<(), LogError> {
    let blame = Blame::new(options)?;
    asker(options, &blame).map(drop)
}

/// A client for questions.
fn asker(options: &KafkaOptions, blame: &Blame) -> Result<AdminClient<Talk>, LogError> {
    let config = options.finish(options.client())?;
    config.create_with_context(Talk::new("questions", blame)).map_err(|error| blame.settings(&error))
}

/// First and next offset. Asked again while no broker leads the partition.
fn ask_bounds(
    asker: &AdminClient<Talk>,
    options: &KafkaOptions,
    blame: &Blame,
    partition: i32,
) -> Result<Range<u64>, LogError> {
    let end = Instant::now() + options.request_timeout;
    loop {
        let left = end.saturating_duration_since(Instant::now()).max(ASK_AGAIN);
        match asker.inner().fetch_watermarks(&options.topic, partition, left) {
            Ok((first, next)) => return Ok(first.max(0) as u64..next.max(0) as u64),
            Err(error) => match blame.error("ask for the offsets of", &error) {
                LogError::Unreachable(_) if Instant::now() < end => std::thread::sleep(ASK_AGAIN),
                LogError::Unreachable(_) => return Err(blame.question("ask for the offsets of", &error)),
                error => return Err(error),
            },
        }
    }
}
