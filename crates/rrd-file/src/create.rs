//! Creates whole files: beside their target under a temporary name, then renamed.
//!
//! Anyone who opens the target sees either the old file or the new one; a full disk or a kill leaves the old
//! one. A kill may leave the temporary file, which is named as by RRDtool: the target's name plus six
//! characters. Unknown rows are really written, so files take as much disk space as RRDtool's, and a later
//! update cannot meet a full disk.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rrd::codec::file::{FileError, FileLayout, encode, encode_head};
use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::live::HeadShape;
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use crate::Error;
use crate::apply::SEASON_BYTES_MAX;
use crate::content::{rings, write_pieces};
use crate::handle::Handle;
use crate::volume::Volume;

/// Mode of files made by `create`; RRDtool ignores the umask.
const CREATE_MODE: u32 = 0o644;
/// Mode of files made by `restore` and `resize`, before the umask.
const RESTORE_MODE: u32 = 0o666;
/// Mode of a temporary file whose final mode is set before it is renamed.
const TEMPORARY_MODE: u32 = 0o600;
/// Names tried for a temporary file, out of 62^6.
const TEMPORARY_TRIES: usize = 100;
/// Files are written in chunks of this size, from which the page cache makes its folios. Measured for W1 on
/// ext4 (Linux 6.18): creating takes 147 us with chunks of 4 kB, 73 with 32 kB, 70 with 64 kB, 63 with a
/// single one; and 200 files updated in three places each wrote 2.57 MB to the device in all cases.
const PIECE_BYTES: usize = 1 << 20;

/// The largest file that is made. RRDtool has no limit; this one keeps a typing error from filling a disk for minutes.
pub const FILE_BYTES_MAX: u64 = 64 << 30;

/// What to do about an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Replace it.
    Replace,
    /// Replace it, but without waiting for the disk, for files that can be made again: ext4 writes out a file
    /// that is renamed over another, which took 0.2 of the 0.6 ms of a graph. After a power cut, the new file
    /// may be empty.
    Swap,
    /// Keep it and fail.
    Refuse,
}

/// Creates a file with only unknown rows, last updated at `start` (seconds). It gets the mode of the file it
/// replaces, else 0644 regardless of the umask; a symbolic link is replaced, not followed.
///
/// # Errors
/// [`Error::Create`] when it exists, [`Error::Temporary`], [`Error::Rename`], [`Error::Write`];
/// [`Error::File`] when no file can hold the definition; [`Error::Huge`]; [`Error::HugeSeason`].
pub fn create(path: &Path, definition: &Definition, start: i64, existing: Existing) -> Result<(), Error> {
    create_on(&Volume::System, path, definition, start, existing)
}

/// As [`create`], on any volume.
///
/// # Errors
/// As [`create`].
pub fn create_on(
    volume: &Volume,
    path: &Path,
    definition: &Definition,
    start: i64,
    existing: Existing,
) -> Result<(), Error> {
    let layout = FileLayout::of(definition);
    if layout.file_bytes > FILE_BYTES_MAX {
        return Err(Error::Huge { path: path.to_path_buf(), bytes: layout.file_bytes });
    }
    let seasons = definition.rra.iter().zip(&layout.archives).filter(|(rra, _)| rra.cf.is_season());
    if let Some(bytes) = seasons.map(|(_, archive)| archive.ring_bytes()).max()
        && bytes > SEASON_BYTES_MAX
    {
        return Err(Error::HugeSeason { path: path.to_path_buf(), bytes });
    }
    let live = rrd::create::new_head(definition, start);
    let shape = HeadShape::of(definition);
    let mut front = Vec::with_capacity(layout.header_bytes);
    encode_head(definition, &shape, shape.split(&live.words), &rings(definition, &live), &mut front)
        .map_err(|error| refused(path, error))?;
    create_from(volume, path, &front, layout.file_bytes, existing)
}

/// As [`create`], with content (`create --source`, structural `tune`).
///
/// # Errors
/// As [`create`].
pub fn create_filled(path: &Path, rrd: &Rrd, existing: Existing) -> Result<(), Error> {
    create_filled_on(&Volume::System, path, rrd, existing)
}

