//! Follows the logs of a store: what is logged from a position on, as bytes or as changes with names, for as long as the
//! store runs.
//!
//! The log itself is the queue: a reader that is slow or away costs the update path nothing, and the log from its
//! position on is kept, up to a limit ([`crate::shard::pins`]). A reader that keeps its positions durably misses nothing
//! by a crash, if it reads what is durable: then no position is ever given to another record.
//! A [`ShardTail`] belongs to one thread; [`LogTail::wait`] wakes when any log has grown. Reading costs a directory listing
//! and a read of the page cache for each piece.

mod changes;
mod names;
mod pieces;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use crate::log::bell::Bell;
pub use changes::{ChangeKind, LoggedChange};
pub(crate) use names::NamesNow;
pub use pieces::{Piece, RawRecords};

use self::names::{AskNames, Names};
use crate::disk::Disk;
use crate::engine::StoreError;
use crate::identity::Identity;
use crate::log::parts::Parts;
use crate::log::writer::RungBy;
use crate::log::{LogSyncer, Position};
use crate::shard::files::Files;
use crate::shard::pins::LogPin;

/// Up to where a tail reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Everything that was answered. A loss of power may take the end of it back, and give its positions to other records.
    Committed,
    /// What survives a loss of power.
    Durable,
}

/// The logs of all shards.
pub struct LogTail {
    identity: Identity,
    shards: Vec<ShardTail>,
    bell: Arc<Bell>,
}

/// The log of one shard.
pub struct ShardTail {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    owner: u32,
    log: LogSyncer,
    reach: Reach,
    pin: LogPin,
    next: Position,
    names: Names,
    /// The parts of an import so far, and where they begin.
    parts: Parts,
    parts_from: Option<Position>,
}

/// Why a tail cannot go on.
#[derive(Debug)]
pub enum TailError {
    /// The disk failed.
    Io(io::Error),
    /// The position is not one of this log, which goes up to `end`.
    NoSuchPosition {
        /// The position.
        position: Position,
        /// Where the log ends.
        end: Position,
    },
    /// A good record at a position that this program does not know, or cannot decode.
    Unknown {
        /// Where it starts.
        position: Position,
        /// What is wrong with it.
        what: String,
    },
    /// The store is stopping.
    Store(StoreError),
}

impl fmt::Display for TailError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TailError::Io(error) => write!(f, "cannot read the log: {error}"),
            TailError::NoSuchPosition { position, end } => {
                write!(f, "the log has no position {position}: it ends at {end}")
            }
            TailError::Unknown { position, what } => {
                write!(f, "cannot read the record at position {position} of the log: {what}")
            }
            TailError::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TailError {}

impl From<io::Error> for TailError {
    fn from(error: io::Error) -> Self {
        TailError::Io(error)
    }
}

impl LogTail {
    pub(crate) fn new(identity: Identity, shards: Vec<ShardTail>, reach: Reach) -> Self {
        let bell = Arc::new(Bell::default());
        let by = match reach {
            Reach::Committed => RungBy::Commit,
            Reach::Durable => RungBy::Sync,
        };
        shards.iter().for_each(|shard| shard.log.watch(&bell, by));
        LogTail { identity, shards, bell }
    }

    /// Whose logs they are. Positions are those of this store alone.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// The shards. Each begins at the end of its log.
    pub fn shards(&self) -> &[ShardTail] {
        &self.shards
    }

    /// The shards, to read them.
    pub fn shards_mut(&mut self) -> &mut [ShardTail] {
        &mut self.shards
    }

    /// Waits until some log has grown since the last call; false when `timeout` is over first.
    pub fn wait(&self, timeout: Duration) -> bool {
        self.bell.wait(timeout)
    }

    /// What rings when a log has grown, for another thread that has to end a wait.
    pub fn bell(&self) -> Arc<Bell> {
        Arc::clone(&self.bell)
    }
}

impl ShardTail {
    /// A tail that begins at the end of the log of `files`. All of the log is kept until the first
    /// [`ShardTail::keep_from`], then `bytes_max` bytes of it.
    pub(crate) fn new(files: &Files, reach: Reach, bytes_max: u64, ask: AskNames) -> Self {
        let pin = files.pin_log(bytes_max);
        let log = files.log().clone();
        let mut tail = ShardTail {
            disk: Arc::clone(&files.disk),
            dir: files.dir.clone(),
            owner: files.owner,
            next: Position::default(),
            log,
            reach,
            pin,
            names: Names::new(ask),
            parts: Parts::default(),
            parts_from: None,
        };
        tail.next = tail.end();
        tail
    }

    /// Up to where it can read now.
    pub fn end(&self) -> Position {
        match self.reach {
            Reach::Committed => self.log.committed(),
            Reach::Durable => self.log.durable(),
        }
    }

    /// Where the next piece begins.
    pub fn position(&self) -> Position {
        self.next
    }

    /// From where on a later tail has to read to miss nothing of what follows: the position, or where an import begins
    /// whose last part is still to come.
    pub fn resume_from(&self) -> Position {
        self.parts_from.unwrap_or(self.next)
    }

    /// Bytes that are still to be read.
    pub fn bytes_left(&self) -> u64 {
        self.end().offset.saturating_sub(self.next.offset)
    }

    /// Goes to a position that [`ShardTail::resume_from`] or [`ShardTail::position`] gave, of this tail or an earlier one. What the log
    /// no longer has comes as [`Piece::Lost`].
    ///
    /// # Errors
    /// [`TailError::NoSuchPosition`].
    pub fn seek(&mut self, position: Position) -> Result<(), TailError> {
        let end = self.end();
        if position.generation != end.generation || position > end {
            return Err(TailError::NoSuchPosition { position, end });
        }
        self.next = position;
        self.names.restart(position);
        self.parts.abandon();
        self.parts_from = None;
        Ok(())
    }

    /// Keeps the log from `position` on, up to the limit that the tail was opened with: what replay does not need is then
    /// removed, and comes as [`Piece::Lost`].
    pub fn keep_from(&self, position: Position) {
        self.pin.raise(position);
    }
}

#[cfg(test)]
mod tests;
