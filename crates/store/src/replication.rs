//! What a store and a copy of it on another server agree on: who of them takes changes, and up to where their logs are the same.
//!
//! A *follower* has the log of its *primary*, record by record at the same positions, and therefore the same RRDs. Each promotion of a
//! follower begins an *epoch*; every record says in which one it was written. Two servers may both have been primaries, for a time, of
//! what was one store: the [`history`] tells where their logs diverge.

pub mod history;
pub mod mark;

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use crate::engine::{Reply, StoreError};
use crate::identity::Identity;
pub use crate::position::Position;
pub use crate::shard::row_checks::{NO_RRD, RANGE_IDS, RangeHashes, RowCheckState};
pub use crate::shard::worker::{Survey, survey};
pub use history::{Epoch, History, Role};
pub use mark::Mark;

/// Where a shard's log ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogEnd {
    /// Where the next record goes.
    pub position: Position,
    /// The record before, if there is one.
    pub last: Option<LastRecord>,
}

/// The last record of a log, by which two logs of the same length can be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastRecord {
    /// Where it begins.
    pub start: Position,
    /// CRC32C of what it says, which does not depend on the server.
    pub check: u32,
    /// The epoch in which it was written.
    pub epoch: u32,
}

/// The last epoch that a store knows, of whose logs these are the ends: a restored one knows it by its log alone.
pub fn known_epoch(history: &History, ends: &[LogEnd]) -> u32 {
    let logged = ends.iter().filter_map(|end| end.last).map(|last| last.epoch);
    logged.max().unwrap_or(0).max(history.epoch())
}

/// How the log of another server compares with this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// It is the beginning of this one, or all of it.
    Beginning,
    /// It has records that this one does not have.
    Diverged {
        /// The shard.
        shard: usize,
        /// Where the two diverge at the latest.
        at: Position,
    },
    /// The beginning of this one is no longer there, so that this cannot be found out, nor could the other be continued.
    Gone,
}

/// Tells how much of a shard's log a replicated log has accepted.
///
/// Only that may be part of a checkpoint: what the replicated log lacks is cut off once another server leads, and a checkpoint cannot be cut.
pub trait Confirmation: Send + Sync {
    /// Waits until everything before `position` is accepted, and writes durably that it is; `sync` makes the shard's log durable.
    ///
    /// # Errors
    /// When the disk fails. False: it will not be accepted any more while the shard runs, or `stopping` was set first.
    fn confirm(
        &self,
        position: Position,
        sync: &dyn Fn() -> io::Result<()>,
        stopping: &AtomicBool,
    ) -> io::Result<bool>;
}

/// A confirmation that is the same for all clones of the options that have it.
#[derive(Clone)]
pub struct SharedConfirmation(pub Arc<dyn Confirmation>);

impl std::fmt::Debug for SharedConfirmation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedConfirmation")
    }
}

/// A check of whole RRDs that stands in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BegunCheck {
    /// How many ids, from the first asked for on, are compared by it.
    pub count: u32,
    /// The id that the next RRD gets.
    pub next_id: u32,
    /// Where its record ends: a copy that has more of the log has come by it.
    pub end: Position,
}

/// A store that is a copy of what a replicated log says, like others.
pub trait LogCopy: Replica {
    /// Takes changes from now on, in an epoch that a replicated log has begun; nothing is written but the epoch's records themselves.
    ///
    /// # Errors
    /// When it does not follow, or is stopping.
    fn lead(&self, epoch: u32) -> Result<(), StoreError>;
    /// Writes a hash of some RRDs to the log, which copies compare with theirs: one that differs takes no more of the log. The next call
    /// takes the next RRDs. Waits for nothing.
    ///
    /// # Errors
    /// When the store is stopping.
    fn check_copies(&self) -> Result<(), StoreError>;
    /// Has all copies hash the RRDs of some ids, with all of their rows, at one position of the log, and keep the hashes under a number. Only small
    /// ranges are taken at once, so that updates go on; answered when copies have it, too.
    ///
    /// # Errors
    /// When it does not lead, or hashes others still; when nothing can be logged.
    fn begin_row_check(&self, number: u64, ids: Range<u32>) -> Result<BegunCheck, StoreError>;
    /// What this copy has found at the check of a number, here or where it followed.
    fn row_check(&self, number: u64) -> RowCheckState;
    /// Whether something of the replicated log did not fit, so that this is no copy of what it says.
    fn differs(&self) -> bool;
    /// Makes the logs durable, without waiting for anything but the disk.
    ///
    /// # Errors
    /// When an fsync fails.
    fn sync_logs(&self) -> Result<(), StoreError>;
}

