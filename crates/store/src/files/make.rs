//! Creates, replaces and removes files atomically, by a temporary file and a rename.
//!
//! The temporary file lies beside its target; [`temporary`](crate::files::temporary) says how it is named and what becomes of
//! one that a kill leaves.

use std::io;
use std::sync::Arc;

use rrd::codec::file::{FileError, FileLayout, encode, encode_head};
use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::live::HeadShape;
use rrd_file::FILE_BYTES_MAX;
use rrd_file::apply::Workspace;
use rrd_file::content::{rings, write_pieces};
use rrd_file::file::{Access, RrdFile};
use rrd_file::handle::Handle;
use rrd_file::name::RrdName;
use rrd_file::tree::split;
use rustix::fs::{Gid, Mode, Stat, Uid};

use crate::engine::{CreateRequest, StoreError};
use crate::files::buffer::{Buffer, Entry};
use crate::files::errors::{display_path, io_error, is_unusable};
use crate::files::options::SyncMode;
use crate::files::shared::Shared;
use crate::files::write::write;

/// Mode of new files: RRDtool's.
const FILE_MODE: u32 = 0o644;
/// Unknown rows are written in chunks of one page: a longer write creates a larger folio in the page cache,
/// and an update of eight bytes then dirties all of it (measured: 127 kB per visit in W1 instead of 35).
const PIECE_BYTES: usize = 4096;

/// Creates a file with only unknown rows, replacing any file of that name. Buffered updates for the name are
/// dropped.
///
/// # Errors
/// When the definition does not fit a file, the file exists and `no_overwrite` is set, or writing fails.
pub fn create(
    shared: &Shared,
    name: &RrdName,
    request: &CreateRequest,
    work: &mut Workspace,
) -> Result<(), StoreError> {
    let definition = &request.definition;
    let bytes = checked_bytes(shared, definition)?;
    let live = rrd::create::new_live(definition, request.start);
    let shape = HeadShape::of(definition);
    let head = shape.split(&live.words);
    let mut front = Vec::new();
    encode_head(definition, &shape, head, &rings(definition, &live), &mut front)
        .map_err(|error| refused(shared, name, error))?;
    replace(shared, name, (&front, bytes), request.no_overwrite, work)
}

/// Writes a whole file with this content, replacing any file of that name. Buffered updates for the name are
/// dropped.
///
/// # Errors
/// As [`create`].
pub fn import(
    shared: &Shared,
    name: &RrdName,
    rrd: &Rrd,
    no_overwrite: bool,
    work: &mut Workspace,
) -> Result<(), StoreError> {
    let bytes = checked_bytes(shared, &rrd.definition)?;
    let front =
        encode(rrd, &rings(&rrd.definition, &rrd.live)).map_err(|error| refused(shared, name, error))?;
    replace(shared, name, (&front, bytes), no_overwrite, work)
}

/// Removes an RRD's file and its buffered updates.
///
/// # Errors
/// When there is no such file, or it cannot be removed.
pub fn delete(shared: &Shared, name: &RrdName, work: &mut Workspace) -> Result<(), StoreError> {
    shared.with_entry(name, |entry, buffer| {
        settle(shared, entry, buffer, shared.options.sync == SyncMode::Always, work)?;
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
            SyncMode::Every(_) => removed.inspect(|()| shared.new_files.note(name)),
        };
        if removed.is_ok() || buffer.updates.is_empty() {
            shared.forget(entry, buffer);
        }
        removed
    })
}

/// Renames an RRD's file, after what waits for it is written. Another file of the new name is replaced, and what waits for that is
/// dropped.
///
/// # Errors
/// When there is no such file, or it cannot be renamed.
pub fn rename(shared: &Shared, from: &RrdName, to: &RrdName, work: &mut Workspace) -> Result<(), StoreError> {
    let durable = shared.options.sync == SyncMode::Always;
    shared.with_entry(to, |entry, buffer| {
        settle(shared, entry, buffer, durable, work)?;
        shared.journal_forgotten(entry)?;
        shared.forget(entry, buffer);
        Ok::<_, StoreError>(())
    })?;
    shared.with_entry(from, |entry, buffer| {
        settle(shared, entry, buffer, durable, work)?;
        write(shared, entry, buffer, work)?;
        shared.journal_forgotten(entry)?;
        shared.tree.rename(from, to).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => StoreError::NoSuchRrd(from.clone()),
            _ => io_error(&shared.tree, from, error),
        })?;
        shared.forget(entry, buffer);
        for name in [from, to] {
            match durable {
                true => {
                    shared
                        .tree
                        .sync_directories(name)
                        .map_err(|error| io_error(&shared.tree, name, error))?;
                }
                false => shared.new_files.note(name),
            }
        }
        Ok(())
    })
}

