//! In place of `fence.rs` in a build without the feature `cluster`: pollers of a server that is no node have no fence.

use std::convert::Infallible;
use std::sync::Arc;

use store::engine::{CreateRequest, Engine, StoreError, UpdateBatch, UpdateFailure};
use store::name::RrdName;
use tokio::sync::oneshot;

use crate::cluster::Node;

/// The epochs in which a node leads, by partition.
pub type Epochs = Vec<Option<u32>>;

/// Never exists.
pub struct Fence(Infallible);

/// Nothing is polled elsewhere.
pub fn is_elsewhere(_error: &StoreError) -> bool {
    false
}

/// No lead is lost.
pub fn is_lost(_error: &StoreError) -> bool {
    false
}

impl Fence {
    /// Is never called.
    pub fn of_node(node: Arc<Node>, _engine: Arc<dyn Engine>) -> Fence {
        Fence(node.never())
    }

    /// Nothing.
    pub fn news(&self) -> Option<Epochs> {
        match self.0 {}
    }

    /// Nothing.
    pub fn know(&self, _epochs: Epochs) -> Epochs {
        match self.0 {}
    }

    /// Nothing.
    pub fn stays(&self, _directory: &[u8], _before: &Epochs) -> bool {
        match self.0 {}
    }

    /// Nothing.
    pub fn has(&self, _directory: &[u8]) -> bool {
        match self.0 {}
    }

    /// Nothing.
    pub fn has_name(&self, _name: &[u8]) -> bool {
        match self.0 {}
    }

    /// Nothing.
    pub fn put_beside(&self, _name: Vec<u8>, _directory: Vec<u8>) {
        match self.0 {}
    }

    /// Nothing.
    pub fn create(
        &self,
        _name: RrdName,
        _request: CreateRequest,
    ) -> oneshot::Receiver<Result<(), StoreError>> {
        match self.0 {}
    }

    /// Nothing.
    #[expect(clippy::unused_async, reason = "as in the build with the feature")]
    pub async fn update(&self, _batch: &UpdateBatch) -> Vec<UpdateFailure> {
        match self.0 {}
    }
}
