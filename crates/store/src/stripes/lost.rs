//! Names of RRDs that are lost with a damaged page of a checkpoint ([`crate::shard::lost`]): what is said of them, and what is refused.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use super::Stripes;
use super::shards::Core;
use crate::disk::Disk;
use crate::engine::{Reply, StoreError, UpdateFailure};
use crate::filenames;
use crate::name::RrdName;
use crate::placeholder::Placeholders;
use crate::shard::message::UpdateOutcome;

impl Stripes {
    /// Prepares a name for a new RRD, and checks that it is free: not of a lost one, and if nothing is to be overwritten, not of another program's file.
    pub(super) fn check_free(&self, name: &RrdName, no_overwrite: bool) -> Result<(), StoreError> {
        if let Some(reconciler) = self.reconciler() {
            reconciler.make_way(name)?;
        }
        if !no_overwrite {
            return Ok(());
        }
        if self.core.any_lost && !self.core.is_in_store(name) {
            self.core.check_lost(name)?;
        }
        match self.reconciler().is_some_and(|reconciler| reconciler.has_other_file(name)) {
            true => Err(StoreError::Exists(name.clone())),
            false => Ok(()),
        }
    }
}

impl Core {
    /// Checks that a name that no RRD has is not that of a lost one.
    pub(super) fn check_lost(&self, name: &RrdName) -> Result<(), StoreError> {
        self.shard(name).shared.check_lost(name)
    }

    /// Lists, for each shard that has lost RRDs, the files in the tree that may be theirs.
    pub(super) fn list_lost(&self, disk: &dyn Disk, placeholders: &Placeholders) {
        let Ok(names) = placeholders.names() else { return };
        // The store itself may be there.
        let is_hidden = |name: &[u8]| name.split(|&byte| byte == b'/').any(|part| part.starts_with(b"."));
        for (index, shard) in self.shards.iter().enumerate() {
            if shard.shared.lost.place().is_some() {
                let known: HashSet<_> = match self.query(shard, None, |view| view.names(b"")) {
                    Ok(names) => names.into_iter().collect(),
                    Err(_) => return,
                };
                let is_lost = |name: &RrdName| {
                    self.homes.of(name.as_bytes()) == index && !known.contains(name.as_bytes())
                };
                let names = names
                    .iter()
                    .filter(|name| !is_hidden(name))
                    .filter_map(|name| RrdName::new(name).ok())
                    .filter(is_lost);
                shard.shared.lost.list(disk, &filenames::shard(Path::new(""), index as u32), names);
            }
        }
    }
}

/// The reply of the shards for `reply`: failures of lost RRDs say so.
pub(super) fn reply(core: &Arc<Core>, reply: Reply<Vec<UpdateFailure>>) -> Reply<UpdateOutcome> {
    let core = Arc::clone(core);
    Box::new(move |(_, mut failures)| {
        for failure in &mut failures {
            if let StoreError::NoSuchRrd(name) = &failure.error
                && let Err(lost) = core.check_lost(name)
            {
                failure.error = lost;
            }
        }
        reply(failures);
    })
}
