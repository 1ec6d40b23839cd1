//! The catalogue of a shard: the name, the definition and the location in memory of each RRD.
//!
//! One hash table lookup resolves a name to a dense id, which indexes everything else. Ids are assigned in
//! order of creation and never reused, so rows on disk are keyed by them. Cost of one RRD: 48 bytes for its
//! entry, its name plus one byte (two for names longer than 127 bytes), and about 6 bytes of hash table.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use hashbrown::HashTable;
use rrd::definition::Definition;

use rrd_file::name::RrdName;

use crate::heads::HeadIndex;
use crate::open_rows::ChainIndex;

/// Dense number of an RRD within its shard.
pub type RrdId = u32;

/// Index into [`Catalogue::definition`]'s table.
pub type DefinitionIndex = u32;

/// Where an RRD's open rows are: the generation of their arena, and the chain within it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainRef {
    /// Generation of the arena; 0 = none.
    pub generation: u32,
    /// The chain within the arena.
    pub chain: ChainIndex,
}

/// Everything about one RRD except its name and head.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    name: NameRef,
    /// Its definition.
    pub definition: DefinitionIndex,
    /// Its group.
    pub group: u32,
    /// Its head in the group.
    pub head: HeadIndex,
    /// Its newest chain and the previous one, whose arena may be frozen.
    pub chains: [ChainRef; 2],
    alive: bool,
}

#[derive(Clone, Copy, Debug)]
struct NameRef {
    block: u32,
    offset: u32,
}

/// Bytes of a definition in memory per byte of its encoding, of which there are two copies.
const DEFINITION_FACTOR: usize = 6;

/// Bytes of a block of names.
const NAME_BLOCK_BYTES: usize = 64 * 1024;

/// Names and entries by id.
#[derive(Debug)]
pub struct Catalogue {
    by_name: HashTable<RrdId>,
    entries: Vec<Entry>,
    names: Vec<Vec<u8>>,
    definitions: Vec<Option<Interned>>,
    definition_index: HashMap<Vec<u8>, DefinitionIndex>,
    free_definitions: Vec<DefinitionIndex>,
    definition_bytes: usize,
    count: u64,
    hidden: BTreeSet<RrdId>,
    name_changes: u64,
    hasher: foldhash::fast::RandomState,
}

#[derive(Debug)]
struct Interned {
    definition: Arc<Definition>,
    key: Vec<u8>,
    users: u32,
}

impl Default for Catalogue {
    fn default() -> Self {
        Catalogue {
            by_name: HashTable::new(),
            entries: Vec::new(),
            names: Vec::new(),
            definitions: Vec::new(),
            definition_index: HashMap::new(),
            free_definitions: Vec::new(),
            definition_bytes: 0,
            count: 0,
            hidden: BTreeSet::new(),
            name_changes: 0,
            // Random per process: clients choose the names, so they must not be able to predict collisions.
            // The order of the table affects nothing that the log decides.
            hasher: foldhash::fast::RandomState::default(),
        }
    }
}

