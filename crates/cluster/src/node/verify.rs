//! Comparisons of all rows of all replicas, begun at this node.

use std::sync::Arc;

use store::engine::StoreError;

use super::{Node, random_number};
use crate::check::{
    CheckAnswer, CheckRequest, PlacedReplica, PlacedState, Placement, Replicas, Verification, VerifyOptions,
    VerifyReport,
};
use crate::lock::lock;
use crate::members::Known;
use crate::routes::NodeAddress;

impl Node {
    /// Who asks the other nodes from now on.
    pub fn set_replicas(&self, replicas: Arc<dyn Replicas>) {
        let _ = self.inner.peers.set(replicas);
    }

    /// Begins to compare all rows of the replicas, in a thread of its own.
    ///
    /// # Errors
    /// When this node is comparing already; a text for the operator.
    pub fn verify(&self, options: VerifyOptions) -> Result<(), String> {
        let replicas = self.inner.peers.get().ok_or("this node is not connected to others yet")?;
        let mut verification = lock(&self.inner.verification);
        if verification.as_ref().is_some_and(|running| running.report(usize::MAX).is_running) {
            return Err("this node compares replicas already; try again later".into());
        }
        let number = random_number().map_err(|error| format!("no random number: {error}"))?;
        *verification = Some(Verification::begin(Arc::clone(replicas), options, number)?);
        Ok(())
    }

    /// How far the last comparison is, with what it found from number `from` on; `None` if there was none.
    pub fn verify_report(&self, from: usize) -> Option<VerifyReport> {
        lock(&self.inner.verification).as_ref().map(|verification| verification.report(from))
    }

    /// Ends a comparison.
    pub(super) fn stop_verifying(&self) {
        let verification = lock(&self.inner.verification).take();
        drop(verification);
    }

    /// Asks the replica of a partition on this node.
    pub(super) fn check_own(&self, partition: u32, request: CheckRequest) -> Result<CheckAnswer, StoreError> {
        self.replica(partition).ok_or(StoreError::Stopping)?.check(request)
    }

    /// All that have a replica of a partition, or should have one by the plan.
    pub(super) fn placement_of(&self, partition: u32) -> Placement {
        let members = self.members();
        let planned: Vec<&str> = members.plan().nodes(partition).collect();
        let placed = |known: &Known| {
            let beat = &known.beat;
            let replica = known.replica(partition);
            let state = match replica {
                _ if !known.is_alive() => PlacedState::Gone,
                Some(replica) if replica.is_ready => PlacedState::Ready,
                _ => PlacedState::CatchingUp,
            };
            let is_planned = planned.contains(&&*beat.name);
            let has = is_planned || replica.is_some() && state != PlacedState::Gone;
            let node = NodeAddress { name: beat.name.clone(), address: beat.address.clone() };
            has.then(|| PlacedReplica { is_own: node.name == self.name(), node, state })
        };
        Placement {
            leader: members.leader(partition).map(|known| known.beat.name.clone()),
            replicas: members.nodes().filter_map(placed).collect(),
        }
    }
}
