//! Where the partitions are: what the nodes know of each other, as those need it who ask them.

use std::sync::Arc;
use std::time::Duration;

use store::engine::{Engine, StoreError};

use crate::check::{CheckAnswer, CheckRequest, Placement};
use crate::partition::ReplicaCopy;

/// Where a node is reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeAddress {
    /// Its name in the cluster.
    pub name: String,
    /// `HOST:PORT`.
    pub address: String,
}

/// Who has a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Who leads it; `None` while that is not known.
    pub leader: Option<NodeAddress>,
    /// Whether this node does.
    pub leads_here: bool,
    /// Who else has it, without this node.
    pub followers: Vec<NodeAddress>,
}

/// What a node knows of the partitions. Nothing here waits: all is answered from memory.
pub trait Routes: Send + Sync {
    /// How many partitions the cluster has; it never changes.
    fn partition_count(&self) -> u32;
    /// The store of a partition on this node, and whether it leads; `None` when this node has none, or has not opened it.
    fn local(&self, partition: u32) -> Option<(Arc<dyn Engine>, bool)>;
    /// Whether this node's store of a partition has all that was in the log when it was opened, and goes on.
    fn is_current(&self, _partition: u32) -> bool {
        true
    }
    /// How old an answer of this node's store of a partition may be: all that any leader had acknowledged before that is in the store. `None`: that is
    /// not known.
    fn age(&self, partition: u32) -> Option<Duration> {
        self.local(partition).filter(|(_, leads)| *leads).map(|_| Duration::ZERO)
    }
    /// The store of a partition that this node leads, and in which epoch.
    fn lead(&self, partition: u32) -> Option<(Arc<dyn Engine>, u32)>;
    /// Who has a partition.
    fn route(&self, partition: u32) -> Route;
    /// Whether the partition takes no changes any more in the present log.
    fn is_sealed(&self, _partition: u32) -> bool {
        false
    }
    /// Who has a partition, or should, with this node.
    fn placement(&self, _partition: u32) -> Placement {
        Placement::default()
    }
    /// Asks this node's replica of a partition what a comparison asks. This one waits for the log.
    ///
    /// # Errors
    /// When there is none; the store's.
    fn check(&self, _partition: u32, _request: CheckRequest) -> Result<CheckAnswer, StoreError> {
        Err(StoreError::Unsupported("it compares nothing"))
    }
    /// This node's replica of a partition as it is now, for another node.
    ///
    /// # Errors
    /// When there is none; the disk's. This one waits for the disk.
    fn copy(&self, _partition: u32) -> Result<ReplicaCopy, StoreError> {
        Err(StoreError::Unsupported("it gives no copies"))
    }
}