/// Bytes of the file of a definition that this store can hold.
///
/// # Errors
/// [`StoreError::TooLarge`].
pub fn checked_bytes(shared: &Shared, definition: &Definition) -> Result<u64, StoreError> {
    shared.check_memory(definition)?;
    match FileLayout::of(definition).file_bytes {
        bytes if bytes > FILE_BYTES_MAX => Err(StoreError::TooLarge(format!(
            "the file would have {bytes} bytes, {FILE_BYTES_MAX} are the limit"
        ))),
        bytes => Ok(bytes),
    }
}

fn refused(shared: &Shared, name: &RrdName, error: FileError) -> StoreError {
    StoreError::Unfit { path: display_path(&shared.tree, name), error }
}

/// Replaces the content of an RRD's file, which is `old` and locked; mode and owner stay. The caller holds
/// the entry's lock, and nothing is buffered for it. Durable when it returns: a power loss must not bring the
/// old file back under updates that only fit the new one.
///
/// # Errors
/// When the new file cannot be written, synced or renamed; the old one then stays.
pub fn exchange(shared: &Shared, entry: &Entry, rrd: &Rrd, old: &RrdFile) -> Result<(), StoreError> {
    let (tree, name) = (&shared.tree, &entry.name);
    let io = |error| io_error(tree, name, error);
    let bytes = checked_bytes(shared, &rrd.definition)?;
    let front =
        encode(rrd, &rings(&rrd.definition, &rrd.live)).map_err(|error| refused(shared, name, error))?;
    let like = Like(old.handle().stat().map_err(io)?);
    // The journal is about to forget these updates, so they must not be in the page cache only.
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
        // When there is an old file, also under an interval: after a power loss its updates must not be in the journal beside
        // the new file, nor the new ones beside the old file.
        let replaces = || shared.tree.exists(name) || shared.new_files.contains(name);
        let durable = shared.options.sync == SyncMode::Always || replaces();
        if !no_overwrite {
            settle(shared, entry, buffer, durable, work)?;
        }
        // Recorded before the rename: updates of the old file must not be replayed into the new one.
        let forget = || match shared.journal_forgotten(entry) {
            Ok(()) if durable => shared.sync_journal_of(entry),
            other => other,
        };
        let io = |error| io_error(&shared.tree, name, error);
        let new = NewFile { front, bytes, like: None, durable };
        let made = put_in_place(shared, name, &new, no_overwrite, forget);
        if made.is_ok() {
            shared.clear_buffer(buffer);
            (buffer.last, buffer.geometry, buffer.trouble) = (None, None, None);
        } else if buffer.updates.is_empty() && buffer.geometry.is_none() {
            shared.forget(entry, buffer);
        }
        made?;
        if durable {
            return shared.tree.sync_directories(name).map_err(io);
        }
        shared.new_files.note(name);
        Ok(())
    })
}

/// Writes an RRD's buffered updates to its file, which is about to be replaced or removed. The journal
/// forgets them before that happens, and otherwise a kill in between would leave the file without
/// acknowledged updates.
fn settle(
    shared: &Shared,
    entry: &Arc<Entry>,
    buffer: &mut Buffer,
    durable: bool,
    work: &mut Workspace,
) -> Result<(), StoreError> {
    if buffer.updates.is_empty() {
        return Ok(());
    }
    match write(shared, entry, buffer, work) {
        Ok(()) if durable => {
            let file = shared.tree.open_file(&entry.name, Access::Write);
            file.and_then(|file| file.sync()).map_err(|error| io_error(&shared.tree, &entry.name, error))
        }
        // A file that is missing or unusable can still be replaced and removed.
        Err(StoreError::NoSuchRrd(_)) => Ok(()),
        Err(error) if is_unusable(&error) => Ok(()),
        other => other,
    }
}

/// The content of a new file: `front`, then unknown values up to `bytes`.
struct NewFile<'a> {
    front: &'a [u8],
    bytes: u64,
    /// The file whose mode and owner it keeps.
    like: Option<Like>,
    /// Whether it is synced before it gets its name.
    durable: bool,
}

/// The mode and owner of a file; `None` on a disk without them.
struct Like(Option<Stat>);

/// Writes a new file and renames it to `name`.
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
    let leaf = shared.maker().name();
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
            // Only root may give a file away; otherwise it belongs to this user, as after a manual tune.
            rustix::fs::fchown(file, Some(user), Some(group)).ok();
        }
        // RRDtool ignores the umask too.
        let mode = like.map_or(FILE_MODE, |like| like.st_mode & 0o7777);
        rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?;
    }
    write_pieces(file, new.front, new.bytes, PIECE_BYTES)?;
    match file {
        _ if !new.durable => Ok(()),
        // Mode and owner must also be durable before the rename.
        Handle::System(file) => Ok(rustix::fs::fsync(file)?),
        Handle::Disk(file) => file.sync(),
    }
}
