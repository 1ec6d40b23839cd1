//! Where files are opened by path: the operating system, or another disk.

use std::io;
use std::path::Path;
use std::sync::Arc;

use disk::Disk;
use rustix::fs::{CWD, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::create::Existing;
use crate::handle::Handle;

/// Where files are opened by path.
#[derive(Clone)]
pub enum Volume {
    /// The operating system's tree.
    System,
    /// Another disk, which knows no links, modes and owners, and only one process: nothing is locked there.
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

/// What stands at a path.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    pub(crate) kind: FileType,
    /// Permission bits.
    pub(crate) mode: u32,
}

impl Volume {
    /// What stands at `path`, or where a link there leads if `follow`; `None` when nothing does.
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

    /// A new file to write.
    pub(crate) fn create_new(&self, path: &Path, mode: u32) -> io::Result<Handle> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        match self {
            Volume::System => Ok(Handle::System(rustix::fs::open(path, flags, Mode::from_raw_mode(mode))?)),
            Volume::Disk(disk) => Ok(Handle::Disk(disk.create(path)?)),
        }
    }

    /// Gives a new file its name. False when it took the place of another, which has the old name now.
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
                // Nothing there, or such a rename is not known.
                Err(_) => rustix::fs::rename(from, to)?,
            },
            Existing::Refuse => match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
                // Some file systems know no such rename; that nothing is there was looked at before.
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
