//! A directory of a tree, opened by its whole path, and its entries.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, OFlags};
use rustix::io::Errno;

use super::{Place, Tree};

/// An open directory.
#[derive(Debug)]
pub struct Directory(OwnedFd);

/// A file or directory in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name there.
    pub leaf: Vec<u8>,
    /// Whether it is a directory; a link to one is not.
    pub is_directory: bool,
}

impl Tree {
    /// Opens a directory below the base (`""` = the base as it was opened). The last component may not be a link.
    ///
    /// # Errors
    /// The system's; on a disk that is not the system's, always.
    pub fn open_directory(&self, path: &[u8]) -> io::Result<Directory> {
        let Place::System(directories) = &self.place else { return Err(io::ErrorKind::Unsupported.into()) };
        if path.is_empty() {
            return Ok(Directory(directories.root.try_clone()?));
        }
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(Directory(directories.open_beneath(path, flags)?))
    }

    /// Whether the base is still where it was opened: neither removed nor moved, and nothing is mounted over it.
    pub fn is_in_place(&self) -> bool {
        let Place::System(directories) = &self.place else { return true };
        let identity = |about: rustix::fs::Stat| (about.st_dev, about.st_ino);
        match (rustix::fs::stat(&self.path), rustix::fs::fstat(&directories.root)) {
            (Ok(there), Ok(here)) => identity(there) == identity(here),
            (Err(Errno::NOENT | Errno::NOTDIR), _) => false,
            // It cannot be found out.
            _ => true,
        }
    }

    /// Closes the directories that were kept open: other programs have renamed or removed some.
    pub fn forget_directories(&self) {
        if let Place::System(directories) = &self.place {
            directories.forget_all();
        }
    }
}

impl Directory {
    /// Its entries without `.` and `..`.
    ///
    /// # Errors
    /// The system's.
    pub fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let leaf = entry.file_name().to_bytes().to_vec();
            if leaf == b"." || leaf == b".." {
                continue;
            }
            let is_directory = match entry.file_type() {
                FileType::Unknown => {
                    let about = rustix::fs::statat(&self.0, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
                    about.is_ok_and(|about| FileType::from_raw_mode(about.st_mode) == FileType::Directory)
                }
                kind => kind == FileType::Directory,
            };
            entries.push(Entry { leaf, is_directory });
        }
        Ok(entries)
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