/// A store whose log another one follows, or that follows another's.
pub trait Replica: Send + Sync {
    /// Which store it is; the same for all that have its RRDs.
    fn identity(&self) -> Identity;
    /// What it is now.
    fn role(&self) -> Role;
    /// Whether answers that are to wait for a follower do not, because it was promoted and none has caught up since.
    fn answers_alone(&self) -> bool;
    /// What it was.
    fn history(&self) -> History;
    /// Where the logs end, by shard.
    ///
    /// # Errors
    /// When they cannot be read.
    fn ends(&self) -> Result<Vec<LogEnd>, StoreError>;
    /// The ends of all logs between any two commits.
    fn moment(&self) -> Vec<Position>;
    /// Compares this log with another one that ends at `ends`, of a store that knows no epoch after `epoch`.
    ///
    /// # Errors
    /// When it cannot be read.
    fn compare(&self, epoch: u32, ends: &[LogEnd]) -> Result<Comparison, StoreError>;
    /// Applies records of the primary's log to a shard, from `from` on, where its own log ends; answers when its log has them, under
    /// `sync = "always"` durably. All of them must count by [`survey`].
    fn replicate(
        &self,
        shard: usize,
        from: Position,
        records: Vec<u8>,
        reply: Reply<Result<Position, StoreError>>,
    );
    /// A follower has all of a shard's log before this position.
    fn acknowledged(&self, shard: usize, position: Position);
    /// A follower has caught up: from now on answers wait for one, if they are to.
    ///
    /// # Errors
    /// When that cannot be written.
    fn has_follower(&self) -> Result<(), StoreError>;
    /// Follows a primary with this history from now on. Durable when it returns.
    ///
    /// # Errors
    /// When this server is not to follow another one, or cannot write.
    fn follow(&self, history: &History) -> Result<(), StoreError>;
    /// Takes no changes any more, because a primary of this later epoch does. Durable when it returns.
    ///
    /// # Errors
    /// When the epoch is not later, or it cannot be written.
    fn fence(&self, epoch: u32) -> Result<(), StoreError>;
    /// Takes changes again, of a store that was the primary when it was last open and does not follow any other: no epoch begins.
    ///
    /// # Errors
    /// When it was not.
    fn resume(&self) -> Result<(), StoreError>;
    /// Becomes the primary: begins an epoch, takes changes, and does what is done to placeholders. Returns the epoch. Nothing of a former
    /// primary is applied any more.
    ///
    /// # Errors
    /// When it is the primary already, or cannot write.
    fn promote(&self) -> Result<u32, StoreError>;
}

/// What a store is now, and the epoch of its records, for all of its shards; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct SharedRole(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// [`Role`] as a number.
    role: AtomicU8,
    epoch: AtomicU32,
    is_alone: AtomicBool,
}

impl SharedRole {
    /// What a store does according to its history.
    pub fn of(history: &History) -> Self {
        let role = SharedRole::default();
        role.begin_epoch(history.epoch());
        role.set_alone(history.is_alone);
        role.set(history.role);
        role
    }

    /// What the store is now.
    #[inline]
    pub fn get(&self) -> Role {
        Role::of_number(self.0.role.load(Ordering::Acquire))
    }

    /// Changes it.
    pub fn set(&self, role: Role) {
        self.0.role.store(role as u8, Ordering::Release);
    }

    /// The epoch of the records that are written.
    pub fn epoch(&self) -> u32 {
        self.0.epoch.load(Ordering::Relaxed)
    }

    /// Whether it was promoted, and no follower has caught up since.
    pub fn is_alone(&self) -> bool {
        self.0.is_alone.load(Ordering::Relaxed)
    }

    /// Changes that.
    pub fn set_alone(&self, is_alone: bool) {
        self.0.is_alone.store(is_alone, Ordering::Relaxed);
    }

    /// Begins another one.
    pub fn begin_epoch(&self, epoch: u32) {
        self.0.epoch.store(epoch, Ordering::Relaxed);
    }
}
