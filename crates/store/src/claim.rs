//! Keeps the trees of two stores apart: what is done to the placeholders of one would be done to the other's.
//!
//! A store marks directories for as long as it is open: the roots of its trees, the directories above them, and its own directory with those
//! above it. A mark is a read lock of open(2)'s description (`F_OFD_SETLK`) on the directory, at an offset that says what the mark means and
//! whose it is. So it goes with the process, hinders no one, is seen through links and bind mounts, which lead to the same directory, and needs
//! only the right to read the directory. A store first sets its marks, then looks for others', so of two that start at once at least one is refused.
//!
//! Not seen: a directory that this process may not read; and from a container whose mounts do not show that its tree lies in another's.

mod places;

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use rustix::fs::{Mode, OFlags};

use crate::daemon_address;
use crate::filenames;
use crate::identity;
use crate::placeholder::StoreIdentity;
use places::Mounts;

/// Where marks begin: no program has locks there, because no file is as long.
const MARKS_START: i64 = 1 << 62;
/// How many bits of a store's id are in a mark, below the bits of its kind.
const ID_BITS: u32 = 56;
/// How many directories are searched for the name of the other store. Guessed; without it, the message has only a part of its id.
const SEARCHED_MAX: usize = 20_000;

/// What a mark says of the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// It is the root of the store's tree, or of a file system that is mounted inside.
    Tree,
    /// The store's tree lies below.
    AboveTree,
    /// It is the store's own directory, or above that.
    AboveStore,
}

/// The marks of an open store.
#[derive(Debug)]
pub(crate) struct Claim {
    marked: Vec<Marked>,
}

/// A directory with a mark of ours.
#[derive(Debug)]
struct Marked {
    path: PathBuf,
    /// Holds the mark.
    directory: OwnedFd,
    mark: Mark,
}

/// Another open store has to do with the same directories.
#[derive(Debug)]
pub(crate) struct Overlap {
    how: How,
    ours: PathBuf,
    /// Of the other store: what was found of it.
    theirs: Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Same,
    TheirsInside,
    OursInside,
    StoreInTheirs,
    TheirStoreInside,
}

/// What is known of the other store.
#[derive(Debug, Default)]
struct Other {
    /// The first digits of its id, or all of them.
    id: String,
    /// Its tree, or its own directory.
    path: Option<PathBuf>,
    address: Option<String>,
}

impl Claim {
    /// Marks the trees and the directory of a store as its own.
    ///
    /// # Errors
    /// When another open store's tree overlaps with one of these trees or has this directory in it, or its directory lies in one of these trees.
    pub(crate) fn take(
        store: StoreIdentity,
        directory: Option<&Path>,
        trees: &[&Path],
    ) -> Result<Self, Overlap> {
        let mut claim = Claim { marked: Vec::new() };
        // Without it (no /proc), bind mounts are not seen.
        let mounts = Mounts::read().unwrap_or_default();
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        for tree in trees.iter().map(|tree| real(tree)) {
            for root in std::iter::once(tree.clone()).chain(mounts.inside(&tree)) {
                for place in mounts.places(&root) {
                    place.ancestors().skip(1).for_each(|above| claim.add(store, above, Mark::AboveTree));
                    claim.add(store, &place, Mark::Tree);
                }
            }
        }
        if let Some(directory) = directory.filter(|_| !trees.is_empty()).map(real) {
            for place in mounts.places(&directory) {
                place.ancestors().for_each(|above| claim.add(store, above, Mark::AboveStore));
            }
        }
        claim.marked.iter().find_map(|marked| marked.overlap(store)).map_or(Ok(claim), Err)
    }

    /// Marks a directory unless that may not be read.
    fn add(&mut self, store: StoreIdentity, path: &Path, mark: Mark) {
        if self.marked.iter().any(|marked| marked.mark == mark && marked.path == path) {
            return;
        }
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let Ok(directory) = rustix::fs::open(path, flags, Mode::empty()) else { return };
        let at = mark.offset(store);
        match fcntl(&directory, FcntlArg::F_OFD_SETLK(&range(libc::F_RDLCK, at..at + 1))) {
            Ok(_) => self.marked.push(Marked { path: path.to_path_buf(), directory, mark }),
            Err(error) => {
                tracing::debug!(%error, path = %path.display(), "cannot mark a directory, so that another store may use it, too");
            }
        }
    }
}

