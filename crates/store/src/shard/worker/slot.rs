//! The place of the worker: taken by its own thread during a round, open to other threads between rounds.

use std::time::Duration;

use super::{IDLE, Worker};
use crate::shard::message::Command;
use crate::shard::view::View;
use crate::shard::{Shared, abort_on_panic};
use crate::sync::{PoisonError, RwLock, TryLockError};

/// The worker between its rounds. Threads with a query read the worker's state themselves, side by side, instead of waking the
/// worker, which would cost two thread switches and half of a short fetch; a thread with a small command runs
/// the round itself ([`WorkerSlot::run_inline`]). During a round, and once the worker has ended, neither is
/// possible.
pub struct WorkerSlot(RwLock<Option<Worker>>);

impl WorkerSlot {
    /// A slot with a worker that has not started yet.
    pub fn new(worker: Worker) -> Self {
        WorkerSlot(RwLock::new(Some(worker)))
    }

    /// Reads the shard's memory unless a round or the recovery is in progress. Everything it shows is in the
    /// log, and so is everything that was answered.
    pub fn look<T>(&self, look: impl FnOnce(&View<'_>) -> T) -> Option<T> {
        let slot = match self.0.try_read() {
            Ok(slot) => slot,
            // A read changes nothing, and a worker that panics ends the process.
            Err(TryLockError::Poisoned(slot)) => slot.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        slot.as_ref().filter(|worker| worker.recovery.is_none()).map(|worker| look(&worker.view()))
    }

    /// Runs a round with one small command on the caller's thread, if the worker rests and nothing is queued:
    /// a client that waits for each answer then needs no thread switch. Otherwise returns the command.
    pub fn run_inline(&self, shared: &Shared, command: Command) -> Option<Command> {
        let Ok(mut slot) = self.0.try_write() else { return Some(command) };
        let Some(worker) = &mut *slot else { return Some(command) };
        // Checked under the lock: when the mailbox is idle, the worker has executed all that it took.
        if !worker.takes_commands() || !shared.mailbox.is_idle() {
            return Some(command);
        }
        abort_on_panic(|| worker.round(&mut vec![command], &mut Vec::new()));
        // The worker's thread sleeps for as long as the previous round allowed.
        if worker.timeout() < IDLE || !worker.takes_commands() {
            shared.mailbox.nudge();
        }
        None
    }

    /// Runs the worker until the mailbox is closed and empty.
    pub fn run(&self, shared: &Shared) {
        let (mut commands, mut priority) = (Vec::new(), Vec::new());
        let (mut bytes, mut timeout) = (0, Duration::ZERO);
        while shared.mailbox.take(&mut commands, &mut priority, bytes, timeout) {
            let mut slot = self.0.write().unwrap_or_else(PoisonError::into_inner);
            let Some(worker) = &mut *slot else { return };
            worker.round(&mut commands, &mut priority);
            (bytes, timeout) = (worker.budget(), worker.timeout());
        }
        let worker = self.0.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(worker) = worker {
            worker.end();
        }
    }
}
