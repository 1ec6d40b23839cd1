//! Making, replacing and removing files: whole or not at all, by a temporary file and a rename.
//!
//! A temporary file is named `.roundel-PID-NUMBER.tmp` and stands beside its target; one that a kill left
//! behind is never read and may be removed.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rrd::codec::file::{FileError, FileLayout, encode, encode_head};
use rrd::content::Rrd;
use rrd::definition::{Definition, Rra};
use rrd::grid::ring_index;
use rrd::live::{HeadShape, Live, UNKNOWN};
use rustix::fs::{Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

use crate::engine::{CreateRequest, StoreError};
use crate::files::buffer::Entry;
use crate::files::medium::{RrdFile, display_path, io_error};
use crate::files::shared::Shared;
use crate::name::RrdName;
use crate::tree::split;

/// Mode of new files: RRDtool's.
const FILE_MODE: u32 = 0o644;
/// Unknown rows are written in pieces of a page: a longer write makes a larger folio of the page cache, and an
/// update of eight bytes then dirties all of it (measured: 127 kB a visit of W1 in place of 35).
const PIECE_BYTES: usize = 4096;
/// Largest file made. RRDtool has no limit; this one keeps a typing error from filling the disk.
const FILE_BYTES_MAX: u64 = 64 << 30;

/// Parts of a write. Linux takes 1024.
const PARTS_MAX: usize = 256;

static TEMPORARY_COUNT: AtomicU64 = AtomicU64::new(0);

/// Makes a new file, all unknown, in the place of the name's. What waited for the name is dropped.
pub fn create(shared: &Shared, name: &RrdName, request: &CreateRequest) -> Result<(), StoreError> {
    let definition = &request.definition;
    let bytes = checked_bytes(definition)?;
    let live = rrd::create::new_live(definition, request.start);
    let shape = HeadShape::of(definition);
    let head = shape.split(&live.words);
    let mut front = Vec::new();
    encode_head(definition, &shape, head, &rings(definition, &live), &mut front)
        .map_err(|error| refused(shared, name, &error))?;
    replace(shared, name, &front, bytes, request.no_overwrite)
}

/// Writes a whole file of this content in the place of the name's. What waited for the name is dropped.
pub fn import(shared: &Shared, name: &RrdName, rrd: &Rrd, no_overwrite: bool) -> Result<(), StoreError> {
    let bytes = checked_bytes(&rrd.definition)?;
    let front =
        encode(rrd, &rings(&rrd.definition, &rrd.live)).map_err(|error| refused(shared, name, &error))?;
    replace(shared, name, &front, bytes, no_overwrite)
}

/// Removes an RRD's file and everything that waits for it.
pub fn delete(shared: &Shared, name: &RrdName) -> Result<(), StoreError> {
    shared.with_entry(name, |entry, buffer| {
        let removed = shared.journal_forgotten(entry).and_then(|()| {
            shared.tree.remove(name).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => StoreError::NoSuchRrd(name.clone()),
                _ => io_error(&shared.tree, name, &error),
            })
        });
        if removed.is_ok() || buffer.words.is_empty() {
            shared.forget(entry, buffer);
        }
        removed
    })
}

fn checked_bytes(definition: &Definition) -> Result<u64, StoreError> {
    match FileLayout::of(definition).file_bytes {
        bytes if bytes > FILE_BYTES_MAX => {
            Err(StoreError::Refused(format!("the file would have {bytes} bytes")))
        }
        bytes => Ok(bytes),
    }
}

/// Where each archive's newest row is put.
pub(crate) fn rings(definition: &Definition, live: &Live) -> Vec<u64> {
    let newest = HeadShape::of(definition).split(&live.words).last_update.whole;
    let ring = |(index, rra): (usize, &Rra)| ring_index(definition.newest_row(index, newest), rra.row_count);
    let mut rings: Vec<u64> = definition.rra.iter().enumerate().map(ring).collect();
    live.seasons.iter().for_each(|season| rings[season.rra] = season.current_row);
    rings
}

fn refused(shared: &Shared, name: &RrdName, error: &FileError) -> StoreError {
    StoreError::Refused(error.named(&display_path(&shared.tree, name)).to_string())
}

/// Puts a changed content in the place of an RRD's file, which is `old` and locked; mode and owner stay. The
/// caller holds the entry, and nothing waits for it. Durable when it returns: a power loss must not bring the
/// old file back under updates that only fit the new one.
pub fn exchange(shared: &Shared, entry: &Entry, rrd: &Rrd, old: &RrdFile) -> Result<(), StoreError> {
    let (tree, name) = (&shared.tree, &entry.name);
    let io = |error| io_error(tree, name, &error);
    let bytes = checked_bytes(&rrd.definition)?;
    let front =
        encode(rrd, &rings(&rrd.definition, &rrd.live)).map_err(|error| refused(shared, name, &error))?;
    let like = Some(old.stat().map_err(io)?);
    // What the journal is about to forget must not be in the page cache alone.
    old.sync().map_err(io)?;
    let forget = || shared.journal_forgotten(entry);
    put_in_place(shared, name, &NewFile { front: &front, bytes, like }, false, forget)?;
    tree.sync_directory(name).map_err(io)
}

