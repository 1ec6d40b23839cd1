//! Sends what was spooled to the leaders, and judges what comes back.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use store::engine::{StoreError, UpdateFailure};

use super::{Deliver, SpoolState, backlog};
use crate::lock::lock;

/// How long it waits when there is nothing to do; what ends the wait is a bell.
const WAIT: Duration = Duration::from_secs(1);
/// A refused update is named in the log at most so often.
const SAY_INTERVAL: Duration = Duration::from_secs(1);

/// Drains until the spool stops.
pub(super) fn run(shared: &Arc<SpoolState>, deliver: &Deliver) {
    while !shared.is_stopping() {
        let next = shared.queues().next(Instant::now());
        if let Some((partition, batch, is_again)) = next {
            let own = Arc::clone(shared);
            deliver(
                partition,
                batch,
                is_again,
                Box::new(move |failures| own.came_back(partition, &failures)),
            );
        } else if !backlog::read(shared) {
            shared.wait_for_more();
        }
    }
}

/// Whether the same update may be taken later: it was acknowledged, so that a failing disk of a leader is no reason to give it up.
fn passes(error: &StoreError) -> bool {
    error.is_passing() || matches!(error, StoreError::Io { .. })
}

impl SpoolState {
    fn wait_for_more(&self) {
        let mut queues = self.queues();
        let due = queues.next_due();
        if self.is_stopping() || queues.is_ready(Instant::now()) || queues.plan().is_some() {
            return;
        }
        let wait = due.map_or(WAIT, |due| WAIT.min(due.saturating_duration_since(Instant::now())));
        queues = self.ready.wait_timeout(queues, wait).unwrap_or_else(PoisonError::into_inner).0;
        drop(queues);
    }

    /// A leader has answered.
    fn came_back(&self, partition: u32, failures: &[UpdateFailure]) {
        let must_repeat = failures.iter().any(|failure| passes(&failure.error));
        let done = {
            let mut queues = self.queues();
            match must_repeat {
                true => {
                    queues.again(partition, Instant::now());
                    None
                }
                false => queues.done(partition),
            }
        };
        if let Some(batch) = done {
            let refused = failures.len() as u64;
            self.counts.refused.fetch_add(refused, Ordering::Relaxed);
            self.counts.drained.fetch_add(batch.lines.len() as u64 - refused, Ordering::Relaxed);
            if let Some(first) = failures.first() {
                let name = batch.lines.get(first.line as usize).map_or(&[][..], |line| batch.name(line));
                self.say(name, first, refused);
            }
        } else if let Some(first) = failures.iter().find(|failure| passes(&failure.error)) {
            tracing::debug!(partition, error = %first.error, "spooled updates are sent again");
        }
        self.ready.notify_all();
        if !lock(&self.gathered).waits.is_empty() {
            self.work.notify_one();
        }
    }

    /// Names a refused update in the log, unless another one has just been.
    fn say(&self, name: &[u8], failure: &UpdateFailure, count: u64) {
        let mut said = lock(&self.said);
        if said.is_some_and(|said| said.elapsed() < SAY_INTERVAL) {
            return;
        }
        *said = Some(Instant::now());
        let total = self.counts.refused.load(Ordering::Relaxed);
        tracing::warn!(
            name = %name.escape_ascii(), error = %failure.error, count, total,
            "an update that was acknowledged from the spool is refused, and lost"
        );
    }
}
