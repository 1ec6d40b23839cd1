//! The replicated log, as much of it as a cluster needs: partitions of messages in order, which many nodes append to and read.
//!
//! Little is expected of it, because little can be had (`docs/cluster.md`): an append may be stored although it failed, or twice, and a message may
//! be stored after a later one of the same writer. All readers see the same messages at the same offsets; that is what everything else rests on. What of them counts,
//! [`crate::message`] decides, for all readers alike.

pub mod brokers;
pub mod directory;
#[cfg(feature = "kafka")]
pub mod kafka;

use std::fmt;
use std::ops::Range;
use std::time::Duration;

/// The longest message, in bytes: what Kafka's brokers take with `message.max.bytes` of 4 MiB, less its own headers.
pub const MESSAGE_BYTES_MAX: usize = (4 << 20) - 4096;

/// A message as it stands in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its place in the partition. Offsets grow, and may have gaps where the log keeps notes of its own.
    pub offset: u64,
    /// What was appended.
    pub bytes: Vec<u8>,
}

/// Why the log could not do something. All of it may be tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogError {
    /// The log, or a broker of it, cannot be reached or does not answer in time. An append may be stored all the same.
    Unreachable(String),
    /// The log does not have the messages from the asked offset on any more: they were older than it keeps.
    Gone {
        /// The first that it has.
        first: u64,
    },
    /// It refuses, for a reason that does not pass by itself: no such topic, no permission, a message that is too long, damage.
    Refused(String),
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Unreachable(why) => write!(f, "the replicated log does not answer: {why}"),
            LogError::Gone { first } => {
                write!(f, "the replicated log begins at offset {first}: what was before is not kept any more")
            }
            LogError::Refused(why) => write!(f, "the replicated log refuses: {why}"),
        }
    }
}

impl std::error::Error for LogError {}

/// A log of many partitions, shared by the nodes of a cluster.
pub trait ReplicatedLog: Send + Sync {
    /// How many partitions it has, numbered from 0.
    ///
    /// # Errors
    /// When that cannot be found out.
    fn partition_count(&self) -> Result<u32, LogError>;
    /// What identifies the log, for as long as its offsets mean the same: another one of the same name has another identity.
    ///
    /// # Errors
    /// When that cannot be found out.
    fn identity(&self) -> Result<String, LogError>;
    /// Appends a message of at most [`MESSAGE_BYTES_MAX`] bytes. Returns when it is stored on as many machines as the log is configured for.
    ///
    /// # Errors
    /// After an error, the message may be stored nevertheless, now or later.
    fn append(&self, partition: u32, message: &[u8]) -> Result<(), LogError>;
    /// The offsets of what a partition has: from its first message up to where the next one will be.
    ///
    /// # Errors
    /// When that cannot be found out.
    fn bounds(&self, partition: u32) -> Result<Range<u64>, LogError>;
    /// Reads a partition from an offset on.
    ///
    /// # Errors
    /// When the log cannot be reached.
    fn reader(&self, partition: u32, from: u64) -> Result<Box<dyn LogReader>, LogError>;
}

/// Reads one partition, message by message; belongs to one thread.
pub trait LogReader: Send {
    /// The next message; `None` when none comes within `patience`. It is only given once it is stored on as many machines as the log is configured for.
    ///
    /// # Errors
    /// [`LogError::Gone`] when the log does not have it any more; nothing is ever left out without that. After any error a reader may be asked again.
    fn next(&mut self, patience: Duration) -> Result<Option<Stored>, LogError>;
}
