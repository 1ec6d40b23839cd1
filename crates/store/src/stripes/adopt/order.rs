//! Keeps each connection's updates in order around an adoption.
//!
//! A client may send on before it hears that a name is unknown. So when a name is about to be imported, it is *held*: later
//! updates of it go to the adopter instead of the store. What had been sent before is waited for, so that its failures have
//! arrived; then the file is imported, and all waiting updates of the name follow in the order of their batches' tickets.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use hashbrown::HashSet;

use crate::engine::{Reply, UpdateBatch, UpdateFailure};
use crate::lock::lock;
use crate::name::RrdName;

/// Pause while batches that were sent before are on their way; the store answers one in less.
const DRAIN_PAUSE: Duration = Duration::from_micros(50);

/// The batches on their way through the store, and the names that are held.
#[derive(Debug, Default)]
pub(super) struct Order {
    tickets: AtomicU64,
    /// Its lowest bit tells which of the two counts a batch that begins now belongs to.
    epoch: AtomicUsize,
    in_flight: [AtomicU64; 2],
    any_held: AtomicBool,
    held: Mutex<HashSet<RrdName>>,
}

/// A batch on its way through the store.
#[derive(Debug)]
pub(super) struct Passage {
    order: Arc<Order>,
    epoch: usize,
    /// Its place among all batches.
    pub(super) ticket: u64,
}

impl Drop for Passage {
    fn drop(&mut self) {
        self.order.in_flight[self.epoch & 1].fetch_sub(1, SeqCst);
    }
}

impl Order {
    /// Begins the passage of a batch; it ends when the result is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> Passage {
        loop {
            let epoch = self.epoch.load(SeqCst);
            self.in_flight[epoch & 1].fetch_add(1, SeqCst);
            if self.epoch.load(SeqCst) == epoch {
                let ticket = self.tickets.fetch_add(1, SeqCst);
                return Passage { order: Arc::clone(self), epoch, ticket };
            }
            self.in_flight[epoch & 1].fetch_sub(1, SeqCst);
        }
    }

    /// The held names, if there are any. To be asked for after `enter`.
    pub(super) fn held(&self) -> Option<MutexGuard<'_, HashSet<RrdName>>> {
        self.any_held.load(SeqCst).then(|| lock(&self.held))
    }

    /// Holds names and waits until every batch that may have missed that is answered. Only the adopter's thread does this.
    pub(super) fn hold(&self, names: &[RrdName]) {
        lock(&self.held).extend(names.iter().cloned());
        self.any_held.store(true, SeqCst);
        let epoch = self.epoch.fetch_add(1, SeqCst);
        while self.in_flight[epoch & 1].load(SeqCst) > 0 {
            std::thread::sleep(DRAIN_PAUSE);
        }
    }

    /// Lets go of all names. `last` sends what has come meanwhile, before any later batch can be sent.
    pub(super) fn release(&self, last: impl FnOnce()) {
        let mut held = lock(&self.held);
        last();
        held.clear();
        self.any_held.store(false, SeqCst);
    }
}

/// A batch of which some lines wait for an adoption.
pub(super) struct Job {
    pub(super) batch: UpdateBatch,
    pub(super) ticket: u64,
    state: Mutex<JobState>,
}

struct JobState {
    /// Parts without an outcome: waiting lines, and the rest of the batch while it is in the store.
    left: usize,
    failures: Vec<UpdateFailure>,
    reply: Option<Reply<Vec<UpdateFailure>>>,
}

impl Job {
    pub(super) fn new(
        batch: UpdateBatch,
        ticket: u64,
        parts: usize,
        failures: Vec<UpdateFailure>,
        reply: Reply<Vec<UpdateFailure>>,
    ) -> Arc<Self> {
        let state = Mutex::new(JobState { left: parts, failures, reply: Some(reply) });
        Arc::new(Job { batch, ticket, state })
    }

    /// Notes that more parts wait than was known; before the part they come from is finished.
    pub(super) fn expect(&self, parts: usize) {
        lock(&self.state).left += parts;
    }

    /// Notes the outcome of `parts` parts; the last one answers.
    pub(super) fn finish(&self, parts: usize, failures: impl IntoIterator<Item = UpdateFailure>) {
        let mut state = lock(&self.state);
        state.failures.extend(failures);
        state.left -= parts;
        if state.left == 0
            && let Some(reply) = state.reply.take()
        {
            let mut failures = std::mem::take(&mut state.failures);
            drop(state);
            failures.sort_by_key(|failure| failure.line);
            reply(failures);
        }
    }
}
