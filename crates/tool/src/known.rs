//! Placeholders that this process has met: whom to ask for what stands there, without reading them again.
//!
//! For the C library, which is called for the same names again and again. What is kept counts only while the file
//! at the name is the very same: device, inode, size and time of its last change, which one `stat` tells. A
//! placeholder that was changed a moment ago is not kept, since a second change may bear the same time. What the
//! daemon's address is nobody can see by that: whoever cannot connect forgets it ([`Known::forget`]) and reads anew.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Names that are kept; then it begins anew. About 200 bytes each.
const NAMES_MAX: usize = 1 << 17;
/// Seconds that a change must lie back; file systems count time in steps of up to two.
const SETTLED_SECONDS: i64 = 3;

/// Which file stands at a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    device: u64,
    inode: u64,
    bytes: i64,
    changed: (i64, i64),
}

impl Seen {
    /// The file at a path now; `None` when there is none.
    pub fn at(path: &Path) -> Option<Seen> {
        let stat = rustix::fs::stat(path).ok()?;
        Some(Seen {
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

/// Where an RRD is that a placeholder stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The daemon's address.
    pub address: Vec<u8>,
    /// Its name there.
    pub name: Vec<u8>,
}

/// What is known, by the words that callers use.
#[derive(Debug, Default)]
pub struct Known(Mutex<HashMap<Vec<u8>, (Seen, Place)>>);

impl Known {
    /// Where the RRD called `word` is, if the file that `see` finds there is the placeholder that was met. Of any other
    /// file nothing is looked at: that was a tenth of an update of one.
    pub fn find(&self, word: &[u8], see: impl FnOnce() -> Option<Seen>) -> Option<Place> {
        let (before, place) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(word).cloned()?;
        (see() == Some(before)).then_some(place)
    }

    /// Keeps where an RRD is. `seen` was looked at before the placeholder was read.
    pub fn keep(&self, word: &[u8], seen: Seen, place: Place) {
        if seen.is_settled() {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= NAMES_MAX {
                known.clear();
            }
            known.insert(word.to_vec(), (seen, place));
        }
    }

    /// Forgets where it is.
    pub fn forget(&self, word: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_counts_while_it_is_the_very_same() {
        let place = Place { address: b"unix:/x".to_vec(), name: b"a.rrd".to_vec() };
        let seen = Seen { device: 1, inode: 2, bytes: 3, changed: (4, 5) };
        let known = Known::default();
        known.keep(b"/a.rrd", seen, place.clone());
        assert_eq!(known.find(b"/a.rrd", || Some(seen)), Some(place.clone()));
        assert_eq!(known.find(b"/b.rrd", || Some(seen)), None);
        for other in [
            Seen { device: 9, ..seen },
            Seen { inode: 9, ..seen },
            Seen { bytes: 9, ..seen },
            Seen { changed: (4, 9), ..seen },
        ] {
            assert_eq!(known.find(b"/a.rrd", || Some(other)), None, "{other:?}");
        }
        assert_eq!(known.find(b"/a.rrd", || None), None);
        known.forget(b"/a.rrd");
        assert_eq!(known.find(b"/a.rrd", || Some(seen)), None);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
        let fresh = Seen { changed: (now, 0), ..seen };
        known.keep(b"/a.rrd", fresh, place);
        assert_eq!(known.find(b"/a.rrd", || Some(fresh)), None);
    }
}
