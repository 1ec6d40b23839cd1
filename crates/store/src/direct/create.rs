//! Making whole files: beside their target under a temporary name, then renamed.
//!
//! Whoever opens the target sees the old file or the new one, never a part of it; a full disk or a kill
//! leaves the old one (a kill may leave the temporary, which is named as RRDtool's are: six characters
//! behind the target's name). Unknown rows are written, not left out: files of ours are as long on the disk
//! as RRDtool's, so that a later update cannot meet a full disk.

use std::fs::{File, Metadata};
use std::io::{self, IoSlice, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rrd::codec::file::{FileError, FileLayout, encode, encode_head};
use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::live::{HeadShape, UNKNOWN};
use rustix::fs::{Gid, Mode, OFlags, RenameFlags, Uid};
use rustix::io::Errno;

use crate::direct::DirectError;
use crate::files::make::rings;

/// Mode of files that `create` makes; RRDtool does not heed the umask.
const CREATE_MODE: u32 = 0o644;
/// Mode of files that `restore` and `resize` make, before the umask.
const RESTORE_MODE: u32 = 0o666;
/// Mode of a temporary file that gets another before it is renamed.
const TEMPORARY_MODE: u32 = 0o600;
/// Names tried for a temporary file. They are drawn from 62^6.
const TEMPORARY_TRIES: usize = 100;
/// Unknown rows are written from one buffer of this size, which stays in the processor's cache.
const UNKNOWN_BYTES: usize = 4096;
/// Pieces of one `writev`; the kernel takes 1024 at most.
const PIECES_MAX: usize = 1024;

/// What to do about a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// The new one takes its place.
    Replace,
    /// It stays, and that is an error.
    Refuse,
}

/// Makes a new file, all unknown, last updated at `start` (seconds). It gets the mode of the file it
/// replaces, or 0644 whatever the umask is; a symbolic link is replaced, not followed.
///
/// # Errors
/// [`DirectError::Create`] when it exists, [`DirectError::Temporary`], [`DirectError::Rename`],
/// [`DirectError::Write`]; [`DirectError::File`] when no file can hold the definition.
pub fn create(
    path: &Path,
    definition: &Definition,
    start: i64,
    existing: Existing,
) -> Result<(), DirectError> {
    let live = rrd::create::new_live(definition, start);
    let shape = HeadShape::of(definition);
    let mut front = Vec::new();
    encode_head(definition, &shape, shape.split(&live.words), &rings(definition, &live), &mut front)
        .map_err(|error| refused(path, error))?;
    create_from(path, &front, FileLayout::of(definition).file_bytes, existing)
}

/// The same with content (`create --source`, structural `tune`).
///
/// # Errors
/// As [`create`].
pub fn create_filled(path: &Path, rrd: &Rrd, existing: Existing) -> Result<(), DirectError> {
    let whole = encode(rrd, &rings(&rrd.definition, &rrd.live)).map_err(|error| refused(path, error))?;
    create_from(path, &whole, whole.len() as u64, existing)
}

/// Writes a file as `restore` and `resize` do: mode 0666 less the umask, or mode and owner of the file it
/// replaces; a symbolic link is followed, and what is no regular file is written to.
///
/// # Errors
/// [`DirectError::Create`], [`DirectError::Write`]; [`DirectError::File`] when no file can hold the RRD.
pub fn write_file(path: &Path, rrd: &Rrd, existing: Existing) -> Result<(), DirectError> {
    let whole = encode(rrd, &rings(&rrd.definition, &rrd.live)).map_err(|error| refused(path, error))?;
    let creating = |error: io::Error| DirectError::Create { path: path.to_path_buf(), error };
    let writing = |error| DirectError::Write { path: path.to_path_buf(), error };
    let there = std::fs::metadata(path).ok();
    if existing == Existing::Refuse && (there.is_some() || path.is_symlink()) {
        return Err(creating(Errno::EXIST.into()));
    }
    let target = match there {
        None if !path.is_symlink() => path.to_path_buf(),
        // A link to nothing fails here: there is no telling what it was to be.
        _ => path.canonicalize().map_err(creating)?,
    };
    match &there {
        Some(there) if there.is_dir() => return Err(creating(Errno::ISDIR.into())),
        Some(there) if !there.is_file() => {
            return File::create(&target).map_err(creating)?.write_all(&whole).map_err(writing);
        }
        _ => {}
    }
    let (temporary, file) = Temporary::new(&target, RESTORE_MODE).map_err(creating)?;
    fill(&file, &whole, whole.len() as u64).map_err(writing)?;
    if let Some(there) = &there {
        keep_owner(&file, there).map_err(creating)?;
    }
    temporary.rename(&target, existing).map_err(creating)
}

fn refused(path: &Path, error: FileError) -> DirectError {
    DirectError::File { path: path.to_path_buf(), error }
}

