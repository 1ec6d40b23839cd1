//! Making, replacing and removing files: whole or not at all, by a temporary file and a rename.
//!
//! A temporary file is named `.roundel-PID-NUMBER.tmp` and stands beside its target; one that a kill left
//! behind is never read and may be removed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rrd::codec::file::{FileError, FileLayout, encode, encode_head};
use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::live::HeadShape;
use rrd_file::apply::Workspace;
use rrd_file::content::{rings, write_pieces};
use rrd_file::file::{Access, RrdFile};
use rrd_file::handle::Handle;
use rrd_file::name::RrdName;
use rrd_file::tree::split;
use rustix::fs::{Gid, Mode, Stat, Uid};

use crate::engine::{CreateRequest, StoreError};
use crate::files::buffer::{Buffer, Entry};
use crate::files::errors::{display_path, io_error};
use crate::files::options::SyncMode;
use crate::files::shared::Shared;
use crate::files::write::write;

/// Mode of new files: RRDtool's.
const FILE_MODE: u32 = 0o644;
/// Unknown rows are written in pieces of a page: a longer write makes a larger folio of the page cache, and an
/// update of eight bytes then dirties all of it (measured: 127 kB a visit of W1 in place of 35).
const PIECE_BYTES: usize = 4096;
/// Largest file made. RRDtool has no limit; this one keeps a typing error from filling the disk.
const FILE_BYTES_MAX: u64 = 64 << 30;

static TEMPORARY_COUNT: AtomicU64 = AtomicU64::new(0);

/// Makes a new file, all unknown, in the place of the name's. What waited for the name is dropped.
pub fn create(
    shared: &Shared,
    name: &RrdName,
    request: &CreateRequest,
    work: &mut Workspace,
) -> Result<(), StoreError> {
    let definition = &request.definition;
    let bytes = checked_bytes(definition)?;
    let live = rrd::create::new_live(definition, request.start);
    let shape = HeadShape::of(definition);
    let head = shape.split(&live.words);
    let mut front = Vec::new();
    encode_head(definition, &shape, head, &rings(definition, &live), &mut front)
        .map_err(|error| refused(shared, name, error))?;
    replace(shared, name, (&front, bytes), request.no_overwrite, work)
}

/// Writes a whole file of this content in the place of the name's. What waited for the name is dropped.
pub fn import(
    shared: &Shared,
    name: &RrdName,
    rrd: &Rrd,
    no_overwrite: bool,
    work: &mut Workspace,
) -> Result<(), StoreError> {
    let bytes = checked_bytes(&rrd.definition)?;
    let front =
        encode(rrd, &rings(&rrd.definition, &rrd.live)).map_err(|error| refused(shared, name, error))?;
    replace(shared, name, (&front, bytes), no_overwrite, work)
}

/// Removes an RRD's file and everything that waits for it.
pub fn delete(shared: &Shared, name: &RrdName, work: &mut Workspace) -> Result<(), StoreError> {
    shared.with_entry(name, |entry, buffer| {
        settle(shared, entry, buffer, work)?;
        let removed = shared.journal_forgotten(entry).and_then(|()| {
            shared.tree.remove(name).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => StoreError::NoSuchRrd(name.clone()),
                _ => io_error(&shared.tree, name, error),
            })
        });
        let removed = match shared.options.sync {
            SyncMode::Always => removed.and_then(|()| {
                shared.tree.sync_directories(name).map_err(|error| io_error(&shared.tree, name, error))
            }),
            SyncMode::Every(_) => removed,
        };
        if removed.is_ok() || buffer.words.is_empty() {
            shared.forget(entry, buffer);
        }
        removed
    })
}

fn checked_bytes(definition: &Definition) -> Result<u64, StoreError> {
    match FileLayout::of(definition).file_bytes {
        bytes if bytes > FILE_BYTES_MAX => {
            Err(StoreError::TooLarge(format!("the file would have {bytes} bytes")))
        }
        bytes => Ok(bytes),
    }
}

fn refused(shared: &Shared, name: &RrdName, error: FileError) -> StoreError {
    StoreError::Unfit { path: display_path(&shared.tree, name), error }
}

/// Puts a changed content in the place of an RRD's file, which is `old` and locked; mode and owner stay. The
/// caller holds the entry, and nothing waits for it. Durable when it returns: a power loss must not bring the
/// old file back under updates that only fit the new one.
pub fn exchange(shared: &Shared, entry: &Entry, rrd: &Rrd, old: &RrdFile) -> Result<(), StoreError> {
    let (tree, name) = (&shared.tree, &entry.name);
    let io = |error| io_error(tree, name, error);
    let bytes = checked_bytes(&rrd.definition)?;
    let front =
        encode(rrd, &rings(&rrd.definition, &rrd.live)).map_err(|error| refused(shared, name, error))?;
    let like = Like(old.handle().stat().map_err(io)?);
    // What the journal is about to forget must not be in the page cache alone.
    old.handle().sync().map_err(io)?;
    let forget = || shared.journal_forgotten(entry);
    put_in_place(
        shared,
        name,
        &NewFile { front: &front, bytes, like: Some(like), durable: true },
        false,
        forget,
    )?;
    tree.sync_directories(name).map_err(io)
}

