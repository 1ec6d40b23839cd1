//! Placeholders of what is created, renamed and removed through this node.

use std::io;
use std::sync::Arc;

use rrd::definition::Definition;
use store::engine::{RrdStatus, StoreError};
use store::name::RrdName;

use super::{ClusterEngine, Hub, done, moves, strange};
use crate::tree::{NodeTree, Rrds};
use crate::wire::{Answer, Request};

impl ClusterEngine {
    /// Has a file stand in the tree for each RRD of the cluster.
    ///
    /// # Errors
    /// The system's, when there can be no more threads.
    pub fn with_tree(self, tree: NodeTree) -> io::Result<ClusterEngine> {
        let tree = Arc::new(tree);
        let hub = Arc::downgrade(&self.hub);
        tree.follow(Box::new(move || hub.upgrade().map(|hub| Box::new(All(hub)) as Box<dyn Rrds>)))?;
        let _ = self.hub.tree.set(tree);
        Ok(self)
    }

    /// Has placeholders follow a change that was made, or may have been, before that is answered.
    pub(super) fn placed<T>(
        &self,
        names: &[&RrdName],
        result: Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Some(tree) = self.hub.tree.get() {
            let all = All(Arc::clone(&self.hub));
            for name in names {
                match &result {
                    Ok(_) => drop(tree.settle(&all, name)),
                    Err(_) => tree.doubt(name),
                }
            }
        }
        result
    }

    /// Has RRDs follow what programs did to their placeholders before this call.
    pub(super) fn catch_up<'n>(&self, names: impl Iterator<Item = &'n [u8]> + Clone) {
        if let Some(tree) = self.hub.tree.get() {
            tree.catch_up(|| Box::new(All(Arc::clone(&self.hub))), names);
        }
    }

    /// The same for a list of names.
    pub(super) fn catch_up_with_moves(&self) {
        self.tree().inspect(|tree| tree.catch_up_with_moves());
    }

    /// Writes the placeholder of an RRD that is about to be made.
    ///
    /// # Errors
    /// When another file stands there.
    pub(super) fn place(&self, name: &RrdName, definition: &Definition) -> Result<(), StoreError> {
        self.hub.tree.get().map_or(Ok(()), |tree| tree.place(name, definition))
    }

    /// The tree, if it has one.
    pub(super) fn tree(&self) -> Option<&NodeTree> {
        self.hub.tree.get().map(|tree| &**tree)
    }
}

/// The RRDs of all partitions, as their leaders have them: a follower may not know yet what has just changed, and would not be asked again.
struct All(Arc<Hub>);

impl Rrds for All {
    fn name_changes(&self) -> u64 {
        self.0.stats().name_changes
    }

    fn names(&self) -> Result<Vec<Vec<u8>>, StoreError> {
        let partitions = (0..self.0.routes.partition_count()).collect();
        let mut all = Vec::new();
        for (_, answer) in self.0.gather(partitions, &Request::List(Vec::new(), true)) {
            match answer? {
                Answer::Names(names) => all.extend(names),
                other => return strange(other),
            }
        }
        all.sort_unstable();
        Ok(all)
    }

    fn status(&self, name: &RrdName) -> Result<RrdStatus, StoreError> {
        match self.0.order(self.0.partition_of(name), Request::StatusForChange(name.clone()))? {
            Answer::Status(status) => Ok(status),
            other => strange(other),
        }
    }

    fn rename(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        moves::rename(&self.0, from, to)
    }

    fn copy(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        moves::copy(&self.0, from, to)
    }

    fn remove(&self, name: &RrdName) -> Result<(), StoreError> {
        self.0.order(self.0.partition_of(name), Request::Delete(name.clone())).and_then(done)
    }

    fn status_here(&self, name: &RrdName) -> Option<RrdStatus> {
        let (engine, _) = self.0.routes.local(self.0.partition_of(name))?;
        engine.status(name).ok()
    }
}