/// `front`, then unknown values up to `bytes`, in the place of `path`.
fn create_from(path: &Path, front: &[u8], bytes: u64, existing: Existing) -> Result<(), DirectError> {
    let exists = || DirectError::Create { path: path.to_path_buf(), error: Errno::EXIST.into() };
    let there = rustix::fs::lstat(path).ok();
    if existing == Existing::Refuse && there.is_some() {
        return Err(exists());
    }
    let link = there.is_some_and(|there| there.st_mode & 0o170_000 == 0o120_000);
    // Through a link, as RRDtool looks.
    let there = if link { rustix::fs::stat(path).ok() } else { there };
    if there.is_some_and(|there| there.st_mode & 0o170_000 != 0o100_000) {
        // A directory, or a device that must not become a file.
        return Err(DirectError::Rename(Errno::ISDIR.into()));
    }
    let mode = there.map_or(CREATE_MODE, |there| there.st_mode & 0o7777);
    let (temporary, file) = Temporary::new(path, TEMPORARY_MODE).map_err(DirectError::Temporary)?;
    fill(&file, front, bytes)
        .and_then(|()| Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?))
        .map_err(|error| DirectError::Write { path: path.to_path_buf(), error })?;
    temporary.rename(path, existing).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(),
        _ => DirectError::Rename(error),
    })
}

/// Gives a file the mode of another, and its owner where that is allowed.
fn keep_owner(file: &OwnedFd, there: &Metadata) -> io::Result<()> {
    let (owner, group) = (Uid::from_raw(there.uid()), Gid::from_raw(there.gid()));
    // Not allowed to most; a restored file then belongs to whoever restored it.
    rustix::fs::fchown(file, Some(owner), Some(group)).ok();
    Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(there.mode() & 0o7777))?)
}

/// Writes `front` and then unknown values until the file has `bytes` bytes.
fn fill(file: &OwnedFd, front: &[u8], bytes: u64) -> io::Result<()> {
    let file = file.as_fd();
    write_all(file, front)?;
    let mut left = bytes.saturating_sub(front.len() as u64);
    if left == 0 {
        return Ok(());
    }
    let unknown = UNKNOWN.to_le_bytes().repeat(UNKNOWN_BYTES / 8);
    while left > 0 {
        let mut pieces = Vec::with_capacity(PIECES_MAX.min(left as usize / UNKNOWN_BYTES + 1));
        let mut wanted = 0;
        while wanted < left && pieces.len() < PIECES_MAX {
            let piece = (left - wanted).min(UNKNOWN_BYTES as u64) as usize;
            pieces.push(IoSlice::new(&unknown[..piece]));
            wanted += piece as u64;
        }
        let written = match rustix::io::writev(file, &pieces) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => written as u64,
            Err(Errno::INTR) => 0,
            Err(error) => return Err(error.into()),
        };
        left -= written;
        // A piece cut short leaves the next one within a value: go on with bytes that fit.
        let rest = left % 8;
        if rest != 0 {
            write_all(file, &unknown[8 - rest as usize..8])?;
            left -= rest;
        }
    }
    Ok(())
}

fn write_all(file: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(&file, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A file on its way; removed when dropped before its rename.
struct Temporary {
    path: PathBuf,
    renamed: bool,
}

impl Temporary {
    /// A new file beside `target`.
    fn new(target: &Path, mode: u32) -> io::Result<(Temporary, OwnedFd)> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        for _ in 0..TEMPORARY_TRIES {
            let mut path = target.as_os_str().to_os_string();
            path.push(suffix());
            match rustix::fs::open(&path, flags, Mode::from_raw_mode(mode)) {
                Ok(file) => return Ok((Temporary { path: path.into(), renamed: false }, file)),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::EXIST.into())
    }

    fn rename(mut self, target: &Path, existing: Existing) -> io::Result<()> {
        let directory = rustix::fs::CWD;
        let renamed = match existing {
            Existing::Replace => rustix::fs::rename(&self.path, target),
            Existing::Refuse => {
                let refuse = RenameFlags::NOREPLACE;
                match rustix::fs::renameat_with(directory, &self.path, directory, target, refuse) {
                    // Some file systems know no such rename; that nothing is there was looked at before.
                    Err(Errno::INVAL | Errno::NOSYS) => rustix::fs::rename(&self.path, target),
                    other => other,
                }
            }
        };
        renamed?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // Best effort: what went wrong before is the error to report.
            std::fs::remove_file(&self.path).ok();
        }
    }
}

/// Six letters and digits that no one else uses now.
fn suffix() -> String {
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let seed = now ^ (u64::from(std::process::id()) << 40) ^ (count << 20);
    let mut mixed = xxhash_rust::xxh3::xxh3_64(&seed.to_le_bytes());
    let mut letter = || {
        let letter = LETTERS[(mixed % 62) as usize];
        mixed /= 62;
        char::from(letter)
    };
    (0..6).map(|_| letter()).collect()
}