impl Mark {
    /// Where marks of this kind begin.
    fn start(self) -> i64 {
        MARKS_START + ((self as i64) << ID_BITS)
    }

    /// Where a store's mark of this kind is.
    fn offset(self, store: StoreIdentity) -> i64 {
        let id = store.0.iter().take(ID_BITS as usize / 8).fold(0, |id, &byte| id << 8 | i64::from(byte));
        self.start() + id
    }

    /// Whether another store has such a mark on a directory: the first digits of its id.
    fn of_other(self, store: StoreIdentity, directory: &OwnedFd) -> Option<String> {
        let own = self.offset(store);
        let find = |range_of: std::ops::Range<i64>| {
            if range_of.is_empty() {
                return None;
            }
            let mut asked = range(libc::F_WRLCK, range_of);
            fcntl(directory.as_fd(), FcntlArg::F_OFD_GETLK(&mut asked)).ok()?;
            let is_free = i32::from(asked.l_type) == libc::F_UNLCK;
            (!is_free).then(|| format!("{:014x}", asked.l_start - self.start()))
        };
        find(self.start()..own).or_else(|| find(own + 1..self.start() + (1 << ID_BITS)))
    }
}

/// A part of the range of a directory's locks.
fn range(kind: i32, of: std::ops::Range<i64>) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: of.start,
        l_len: of.end - of.start,
        l_pid: 0,
    }
}

impl Marked {
    /// Whether another store's marks forbid this one.
    fn overlap(&self, store: StoreIdentity) -> Option<Overlap> {
        let forbidden: &[(Mark, How)] = match self.mark {
            Mark::Tree => &[
                (Mark::Tree, How::Same),
                (Mark::AboveTree, How::TheirsInside),
                (Mark::AboveStore, How::TheirStoreInside),
            ],
            Mark::AboveTree => &[(Mark::Tree, How::OursInside)],
            Mark::AboveStore => &[(Mark::Tree, How::StoreInTheirs)],
        };
        forbidden.iter().find_map(|&(mark, how)| {
            let id = mark.of_other(store, &self.directory)?;
            Some(Overlap { how, ours: self.path.clone(), theirs: Other::find(id, how, &self.path) })
        })
    }
}

impl Other {
    /// What the files of the other store say of it, in a directory with its mark.
    fn find(id: String, how: How, marked: &Path) -> Self {
        let mut directories = vec![marked.to_path_buf()];
        let mut searched = 0;
        while let Some(directory) = directories.pop() {
            searched += 1;
            if let Some(found) = Other::at(&id, how, &directory) {
                return found;
            }
            if !matches!(how, How::TheirsInside | How::TheirStoreInside) || searched > SEARCHED_MAX {
                break;
            }
            let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
            let inside = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            directories.extend(inside.map(|entry| entry.path()));
        }
        let path = (how == How::OursInside || how == How::StoreInTheirs).then(|| marked.to_path_buf());
        Other { id: format!("{id}..."), path, address: None }
    }

    fn at(id: &str, how: How, directory: &Path) -> Option<Self> {
        let path = Some(directory.to_path_buf());
        if how == How::TheirStoreInside {
            let text = std::fs::read_to_string(filenames::identity(directory)).ok()?;
            let found = StoreIdentity(identity::decode(&text).ok()?.id).to_string();
            return found.starts_with(id).then_some(Other { id: found, path, address: None });
        }
        let (found, address) = daemon_address::at(directory)?;
        found.starts_with(id).then_some(Other { id: found, path, address: Some(address) })
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ours = self.ours.display();
        match self.how {
            How::Same => write!(f, "the tree \"{ours}\" is that of another store, {}", self.theirs),
            How::TheirsInside => {
                write!(f, "in the tree \"{ours}\" lies that of another store, {}", self.theirs)
            }
            How::OursInside => write!(f, "the tree lies in that of another store, {}", self.theirs),
            How::StoreInTheirs => {
                write!(f, "the store's directory lies in the tree of another store, {}", self.theirs)
            }
            How::TheirStoreInside => {
                write!(f, "in the tree \"{ours}\" lies the directory of another store, {}", self.theirs)
            }
        }?;
        f.write_str("; give each store a tree of its own (base, tree), or stop the other one's daemon")
    }
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)?;
        if let Some(path) = &self.path {
            write!(f, " in \"{}\"", path.display())?;
        }
        match &self.address {
            Some(address) => write!(f, ", whose daemon is at {address}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Overlap {}

#[cfg(test)]
mod tests;