impl Catalogue {
    /// The id of a name.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<RrdId> {
        self.by_name.find(hash(&self.hasher, name), |&id| self.name(id) == name).copied()
    }

    /// The same for a name that is probably that of `expected`: clients update their RRDs in one order, mostly the one in
    /// which they were made. Then a comparison takes the place of the hash table.
    #[inline]
    pub fn find_expected(&self, name: &[u8], expected: RrdId) -> Option<RrdId> {
        match self.get(expected) {
            Some(entry) if name_at(&self.names, entry.name) == name => Some(expected),
            _ => self.find(name),
        }
    }

    /// The id the next RRD gets.
    pub fn next_id(&self) -> RrdId {
        self.entries.len() as RrdId
    }

    /// The number of existing RRDs, without those of hidden names.
    pub fn count(&self) -> u64 {
        self.count - self.hidden.len() as u64
    }

    /// The RRDs of hidden names.
    pub fn hidden(&self) -> impl Iterator<Item = RrdId> {
        self.hidden.iter().copied()
    }

    /// How often an RRD was added, removed or renamed.
    pub fn name_changes(&self) -> u64 {
        self.name_changes
    }

    /// The entry of an existing RRD.
    #[inline]
    pub fn get(&self, id: RrdId) -> Option<&Entry> {
        self.entries.get(id as usize).filter(|entry| entry.alive)
    }

    /// The entry of an existing RRD, mutable.
    #[inline]
    pub fn get_mut(&mut self, id: RrdId) -> Option<&mut Entry> {
        self.entries.get_mut(id as usize).filter(|entry| entry.alive)
    }

    /// The name of an RRD, even a removed one.
    #[inline]
    pub fn name(&self, id: RrdId) -> &[u8] {
        name_at(&self.names, self.entries[id as usize].name)
    }

    /// Reserves room for `count` more RRDs.
    pub fn reserve(&mut self, count: usize) {
        self.entries.reserve(count);
        let (names, entries, hasher) = (&self.names, &self.entries, &self.hasher);
        self.by_name.reserve(count, |&id| hash(hasher, name_at(names, entries[id as usize].name)));
    }

    /// Adds an RRD under the next id or, during recovery, under an id that was skipped. The name must be
    /// free, or become so later in the log that is replayed.
    pub fn insert(
        &mut self,
        id: RrdId,
        name: &[u8],
        definition: DefinitionIndex,
        group: u32,
        head: HeadIndex,
    ) {
        self.skip_ids(id.saturating_add(1));
        debug_assert!(!self.entries[id as usize].alive, "an id is assigned once");
        let name = self.keep_name(name);
        self.entries[id as usize] =
            Entry { name, definition, group, head, chains: Default::default(), alive: true };
        self.index(id);
        self.count += 1;
    }

    /// Leaves ids up to `next_id` (exclusive) unused.
    pub fn skip_ids(&mut self, next_id: RrdId) {
        let hole = Entry {
            name: NameRef { block: 0, offset: 0 },
            definition: 0,
            group: 0,
            head: 0,
            chains: Default::default(),
            alive: false,
        };
        while self.entries.len() < next_id as usize {
            self.entries.push(hole);
        }
    }

    fn index(&mut self, id: RrdId) {
        self.name_changes += 1;
        let (names, entries, hasher) = (&self.names, &self.entries, &self.hasher);
        let hash_of = |&id: &RrdId| hash(hasher, name_at(names, entries[id as usize].name));
        self.by_name.insert_unique(hash_of(&id), id, hash_of);
        if RrdName::is_hidden(self.name(id)) {
            self.hidden.insert(id);
        }
    }

    fn unindex(&mut self, id: RrdId) {
        self.name_changes += 1;
        let hash = hash(&self.hasher, self.name(id));
        if let Ok(found) = self.by_name.find_entry(hash, |&other| other == id) {
            found.remove();
        }
        self.hidden.remove(&id);
    }

    fn keep_name(&mut self, name: &[u8]) -> NameRef {
        let needed = name.len() + 2;
        if self.names.last().is_none_or(|block| block.len() + needed > NAME_BLOCK_BYTES) {
            self.names.push(Vec::with_capacity(NAME_BLOCK_BYTES));
        }
        let block = self.names.len() - 1;
        let bytes = &mut self.names[block];
        let offset = bytes.len();
        if name.len() < 0x80 {
            bytes.push(name.len() as u8);
        } else {
            bytes.extend([0x80 | (name.len() >> 8) as u8, name.len() as u8]);
        }
        bytes.extend_from_slice(name);
        NameRef { block: block as u32, offset: offset as u32 }
    }

    /// Removes an existing RRD and returns its entry.
    pub fn remove(&mut self, id: RrdId) -> Option<Entry> {
        let entry = *self.get(id)?;
        self.unindex(id);
        self.entries[id as usize].alive = false;
        self.count -= 1;
        self.release_definition(entry.definition);
        Some(entry)
    }

    /// Renames an existing RRD; the new name must be free, or become so later in the log that is replayed.
    pub fn rename(&mut self, id: RrdId, name: &[u8]) {
        self.unindex(id);
        self.entries[id as usize].name = self.keep_name(name);
        self.index(id);
    }

    /// Interns a definition and counts one more user. `key` is its encoding: equal definitions have equal
    /// keys.
    pub fn intern(&mut self, definition: Definition, key: Vec<u8>) -> DefinitionIndex {
        if let Some(&index) = self.definition_index.get(&key) {
            self.retain_definition(index);
            return index;
        }
        self.definition_bytes += DEFINITION_FACTOR * key.len();
        let interned = Some(Interned { definition: Arc::new(definition), key: key.clone(), users: 1 });
        let index = match self.free_definitions.pop() {
            Some(index) => {
                self.definitions[index as usize] = interned;
                index
            }
            None => {
                self.definitions.push(interned);
                (self.definitions.len() - 1) as DefinitionIndex
            }
        };
        self.definition_index.insert(key, index);
        index
    }

    /// Counts one more user of an interned definition.
    pub fn retain_definition(&mut self, index: DefinitionIndex) {
        if let Some(interned) = &mut self.definitions[index as usize] {
            interned.users += 1;
        }
    }

    /// Counts one user less; the last one frees the definition.
    pub fn release_definition(&mut self, index: DefinitionIndex) {
        let Some(interned) = &mut self.definitions[index as usize] else { return };
        interned.users -= 1;
        if interned.users == 0 {
            let key = std::mem::take(&mut interned.key);
            self.definition_bytes -= DEFINITION_FACTOR * key.len();
            self.definition_index.remove(&key);
            self.definitions[index as usize] = None;
            self.free_definitions.push(index);
        }
    }

    /// An interned definition.
    #[inline]
    pub fn definition(&self, index: DefinitionIndex) -> &Arc<Definition> {
        match &self.definitions[index as usize] {
            Some(interned) => &interned.definition,
            None => unreachable!("the definition of an existing RRD is interned"),
        }
    }

    /// The encoding of an interned definition.
    pub fn definition_key(&self, index: DefinitionIndex) -> &[u8] {
        self.definitions[index as usize].as_ref().map_or(&[], |interned| &interned.key)
    }

    /// The ids of all existing RRDs, in order.
    pub fn ids(&self) -> impl Iterator<Item = RrdId> {
        self.entries.iter().enumerate().filter(|(_, entry)| entry.alive).map(|(id, _)| id as RrdId)
    }

    /// Bytes of entries, names, definitions and the hash table.
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.names.len() * NAME_BLOCK_BYTES
            + self.by_name.capacity() * 5
            + self.definition_bytes
    }
}

