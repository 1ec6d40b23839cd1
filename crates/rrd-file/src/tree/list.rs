//! LIST: the `.rrd` files below a directory of the tree. Links are not followed.

use std::fmt;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use disk::Disk;
use rustix::fs::{Dir, FileType};

use super::{Place, Tree, path_of};
use crate::system_text;

/// The most names in an answer. Beyond it the answer is an error rather than incomplete.
const NAMES_MAX: usize = 10_000_000;
/// Deepest directory that is listed: more can only be a loop of mounts.
pub(super) const DEPTH_MAX: usize = 64;

/// Why a directory could not be listed.
#[derive(Debug)]
pub enum ListError {
    /// More names than an answer holds.
    TooMany,
    /// The caller has no memory for more names.
    NoMemory,
    /// A system call failed.
    Io {
        /// The directory, below the base.
        directory: Vec<u8>,
        /// The system's error.
        error: std::io::Error,
    },
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListError::TooMany => write!(f, "more than {NAMES_MAX} names; list a directory at a time"),
            ListError::NoMemory => write!(f, "no memory for so many names; list a directory at a time"),
            ListError::Io { directory, error } => {
                write!(f, "cannot list '{}': {}", String::from_utf8_lossy(directory), system_text(error))
            }
        }
    }
}

impl std::error::Error for ListError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ListError::TooMany | ListError::NoMemory => None,
            ListError::Io { error, .. } => Some(error),
        }
    }
}

/// Names that are collected, and what they take.
struct Names<'a> {
    names: Vec<Vec<u8>>,
    /// Bytes of them that memory was not asked for yet.
    bytes: u64,
    hold: &'a mut dyn FnMut(u64) -> bool,
}

/// Bytes for which memory is asked at once.
const HELD_AT_ONCE: u64 = 64 * 1024;

/// The memory that a name takes in a list, at most: its bytes, its place in a list that doubles, and the allocator's part.
pub fn name_bytes(name: &[u8]) -> u64 {
    (name.len() + 3 * size_of::<Vec<u8>>()) as u64
}

impl Names<'_> {
    fn push(&mut self, name: Vec<u8>) -> Result<(), ListError> {
        self.bytes += name_bytes(&name);
        self.names.push(name);
        if self.names.len() > NAMES_MAX {
            return Err(ListError::TooMany);
        }
        if self.bytes >= HELD_AT_ONCE && !(self.hold)(std::mem::take(&mut self.bytes)) {
            return Err(ListError::NoMemory);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<Vec<u8>>, ListError> {
        if !(self.hold)(self.bytes) {
            return Err(ListError::NoMemory);
        }
        self.names.sort_unstable();
        Ok(self.names)
    }
}

/// Names below `directory` (`""` = all), relative to the tree and sorted. Not recursive: the immediate
/// children, directories with a trailing `/`. Recursive: files only. Empty when `directory` is not a
/// directory. `hold` is asked for the bytes of memory that they take, and refuses with false.
///
/// # Errors
/// When there are too many names, or the directory cannot be read.
pub fn list(
    tree: &Tree,
    directory: &[u8],
    recursive: bool,
    hold: &mut dyn FnMut(u64) -> bool,
) -> Result<Vec<Vec<u8>>, ListError> {
    let path = directory.strip_suffix(b"/").unwrap_or(directory);
    let mut names = Names { names: Vec::new(), bytes: 0, hold };
    let directories = match &tree.place {
        Place::System(directories) => directories,
        Place::Disk(disk) => {
            list_disk(&**disk, path, recursive, &mut names)?;
            return names.finish();
        }
    };
    let opened = match directories.get(path, false) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        opened => opened.map_err(|error| failed(path, error))?,
    };
    let mut prefix = path.to_vec();
    if !prefix.is_empty() {
        prefix.push(b'/');
    }
    walk(&opened, &prefix, recursive, 0, &mut names)?;
    names.finish()
}

/// As [`list`], on another disk, which contains only `.rrd` files and directories.
fn list_disk(
    disk: &dyn Disk,
    directory: &[u8],
    recursive: bool,
    names: &mut Names<'_>,
) -> Result<(), ListError> {
    let Ok(children) = disk.list(path_of(directory)) else { return Ok(()) };
    for child in children {
        let prefix = if directory.is_empty() { Vec::new() } else { [directory, b"/"].concat() };
        let full = [&prefix, child.as_bytes()].concat();
        if full.ends_with(b".rrd") {
            names.push(full)?;
        } else if disk.list(path_of(&full)).is_ok() {
            match recursive {
                true => list_disk(disk, &full, true, names)?,
                false => names.push([&full[..], b"/"].concat())?,
            }
        }
    }
    Ok(())
}

fn walk(
    directory: &OwnedFd,
    prefix: &[u8],
    recursive: bool,
    depth: usize,
    names: &mut Names<'_>,
) -> Result<(), ListError> {
    let io = |error: rustix::io::Errno| failed(prefix, error.into());
    // Reopened, because a shared descriptor has a single reading position.
    for item in Dir::read_from(directory).map_err(io)? {
        let item = item.map_err(io)?;
        let name = item.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let full = [prefix, name].concat();
        match kind(directory, &item) {
            FileType::Directory if !recursive => names.push([&full[..], b"/"].concat())?,
            FileType::Directory if depth < DEPTH_MAX => {
                use rustix::fs::{Mode, OFlags};
                let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
                // Entries that cannot be opened (permissions, just removed) are skipped.
                if let Ok(below) = rustix::fs::openat(directory, item.file_name(), flags, Mode::empty()) {
                    walk(&below, &[&full[..], b"/"].concat(), true, depth + 1, names)?;
                }
            }
            FileType::RegularFile if name.ends_with(b".rrd") => names.push(full)?,
            _ => {}
        }
    }
    Ok(())
}

/// The type of an entry; some file systems do not return it and must be queried.
pub(super) fn kind(directory: &OwnedFd, item: &rustix::fs::DirEntry) -> FileType {
    match item.file_type() {
        FileType::Unknown => {
            let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::statat(directory, item.file_name(), flags)
                .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
        }
        known => known,
    }
}

fn failed(path: &[u8], error: std::io::Error) -> ListError {
    ListError::Io { directory: path.to_vec(), error }
}
