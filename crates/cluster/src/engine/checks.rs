//! Asking the replicas of partitions that are compared.

use std::sync::Arc;

use super::Hub;
use crate::check::{CheckAnswer, CheckRequest, PlacedReplica, Placement, Replicas};
use crate::wire::{Answer, Request};

/// The hub, for who compares replicas.
pub(super) struct Asking(pub(super) Arc<Hub>);

impl Replicas for Asking {
    fn partition_count(&self) -> u32 {
        self.0.routes.partition_count()
    }

    fn rrd_count(&self) -> u64 {
        self.0.stats().rrd_count
    }

    fn placement(&self, partition: u32) -> Placement {
        self.0.routes.placement(partition)
    }

    fn ask(
        &self,
        replica: &PlacedReplica,
        partition: u32,
        request: CheckRequest,
    ) -> Result<CheckAnswer, String> {
        if replica.is_own {
            let answer = self.0.routes.check(partition, request);
            return answer.map_err(|error| format!("node \"{}\": {error}", replica.node.name));
        }
        match self.0.ask_node(&replica.node, partition, Request::Check(request)) {
            Ok(Answer::Check(answer)) => Ok(answer),
            Ok(_) => Err(format!("node \"{}\" answers something else than it was asked", replica.node.name)),
            Err(error) => Err(error.to_string()),
        }
    }
}