fn replace(
    shared: &Shared,
    name: &RrdName,
    front: &[u8],
    bytes: u64,
    no_overwrite: bool,
) -> Result<(), StoreError> {
    shared.with_entry(name, |entry, buffer| {
        // Told before the rename: updates of the old file must not be replayed into the new one.
        let forget = || shared.journal_forgotten(entry);
        let made = put_in_place(shared, name, &NewFile { front, bytes, like: None }, no_overwrite, forget);
        if made.is_ok() {
            shared.drop_words(buffer);
            (buffer.last, buffer.geometry, buffer.trouble) = (None, None, None);
        } else if buffer.words.is_empty() && buffer.geometry.is_none() {
            shared.forget(entry, buffer);
        }
        made
    })
}

/// What a new file is to be: `front`, then unknown values up to `bytes`.
struct NewFile<'a> {
    front: &'a [u8],
    bytes: u64,
    /// The file whose mode and owner it takes over; it is then durable before it gets its name.
    like: Option<Stat>,
}

/// A new file under the name.
fn put_in_place(
    shared: &Shared,
    name: &RrdName,
    new: &NewFile<'_>,
    no_overwrite: bool,
    before_rename: impl FnOnce() -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let tree = &shared.tree;
    let io = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => StoreError::Exists(name.clone()),
        _ => io_error(tree, name, &error),
    };
    if no_overwrite && tree.open_file(name, OFlags::PATH, Mode::empty()).is_ok() {
        return Err(StoreError::Exists(name.clone()));
    }
    let (directory, _) = split(name.as_bytes());
    let number = TEMPORARY_COUNT.fetch_add(1, Ordering::Relaxed);
    let leaf = format!(".roundel-{}-{number}.tmp", std::process::id());
    let temporary =
        RrdName::new(&[directory, b"/", leaf.as_bytes()].concat()[usize::from(directory.is_empty())..])
            .map_err(|error| StoreError::Refused(error.to_string()))?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
    let file = tree.open_file(&temporary, flags, Mode::from_raw_mode(FILE_MODE)).map_err(io)?;
    let made = fill(file, new)
        .map_err(io)
        .and_then(|()| before_rename())
        .and_then(|()| tree.rename_into_place(leaf.as_bytes(), name, !no_overwrite).map_err(io));
    if made.is_err() {
        // Best effort: the first error is the one to report.
        tree.remove(&temporary).ok();
    }
    made
}

fn fill(file: OwnedFd, new: &NewFile<'_>) -> io::Result<()> {
    if let Some(like) = &new.like {
        let (user, group) = (Uid::from_raw(like.st_uid), Gid::from_raw(like.st_gid));
        // Only root may give a file away; without it the file is ours, as after a tune by hand.
        rustix::fs::fchown(&file, Some(user), Some(group)).ok();
    }
    // RRDtool does not heed the umask either.
    let mode = new.like.as_ref().map_or(FILE_MODE, |like| like.st_mode & 0o7777);
    rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
    write_pieces(&file, new.front, new.bytes, PIECE_BYTES)?;
    if new.like.is_some() { Ok(rustix::fs::fsync(&file)?) } else { Ok(()) }
}

/// Writes `front` and then unknown values up to `bytes`, in pieces that begin at multiples of `piece_bytes`.
/// All three are multiples of 8.
pub(crate) fn write_pieces(file: impl AsFd, front: &[u8], bytes: u64, piece_bytes: usize) -> io::Result<()> {
    let mut at = 0;
    let mut parts = Vec::new();
    while at < bytes {
        parts.clear();
        let mut from = at;
        // A piece ends at a multiple of its size, also behind a write that was cut short.
        let end = bytes.min((at / piece_bytes as u64 + 1) * piece_bytes as u64);
        while from < end && parts.len() < PARTS_MAX {
            let rest = front.get(usize::try_from(from).unwrap_or(usize::MAX)..).unwrap_or_default();
            let part = match rest {
                // Values begin where the front ends.
                [] => &unknown_rows()[(from - front.len() as u64) as usize % 8..],
                rest => rest,
            };
            let part = &part[..part.len().min((end - from) as usize)];
            from += part.len() as u64;
            parts.push(IoSlice::new(part));
        }
        match rustix::io::writev(&file, &parts) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => at += count as u64,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Unknown values as they stand in a file. Short enough to stay in the processor's cache.
fn unknown_rows() -> &'static [u8] {
    static UNKNOWN_ROWS: [u64; 2048] = [u64::to_le(UNKNOWN.to_bits()); 2048];
    bytemuck::cast_slice(&UNKNOWN_ROWS)
}
