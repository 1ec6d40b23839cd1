//! A striped store as a replica: the primary's and the follower's side of [`crate::replication`].

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::Stripes;
use crate::engine::{Reply, StoreError};
use crate::identity::Identity;
use crate::lock::lock;
use crate::log::{self, Position, last};
use crate::replication::{BegunCheck, Comparison, History, LogCopy, LogEnd, Replica, Role, RowCheckState};
use crate::shard::files::Files;
use crate::shard::message::Command;

/// A later epoch than so many promotions ahead is none: numbers must not run out.
const EPOCHS_AHEAD_MAX: u32 = 1_000_000;

impl Stripes {
    fn files(&self) -> impl Iterator<Item = &Files> {
        self.core.shards.iter().map(|shard| &shard.shared.files)
    }

    /// Writes the history, and then takes it as its own.
    fn keep_history(&self, kept: &mut History, new: History) -> Result<(), StoreError> {
        new.store(&*self.disk).map_err(|error| StoreError::io("writing the store's file HISTORY", error))?;
        *kept = new;
        Ok(())
    }

    /// Takes changes from now on, and does what is done to placeholders.
    fn take_changes(&self) -> Result<(), StoreError> {
        // While it followed, it asked all shards.
        self.core.homes.forget();
        self.options.shard.role.set(Role::Primary);
        self.begin_naming().map_err(|error| StoreError::Replica(error.to_string()))
    }

    /// Begins an epoch where the logs end now, and returns its number; `is_alone`: it answers alone until a follower has caught up. Nothing is written to them meanwhile.
    fn begin_epoch(&self, kept: &mut History, is_alone: bool) -> Result<u32, StoreError> {
        let epoch = kept.next_epoch();
        let mut new = kept.clone();
        new.begin_epoch(epoch, self.moment());
        new.is_alone = is_alone;
        self.keep_history(kept, new)?;
        self.options.shard.role.begin_epoch(epoch);
        self.options.shard.role.set_alone(is_alone);
        Ok(epoch)
    }

    /// Begins an epoch in a copy that is opened for the first time and follows no primary: what it came from may go on
    /// elsewhere, and from here on the records of the two are told apart.
    pub(super) fn begin_own_epoch(&self) -> Result<(), StoreError> {
        let mut kept = lock(&self.history);
        if kept.role == Role::Restored && !self.options.follow {
            self.begin_epoch(&mut kept, false)?;
            self.options.shard.role.set(Role::Primary);
        }
        Ok(())
    }

    /// Waits until the shards have done what they were sent.
    fn settle(&self) -> Result<(), StoreError> {
        self.core.every_shard(Command::Sync)
    }
}

impl Replica for Stripes {
    fn identity(&self) -> Identity {
        self.core.store
    }

    fn role(&self) -> Role {
        self.options.shard.role.get()
    }

    fn answers_alone(&self) -> bool {
        let shard = &self.options.shard;
        shard.replica_patience.is_some() && shard.role.is_alone() && shard.role.get() == Role::Primary
    }

    fn history(&self) -> History {
        lock(&self.history).clone()
    }

    fn ends(&self) -> Result<Vec<LogEnd>, StoreError> {
        let end_of = |files: &Files| {
            let position = files.log().committed();
            let last = last::find(&*files.disk, &files.dir, position)
                .map_err(|error| StoreError::io("reading the end of the log", error))?;
            Ok(LogEnd { position, last })
        };
        self.files().map(end_of).collect()
    }

    fn moment(&self) -> Vec<Position> {
        log::ends_at_once(self.files().map(Files::log))
    }

    fn compare(&self, epoch: u32, ends: &[LogEnd]) -> Result<Comparison, StoreError> {
        let positions: Vec<Position> = ends.iter().map(|end| end.position).collect();
        if let Some((shard, at)) = lock(&self.history).divergence(epoch, &positions) {
            return Ok(Comparison::Diverged { shard, at });
        }
        for (shard, (files, end)) in self.files().zip(ends).enumerate() {
            let here = files.log().committed();
            if end.position.generation != here.generation || end.position > here {
                return Ok(Comparison::Diverged { shard, at: here });
            }
            // Two new stores are the same.
            let Some(theirs) = end.last else { continue };
            let found = last::at(&*files.disk, &files.dir, theirs.start, end.position)
                .map_err(|error| StoreError::io("reading the log", error))?;
            match found {
                Some(ours) if ours.check == theirs.check => {}
                Some(_) => return Ok(Comparison::Diverged { shard, at: theirs.start }),
                None => return Ok(Comparison::Gone),
            }
        }
        Ok(Comparison::Beginning)
    }

    fn replicate(
        &self,
        shard: usize,
        from: Position,
        records: Vec<u8>,
        reply: Reply<Result<Position, StoreError>>,
    ) {
        self.core.send(&self.core.shards[shard], Command::Replicate(from, records, reply));
    }

    fn acknowledged(&self, shard: usize, position: Position) {
        if let Some(shard) = self.core.shards.get(shard) {
            shard.shared.replica_wait.acknowledged(position);
        }
    }

    fn has_follower(&self) -> Result<(), StoreError> {
        let mut kept = lock(&self.history);
        if kept.is_alone {
            let new = History { is_alone: false, ..kept.clone() };
            self.keep_history(&mut kept, new)?;
            self.options.shard.role.set_alone(false);
        }
        Ok(())
    }

