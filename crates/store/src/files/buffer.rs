//! What is kept in memory of each RRD: the updates accepted and not yet in its file.
//!
//! The file stays the truth; nothing of its live head is cached, so other programs may write to it under
//! RRDtool's locks at any time. Cost: about 200 bytes an RRD, its name, and 16 bytes and the text of each
//! update waiting.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashTable;
use rrd::time::Timestamp;
use xxhash_rust::xxh3::xxh3_64;

use crate::engine::StoreError;
use crate::name::RrdName;
use rrd_file::geometry::Geometry;

/// An RRD the engine has heard of. Its lock also guards its file: see [`rrd_file::file`].
#[derive(Debug)]
pub struct Entry {
    /// Its name.
    pub name: RrdName,
    buffer: Mutex<Buffer>,
}

/// What waits for an RRD's file.
#[derive(Debug, Default)]
pub struct Buffer {
    /// Accepted updates in order ([`crate::files::words`]).
    pub words: Vec<u8>,
    /// How many.
    pub word_count: u32,
    /// Time of the newest update, accepted or in the file; `None` until the file was looked at, unless
    /// updates came from the journal.
    pub last: Option<Timestamp>,
    /// Its definition; `None` until the file was looked at.
    pub geometry: Option<Arc<Geometry>>,
    /// Seconds since the engine's start at which it is to be written.
    pub due_seconds: u32,
    /// Journal generation of its oldest update waiting.
    pub generation: u64,
    /// Counts the times `words` was emptied, so that an undo knows whether it still may.
    pub epoch: u32,
    /// It stands in the write queue.
    pub queued: bool,
    /// It is no longer in the table: whoever found it must look again.
    pub removed: bool,
    /// Why its file cannot be written; updates are refused until it can.
    pub trouble: Option<StoreError>,
}

impl Entry {
    /// Nothing known but the name.
    pub fn new(name: RrdName) -> Self {
        Entry { name, buffer: Mutex::new(Buffer::default()) }
    }

    /// Its buffer and the right to open its file.
    pub fn lock(&self) -> MutexGuard<'_, Buffer> {
        // A panic under this lock left a buffer that is whole: words are appended in one piece.
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True when updates wait, or when someone holds the lock and may be about to change that. For whoever
    /// holds a lock that must not be held while this one is waited for.
    pub fn may_wait(&self) -> bool {
        match self.buffer.try_lock() {
            Ok(buffer) => !buffer.words.is_empty(),
            Err(_) => true,
        }
    }
}

/// The RRDs of one shard, by name.
#[derive(Debug, Default)]
pub struct Table {
    entries: Mutex<HashTable<Arc<Entry>>>,
}

impl Table {
    /// The entry of this name, made if `make` says so.
    pub fn find(&self, hash: u64, name: &[u8], make: impl FnOnce() -> Option<Entry>) -> Option<Arc<Entry>> {
        let mut entries = self.lock();
        if let Some(entry) = entries.find(hash, |entry| entry.name.as_bytes() == name) {
            return Some(Arc::clone(entry));
        }
        let entry = Arc::new(make()?);
        entries.insert_unique(hash, Arc::clone(&entry), |entry| name_hash(entry.name.as_bytes()));
        Some(entry)
    }

    /// Takes an entry out. `buffer` is its lock, so that nothing is added to it meanwhile.
    pub fn remove(&self, entry: &Entry, buffer: &mut Buffer) {
        buffer.removed = true;
        let name = entry.name.as_bytes();
        if let Ok(found) = self.lock().find_entry(name_hash(name), |entry| entry.name.as_bytes() == name) {
            found.remove();
        }
    }

    /// All entries, in no order.
    pub fn all(&self) -> Vec<Arc<Entry>> {
        self.lock().iter().map(Arc::clone).collect()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashTable<Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The hash that places a name: which shard (by its upper half) and where in its table (by the rest). Nothing on the disk
/// depends on it: a journal is replayed by names.
#[inline]
pub fn name_hash(name: &[u8]) -> u64 {
    xxh3_64(name)
}
