//! Opens a file: locked, with its header read and checked.
//!
//! Cost: open, fstat, fcntl, pread of the header, close; for reading, or when it is cold, fadvise; for
//! writing, one more fstat.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use disk::Disk;
use rrd::codec::file::FileError;
use rrd::live::Season;
use rustix::fs::{Advice, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::apply::{Loaded, read_seasons};
use crate::file::{Access, HeaderError, RrdFile};
use crate::geometry::{FileHeader, Geometries, Geometry};
use crate::handle::Handle;
use crate::lock::{Inode, acquire, release};
use crate::volume::Volume;
use crate::{Error, Locking};
use crate::{daemon_address, placeholder};

/// How often a file that was replaced between opening and locking is reopened.
const REPLACED_TRIES: usize = 10;

/// Geometries of the files used last by this process; most trees have a handful.
static GEOMETRIES: LazyLock<Geometries> = LazyLock::new(|| Geometries::new(64));

/// An open, locked file; unlocked when dropped.
#[derive(Debug)]
pub(crate) struct Opened {
    /// `None` only while it is dropped.
    file: Option<RrdFile>,
    /// The volume it was opened on.
    pub(crate) volume: Volume,
    inode: Inode,
    locking: Locking,
    /// The path as given, for messages.
    pub(crate) path: PathBuf,
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            release(file.into_handle(), self.inode, self.locking);
        }
    }
}

/// The error for a file that could not be opened. A placeholder that the daemon made need not be writable: who may write, its socket decides.
fn unopened(path: &Path, error: Errno) -> Error {
    let path = path.to_path_buf();
    match placeholder::read(&path) {
        Ok(Some(placeholder))
            if matches!(error, Errno::ACCESS | Errno::PERM | Errno::ROFS)
                && daemon_address::check_writable(&path).is_ok() =>
        {
            Error::Placeholder { path, placeholder }
        }
        _ => Error::Open { path, error: error.into() },
    }
}

impl Opened {
    /// Opens and locks a file.
    pub(crate) fn open(
        volume: &Volume,
        path: &Path,
        access: Access,
        locking: Locking,
    ) -> Result<Self, Error> {
        if let Volume::Disk(disk) = volume {
            return Self::open_on(disk, path, access);
        }
        for _ in 0..REPLACED_TRIES {
            if let Some(opened) = Self::try_open(path, access, locking)? {
                return Ok(opened);
            }
        }
        Err(Error::Locked)
    }

    /// Opens a file of another disk, which has no other processes, so nothing is locked.
    fn open_on(disk: &Arc<dyn Disk>, path: &Path, access: Access) -> Result<Self, Error> {
        let fail = |error| Error::Open { path: path.to_path_buf(), error };
        let mode = match access {
            Access::Read => disk::Mode::Read,
            Access::Write => disk::Mode::Write,
        };
        let file = disk.open(path, mode).map_err(fail)?;
        let bytes = file.length().map_err(fail)?;
        if bytes == 0 {
            return Err(Error::Map { path: path.to_path_buf(), error: Errno::INVAL.into() });
        }
        Ok(Opened {
            file: Some(RrdFile::new(Handle::Disk(file), bytes)),
            volume: Volume::Disk(Arc::clone(disk)),
            inode: (0, 0),
            locking: Locking::None,
            path: path.to_path_buf(),
        })
    }

    /// `None` when the file was replaced before it was locked, so the new one must be opened.
    fn try_open(path: &Path, access: Access, locking: Locking) -> Result<Option<Self>, Error> {
        let fail = |error: Errno| Error::Open { path: path.to_path_buf(), error: error.into() };
        let flags = match access {
            Access::Read => OFlags::RDONLY,
            Access::Write => OFlags::RDWR,
        };
        // NONBLOCK: a FIFO must not block; regular files are not affected.
        let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = open(path, flags, access).map_err(|error| unopened(path, error))?;
        let stat = rustix::fs::fstat(&file).map_err(fail)?;
        check_mappable(path, &stat)?;
        let inode = (stat.st_dev, stat.st_ino);
        // A file system without locks gives the same error.
        let file = acquire(Handle::System(file), inode, access, locking).map_err(|_| Error::Locked)?;
        let opened = |file, bytes| Opened {
            file: Some(RrdFile::new(file, bytes)),
            volume: Volume::System,
            inode,
            locking,
            path: path.to_path_buf(),
        };
        // A reader may use a file that was replaced since, as if it had come a moment earlier.
        let now = if access == Access::Read { Ok(Some(stat)) } else { file.stat() };
        match now {
            Ok(Some(now)) if now.st_nlink > 0 || locking == Locking::None || access == Access::Read => {
                // For a file to be changed, reading its header decides whether this call is worthwhile.
                if access == Access::Read {
                    file.advise(Advice::Random);
                }
                Ok(Some(opened(file, now.st_size as u64)))
            }
            Ok(_) => {
                drop(opened(file, 0));
                Ok(None)
            }
            Err(error) => {
                drop(opened(file, 0));
                Err(Error::Open { path: path.to_path_buf(), error })
            }
        }
    }