/// As [`create_filled`], on any volume.
pub(crate) fn create_filled_on(
    volume: &Volume,
    path: &Path,
    rrd: &Rrd,
    existing: Existing,
) -> Result<(), Error> {
    let whole = encode(rrd, &rings(&rrd.definition, &rrd.live)).map_err(|error| refused(path, error))?;
    create_from(volume, path, &whole, whole.len() as u64, existing)
}

/// Writes a file for `restore` and `resize`; see [`write_bytes`].
///
/// # Errors
/// [`Error::Create`], [`Error::Write`]; [`Error::File`] when no file can hold the RRD.
pub fn write_file(path: &Path, rrd: &Rrd, existing: Existing) -> Result<(), Error> {
    write_file_with(path, rrd, &rings(&rrd.definition, &rrd.live), existing)
}

/// The same with the ring position of each archive's newest row given (`rra[n].cur_row` of `info`).
///
/// # Errors
/// As [`write_file`].
pub fn write_file_with(
    path: &Path,
    rrd: &Rrd,
    current_rows: &[u64],
    existing: Existing,
) -> Result<(), Error> {
    let whole = encode(rrd, current_rows).map_err(|error| refused(path, error))?;
    write_bytes(path, &whole, existing)
}

/// Writes a whole file with mode 0666 less the umask, or the mode and owner of the file it replaces. A
/// symbolic link is followed. A target that is not a regular file, or whose directory is not writable, is
/// written to directly.
///
/// # Errors
/// [`Error::Create`], [`Error::Write`].
pub fn write_bytes(path: &Path, whole: &[u8], existing: Existing) -> Result<(), Error> {
    let creating = |error: io::Error| Error::Create { path: path.to_path_buf(), error };
    let writing = |error| Error::Write { path: path.to_path_buf(), error };
    let itself = std::fs::symlink_metadata(path).ok();
    let is_link = itself.as_ref().is_some_and(Metadata::is_symlink);
    if existing == Existing::Refuse && itself.is_some() {
        return Err(creating(Errno::EXIST.into()));
    }
    // A dangling link fails here.
    let target = if is_link { path.canonicalize().map_err(creating)? } else { path.to_path_buf() };
    let there = if is_link { std::fs::metadata(path).ok() } else { itself };
    let in_place = || File::create(&target).map_err(creating)?.write_all(whole).map_err(writing);
    match &there {
        Some(there) if there.is_dir() => return Err(creating(Errno::ISDIR.into())),
        Some(there) if !there.is_file() => return in_place(),
        _ => {}
    }
    let (temporary, file) = match Temporary::new(&Volume::System, &target, RESTORE_MODE) {
        Ok(made) => made,
        Err(error) if there.is_some() && error.kind() == io::ErrorKind::PermissionDenied => {
            return in_place();
        }
        Err(error) => return Err(creating(error)),
    };
    write_pieces(&file, whole, whole.len() as u64, PIECE_BYTES).map_err(writing)?;
    if let (Some(there), Handle::System(file)) = (&there, &file) {
        keep_owner(file, there).map_err(creating)?;
    }
    temporary.rename(&target, existing).map_err(creating)
}

fn refused(path: &Path, error: FileError) -> Error {
    Error::File { path: path.to_path_buf(), error }
}

