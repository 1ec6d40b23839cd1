//! What a poller of this node may write: only what its own replicas lead, and only in the epoch in which it began to ask.
//!
//! A poller that stood still while another node took over must not write what it asked before: the other one asks the same devices. So what
//! it gives goes to the replica of this node, under the epoch that the poller knew when it asked, and never to the node that leads now. A replica that does
//! not know yet that it leads no more takes it, but what it writes to the replicated log comes after the claim that ended its epoch, and counts for no one.

use std::sync::{Arc, Mutex};

use store::engine::Engine;

use crate::key;
use crate::lock::lock;
use crate::routes::Routes;

/// The epochs in which this node leads, by partition.
pub type Epochs = Vec<Option<u32>>;

/// The leads of this node, as one poller knows them.
pub struct Leads {
    routes: Arc<dyn Routes>,
    known: Mutex<Epochs>,
}

/// What becomes of a poller's value.
pub enum Way {
    /// This store takes it. It is to be let go soon: it cannot be closed before.
    Here(Arc<dyn Engine>),
    /// Another node polls it.
    Elsewhere,
    /// The lead under which it was asked is over.
    Lost,
}

impl Leads {
    /// The leads of a node, of which none is known yet.
    pub fn new(routes: Arc<dyn Routes>) -> Leads {
        let known = vec![None; routes.partition_count() as usize];
        Leads { routes, known: Mutex::new(known) }
    }

    /// What this node leads now, if that is something else than is known.
    pub fn news(&self) -> Option<Epochs> {
        let now: Epochs = (0..self.routes.partition_count())
            .map(|partition| self.routes.lead(partition).map(|(_, epoch)| epoch))
            .collect();
        (now != *lock(&self.known)).then_some(now)
    }

    /// These are known from now on. All that was asked before must have been written, or thrown away.
    /// What was known before is returned.
    pub fn know(&self, epochs: Epochs) -> Epochs {
        std::mem::replace(&mut lock(&self.known), epochs)
    }

    /// Whether this node leads the partition of a directory in the epoch in which it did before.
    pub fn stays(&self, directory: &[u8], before: &Epochs) -> bool {
        let partition = self.partition(directory);
        lock(&self.known).get(partition) == before.get(partition)
    }

    /// The partition of a directory.
    pub fn partition(&self, directory: &[u8]) -> usize {
        key::of_directory(directory, self.routes.partition_count()) as usize
    }

    /// Whether this node polls what has its RRDs in a directory.
    pub fn has(&self, directory: &[u8]) -> bool {
        lock(&self.known).get(self.partition(directory)).is_some_and(Option::is_some)
    }

    /// What becomes of a value for the RRDs of a directory.
    pub fn way(&self, directory: &[u8]) -> Way {
        let partition = self.partition(directory);
        let Some(Some(epoch)) = lock(&self.known).get(partition).copied() else { return Way::Elsewhere };
        match self.routes.lead(partition as u32) {
            Some((engine, now)) if now == epoch => Way::Here(engine),
            _ => Way::Lost,
        }
    }
}

#[cfg(test)]
mod tests;