    /// The open file.
    pub(crate) fn file(&mut self) -> &mut RrdFile {
        self.file.as_mut().expect("taken only by drop")
    }

    /// The open file, for reading.
    pub(crate) fn reader(&self) -> &RrdFile {
        self.file.as_ref().expect("taken only by drop")
    }

    /// Reads the header; `hint` is a geometry it may have, `buffer` reused memory.
    pub(crate) fn header(
        &self,
        hint: Option<&Arc<Geometry>>,
        buffer: &mut Vec<u8>,
    ) -> Result<FileHeader, Error> {
        self.reader().header(&GEOMETRIES, hint, buffer).map_err(|error| match error {
            HeaderError::Io(error) => Error::io(&self.path, error),
            HeaderError::File(error) => self.damaged(error, buffer),
        })
    }

    /// The state that updates start from.
    pub(crate) fn load(&self, header: FileHeader) -> Result<Loaded, Error> {
        Loaded::new(header, self.reader()).map_err(|error| Error::io(&self.path, error))
    }

    /// Lets the kernel read ahead, because the whole file is about to be read.
    pub(crate) fn expect_whole(&self) {
        self.reader().handle().advise(Advice::Sequential);
    }

    /// The seasons.
    pub(crate) fn seasons(&self, header: &FileHeader) -> Result<Vec<Season>, Error> {
        read_seasons(header, |offset, ring| self.reader().read_at(ring, offset))
            .map_err(|error| Error::io(&self.path, error))
    }

    /// Fills `window` with rows of an archive; the first is `age` rows older than the newest.
    pub(crate) fn window(
        &self,
        header: &FileHeader,
        rra: usize,
        age: u64,
        window: &mut [f64],
    ) -> Result<(), Error> {
        let archive = header.geometry.layout.archives[rra];
        let first = (header.current_rows[rra] + archive.row_count - age) % archive.row_count;
        self.reader().read_rows(archive, first, window).map_err(|error| Error::io(&self.path, error))
    }

    /// The error for an invalid file: it may be a placeholder.
    fn damaged(&self, error: FileError, front: &[u8]) -> Error {
        let path = self.path.clone();
        match placeholder::decode(front) {
            Ok(Some(placeholder)) => Error::Placeholder { path, placeholder },
            _ => Error::File { path, error },
        }
    }
}

/// Opens a file. One that will be changed is opened without updating its access time, which takes a thirtieth
/// of an update.
fn open(path: &Path, flags: OFlags, access: Access) -> Result<OwnedFd, Errno> {
    /// Only the owner may do that; after one refusal, other files are assumed to belong to another user too.
    static MAY: AtomicBool = AtomicBool::new(true);
    if access == Access::Write && MAY.load(Ordering::Relaxed) {
        match rustix::fs::open(path, flags | OFlags::NOATIME, Mode::empty()) {
            Err(Errno::PERM) => MAY.store(false, Ordering::Relaxed),
            other => return other,
        }
    }
    rustix::fs::open(path, flags, Mode::empty())
}

/// RRDtool cannot use a file that it cannot map into memory; this returns the same error.
fn check_mappable(path: &Path, stat: &Stat) -> Result<(), Error> {
    let errno = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_size > 0 => return Ok(()),
        FileType::Directory => Errno::NODEV,
        _ => Errno::INVAL,
    };
    Err(Error::Map { path: path.to_path_buf(), error: errno.into() })
}
