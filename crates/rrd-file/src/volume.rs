//! Volumes, on which files are opened by path: the operating system's tree, or another disk.

use std::io;
use std::path::Path;
use std::sync::Arc;

use disk::Disk;
use rustix::fs::{CWD, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::create::Existing;
use crate::handle::Handle;

/// A volume.
#[derive(Clone)]
pub enum Volume {
    /// The operating system's tree.
    System,
    /// Another disk, without links, modes, owners and other processes, so nothing is locked there.
    Disk(Arc<dyn Disk>),
}

impl std::fmt::Debug for Volume {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Volume::System => "System",
            Volume::Disk(_) => "Disk",
        })
    }
}

/// Type and mode of a file.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    pub(crate) kind: FileType,
    /// Permission bits.
    pub(crate) mode: u32,
}

impl Volume {
    /// The file at `path`, or the one it links to if `follow`; `None` when there is none.
    pub(crate) fn find(&self, path: &Path, follow: bool) -> Option<Found> {
        match self {
            Volume::System => {
                let stat = if follow { rustix::fs::stat(path) } else { rustix::fs::lstat(path) }.ok()?;
                Some(Found { kind: FileType::from_raw_mode(stat.st_mode), mode: stat.st_mode & 0o7777 })
            }
            Volume::Disk(disk) => {
                disk.exists(path).ok()?.then_some(Found { kind: FileType::RegularFile, mode: 0o644 })
            }
        }
    }

    /// Creates a file for writing.
    pub(crate) fn create_new(&self, path: &Path, mode: u32) -> io::Result<Handle> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        match self {
            Volume::System => Ok(Handle::System(rustix::fs::open(path, flags, Mode::from_raw_mode(mode))?)),
            Volume::Disk(disk) => Ok(Handle::Disk(disk.create(path)?)),
        }
    }

    /// Renames a new file. Returns false when it was exchanged with an existing one, which has the old name
    /// now.
    pub(crate) fn rename(&self, from: &Path, to: &Path, existing: Existing) -> io::Result<bool> {
        if let Volume::Disk(disk) = self {
            if existing == Existing::Refuse && disk.exists(to)? {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            return disk.rename(from, to).map(|()| true);
        }
        match existing {
            Existing::Replace => rustix::fs::rename(from, to)?,
            Existing::Swap => match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::EXCHANGE) {
                Ok(()) => return Ok(false),
                // No file is there, or the file system does not support such a rename.
                Err(_) => rustix::fs::rename(from, to)?,
            },
            Existing::Refuse => match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
                // Some file systems do not support such a rename; that no file is there was checked before.
                Err(Errno::INVAL | Errno::NOSYS) => rustix::fs::rename(from, to)?,
                other => other?,
            },
        }
        Ok(true)
    }

    /// Removes a file.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        match self {
            Volume::System => std::fs::remove_file(path),
            Volume::Disk(disk) => disk.remove(path),
        }
    }
}
