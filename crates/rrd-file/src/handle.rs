//! An open file of the operating system or of another disk: every byte of a `.rrd` file, a placeholder and a
//! temporary file passes through here.
//!
//! It is an enum instead of a trait object: a file of the operating system is a descriptor on the stack, so
//! an update in place allocates nothing for it. The other variant is for simulated disks.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use disk::DiskFile;
use rustix::fs::{Advice, Stat};
use rustix::io::{Errno, ReadWriteFlags};

/// An open file. Dropping it closes it.
pub enum Handle {
    /// A file of the operating system.
    System(OwnedFd),
    /// A file of another disk.
    Disk(Arc<dyn DiskFile>),
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Handle::System(file) => file.fmt(f),
            Handle::Disk(_) => f.write_str("Disk"),
        }
    }
}

impl Handle {
    /// Reads into `bytes` from `offset` on and returns how many; fewer than requested only at the end.
    ///
    /// # Errors
    /// The system's.
    pub fn read_up_to(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let file = match self {
            Handle::System(file) => file,
            Handle::Disk(file) => return file.read_at(bytes, offset),
        };
        let mut done = 0;
        while done < bytes.len() {
            match rustix::io::pread(file, &mut bytes[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(done)
    }

    /// Reads the first bytes if they are in the page cache; `None` when they would have to be read from the
    /// disk.
    pub(crate) fn read_cached(&self, bytes: &mut [u8]) -> Option<usize> {
        match self {
            Handle::System(file) => {
                rustix::io::preadv2(file, &mut [IoSliceMut::new(bytes)], 0, ReadWriteFlags::NOWAIT).ok()
            }
            Handle::Disk(_) => None,
        }
    }

    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// The system's; any part of the bytes may then have been written.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let file = match self {
            Handle::System(file) => file,
            Handle::Disk(file) => return file.write_at(bytes, offset),
        };
        let mut done = 0;
        while done < bytes.len() {
            match rustix::io::pwrite(file, &bytes[done..], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Appends `parts` at `offset`; returns how many bytes were written, at least one.
    pub(crate) fn append(&self, parts: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        let file = match self {
            Handle::System(file) => file,
            Handle::Disk(file) => {
                let bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
                return file.write_at(&bytes, offset).map(|()| bytes.len());
            }
        };
        loop {
            match rustix::io::writev(file, parts) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => return Ok(count),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Makes everything written durable.
    ///
    /// # Errors
    /// The system's.
    pub fn sync(&self) -> io::Result<()> {
        match self {
            Handle::System(file) => Ok(rustix::fs::fdatasync(file)?),
            Handle::Disk(file) => file.sync(),
        }
    }

    /// Length of the file in bytes.
    ///
    /// # Errors
    /// The system's.
    pub fn length(&self) -> io::Result<u64> {
        match self {
            Handle::System(file) => Ok(rustix::fs::fstat(file)?.st_size as u64),
            Handle::Disk(file) => file.length(),
        }
    }

    /// Truncates or extends with zeros to `length` bytes.
    ///
    /// # Errors
    /// The system's.
    pub fn truncate(&self, length: u64) -> io::Result<()> {
        match self {
            Handle::System(file) => Ok(rustix::fs::ftruncate(file, length)?),
            Handle::Disk(file) => file.truncate(length),
        }
    }

    /// Mode, owner and kind; `None` on a disk without them.
    ///
    /// # Errors
    /// The system's.
    pub fn stat(&self) -> io::Result<Option<Stat>> {
        match self {
            Handle::System(file) => Ok(Some(rustix::fs::fstat(file)?)),
            Handle::Disk(_) => Ok(None),
        }
    }

    /// Advises the page cache how the whole file will be read; only a hint.
    pub(crate) fn advise(&self, advice: Advice) {
        if let Handle::System(file) = self {
            // Where it is not supported, reads are merely larger.
            rustix::fs::fadvise(file, 0, None, advice).ok();
        }
    }
}
