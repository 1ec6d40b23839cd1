//! Read access to a shard's memory between two updates: queries are answered from it.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::catalogue::{Entry, RrdId};
use crate::engine::{RrdStatus, Snapshot, StoreError};
use crate::group::Group;
use crate::log::Position;
use crate::name::RrdName;
use crate::segments::SegmentSet;
use crate::shard::current_rows;
use crate::shard::state::{GroupState, State};
use rrd_file::tree::name_bytes;

/// The state and the segments that belong to it.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The state in memory.
    pub state: &'a State,
    /// The segments with the rows that memory no longer holds.
    pub segments: &'a Arc<SegmentSet>,
    /// Where the log ends that the state follows from; what was not committed yet may be part of it.
    pub log_end: Position,
}

impl View<'_> {
    /// The id and entry of a name.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRrd`].
    pub fn find(&self, name: &RrdName) -> Result<(RrdId, Entry), StoreError> {
        let catalogue = &self.state.catalogue;
        let found = catalogue.find(name.as_bytes()).and_then(|id| Some((id, *catalogue.get(id)?)));
        found.ok_or_else(|| StoreError::NoSuchRrd(name.clone()))
    }

    /// Definition and head of an RRD.
    ///
    /// # Errors
    /// When there is no such RRD.
    pub fn snapshot(&self, name: &RrdName) -> Result<Snapshot, StoreError> {
        let (id, entry) = self.find(name)?;
        let definition = Arc::clone(self.state.catalogue.definition(entry.definition));
        let live = self.state.live(id, &entry);
        let current_rows = current_rows(&definition, &live, self.state.last_update(&entry).whole);
        Ok(Snapshot { definition, live, current_rows, identity: u64::from(id) })
    }

    /// The version of an RRD.
    ///
    /// # Errors
    /// When there is no such RRD.
    pub fn version(&self, name: &RrdName) -> Result<u64, StoreError> {
        self.snapshot(name).map(|snapshot| snapshot.version())
    }

    /// Whether any name starts with `prefix`.
    pub fn has_names(&self, prefix: &[u8]) -> bool {
        self.with_prefix(prefix).next().is_some()
    }

    /// Definition and last update of an RRD.
    ///
    /// # Errors
    /// When there is no such RRD.
    pub fn status(&self, name: &RrdName) -> Result<RrdStatus, StoreError> {
        let (_, entry) = self.find(name)?;
        let definition = Arc::clone(self.state.catalogue.definition(entry.definition));
        let GroupState { group, heads } = &self.state.groups()[entry.group as usize];
        Ok(RrdStatus::of(definition, &group.shape, heads.get(entry.head)))
    }

    /// Names that start with `prefix`.
    pub fn names(&self, prefix: &[u8]) -> Vec<Vec<u8>> {
        self.with_prefix(prefix).map(<[u8]>::to_vec).collect()
    }

    /// Memory for the names that start with `prefix`.
    pub fn names_bytes(&self, prefix: &[u8]) -> u64 {
        self.with_prefix(prefix).map(name_bytes).sum()
    }

    fn with_prefix(&self, prefix: &[u8]) -> impl Iterator<Item = &[u8]> {
        let catalogue = &self.state.catalogue;
        let visible = catalogue.ids().map(|id| catalogue.name(id)).filter(|name| !RrdName::is_hidden(name));
        visible.filter(move |name| name.starts_with(prefix))
    }

    /// Names for which a condition holds.
    pub fn names_where(&self, condition: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
        self.with_prefix(b"").filter(|name| condition(name)).map(<[u8]>::to_vec).collect()
    }

    /// The hidden names.
    pub fn hidden_names(&self) -> Vec<Vec<u8>> {
        let catalogue = &self.state.catalogue;
        catalogue.hidden().map(|id| catalogue.name(id).to_vec()).collect()
    }

    /// Names of the RRDs with these ids.
    pub fn names_of(&self, ids: RangeInclusive<RrdId>) -> Vec<String> {
        let catalogue = &self.state.catalogue;
        let end = ids.end().saturating_add(1).min(catalogue.next_id());
        let alive = (*ids.start()..end).filter(|&id| catalogue.get(id).is_some());
        alive.map(|id| String::from_utf8_lossy(catalogue.name(id)).into_owned()).collect()
    }

    /// For `count` ids from `first` on, or as many as exist: last update in units, and group; `None` for a
    /// removed RRD.
    pub fn last_updates(&self, first: RrdId, count: usize) -> Vec<Option<(i64, u32)>> {
        let last = first.saturating_add(count as u32).min(self.state.catalogue.next_id());
        let one = |id| {
            let entry = self.state.catalogue.get(id)?;
            Some((self.state.last_update(entry).whole, entry.group))
        };
        (first..last).map(one).collect()
    }

    /// The groups, by index.
    pub fn groups(&self) -> Vec<Arc<Group>> {
        self.state.groups().iter().map(|group| Arc::clone(&group.group)).collect()
    }
}
