//! The trash: RRDs that were removed or replaced, kept for a while under hidden names in their shards.

use std::collections::BTreeMap;

use crate::engine::Trashed;
use crate::name::RrdName;

/// Before the time, in the purpose of a hidden name.
const PURPOSE: &str = "trash/";

/// What is in the trash, by name and time of removal, in milliseconds since the epoch; with its shard.
#[derive(Debug, Default)]
pub(super) struct Trash {
    content: BTreeMap<(RrdName, i64), usize>,
    newest: i64,
}

impl Trash {
    /// The hidden name of an RRD that is removed now: `now_ms`, or later when another was removed then.
    pub(super) fn assign(&mut self, name: &RrdName, now_ms: i64) -> Trashed {
        self.newest = now_ms.max(self.newest + 1);
        Trashed { name: name.clone(), removed_ms: self.newest }
    }

    /// Adds what a shard has got under a hidden name; `false` when the name is not that of something in the trash.
    pub(super) fn add(&mut self, hidden: &[u8], shard: usize) -> bool {
        let Some(Trashed { name, removed_ms }) = parse(hidden) else { return false };
        self.newest = self.newest.max(removed_ms);
        self.content.insert((name, removed_ms), shard);
        true
    }

    /// Removes an entry, whose RRD has left the trash.
    pub(super) fn remove(&mut self, trashed: &Trashed) {
        self.content.remove(&(trashed.name.clone(), trashed.removed_ms));
    }

    /// What was removed last of a name.
    pub(super) fn last(&self, name: &RrdName) -> Option<Trashed> {
        let of_name = (name.clone(), i64::MIN)..=(name.clone(), i64::MAX);
        self.content.range(of_name).next_back().map(|(key, _)| trashed_of(key))
    }

    /// The shard of an entry, if it is there.
    pub(super) fn shard_of(&self, trashed: &Trashed) -> Option<usize> {
        self.content.get(&(trashed.name.clone(), trashed.removed_ms)).copied()
    }

    /// How many entries there are.
    pub(super) fn count(&self) -> usize {
        self.content.len()
    }

    /// All of it that was removed up to a time, by name and time.
    pub(super) fn until(&self, until_ms: i64) -> Vec<Trashed> {
        self.content.keys().filter(|(_, removed_ms)| *removed_ms <= until_ms).map(trashed_of).collect()
    }

    /// What was removed first.
    pub(super) fn oldest(&self) -> Option<Trashed> {
        self.content.keys().min_by_key(|(_, removed_ms)| *removed_ms).map(trashed_of)
    }
}

fn trashed_of((name, removed_ms): &(RrdName, i64)) -> Trashed {
    Trashed { name: name.clone(), removed_ms: *removed_ms }
}

/// The name that an RRD has in the trash.
pub(super) fn hidden_name(trashed: &Trashed) -> RrdName {
    trashed.name.hidden(&format!("{PURPOSE}{}", trashed.removed_ms))
}

/// What a hidden name in the trash says.
pub(super) fn parse(hidden: &[u8]) -> Option<Trashed> {
    let (purpose, name) = RrdName::revealed(hidden)?;
    let removed_ms = purpose.strip_prefix(PURPOSE)?.parse().ok()?;
    Some(Trashed { name, removed_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_removed_last_comes_back_first() {
        let name = RrdName::new(b"a/b.rrd").unwrap();
        let mut trash = Trash::default();
        for _ in 0..3 {
            let trashed = trash.assign(&name, 5000);
            assert!(trash.add(hidden_name(&trashed).as_bytes(), 1));
        }
        assert!(!trash.add(b"a/b.rrd", 0) && !trash.add(name.hidden("other").as_bytes(), 0));
        let times = |until| trash.until(until).iter().map(|trashed| trashed.removed_ms).collect::<Vec<_>>();
        assert_eq!((times(i64::MAX), times(5001)), (vec![5000, 5001, 5002], vec![5000, 5001]));
        assert_eq!((trash.oldest().unwrap().removed_ms, trash.count()), (5000, 3));
        let last = trash.last(&name).unwrap();
        assert_eq!((last.removed_ms, trash.shard_of(&last)), (5002, Some(1)));
        trash.remove(&last);
        assert_eq!((trash.last(&name).unwrap().removed_ms, trash.shard_of(&last)), (5001, None));
        assert!(trash.last(&RrdName::new(b"a/b").unwrap()).is_none());
    }
}
