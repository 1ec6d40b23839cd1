//! Names of the tree that are still to be followed: a directory that is copied makes more of them than requests may wait for.
//!
//! They are followed in parts, and requests that they do not concern are answered meanwhile. One that asks for a name in the queue, or
//! for the RRD that a placeholder in the queue was written for, has that followed first: a copy is one of the moment at which it was made.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::name::RrdName;
use crate::placeholder::{Found, RrdNumber};

/// The queue.
#[derive(Default)]
pub(super) struct Queue {
    /// Names at which there is a file, with the RRD that it was written for, if it says so.
    present: BTreeMap<RrdName, Option<RrdNumber>>,
    /// Names at which there is none. They come last, and all at once: so those that were moved are found where they are, and those that
    /// were removed are counted together.
    absent: BTreeSet<RrdName>,
    /// Names at which there is a file, by the RRD that it was written for.
    by_rrd: HashMap<RrdNumber, BTreeSet<RrdName>>,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many names there are.
    pub(super) fn len(&self) -> usize {
        self.present.len() + self.absent.len()
    }

    pub(super) fn contains(&self, name: &RrdName) -> bool {
        self.present.contains_key(name) || self.absent.contains(name)
    }

    /// Adds a name, with what was found there.
    pub(super) fn add(&mut self, name: RrdName, found: &Found) {
        self.remove(&name);
        match found {
            Found::Nothing => drop(self.absent.insert(name)),
            Found::Ours { rrd: Some(rrd), .. } => {
                self.by_rrd.entry(*rrd).or_default().insert(name.clone());
                self.present.insert(name, Some(*rrd));
            }
            _ => drop(self.present.insert(name, None)),
        }
    }

    /// Removes a name, which has been followed.
    pub(super) fn remove(&mut self, name: &RrdName) {
        self.absent.remove(name);
        if let Some(Some(rrd)) = self.present.remove(name)
            && let Some(names) = self.by_rrd.get_mut(&rrd)
        {
            names.remove(name);
            if names.is_empty() {
                self.by_rrd.remove(&rrd);
            }
        }
    }

    /// The RRD that the placeholder at a name was written for.
    pub(super) fn rrd_at(&self, name: &RrdName) -> Option<RrdNumber> {
        self.present.get(name).copied().flatten()
    }

    /// All names.
    pub(super) fn all(&self) -> BTreeSet<RrdName> {
        self.present.keys().chain(&self.absent).cloned().collect()
    }

    /// Names at which there is a placeholder that was written for an RRD.
    pub(super) fn written_for(&self, rrd: RrdNumber) -> impl Iterator<Item = &RrdName> {
        self.by_rrd.get(&rrd).into_iter().flatten()
    }

    /// What is to be followed next: so many names with a file, or when there are none, all without.
    pub(super) fn next(&self, count: usize) -> BTreeSet<RrdName> {
        match self.present.is_empty() {
            false => self.present.keys().take(count).cloned().collect(),
            true => self.absent.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placeholder::FileId;

    #[test]
    fn names_with_files_come_first_and_are_found_by_their_rrds() {
        let name = |text: &str| RrdName::new(text.as_bytes()).unwrap();
        let of = |id| Found::Ours {
            rrd: Some(RrdNumber { shard: 0, id }),
            name: name("x"),
            file: FileId::of(1, u64::from(id)),
        };
        let mut queue = Queue::default();
        for text in ["a", "b", "c"] {
            queue.add(name(text), &of(7));
        }
        queue.add(name("d"), &Found::Nothing);
        queue.add(name("e"), &Found::Other);
        // It was there, and is gone now.
        queue.add(name("b"), &Found::Nothing);
        let written_for = |queue: &Queue, id| -> Vec<String> {
            queue.written_for(RrdNumber { shard: 0, id }).map(ToString::to_string).collect()
        };
        assert_eq!(
            (queue.len(), written_for(&queue, 7), written_for(&queue, 8)),
            (5, vec!["a".into(), "c".into()], vec![])
        );
        assert_eq!(queue.next(2), [name("a"), name("c")].into());
        for text in ["a", "c", "e"] {
            assert!(queue.contains(&name(text)));
            queue.remove(&name(text));
        }
        assert_eq!((written_for(&queue, 7), queue.next(1)), (vec![], [name("b"), name("d")].into()));
        assert!(!queue.is_empty());
    }
}
