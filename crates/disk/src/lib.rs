//! The disk as the store sees it: a few verbs, so that a simulated one can stand in for the real one.
//!
//! A name is durable only after
//! [`Disk::sync_dir`], bytes only after [`DiskFile::sync`], whatever a file system may do beyond that.
//! Every error keeps the [`io::ErrorKind`] of its cause ([`io::ErrorKind::StorageFull`] for a full disk and
//! for a full quota) and says operation and path. Paths are relative to the disk's root; nothing here knows
//! what the files mean. Cost: one system call a verb; a write or read that the kernel cuts short is continued.

#![forbid(unsafe_code)]

pub mod real;
pub mod sim;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub use real::RealDisk;
pub use sim::SimDisk;

/// What an opened file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// To read.
    Read,
    /// To read and to write.
    Write,
}

/// What the page cache should expect of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Nothing in particular.
    Normal,
    /// Read from front to back.
    Sequential,
    /// Read here and there: no read-ahead.
    Random,
    /// Needed soon.
    WillNeed,
    /// Not needed again.
    DontNeed,
}

/// A directory tree with files. Every path is relative to its root; `""` is the root itself.
pub trait Disk: Send + Sync {
    /// Makes an empty file, to read and to write. Fails with `AlreadyExists` when there is one.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens a file that is there; `NotFound` when it is not.
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn DiskFile>>;
    /// Gives a file another name, in the place of whatever had that name. One step: a crash leaves one or
    /// the other.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Names in a directory, sorted; directories among them.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;
    /// Makes a directory and those above it. Durable when it returns.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// Makes creations, renames and removals in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Makes everything on this disk durable.
    fn sync_all(&self) -> io::Result<()>;
    /// Bytes of a file, by name; `NotFound` when there is none.
    fn length(&self, path: &Path) -> io::Result<u64>;
    /// Bytes that can still be written.
    fn free_bytes(&self) -> io::Result<u64>;

    /// True when there is a file or directory of this name.
    fn exists(&self, path: &Path) -> io::Result<bool> {
        match self.length(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// An open file. Shared freely between threads; concurrent writes must not overlap.
pub trait DiskFile: Send + Sync {
    /// Writes all of `bytes` at `offset`. After an error any part of them may be there.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Reads into `bytes` from `offset` on and returns how many; fewer than asked only at the end.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Makes what was written durable (fdatasync: bytes, and the length that finds them).
    fn sync(&self) -> io::Result<()>;
    /// Bytes of the file.
    fn length(&self) -> io::Result<u64>;
    /// Cuts, or extends with zeros, to `length` bytes.
    fn truncate(&self, length: u64) -> io::Result<()>;
    /// Reserves room for a range and makes the file at least that long; the new bytes are zero. Where the
    /// file system cannot reserve, nothing happens.
    fn allocate(&self, offset: u64, length: u64) -> io::Result<()>;
    /// Tells the page cache what to expect; only a hint.
    fn advise(&self, offset: u64, length: u64, advice: Advice);
    /// Takes the exclusive lock that ends with this open file; false when another process has it.
    fn try_lock(&self) -> io::Result<bool>;
}
