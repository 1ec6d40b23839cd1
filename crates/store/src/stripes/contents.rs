//! All that a store has, for another one that is made of it.

use super::Stripes;
use crate::engine::{StoreError, StreamPosition};
use crate::name::RrdName;

impl Stripes {
    /// The names of all RRDs, sorted; those of the trash are hidden ones.
    ///
    /// # Errors
    /// When the store is stopping.
    pub fn all_names(&self) -> Result<Vec<RrdName>, StoreError> {
        let mut names = Vec::new();
        for shard in &self.core.shards {
            names.extend(self.core.query(shard, None, |view| view.names(b""))?);
            names.extend(self.core.query(shard, None, |view| view.hidden_names())?);
        }
        names.sort_unstable();
        let named = |text: Vec<u8>| match RrdName::revealed(&text) {
            Some((purpose, name)) => Some(name.hidden(purpose)),
            None => RrdName::new(&text).ok(),
        };
        Ok(names.into_iter().filter_map(named).collect())
    }

    /// How far each stream of changes has been applied, by its name.
    ///
    /// # Errors
    /// When the store is stopping.
    pub fn streams(&self) -> Result<Vec<(Vec<u8>, StreamPosition)>, StoreError> {
        let mut all = Vec::new();
        for shard in &self.core.shards {
            all.extend(self.core.query(shard, None, |view| {
                let streams = view.state.streams.iter();
                streams.map(|(name, position)| (name.to_vec(), position)).collect::<Vec<_>>()
            })?);
        }
        Ok(all)
    }
}
