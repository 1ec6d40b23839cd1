//! The mark of a replica: the file REPLICATED, which is written before each checkpoint, from time to time, and at the end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use store::disk::Disk;
use store::replication::{Confirmation, Mark, Position};

use super::{Settled, Shared};
use crate::lock::lock;
use crate::message::{Accepted, NO_WRITER};

/// How often a wait looks whether the shard is stopping.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

impl Settled {
    /// The moment that a mark says.
    pub(super) fn of_mark(mark: &Mark) -> Settled {
        let Mark { next, epoch, leader, end, .. } = *mark;
        let is_sealed = mark.sealed_for.is_some();
        Settled { accepted: Accepted { epoch, leader, end, whole: end, is_sealed }, next }
    }

    /// The moment at which a replica goes on in the next log, after the one of its mark.
    pub(super) fn in_next_log(mark: &Mark) -> Settled {
        let Mark { epoch, end, .. } = *mark;
        Settled {
            accepted: Accepted { epoch, leader: NO_WRITER, end, whole: end, is_sealed: false },
            next: 0,
        }
    }
}

impl Shared {
    /// Writes the mark of the last settled moment, once the store's log is durable up to there.
    ///
    /// # Errors
    /// When the disk fails.
    pub(super) fn write_mark(
        &self,
        disk: &dyn Disk,
        identity: &str,
        sync: &dyn Fn() -> io::Result<()>,
    ) -> io::Result<()> {
        // One at a time, so that a later mark is never replaced by an earlier one.
        let _turn = lock(&self.marking);
        let mark = self.mark(identity);
        sync()?;
        mark.store(disk)?;
        self.state().seal_is_marked = mark.sealed_for.is_some();
        Ok(())
    }

    /// The mark of the last settled moment.
    pub(super) fn mark(&self, identity: &str) -> Mark {
        let state = self.state();
        let Settled { accepted: Accepted { epoch, leader, whole: end, is_sealed, .. }, next } = state.settled;
        let sealed_for = state.sealed_for.clone().filter(|_| is_sealed);
        Mark { log: identity.to_owned(), next, epoch, leader, end, sealed_for }
    }
}

/// What the checkpoints of one opened store wait for.
pub(super) struct Confirmed {
    pub(super) shared: Arc<Shared>,
    pub(super) life: u64,
    pub(super) disk: Arc<dyn Disk>,
    /// Of the replicated log.
    pub(super) identity: String,
}

impl Confirmation for Confirmed {
    fn confirm(
        &self,
        position: Position,
        sync: &dyn Fn() -> io::Result<()>,
        stopping: &AtomicBool,
    ) -> io::Result<bool> {
        let mut state = self.shared.state();
        while state.life == self.life && state.settled.accepted.whole < position {
            if stopping.load(Ordering::Relaxed) {
                return Ok(false);
            }
            state = self.shared.wait(state, LOOK_AGAIN);
        }
        if state.life != self.life {
            return Ok(false);
        }
        drop(state);
        self.shared.write_mark(&*self.disk, &self.identity, sync)?;
        Ok(true)
    }
}
