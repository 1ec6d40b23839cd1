//! One `.rrd` file, open and locked: positioned reads and writes and nothing else.
//!
//! Locks are RRDtool's: POSIX `fcntl` over the whole file, shared to read, exclusive to write, never
//! waited for (`../shared/rrd-format.md` section 5). Such a lock belongs to the process and ends when *any*
//! of its descriptors of the file is closed, so the caller must hold the RRD's own mutex for as long as one
//! of these lives. Cost: openat, fadvise, fcntl, fstat, one pread of the header; closing unlocks.

use std::io::{self, IoSliceMut};
use std::os::fd::OwnedFd;

use rrd::codec::file::{ArchiveLayout, FileError, head_bytes};
use rustix::fs::{Advice, FlockOperation, Mode, OFlags};
use rustix::io::{Errno, ReadWriteFlags};

use crate::engine::StoreError;
use crate::files::geometry::{FileHeader, Geometries, Geometry};
use crate::name::RrdName;
use crate::tree::Tree;

/// Bytes read at once in the hope of getting a whole header: W1's has 3,496, W2's 2,512.
const HEADER_GUESS_BYTES: usize = 4096;

/// Where positioned bytes go: the file itself, or a copy in memory.
pub trait Medium {
    /// Writes all of `bytes` at `offset`, which lies within the file.
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

/// What an open file is for.
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
    file: OwnedFd,
    bytes: u64,
}

impl RrdFile {
    /// A file that its caller opened, locked and found to have `bytes` bytes.
    pub fn new(file: OwnedFd, bytes: u64) -> Self {
        RrdFile { file, bytes }
    }

    /// The descriptor, to give advice on.
    pub fn descriptor(&self) -> &OwnedFd {
        &self.file
    }

    /// Gives the descriptor away; closing it unlocks.
    pub fn into_descriptor(self) -> OwnedFd {
        self.file
    }

    /// Opens and locks the file of this name.
    pub fn open(tree: &Tree, name: &RrdName, access: Access) -> Result<Self, StoreError> {
        let (flags, lock) = match access {
            Access::Read => (OFlags::RDONLY, FlockOperation::NonBlockingLockShared),
            Access::Write => (OFlags::RDWR, FlockOperation::NonBlockingLockExclusive),
        };
        // NONBLOCK: a FIFO of this name must not hold us up; regular files do not care.
        let file = tree
            .open_file(name, flags | OFlags::NONBLOCK, Mode::empty())
            .map_err(|error| open_error(tree, name, &error))?;
        let stat = rustix::fs::fstat(&file).map_err(|error| open_error(tree, name, &error.into()))?;
        if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::RegularFile {
            return Err(StoreError::Io(format!("'{}' is not a regular file", display_path(tree, name))));
        }
        match rustix::fs::fcntl_lock(&file, lock) {
            Ok(()) => {}
            Err(Errno::ACCESS | Errno::AGAIN) => return Err(StoreError::Io(LOCKED.to_string())),
            Err(error) => return Err(open_error(tree, name, &error.into())),
        }
        // Only advice: where it is not understood, reads are merely larger.
        rustix::fs::fadvise(&file, 0, None, Advice::Random).ok();
        Ok(RrdFile { file, bytes: stat.st_size as u64 })
    }

    /// What the file system says of it.
    pub fn stat(&self) -> io::Result<rustix::fs::Stat> {
        Ok(rustix::fs::fstat(&self.file)?)
    }

    /// Makes everything written durable.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fdatasync(&self.file)?)
    }

    /// Reads the header. `buffer` is scratch memory.
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
            let count = self.read_up_to(buffer, 0)?;
            buffer.truncate(count);
        }
        Ok(geometries.read(buffer, self.bytes, hint)?)
    }

    /// Fills `buffer` from `offset`; an error when the file ends before.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self.read_up_to(buffer, offset)? {
            count if count == buffer.len() => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Fills `window` with consecutive rows of an archive from ring position `first` on, at most one ring.
    pub fn read_rows(&self, archive: ArchiveLayout, first: u64, window: &mut [f64]) -> io::Result<()> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(window);
        let before_wrap = ((archive.row_count - first) * archive.row_bytes).min(bytes.len() as u64) as usize;
        let (front, back) = bytes.split_at_mut(before_wrap);
        self.read_at(front, archive.row_offset(first))?;
        self.read_at(back, archive.offset)?;
        // The file's bytes are little-endian; where the machine's are too this is nothing.
        window.iter_mut().for_each(|value| *value = f64::from_bits(u64::from_le(value.to_bits())));
        Ok(())
    }

    /// Reads the beginning. A file of which that is not in memory is cold: it would else be read by 128 kB to change some
    /// pages of it. To find that out costs nothing where it is in memory.
    fn read_front(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let whole = (buffer.len() as u64).min(self.bytes);
        match rustix::io::preadv2(&self.file, &mut [IoSliceMut::new(buffer)], 0, ReadWriteFlags::NOWAIT) {
            Ok(count) if count as u64 == whole => Ok(count),
            _ => {
                // Only advice: where it is not understood, reads are merely larger.
                rustix::fs::fadvise(&self.file, 0, None, Advice::Random).ok();
                self.read_up_to(buffer, 0)
            }
        }
    }

    fn read_up_to(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match rustix::io::pread(&self.file, &mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(done)
    }
}

impl Medium for RrdFile {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match rustix::io::pwrite(&self.file, &bytes[done..], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Why a header could not be read.
#[derive(Debug)]
pub enum HeaderError {
    /// Reading failed.
    Io(io::Error),
    /// The bytes are no header.
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

impl HeaderError {
    /// As the store says it, in RRDtool's words.
    pub fn named(&self, tree: &Tree, name: &RrdName) -> StoreError {
        match self {
            HeaderError::Io(error) => io_error(tree, name, error),
            HeaderError::File(error) => {
                StoreError::Damaged(error.named(&display_path(tree, name)).to_string())
            }
        }
    }
}

/// RRDtool's word for a file that another process has locked.
pub const LOCKED: &str = "could not lock RRD";

/// The path of an RRD's file, for messages.
pub fn display_path(tree: &Tree, name: &RrdName) -> String {
    format!("{}/{name}", tree.path().display())
}

/// A failed read or write of an open file.
pub fn io_error(tree: &Tree, name: &RrdName, error: &io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::DiskFull,
        _ => StoreError::Io(format!("'{}': {}", display_path(tree, name), text(error))),
    }
}

/// A failed open, in RRDtool's words.
fn open_error(tree: &Tree, name: &RrdName, error: &io::Error) -> StoreError {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NOTDIR) => StoreError::NoSuchRrd(name.clone()),
        Some(Errno::LOOP | Errno::XDEV) => StoreError::Refused(format!(
            "opening '{}': a symbolic link on the way leads out of the base directory",
            display_path(tree, name)
        )),
        _ => StoreError::Io(format!("opening '{}': {}", display_path(tree, name), text(error))),
    }
}

/// The system's text without Rust's "(os error n)".
pub fn text(error: &io::Error) -> String {
    let full = error.to_string();
    full.split(" (os error").next().unwrap_or_default().to_string()
}