fn replace(
    shared: &Shared,
    name: &RrdName,
    (front, bytes): (&[u8], u64),
    no_overwrite: bool,
    work: &mut Workspace,
) -> Result<(), StoreError> {
    shared.with_entry(name, |entry, buffer| {
        if !no_overwrite {
            settle(shared, entry, buffer, work)?;
        }
        // Told before the rename: updates of the old file must not be replayed into the new one.
        let forget = || shared.journal_forgotten(entry);
        let durable = shared.options.sync == SyncMode::Always;
        let io = |error| io_error(&shared.tree, name, error);
        let new = NewFile { front, bytes, like: None, durable };
        let made = put_in_place(shared, name, &new, no_overwrite, forget);
        if made.is_ok() {
            shared.drop_words(buffer);
            (buffer.last, buffer.geometry, buffer.trouble) = (None, None, None);
        } else if buffer.words.is_empty() && buffer.geometry.is_none() {
            shared.forget(entry, buffer);
        }
        made?;
        if durable { shared.tree.sync_directories(name).map_err(io) } else { Ok(()) }
    })
}

/// Brings what waits for an RRD into its file, which is about to go. The journal forgets it before the file goes,
/// and without this a kill in between would leave the file without what was acknowledged for it.
fn settle(
    shared: &Shared,
    entry: &Arc<Entry>,
    buffer: &mut Buffer,
    work: &mut Workspace,
) -> Result<(), StoreError> {
    if buffer.words.is_empty() {
        return Ok(());
    }
    match write(shared, entry, buffer, work) {
        Ok(()) if shared.options.sync == SyncMode::Always => {
            let file = shared.tree.open_file(&entry.name, Access::Write);
            file.and_then(|file| file.sync()).map_err(|error| io_error(&shared.tree, &entry.name, error))
        }
        // A file that is gone, or cannot be used any more, can be replaced and removed.
        Err(StoreError::NoSuchRrd(_) | StoreError::Damaged { .. } | StoreError::LeadsOut { .. }) => Ok(()),
        other => other,
    }
}

/// What a new file is to be: `front`, then unknown values up to `bytes`.
struct NewFile<'a> {
    front: &'a [u8],
    bytes: u64,
    /// The file whose mode and owner it takes over.
    like: Option<Like>,
    /// Whether it is durable before it gets its name.
    durable: bool,
}

/// The mode and owner of a file; `None` on a disk that knows neither.
struct Like(Option<Stat>);

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
        _ => io_error(tree, name, error),
    };
    if no_overwrite && tree.exists(name) {
        return Err(StoreError::Exists(name.clone()));
    }
    let (directory, _) = split(name.as_bytes());
    let number = TEMPORARY_COUNT.fetch_add(1, Ordering::Relaxed);
    let leaf = format!(".roundel-{}-{number}.tmp", std::process::id());
    let temporary =
        RrdName::new(&[directory, b"/", leaf.as_bytes()].concat()[usize::from(directory.is_empty())..])?;
    let file = tree.create_file(&temporary).map_err(io)?;
    let made = fill(&file, new)
        .map_err(io)
        .and_then(|()| before_rename())
        .and_then(|()| tree.rename_into_place(leaf.as_bytes(), name, !no_overwrite).map_err(io));
    if made.is_err() {
        // Best effort: the first error is the one to report.
        tree.remove(&temporary).ok();
    }
    made
}

fn fill(file: &Handle, new: &NewFile<'_>) -> io::Result<()> {
    let like = new.like.as_ref().and_then(|like| like.0.as_ref());
    if let Handle::System(file) = file {
        if let Some(like) = like {
            let (user, group) = (Uid::from_raw(like.st_uid), Gid::from_raw(like.st_gid));
            // Only root may give a file away; without it the file is ours, as after a tune by hand.
            rustix::fs::fchown(file, Some(user), Some(group)).ok();
        }
        // RRDtool does not heed the umask either.
        let mode = like.map_or(FILE_MODE, |like| like.st_mode & 0o7777);
        rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?;
    }
    write_pieces(file, new.front, new.bytes, PIECE_BYTES)?;
    match file {
        _ if !new.durable => Ok(()),
        // Mode and owner, too, must be durable before the name.
        Handle::System(file) => Ok(rustix::fs::fsync(file)?),
        Handle::Disk(file) => file.sync(),
    }
}
