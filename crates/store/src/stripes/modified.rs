//! The times of placeholders: a file that stands for an RRD says when the RRD was last updated, as the `.rrd` file would.
//!
//! Nothing of this is on the path of an update: the heads of all RRDs are looked through from time to time, and those placeholders are set whose
//! RRD was updated since. Measured on ext4, warm: 1.7 us per placeholder, 0.03 us per RRD without an update.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rrd::time::Timestamp;

use crate::catalogue::RrdId;
use crate::engine::StoreError;
use crate::lock::lock;
use crate::name::RrdName;
use crate::placeholder::Placeholders;
use crate::shard::view::View;
use crate::stripes::adopt::Originals;
use crate::stripes::shards::Core;

/// RRDs that are looked through at once: some tens of microseconds.
const RRDS_AT_ONCE: usize = 1024;

/// What was set of late.
#[derive(Debug, Default)]
pub(super) struct ModifiedTimes {
    /// By shard and id, the whole seconds that were set; 0 = nothing.
    set: Mutex<Vec<Vec<u32>>>,
    is_wanted: AtomicBool,
}

/// The last update of an RRD in seconds and microseconds.
fn last_update(view: &View<'_>, id: RrdId) -> Option<Timestamp> {
    let entry = view.state.catalogue.get(id)?;
    let definition = view.state.catalogue.definition(entry.definition);
    Some(view.state.last_update(entry).in_seconds(definition.units_per_second))
}

/// Not where the file still stands that is being taken in, or that stays: with another time it would look like another file, put there to replace the RRD.
fn set(placeholders: &Placeholders, originals: &Originals, name: &RrdName, time: Timestamp) {
    if originals.has(name) {
        return;
    }
    if let Err(error) = placeholders.tree().set_modified(name, (time.whole, time.micros * 1000)) {
        // One that is missing, or that another user owns.
        tracing::trace!(%error, rrd = %name, "cannot set the time of a placeholder");
    }
}

impl ModifiedTimes {
    /// Asks for a sweep soon.
    pub(super) fn ask(&self) {
        self.is_wanted.store(true, Ordering::Relaxed);
    }

    /// Whether one was asked for since this was last called.
    pub(super) fn take_wish(&self) -> bool {
        self.is_wanted.swap(false, Ordering::Relaxed)
    }

    /// Sets the time of one placeholder.
    ///
    /// # Errors
    /// When the store stops.
    pub(super) fn set_one(
        &self,
        core: &Core,
        placeholders: &Placeholders,
        originals: &Originals,
        name: &RrdName,
    ) -> Result<(), StoreError> {
        let time =
            core.ask(name, |view, name| Ok(view.find(name).ok().and_then(|(id, _)| last_update(view, id))))?;
        if let Some(time) = time {
            set(placeholders, originals, name, time);
        }
        Ok(())
    }

    /// Sets the times of all placeholders whose RRDs were updated since they were last set.
    ///
    /// # Errors
    /// When the store stops.
    pub(super) fn sweep(
        &self,
        core: &Core,
        placeholders: &Placeholders,
        originals: &Originals,
        is_stopping: &AtomicBool,
    ) -> Result<(), StoreError> {
        let mut all = lock(&self.set);
        all.resize(core.shards.len(), Vec::new());
        for (shard, set_before) in core.shards.iter().zip(&mut *all) {
            let mut first = 0;
            loop {
                if is_stopping.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let known = set_before.get(first..).unwrap_or_default();
                let before: Vec<u32> = known.iter().take(RRDS_AT_ONCE).copied().collect();
                let look = move |view: &View<'_>| {
                    let catalogue = &view.state.catalogue;
                    let end = (first + RRDS_AT_ONCE).min(catalogue.next_id() as usize);
                    let changed = |id: usize| {
                        let time = last_update(view, id as RrdId)?;
                        let is_changed = before.get(id - first).copied().unwrap_or(0) != time.whole as u32;
                        let name = || RrdName::new(catalogue.name(id as RrdId)).ok();
                        if is_changed { Some((id, name()?, time)) } else { None }
                    };
                    ((first..end).filter_map(changed).collect::<Vec<_>>(), end)
                };
                let (changed, end) = core.query(shard, None, look)?;
                set_before.resize(set_before.len().max(end), 0);
                for (id, name, time) in changed {
                    set(placeholders, originals, &name, time);
                    set_before[id] = time.whole as u32;
                }
                if end < first + RRDS_AT_ONCE {
                    break;
                }
                first = end;
            }
        }
        Ok(())
    }
}
