//! Files and directories that no store has: files that are being written, temporary names that programs rename when they
//! are done, and directories without RRDs. They live in memory, and end with the mount.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use crate::open::OpenFile;
use crate::store::Result;

/// Files at once: far more than programs write at the same time.
const FILES_MAX: usize = 10_000;
/// Directories at once.
const DIRECTORIES_MAX: usize = 100_000;
/// Bytes of all of them.
pub const BYTES_MAX: u64 = 256 << 20;
/// Characters that `mkstemp(3)` makes up.
const MADE_UP: usize = 6;

/// Files and directories by path.
#[derive(Debug, Default)]
pub struct Scratch {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<Vec<u8>, Arc<OpenFile>>,
    directories: BTreeSet<Vec<u8>>,
}

/// A file with its name in a directory.
pub type NamedFile = (Vec<u8>, Arc<OpenFile>);

/// The last name of a path.
pub fn name_of(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// The path of the directory of a path; empty for the root.
pub fn directory_of(path: &[u8]) -> &[u8] {
    path[..path.len() - name_of(path).len()].strip_suffix(b"/").unwrap_or_default()
}

/// Whether a program uses such a name until its file is complete: one that is hidden, as rsync's, or an RRD's with what
/// `mkstemp(3)` makes up after it, as RRDtool's.
pub fn is_temporary(path: &[u8]) -> bool {
    let name = name_of(path);
    let made_up = || {
        let (front, end) = name.split_at_checked(name.len().checked_sub(MADE_UP)?)?;
        let front = front.strip_suffix(b".").unwrap_or(front);
        Some(front.ends_with(b".rrd") && end.iter().all(u8::is_ascii_alphanumeric))
    };
    name.starts_with(b".") || made_up().unwrap_or(false)
}

/// Whether a path is below a directory.
fn is_below(path: &[u8], directory: &[u8]) -> bool {
    directory.is_empty() || path.strip_prefix(directory).is_some_and(|rest| rest.starts_with(b"/"))
}

impl Scratch {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file of a path.
    pub fn file(&self, path: &[u8]) -> Option<Arc<OpenFile>> {
        self.lock().files.get(path).cloned()
    }

    /// Whether a directory was made here.
    pub fn is_directory(&self, path: &[u8]) -> bool {
        path.is_empty() || self.lock().directories.contains(path)
    }

    /// Adds a file.
    ///
    /// # Errors
    /// ENOSPC when there are too many.
    pub fn add(&self, path: &[u8], file: Arc<OpenFile>) -> Result {
        let mut state = self.lock();
        if state.files.len() >= FILES_MAX {
            return Err(Errno::NOSPC);
        }
        state.files.insert(path.to_vec(), file);
        Ok(())
    }

    /// Removes a file.
    pub fn remove(&self, path: &[u8]) -> Option<Arc<OpenFile>> {
        self.lock().files.remove(path)
    }

    /// Removes a file, if it is this one.
    pub fn remove_this(&self, path: &[u8], file: &Arc<OpenFile>) {
        let mut state = self.lock();
        if state.files.get(path).is_some_and(|found| Arc::ptr_eq(found, file)) {
            state.files.remove(path);
        }
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        let files: Vec<_> = self.lock().files.values().cloned().collect();
        files.iter().map(|file| file.bytes()).sum()
    }

    /// Keeps a directory, and those above it, although no RRD is in it.
    ///
    /// # Errors
    /// ENOSPC when there are too many.
    pub fn keep_directory(&self, path: &[u8]) -> Result {
        let mut state = self.lock();
        let mut path = path;
        while !path.is_empty() && !state.directories.contains(path) {
            if state.directories.len() >= DIRECTORIES_MAX {
                return Err(Errno::NOSPC);
            }
            state.directories.insert(path.to_vec());
            path = directory_of(path);
        }
        Ok(())
    }

    /// Forgets a directory.
    pub fn drop_directory(&self, path: &[u8]) {
        self.lock().directories.remove(path);
    }

    /// The names in a directory: those of files, and those of directories.
    pub fn list(&self, directory: &[u8]) -> (Vec<NamedFile>, Vec<Vec<u8>>) {
        let state = self.lock();
        let is_inside = |path: &[u8]| is_below(path, directory) && directory_of(path) == directory;
        let files = state.files.iter().filter(|(path, _)| is_inside(path));
        let files = files.map(|(path, file)| (name_of(path).to_vec(), Arc::clone(file))).collect();
        let directories = state.directories.iter().filter(|path| is_inside(path));
        (files, directories.map(|path| name_of(path).to_vec()).collect())
    }

    /// Gives a file or a directory, with all that is in it, another path.
    pub fn rename(&self, from: &[u8], to: &[u8]) {
        let mut state = self.lock();
        let moved = |path: &[u8]| {
            let rest = if path == from {
                Some(&b""[..])
            } else {
                path.strip_prefix(from).filter(|_| is_below(path, from))
            };
            rest.map(|rest| [to, rest].concat())
        };
        let files = std::mem::take(&mut state.files);
        state.files = files.into_iter().map(|(path, file)| (moved(&path).unwrap_or(path), file)).collect();
        let directories = std::mem::take(&mut state.directories);
        state.directories = directories.into_iter().map(|path| moved(&path).unwrap_or(path)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_directories() {
        assert_eq!((directory_of(b"a/b/c"), name_of(b"a/b/c")), (&b"a/b"[..], &b"c"[..]));
        assert_eq!((directory_of(b"c"), name_of(b"c")), (&b""[..], &b"c"[..]));
    }

    #[test]
    fn temporary_names_are_those_of_programs() {
        for name in ["a.rrdpcXj1T", "d/a.rrd.Ab12cD", ".a.rrd.Ab12cD", "d/.lock"] {
            assert!(is_temporary(name.as_bytes()), "{name}");
        }
        for name in
            ["a.rrd", "a", "abcdef", "a.rrd.bak", "d.rrd/abcdef", ".d/a.rrd", "a.rrd-backup", "x.rrdabcde"]
        {
            assert!(!is_temporary(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn directories_are_kept_with_those_above_and_renamed_with_those_below() {
        let scratch = Scratch::default();
        scratch.keep_directory(b"a/b/c").unwrap();
        scratch.add(b"a/b/x", OpenFile::new_empty(0o600, (0, 0))).unwrap();
        assert!(scratch.is_directory(b"a") && scratch.is_directory(b"a/b") && !scratch.is_directory(b"b"));
        scratch.rename(b"a/b", b"z");
        assert!(scratch.is_directory(b"z/c") && !scratch.is_directory(b"a/b"));
        let (files, directories) = scratch.list(b"z");
        assert_eq!((files.len(), directories), (1, vec![b"c".to_vec()]));
        assert_eq!(scratch.list(b"").1, [b"a".to_vec(), b"z".to_vec()]);
        assert!(scratch.remove(b"z/x").is_some());
        scratch.drop_directory(b"z");
        assert!(!scratch.is_directory(b"z"));
    }
}