/// Replaces `path` with `front`, then unknown values up to `bytes`.
fn create_from(
    volume: &Volume,
    path: &Path,
    front: &[u8],
    bytes: u64,
    existing: Existing,
) -> Result<(), Error> {
    let exists = || Error::Create { path: path.to_path_buf(), error: Errno::EXIST.into() };
    let there = volume.find(path, false);
    if existing == Existing::Refuse && there.is_some() {
        return Err(exists());
    }
    let system = matches!(volume, Volume::System);
    if system && there.is_none() && create_unnamed(path, front, bytes)? {
        return Ok(());
    }
    let link = there.is_some_and(|there| there.kind == FileType::Symlink);
    // Follows a link, as RRDtool does.
    let there = if link { volume.find(path, true) } else { there };
    if there.is_some_and(|there| there.kind != FileType::RegularFile) {
        // A directory, or a device that must not be replaced by a file.
        return Err(Error::Rename(Errno::ISDIR.into()));
    }
    let mode = there.map_or(CREATE_MODE, |there| there.mode);
    let (temporary, file) = Temporary::new(volume, path, TEMPORARY_MODE).map_err(Error::Temporary)?;
    write_pieces(&file, front, bytes, PIECE_BYTES)
        .and_then(|()| match &file {
            Handle::System(file) => Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?),
            Handle::Disk(_) => Ok(()),
        })
        .map_err(|error| Error::Write { path: path.to_path_buf(), error })?;
    temporary.rename(path, existing).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(),
        _ => Error::Rename(error),
    })
}

/// Creates the file without a temporary name, when the target does not exist and the file system supports it:
/// a kill then leaves nothing, and one directory entry is made instead of two. Returns false when the other
/// way must be used.
fn create_unnamed(path: &Path, front: &[u8], bytes: u64) -> Result<bool, Error> {
    let directory = match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    };
    let mode = Mode::from_raw_mode(CREATE_MODE);
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(directory, flags, mode) else { return Ok(false) };
    let file = Handle::System(file);
    write_pieces(&file, front, bytes, PIECE_BYTES)
        .map_err(|error| Error::Write { path: path.to_path_buf(), error })?;
    let Handle::System(file) = file else { return Ok(false) };
    set_mode(&file, mode).map_err(|error| Error::Write { path: path.to_path_buf(), error })?;
    let linked = rustix::fs::linkat(&file, "", CWD, path, AtFlags::EMPTY_PATH).or_else(|_| {
        // Without privileges, the descriptor must be referred to by name.
        let name = format!("/proc/self/fd/{}", file.as_raw_fd());
        rustix::fs::linkat(CWD, name, CWD, path, AtFlags::SYMLINK_FOLLOW)
    });
    Ok(linked.is_ok())
}

/// Sets the mode of a new file if the umask has removed something; a needless change costs a journal entry.
fn set_mode(file: &OwnedFd, mode: Mode) -> io::Result<()> {
    if Mode::from_raw_mode(rustix::fs::fstat(file)?.st_mode & 0o7777) != mode {
        rustix::fs::fchmod(file, mode)?;
    }
    Ok(())
}

/// Copies the mode of another file, and its owner if permitted. A needless change costs a journal entry.
fn keep_owner(file: &OwnedFd, there: &Metadata) -> io::Result<()> {
    let own = rustix::fs::fstat(file)?;
    if (own.st_uid, own.st_gid) != (there.uid(), there.gid()) {
        let (owner, group) = (Uid::from_raw(there.uid()), Gid::from_raw(there.gid()));
        // Most users may not do this; a restored file then belongs to the user who restored it.
        rustix::fs::fchown(file, Some(owner), Some(group)).ok();
    }
    set_mode(file, Mode::from_raw_mode(there.mode() & 0o7777))
}

/// A temporary file; removed when dropped before its rename.
struct Temporary<'a> {
    volume: &'a Volume,
    path: PathBuf,
    renamed: bool,
}

impl Temporary<'_> {
    /// A new file beside `target`.
    fn new<'a>(volume: &'a Volume, target: &Path, mode: u32) -> io::Result<(Temporary<'a>, Handle)> {
        for _ in 0..TEMPORARY_TRIES {
            let mut path = target.as_os_str().to_os_string();
            path.push(suffix());
            match volume.create_new(Path::new(&path), mode) {
                Ok(file) => return Ok((Temporary { volume, path: path.into(), renamed: false }, file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(Errno::EXIST.into())
    }

    fn rename(mut self, target: &Path, existing: Existing) -> io::Result<()> {
        // After an exchange, the temporary name belongs to the old file, which is removed.
        self.renamed = self.volume.rename(&self.path, target, existing)?;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            // Best effort: the earlier error is the one to report.
            self.volume.remove(&self.path).ok();
        }
    }
}

/// Six letters and digits that are unused now.
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