#[inline]
fn hash(hasher: &foldhash::fast::RandomState, name: &[u8]) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(name);
    hasher.finish()
}

fn name_at(names: &[Vec<u8>], NameRef { block, offset }: NameRef) -> &[u8] {
    let bytes = &names[block as usize][offset as usize..];
    match bytes[0] {
        length if length < 0x80 => &bytes[1..1 + usize::from(length)],
        high => &bytes[2..2 + ((usize::from(high & 0x7f) << 8) | usize::from(bytes[1]))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rrd::definition::Ds;

    fn definition(step: u64) -> Definition {
        Definition { version: 3, units_per_second: 1, step, ds: Vec::<Ds>::new(), rra: Vec::new() }
    }

    #[test]
    fn find_rename_and_remove() {
        let mut catalogue = Catalogue::default();
        let one = catalogue.intern(definition(1), vec![1]);
        for id in 0..5000u32 {
            let name = format!("host-{id}/{}", "x".repeat(id as usize % 300));
            if id > 0 {
                catalogue.intern(definition(1), vec![1]);
            }
            catalogue.insert(id, name.as_bytes(), one, 0, id);
        }
        assert_eq!(catalogue.find(b"host-0/"), Some(0));
        assert_eq!(catalogue.find(format!("host-299/{}", "x".repeat(299)).as_bytes()), Some(299));
        assert_eq!(catalogue.find(b"host-5000/"), None);
        for expected in [0, 298, 299, 300, 4999, 5000, RrdId::MAX] {
            assert_eq!(catalogue.find_expected(catalogue.name(299), expected), Some(299));
            assert_eq!(catalogue.find_expected(b"host-5000/", expected), None);
        }
        catalogue.rename(299, b"new");
        assert_eq!(catalogue.find(b"new"), Some(299));
        assert_eq!(catalogue.name(299), b"new");
        assert_eq!(catalogue.remove(299).map(|entry| entry.head), Some(299));
        assert_eq!(catalogue.find_expected(b"new", 299), None, "what was removed is not found by its id");
        assert_eq!(
            (catalogue.find(b"new"), catalogue.get(299).is_none(), catalogue.count()),
            (None, true, 4999)
        );
        catalogue.insert(5000, b"new", one, 0, 299);
        assert_eq!(catalogue.find(b"new"), Some(5000));
        assert_eq!(catalogue.ids().count(), 5000);
    }

    #[test]
    fn equal_definitions_are_shared_and_freed_with_the_last_user() {
        let mut catalogue = Catalogue::default();
        let one = catalogue.intern(definition(1), vec![1]);
        assert_eq!(catalogue.intern(definition(1), vec![1]), one);
        let two = catalogue.intern(definition(2), vec![2]);
        assert_ne!(one, two);
        catalogue.release_definition(one);
        assert_eq!(catalogue.definition(one).step, 1);
        catalogue.release_definition(one);
        assert_eq!(catalogue.intern(definition(3), vec![3]), one);
        assert_eq!(catalogue.definition_key(two), [2]);
    }
}
