//! What memory holds for each RRD: the updates that were accepted and are not in its file yet.
//!
//! The file stays authoritative; nothing of its live head is cached, so other programs may write to it under
//! RRDtool's locks at any time. Cost: about 200 bytes per RRD plus its name, and 16 bytes plus its text per
//! buffered update.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashTable;
use rrd::time::Timestamp;
use xxhash_rust::xxh3::xxh3_64;

use crate::engine::StoreError;
use crate::name::RrdName;
use rrd_file::geometry::Geometry;

/// An RRD known to the engine. Its lock also guards its file: see [`rrd_file::file`].
#[derive(Debug)]
pub struct Entry {
    /// Its name.
    pub name: RrdName,
    buffer: Mutex<Buffer>,
}

/// The updates buffered for an RRD's file.
#[derive(Debug, Default)]
pub struct Buffer {
    /// Accepted updates in order ([`crate::files::updates`]).
    pub updates: Vec<u8>,
    /// Their number.
    pub update_count: u32,
    /// Time of the newest update, buffered or in the file; `None` until the file was read, unless the journal
    /// had updates.
    pub last: Option<Timestamp>,
    /// Its definition; `None` until the file was read.
    pub geometry: Option<Arc<Geometry>>,
    /// When it is due to be written, in seconds since the engine's start.
    pub due_seconds: u32,
    /// Journal generation of its oldest buffered update.
    pub generation: u64,
    /// Counts how often `updates` was emptied, so that an undo can tell whether it is still possible.
    pub epoch: u32,
    /// True while it is in the write queue.
    pub queued: bool,
    /// No longer in the table: look the name up again.
    pub removed: bool,
    /// Why its file cannot be written; updates are refused until it can be.
    pub trouble: Option<StoreError>,
}

impl Entry {
    /// An entry of which only the name is known.
    pub fn new(name: RrdName) -> Self {
        Entry { name, buffer: Mutex::new(Buffer::default()) }
    }

    /// Locks its buffer, which includes the right to open its file.
    pub fn lock(&self) -> MutexGuard<'_, Buffer> {
        // A panic under this lock leaves a consistent buffer, because updates are appended in one piece.
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True when updates are buffered, or may be soon because the lock is held. For callers that hold a lock
    /// under which they must not wait for this one.
    pub fn may_wait(&self) -> bool {
        match self.buffer.try_lock() {
            Ok(buffer) => !buffer.updates.is_empty(),
            Err(_) => true,
        }
    }
}

/// The RRDs of one shard by name.
#[derive(Debug, Default)]
pub struct Table {
    entries: Mutex<HashTable<Arc<Entry>>>,
}

impl Table {
    /// The entry of this name; if there is none, the one that `make` returns is added.
    pub fn find(&self, hash: u64, name: &[u8], make: impl FnOnce() -> Option<Entry>) -> Option<Arc<Entry>> {
        let mut entries = self.lock();
        if let Some(entry) = entries.find(hash, |entry| entry.name.as_bytes() == name) {
            return Some(Arc::clone(entry));
        }
        let entry = Arc::new(make()?);
        entries.insert_unique(hash, Arc::clone(&entry), |entry| name_hash(entry.name.as_bytes()));
        Some(entry)
    }

    /// Removes an entry. `buffer` is its locked buffer, so that nothing is added to it meanwhile.
    pub fn remove(&self, entry: &Entry, buffer: &mut Buffer) {
        buffer.removed = true;
        let name = entry.name.as_bytes();
        if let Ok(found) = self.lock().find_entry(name_hash(name), |entry| entry.name.as_bytes() == name) {
            found.remove();
        }
    }

    /// All entries, in no particular order.
    pub fn all(&self) -> Vec<Arc<Entry>> {
        self.lock().iter().map(Arc::clone).collect()
    }

    /// Number of entries.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashTable<Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The hash of a name, which selects its shard (by the upper half) and its slot in the shard's table (by the rest).
/// Nothing on disk depends on it: a journal is replayed by names.
#[inline]
pub fn name_hash(name: &[u8]) -> u64 {
    xxh3_64(name)
}
