//! What concerns two partitions: the RRD is read in one and imported in the other.
//!
//! Within a partition the store does it in one step. Between two it is not atomic: after a failure in the middle the RRD may have both names, but it
//! is never lost; an update that comes between the steps to the old name is.

use std::sync::Arc;

use rrd::content::Rrd;
use store::engine::{StoreError, Trashed};
use store::name::RrdName;

use super::{Hub, done, strange};
use crate::wire::{Answer, Request};

impl Hub {
    /// The partition of both names, if it is one.
    fn common(&self, from: &RrdName, to: &RrdName) -> Option<u32> {
        let [from, to] = [from, to].map(|name| self.partition_of(name));
        (from == to).then_some(from)
    }

    /// The whole RRD, as its leader has it.
    fn whole(self: &Arc<Self>, partition: u32, name: &RrdName) -> Result<Rrd, StoreError> {
        match self.order(partition, Request::Read(name.clone()))? {
            Answer::Whole(rrd) => Ok(*rrd),
            other => strange(other),
        }
    }

    fn put(self: &Arc<Self>, to: &RrdName, rrd: Rrd, no_overwrite: bool) -> Result<(), StoreError> {
        let request = Request::Import(to.clone(), Arc::new(rrd), no_overwrite);
        self.order(self.partition_of(to), request).and_then(done)
    }

    /// Imports an RRD under a name whose RRD, if there is one, goes to the trash: an import would replace it for good.
    fn put_in_place(self: &Arc<Self>, to: &RrdName, rrd: Rrd) -> Result<(), StoreError> {
        match self.order(self.partition_of(to), Request::Delete(to.clone())) {
            Ok(_) | Err(StoreError::NoSuchRrd(_)) => self.put(to, rrd, false),
            Err(error) => Err(error),
        }
    }

    /// Removes an RRD of a partition so that nothing of it is in the trash.
    fn remove(self: &Arc<Self>, partition: u32, name: &RrdName) -> Result<(), StoreError> {
        self.order(partition, Request::Delete(name.clone())).and_then(done)?;
        let trashed = match self.order(partition, Request::Trash)? {
            Answer::Trashed(trashed) => trashed,
            other => return strange(other),
        };
        match trashed.into_iter().filter(|one| one.name == *name).max_by_key(|one| one.removed_ms) {
            Some(removed) => self.order(partition, Request::Erase(removed)).and_then(done),
            None => Ok(()),
        }
    }
}

/// [`store::engine::Engine::rename`].
pub(super) fn rename(hub: &Arc<Hub>, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
    match hub.common(from, to) {
        Some(partition) => hub.order(partition, Request::Rename(from.clone(), to.clone())).and_then(done),
        None => {
            let source = hub.partition_of(from);
            hub.put_in_place(to, hub.whole(source, from)?)?;
            hub.remove(source, from)
        }
    }
}

/// [`store::engine::Engine::copy`].
pub(super) fn copy(hub: &Arc<Hub>, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
    match hub.common(from, to) {
        Some(partition) => hub.order(partition, Request::Copy(from.clone(), to.clone())).and_then(done),
        None => hub.put_in_place(to, hub.whole(hub.partition_of(from), from)?),
    }
}

/// [`store::engine::Engine::trash`].
pub(super) fn trash(hub: &Arc<Hub>) -> Result<Vec<Trashed>, StoreError> {
    let mut all = Vec::new();
    for answer in hub.trash()? {
        match answer {
            Answer::Trashed(trashed) => all.extend(trashed),
            other => return strange(other),
        }
    }
    all.sort_by(|one, other| (&one.name, one.removed_ms).cmp(&(&other.name, other.removed_ms)));
    Ok(all)
}

/// [`store::engine::Engine::restore`]. To a name of another partition it goes by way of a name of its own partition, which says when it was removed.
pub(super) fn restore(hub: &Arc<Hub>, trashed: &Trashed, to: &RrdName) -> Result<(), StoreError> {
    let source = hub.partition_of(&trashed.name);
    if let Some(partition) = hub.common(&trashed.name, to) {
        return hub.order(partition, Request::Restore(trashed.clone(), to.clone())).and_then(done);
    }
    match hub.order(hub.partition_of(to), Request::StatusForChange(to.clone())) {
        Ok(_) => return Err(StoreError::Exists(to.clone())),
        Err(StoreError::NoSuchRrd(_)) => {}
        Err(error) => return Err(error),
    }
    let between = format!(".restored-{}", trashed.removed_ms);
    let between = RrdName::new(&[trashed.name.as_bytes(), between.as_bytes()].concat())?;
    hub.order(source, Request::Restore(trashed.clone(), between.clone())).and_then(done)?;
    hub.put(to, hub.whole(source, &between)?, true)?;
    hub.remove(source, &between)
}
