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
pub struct PlaceholderCache(Mutex<HashMap<Vec<u8>, Known>>);

/// What is known of a name.
#[derive(Clone, Debug)]
struct Known {
    file: FileId,
    /// Whether the caller may write to the file; that changes with the file, or with the process's user, who does not change back.
    is_writable: bool,
    rrd: RemoteRrd,
}

impl PlaceholderCache {
    /// The RRD whose placeholder at `word` was met before, if the file that `identify` finds there is still the same. A
    /// name that is not in the cache costs no `stat`: that was a tenth of an update of a file.
    /// With `to_write`, only if the caller may write to the placeholder.
    pub fn find(
        &self,
        word: &[u8],
        to_write: bool,
        identify: impl FnOnce() -> Option<FileId>,
    ) -> Option<RemoteRrd> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(word).cloned()?;
        ((known.is_writable || !to_write) && identify() == Some(known.file)).then_some(known.rrd)
    }

    /// Keeps what the placeholder at `path` stands for. `file` was identified before the placeholder was read the first
    /// time; it is read once more, since only a file that stood there all the while is the one that was identified.
    pub fn keep(&self, word: &[u8], path: &Path, file: FileId, placeholder: &Placeholder, rrd: RemoteRrd) {
        let same = rrd_file::placeholder::read(path).is_ok_and(|found| found.as_ref() == Some(placeholder));
        if same {
            let is_writable = rrd_file::daemon_address::check_writable(path).is_ok();
            self.insert(word, Known { file, is_writable, rrd });
        }
    }

    fn insert(&self, word: &[u8], of_word: Known) {
        if of_word.file.is_settled() {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= NAMES_MAX {
                known.clear();
            }
            known.insert(word.to_vec(), of_word);
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
        let known = |file, is_writable| Known { file, is_writable, rrd: rrd.clone() };
        cache.insert(b"/a.rrd", known(file, false));
        assert_eq!(cache.find(b"/a.rrd", false, || Some(file)), Some(rrd.clone()));
        assert_eq!(cache.find(b"/a.rrd", true, || Some(file)), None);
        cache.insert(b"/a.rrd", known(file, true));
        assert_eq!(cache.find(b"/a.rrd", true, || Some(file)), Some(rrd.clone()));
        assert_eq!(cache.find(b"/b.rrd", false, || Some(file)), None);
        for other in [
            FileId { device: 9, ..file },
            FileId { inode: 9, ..file },
            FileId { bytes: 9, ..file },
            FileId { changed: (4, 9), ..file },
        ] {
            assert_eq!(cache.find(b"/a.rrd", false, || Some(other)), None, "{other:?}");
        }
        assert_eq!(cache.find(b"/a.rrd", false, || None), None);
        cache.forget(b"/a.rrd");
        assert_eq!(cache.find(b"/a.rrd", false, || Some(file)), None);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
        let fresh = FileId { changed: (now, 0), ..file };
        cache.insert(b"/a.rrd", known(fresh, true));
        assert_eq!(cache.find(b"/a.rrd", false, || Some(fresh)), None);
    }
}