    fn follow(&self, history: &History) -> Result<(), StoreError> {
        let mut kept = lock(&self.history);
        if self.role() != Role::Follower {
            return Err(StoreError::Replica("this server does not follow another one".into()));
        }
        let epochs = history.epochs.clone();
        let new = History { role: Role::Follower, epochs, ..History::default() };
        self.options.shard.role.begin_epoch(new.epoch());
        if *kept == new { Ok(()) } else { self.keep_history(&mut kept, new) }
    }

    fn fence(&self, epoch: u32) -> Result<(), StoreError> {
        let mut kept = lock(&self.history);
        if epoch > kept.epoch().saturating_add(EPOCHS_AHEAD_MAX) {
            return Err(StoreError::Replica(format!("no store is {epoch} promotions old")));
        }
        if epoch <= kept.epoch() {
            return Err(StoreError::Replica(format!(
                "this server knows epoch {} of the store, which is not earlier than {epoch}",
                kept.epoch()
            )));
        }
        // Whatever the disk says: from now on nothing more is answered as done.
        if self.role() == Role::Primary {
            self.options.shard.role.set(Role::Fenced);
        }
        let role = match kept.role {
            Role::Follower | Role::Restored => kept.role,
            _ => Role::Fenced,
        };
        let new = History { role, fenced_by: epoch.max(kept.fenced_by), is_alone: false, ..kept.clone() };
        self.keep_history(&mut kept, new)
    }

    fn resume(&self) -> Result<(), StoreError> {
        let kept = lock(&self.history);
        if kept.role != Role::Primary || self.role() == Role::Primary {
            return Err(StoreError::Replica("this server was not the primary, or is it already".into()));
        }
        self.take_changes()
    }

    fn promote(&self) -> Result<u32, StoreError> {
        let mut kept = lock(&self.history);
        let before = self.role();
        if before == Role::Primary {
            return Err(StoreError::Replica("this server is the primary already".into()));
        }
        self.options.shard.role.set(Role::Promoting);
        let epoch = match self.settle().and_then(|()| self.begin_epoch(&mut kept, true)) {
            Ok(epoch) => epoch,
            Err(error) => {
                self.options.shard.role.set(before);
                return Err(error);
            }
        };
        self.take_changes()?;
        Ok(epoch)
    }
}

impl LogCopy for Stripes {
    fn lead(&self, epoch: u32) -> Result<(), StoreError> {
        if self.role() != Role::Follower {
            return Err(StoreError::Replica("this copy does not follow a replicated log".into()));
        }
        self.settle()?;
        self.options.shard.role.begin_epoch(epoch);
        self.take_changes()
    }

    fn check_copies(&self) -> Result<(), StoreError> {
        for shard in &self.core.shards {
            let command = Command::Check(Box::new(drop));
            let bytes = command.bytes();
            // The caller reads what the replicated log has accepted: a checkpoint may wait for that, and a full mailbox for the checkpoint.
            if shard.shared.mailbox.send_command_at_once(command, bytes).is_err() {
                return Err(StoreError::Stopping);
            }
        }
        Ok(())
    }

    fn begin_row_check(&self, number: u64, ids: Range<u32>) -> Result<BegunCheck, StoreError> {
        let shard = self.core.shards.first().ok_or(StoreError::Stopping)?;
        self.core.wait_for(shard, |reply| Command::RowCheck(number, ids, reply))
    }

    fn row_check(&self, number: u64) -> RowCheckState {
        let shard = self.core.shards.first();
        shard.map_or(RowCheckState::None, |shard| shard.shared.row_checks.state(number))
    }

    fn differs(&self) -> bool {
        self.core.shards.iter().any(|shard| shard.shared.differs.load(Ordering::Acquire))
    }

    fn sync_logs(&self) -> Result<(), StoreError> {
        let sync = |files: &Files| match files.log().sync() {
            Ok(_) => Ok(()),
            Err(error) => Err(StoreError::Replica(format!("the log cannot be made durable: {error}"))),
        };
        self.files().try_for_each(sync)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::disk::sim::SimDisk;
    use crate::stripes::Options;

    #[test]
    fn a_check_of_copies_does_not_wait_for_room_in_the_mailbox() {
        let options = Options { shard_count: 1, ..Options::default() };
        let store = Stripes::open(SimDisk::new(1).handle(), &options).unwrap();
        let shard = &store.core.shards[0];
        let (sender, sent) = mpsc::channel();
        let is_sent = thread::scope(|scope| {
            // While this thread reads, the worker executes nothing: it has taken the first of these at most.
            let look = || {
                shard.worker.look(|_| {
                    for bytes in [64 << 10, 4 << 20] {
                        let command = Command::Sync(Box::new(drop));
                        assert!(shard.shared.mailbox.send_command(command, bytes).is_ok());
                    }
                    scope.spawn(|| sender.send(store.check_copies()));
                    sent.recv_timeout(Duration::from_secs(20)).is_ok()
                })
            };
            // It is replaying the log, which is empty, or makes a round.
            std::iter::repeat_with(look).flatten().next().unwrap()
        });
        assert!(is_sent, "it waits for the worker, which may wait for the thread that sends it");
    }
}
