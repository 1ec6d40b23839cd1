//! `ack = "spool"`: updates are answered from this node's spool, and what must come after them waits until they are drained.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use store::engine::{Reply, StoreError, UpdateBatch, UpdateFailure};

use super::updates::{deliver, split, with_times};
use super::{ClusterEngine, Hub};
use crate::spool::{Deliver, Spool, SpoolOptions};

/// How long a node that stops goes on draining: what is left is drained after the next start.
const STOP_PATIENCE: Duration = Duration::from_secs(2);

impl ClusterEngine {
    /// Has updates answered from a spool on this node's disk; what is in it is drained from now on.
    ///
    /// # Errors
    /// A text for the operator: when the spool cannot be opened.
    pub fn with_spool(self, options: SpoolOptions) -> Result<ClusterEngine, String> {
        let hub: Weak<Hub> = Arc::downgrade(&self.hub);
        let deliver: Deliver = Box::new(move |partition, batch, is_again, reply| match hub.upgrade() {
            Some(hub) => deliver(&hub, partition, batch, is_again, reply),
            None => reply(refused(batch.lines.len(), &StoreError::Stopping)),
        });
        let spool = Spool::open(options, self.hub.routes.partition_count(), deliver)?;
        let _ = self.hub.spool.set(Arc::new(spool));
        Ok(self)
    }

    /// The spool, if it has one.
    pub fn spool(&self) -> Option<Arc<Spool>> {
        self.hub.spool.get().cloned()
    }
}

/// The same error for all lines of a batch.
fn refused(line_count: usize, error: &StoreError) -> Vec<UpdateFailure> {
    let failure = |line| UpdateFailure { line, accepted: 0, error: error.clone() };
    (0..line_count as u32).map(failure).collect()
}

/// Applies a batch, as [`store::engine::Engine::update`]: once it is in the spool, it will be.
pub(super) fn update(hub: &Hub, spool: &Spool, batch: UpdateBatch, reply: Reply<Vec<UpdateFailure>>) {
    let line_count = batch.lines.len();
    if line_count == 0 {
        return reply(Vec::new());
    }
    let parts = split(with_times(batch, hub), hub.routes.partition_count());
    let parts = parts.into_iter().map(|(partition, batch, _)| (partition, batch)).collect();
    spool.put(
        parts,
        Box::new(move |kept| match kept {
            Ok(()) => reply(Vec::new()),
            Err(error) => reply(refused(line_count, &error)),
        }),
    );
}

impl Hub {
    /// Has something done once what was spooled before for a partition is drained; in time or not.
    pub(super) fn after_spooled(
        self: &Arc<Self>,
        partition: u32,
        until: Instant,
        then: impl FnOnce(Result<(), StoreError>) + Send + 'static,
    ) {
        let Some(spool) = self.spool.get().filter(|spool| !spool.is_settled(partition)) else {
            return then(Ok(()));
        };
        let hub = Arc::clone(self);
        let wait = spool.settle(
            vec![partition],
            Box::new(move |is_settled| {
                let result = if is_settled { Ok(()) } else { Err(unsettled(partition)) };
                // Not on the thread that writes the spool.
                hub.retries.now(move || then(result));
            }),
        );
        if let Some(number) = wait {
            let spool = Arc::clone(spool);
            self.retries.at(until, move || spool.give_up(number));
        }
    }

    /// Drains what can be drained before the node gives up its lead.
    pub(super) fn finish_spool(&self) {
        if let Some(spool) = self.spool.get() {
            spool.finish(STOP_PATIENCE);
        }
    }
}

/// Why a change is not made.
fn unsettled(partition: u32) -> StoreError {
    StoreError::Unavailable(format!(
        "partition {partition}: updates that came before are still in the spool of this node; try again later"
    ))
}
