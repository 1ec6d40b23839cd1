//! The disk as a trait, so that a simulated disk can replace the real one.
//!
//! A name is durable only after [`Disk::sync_dir`], bytes only after [`DiskFile::sync`], whatever a file
//! system may do beyond that. Errors keep the [`io::ErrorKind`] of their cause (or have that of their
//! [`Shortage`]) and name operation and path. Paths
//! are relative to the disk's root; nothing here knows what the files mean. Cost: one system call per method;
//! short reads and writes are continued.

#![forbid(unsafe_code)]

pub mod real;
mod shortage;
pub mod sim;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub use real::RealDisk;
pub use shortage::Shortage;
pub use sim::SimDisk;

/// The access mode of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Reading only.
    Read,
    /// Reading and writing.
    Write,
}

/// The expected access pattern of a range, for the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Nothing in particular.
    Normal,
    /// Sequential reads.
    Sequential,
    /// Random reads: no read-ahead.
    Random,
    /// Will be needed soon.
    WillNeed,
    /// Will not be needed again.
    DontNeed,
}

/// A directory tree with files. Paths are relative to its root; `""` is the root itself.
///
/// Every method fails with the system's error.
pub trait Disk: Send + Sync {
    /// Creates an empty file for reading and writing.
    ///
    /// # Errors
    /// `AlreadyExists` when there is one; the system's.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens an existing file.
    ///
    /// # Errors
    /// `NotFound` when there is none; the system's.
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn DiskFile>>;
    /// Renames a file, replacing any of the new name. Atomic: a crash leaves either the old state or the new
    /// one.
    ///
    /// # Errors
    /// `NotFound` when there is no such file; the system's.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// `NotFound` when there is none; the system's.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// The sorted names of files and directories in a directory.
    ///
    /// # Errors
    /// `NotFound` when there is no such directory; the system's.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;
    /// Creates a directory and its parents; durable when it returns.
    ///
    /// # Errors
    /// The system's.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// Makes creations, renames and removals in a directory durable.
    ///
    /// # Errors
    /// The system's.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Makes everything on this disk durable.
    ///
    /// # Errors
    /// The system's.
    fn sync_all(&self) -> io::Result<()>;
    /// Length of a file in bytes, by name.
    ///
    /// # Errors
    /// `NotFound` when there is none; the system's.
    fn length(&self, path: &Path) -> io::Result<u64>;
    /// Gives a file a second name outside of this disk, so that both are the same file from then on. `to` is a path of the system's.
    ///
    /// # Errors
    /// `Unsupported` when this disk cannot; the system's, among them that the two are on different file systems.
    fn link_out(&self, _path: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Bytes that can still be written.
    ///
    /// # Errors
    /// The system's.
    fn free_bytes(&self) -> io::Result<u64>;

    /// True when there is a file or directory of this name.
    ///
    /// # Errors
    /// The system's, except `NotFound`.
    fn exists(&self, path: &Path) -> io::Result<bool> {
        match self.length(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// An open file. Can be shared between threads; concurrent writes must not overlap.
pub trait DiskFile: Send + Sync {
    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// The system's; any part of the bytes may then have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Reads into `bytes` from `offset` on and returns how many; fewer than requested only at the end.
    ///
    /// # Errors
    /// The system's.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Makes written bytes durable (fdatasync: the bytes, and the length needed to find them).
    ///
    /// # Errors
    /// The system's.
    fn sync(&self) -> io::Result<()>;
    /// Length of the file in bytes.
    ///
    /// # Errors
    /// The system's.
    fn length(&self) -> io::Result<u64>;
    /// Truncates or extends with zeros to `length` bytes.
    ///
    /// # Errors
    /// The system's.
    fn truncate(&self, length: u64) -> io::Result<()>;
    /// Reserves space for a range and makes the file at least that long; the new bytes are zero. Does nothing
    /// where the file system cannot reserve.
    ///
    /// # Errors
    /// The system's.
    fn allocate(&self, offset: u64, length: u64) -> io::Result<()>;
    /// Advises the page cache; only a hint.
    fn advise(&self, offset: u64, length: u64, advice: Advice);
    /// Takes an exclusive lock that lasts as long as this open file; false when another process has it.
    ///
    /// # Errors
    /// The system's.
    fn try_lock(&self) -> io::Result<bool>;
}
