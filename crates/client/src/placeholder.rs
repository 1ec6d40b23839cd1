//! The RRD that a placeholder stands for, which is reached through its store's daemon.
//!
//! The rule is one: the daemon is the one that the store has written at the root of its tree ([`rrd_file::daemon_address`]), wherever that is mounted, and
//! the name is the path within the tree: what is done to placeholders happens to RRDs.
//!
//! [`PlaceholderCache`] saves the C library, which is called for the same names again and again, from reading a
//! placeholder each time. An entry counts while the file at the name is the very same: device, inode, size and time of
//! change, which one `stat` tells. A placeholder that has just changed is not kept, since a second change may bear the
//! same time. A daemon that has moved is not seen by that: a caller that cannot connect calls
//! [`PlaceholderCache::forget`] and resolves again.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use rrd_file::placeholder::Placeholder;

use crate::error::ClientError;

/// Names that are kept before the cache starts afresh. About 200 bytes each.
const NAMES_MAX: usize = 1 << 17;
/// Seconds since the last change before an entry is kept; file systems count time in steps of up to two.
const SETTLED_SECONDS: i64 = 3;

/// The identity of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    device: u64,
    inode: u64,
    bytes: i64,
    changed: (i64, i64),
}

impl FileId {
    /// The file that is at a path now; `None` = there is none.
    pub fn at(path: &Path) -> Option<FileId> {
        let stat = rustix::fs::stat(path).ok()?;
        Some(FileId {
            device: stat.st_dev,
            inode: stat.st_ino,
            bytes: stat.st_size,
            changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
        })
    }

    fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.as_secs() as i64 > self.changed.0 + SETTLED_SECONDS
    }
}

/// An RRD of a daemon's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteRrd {
    /// The daemon's address.
    pub address: Vec<u8>,
    /// Its name there.
    pub name: Vec<u8>,
}

impl RemoteRrd {
    /// The RRD that the placeholder at `path` stands for.
    ///
    /// # Errors
    /// [`ClientError::NoDaemonAddress`].
    pub fn of(path: &Path, placeholder: &Placeholder) -> Result<Self, ClientError> {
        let (address, name) = rrd_file::daemon_address::find(path, placeholder)?;
        Ok(RemoteRrd { address: address.into_bytes(), name: name.as_bytes().to_vec() })
    }
}

/// Placeholders by the names that callers use.
#[derive(Debug, Default)]
pub struct PlaceholderCache(Mutex<HashMap<Vec<u8>, (FileId, RemoteRrd)>>);

impl PlaceholderCache {
    /// The RRD whose placeholder at `word` was met before, if the file that `identify` finds there is still the same. A
    /// name that is not in the cache costs no `stat`: that was a tenth of an update of a file.
    pub fn find(&self, word: &[u8], identify: impl FnOnce() -> Option<FileId>) -> Option<RemoteRrd> {
        let (before, rrd) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(word).cloned()?;
        (identify() == Some(before)).then_some(rrd)
    }

    /// Keeps what the placeholder at `path` stands for. `file` was identified before the placeholder was read the first
    /// time; it is read once more, since only a file that stood there all the while is the one that was identified.
    pub fn keep(&self, word: &[u8], path: &Path, file: FileId, placeholder: &Placeholder, rrd: RemoteRrd) {
        let same = rrd_file::placeholder::read(path).is_ok_and(|found| found.as_ref() == Some(placeholder));
        if same {
            self.insert(word, file, rrd);
        }
    }

    fn insert(&self, word: &[u8], file: FileId, rrd: RemoteRrd) {
        if file.is_settled() {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= NAMES_MAX {
                known.clear();
            }
            known.insert(word.to_vec(), (file, rrd));
        }
    }

    /// Forgets a name.
    pub fn forget(&self, word: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_counts_while_it_is_the_very_same() {
        let rrd = RemoteRrd { address: b"unix:/x".to_vec(), name: b"a.rrd".to_vec() };
        let file = FileId { device: 1, inode: 2, bytes: 3, changed: (4, 5) };
        let cache = PlaceholderCache::default();
        cache.insert(b"/a.rrd", file, rrd.clone());
        assert_eq!(cache.find(b"/a.rrd", || Some(file)), Some(rrd.clone()));
        assert_eq!(cache.find(b"/b.rrd", || Some(file)), None);
        for other in [
            FileId { device: 9, ..file },
            FileId { inode: 9, ..file },
            FileId { bytes: 9, ..file },
            FileId { changed: (4, 9), ..file },
        ] {
            assert_eq!(cache.find(b"/a.rrd", || Some(other)), None, "{other:?}");
        }
        assert_eq!(cache.find(b"/a.rrd", || None), None);
        cache.forget(b"/a.rrd");
        assert_eq!(cache.find(b"/a.rrd", || Some(file)), None);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
        let fresh = FileId { changed: (now, 0), ..file };
        cache.insert(b"/a.rrd", fresh, rrd);
        assert_eq!(cache.find(b"/a.rrd", || Some(fresh)), None);
    }
}
