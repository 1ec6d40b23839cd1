//! The log of a shard: every change in order, written before it is answered.
//!
//! `docs/format/log.md` describes the bytes, and what recovery does about each kind of damage. A record is an
//! [`envelope`] with a body from [`updates`] or [`catalogue`]. [`LogWriter`] appends, a [`LogSyncer`] makes
//! the log durable from another thread, [`replay`](fn@replay) reads it back. Offsets are dense, and every
//! record contains its own, so that a stale record in a recycled file is never mistaken for a live one. This
//! module does not know what an update does to an RRD, and callers pass in the time.

mod aside;
pub mod bell;
pub mod catalogue;
pub mod envelope;
#[doc(hidden)]
pub mod fuzzing;
pub mod last;
pub mod parts;
pub mod range;
pub mod replay;
pub mod scan;
pub mod updates;
pub mod writer;

use std::fmt;
use std::io;
use std::path::PathBuf;

pub use crate::position::Position;
pub(crate) use aside::copy_aside;
pub use aside::{put_aside, straighten};
pub use envelope::{Kind, Record, Stamp};
pub use replay::{Cut, Damage, Fault, Known, ReplayEnd, ReplayError, replay};
pub use updates::UpdatesBody;
pub use writer::{LogSyncer, LogWriter, Options, cut_after, ends_at_once, log_files};

/// The largest body of a record in bytes: room for an import of a hundred megabytes of rows or more, yet
/// small enough for a reader to hold in memory. Longer bodies are refused before anything is written.
pub const BODY_BYTES_MAX: usize = 64 << 20;

/// Why an operation on the log failed.
#[derive(Debug)]
pub enum LogError {
    /// The disk is full, or there is another [`Shortage`](disk::Shortage). Nothing of the commit was written; it may be
    /// retried or discarded.
    Full(io::Error),
    /// A write or sync has failed: no more writes until the log is reopened.
    Poisoned(String),
    /// Reading, listing or removing failed.
    Io(io::Error),
    /// A body longer than [`BODY_BYTES_MAX`]; it was not appended.
    TooLarge {
        /// Its length.
        bytes: usize,
    },
    /// An intact record that this program does not know: a newer version wrote it.
    Unsupported {
        /// The file.
        path: PathBuf,
        /// Where in it the record starts.
        offset: u64,
        /// What is unknown.
        what: String,
    },
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Full(error) => write!(f, "cannot write the log: {error}; free some space"),
            LogError::Poisoned(why) => {
                write!(f, "the log takes no more writes: {why}; restart once the disk is well")
            }
            LogError::Io(error) => write!(f, "cannot work on the log: {error}"),
            LogError::TooLarge { bytes } => {
                write!(f, "cannot log a record of {bytes} bytes: {BODY_BYTES_MAX} are the limit")
            }
            LogError::Unsupported { path, offset, what } => write!(
                f,
                "cannot read log file {} at byte {offset}: {what}; use the newer program that wrote it",
                path.display()
            ),
        }
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LogError::Full(error) | LogError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for LogError {
    fn from(error: io::Error) -> Self {
        LogError::Io(error)
    }
}

#[cfg(test)]
mod tests;
