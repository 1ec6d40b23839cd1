//! One open and locked `.rrd` file: positioned reads and writes only.
//!
//! Locks are RRDtool's: POSIX `fcntl` over the whole file, shared for reading, exclusive for writing, without
//! waiting. Such a lock belongs to the process and ends when *any* of its descriptors of the file is closed,
//! so the caller must hold the RRD's own mutex as long as an [`RrdFile`] exists. Cost: openat, fadvise,
//! fcntl, fstat, one pread of the header; closing unlocks.

use std::io;

use rrd::codec::file::{ArchiveLayout, FileError, head_bytes};
use rustix::fs::{Advice, FileType, FlockOperation};
use rustix::io::Errno;

use crate::geometry::{FileHeader, Geometries, Geometry};
use crate::handle::Handle;
use crate::name::RrdName;
use crate::tree::Tree;

/// Bytes of the first read, usually a whole header: W1's has 3,496, W2's 2,512.
const HEADER_GUESS_BYTES: usize = 4096;

/// A target for positioned writes: the file itself, or a copy in memory.
pub trait Medium {
    /// Writes all of `bytes` at `offset`, which lies within the file.
    ///
    /// # Errors
    /// When the write fails.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;
}

impl Medium for Vec<u8> {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let target = self.get_mut(start..start + bytes.len());
        target.ok_or(io::ErrorKind::UnexpectedEof)?.copy_from_slice(bytes);
        Ok(())
    }
}

/// The access mode of a file, with its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Shared lock.
    Read,
    /// Exclusive lock.
    Write,
}

/// An open, locked file.
#[derive(Debug)]
pub struct RrdFile {
    file: Handle,
    bytes: u64,
}

impl RrdFile {
    /// A file that the caller has opened and locked, `bytes` long.
    pub(crate) fn new(file: Handle, bytes: u64) -> Self {
        RrdFile { file, bytes }
    }

    /// The open file.
    pub fn handle(&self) -> &Handle {
        &self.file
    }

    /// Returns the open file; closing it unlocks.
    pub(crate) fn into_handle(self) -> Handle {
        self.file
    }

    /// Opens and locks the file of this name, without waiting for its lock.
    ///
    /// # Errors
    /// When there is no such file, it is not regular, or another process holds the lock.
    pub fn open(tree: &Tree, name: &RrdName, access: Access) -> Result<Self, OpenError> {
        let file = tree.open_file(name, access).map_err(OpenError::Io)?;
        let Some(stat) = file.stat().map_err(OpenError::Io)? else {
            // No other process can hold a lock on a simulated disk.
            let bytes = file.length().map_err(OpenError::Io)?;
            return Ok(RrdFile { file, bytes });
        };
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(OpenError::NotRegular);
        }
        lock(&file, access)?;
        file.advise(Advice::Random);
        Ok(RrdFile { file, bytes: stat.st_size as u64 })
    }

    /// Its length in bytes at the time it was opened.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads the header; `buffer` is reused memory.
    ///
    /// # Errors
    /// When reading fails or the header is invalid.
    pub fn header(
        &self,
        geometries: &Geometries,
        hint: Option<&std::sync::Arc<Geometry>>,
        buffer: &mut Vec<u8>,
    ) -> Result<FileHeader, HeaderError> {
        let guess = hint.map_or(HEADER_GUESS_BYTES, |geometry| geometry.layout.header_bytes);
        buffer.resize(guess, 0);
        let count = self.read_front(buffer)?;
        buffer.truncate(count);
        let needed = head_bytes(buffer, self.bytes)?;
        if needed > count {
            buffer.resize(needed, 0);
            let count = self.file.read_up_to(buffer, 0)?;
            buffer.truncate(count);
        }
        Ok(geometries.read(buffer, self.bytes, hint)?)
    }

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// When the file ends before that, or cannot be read.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self.file.read_up_to(buffer, offset)? {
            count if count == buffer.len() => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Fills `window` with consecutive rows of an archive from ring position `first` on, at most one ring.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read_rows(&self, archive: ArchiveLayout, first: u64, window: &mut [f64]) -> io::Result<()> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(window);
        let before_wrap = ((archive.row_count - first) * archive.row_bytes).min(bytes.len() as u64) as usize;
        let (front, back) = bytes.split_at_mut(before_wrap);
        self.read_at(front, archive.row_offset(first))?;
        self.read_at(back, archive.offset)?;
        // The file is little-endian; on a little-endian machine this does nothing.
        window.iter_mut().for_each(|value| *value = f64::from_bits(u64::from_le(value.to_bits())));
        Ok(())
    }

    /// Reads the beginning. If that is not in the page cache, the file is cold, and without advice the kernel
    /// would read 128 kB of it to change a few pages. The check costs nothing when it is cached.
    fn read_front(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let whole = (buffer.len() as u64).min(self.bytes);
        match self.file.read_cached(buffer) {
            Some(count) if count as u64 == whole => Ok(count),
            _ => {
                self.file.advise(Advice::Random);
                self.file.read_up_to(buffer, 0)
            }
        }
    }
}

impl Medium for RrdFile {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(bytes, offset)
    }
}

/// Takes RRDtool's lock on the whole file.
fn lock(file: &Handle, access: Access) -> Result<(), OpenError> {
    let Handle::System(file) = file else { return Ok(()) };
    let operation = match access {
        Access::Read => FlockOperation::NonBlockingLockShared,
        Access::Write => FlockOperation::NonBlockingLockExclusive,
    };
    match rustix::fs::fcntl_lock(file, operation) {
        Ok(()) => Ok(()),
        Err(Errno::ACCESS | Errno::AGAIN) => Err(OpenError::Locked),
        Err(error) => Err(OpenError::Io(error.into())),
    }
}

/// Why a file of a tree could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// It is a directory, a device or the like.
    NotRegular,
    /// Another process has it locked.
    Locked,
    /// A system call failed.
    Io(io::Error),
}

/// Why a header could not be read.
#[derive(Debug)]
pub enum HeaderError {
    /// Reading failed.
    Io(io::Error),
    /// The header is invalid.
    File(FileError),
}

impl From<io::Error> for HeaderError {
    fn from(error: io::Error) -> Self {
        HeaderError::Io(error)
    }
}

impl From<FileError> for HeaderError {
    fn from(error: FileError) -> Self {
        HeaderError::File(error)
    }
}

/// RRDtool's message for a file that another process has locked.
pub const LOCKED: &str = "could not lock RRD";
