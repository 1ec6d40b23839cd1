//! Queries: read from the file, with the buffered updates applied in memory. Only an answer that is read in parts has
//! them written first.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use rrd::codec::file::decode;
use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::fetch::{FetchRequest, FetchRows};
use rrd::live::UNKNOWN;
use rrd::update::effective_time;
use rrd_file::file::{Access, OpenError, RrdFile};
use rrd_file::geometry::FileHeader;

use crate::engine::{Choose, RrdStatus, Snapshot, StoreError, are_rows_alike};
use crate::files::buffer::{Buffer, Entry};
use crate::files::errors::{header_error, io_error, open_error};
use crate::files::shared::Shared;
use crate::files::{updates, write};
use crate::name::RrdName;
use rrd_file::apply::{Loaded, Workspace};

/// The largest file that is read whole, for an export. Guessed.
pub const READ_BYTES_MAX: u64 = 4 << 30;
/// Pause before a locked file is retried: an update of it takes some 50 us.
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// Buffered updates in bytes that are applied for each part of an answer again, instead of being written once.
const APPLIED_BYTES_MAX: usize = 8 * 1024;

/// How long to wait for another program's lock.
#[derive(Clone, Copy, Debug)]
pub enum Timeout {
    /// 5 ms, because others are waiting for this thread.
    Short,
    /// A second.
    Long,
}

/// Opens a file, waiting up to `timeout` for another program's lock. The caller must hold the entry's lock.
///
/// # Errors
/// When there is no such file, it stays locked, or it is no RRD.
pub fn open(
    shared: &Shared,
    name: &RrdName,
    access: Access,
    patience: Timeout,
) -> Result<RrdFile, StoreError> {
    let mut tries = match patience {
        Timeout::Short => 5,
        Timeout::Long => 1000,
    };
    loop {
        match RrdFile::open(&shared.tree, name, access) {
            Err(OpenError::Locked) if tries > 0 => {
                tries -= 1;
                std::thread::sleep(LOCK_PAUSE);
            }
            other => return other.map_err(|error| open_error(&shared.tree, name, error)),
        }
    }
}

/// Reads a file's definition and last update when the engine first needs it.
///
/// # Errors
/// When the file cannot be opened or its header is damaged.
pub fn load_header(
    shared: &Shared,
    entry: &Entry,
    buffer: &mut Buffer,
    work: &mut Workspace,
    patience: Timeout,
) -> Result<FileHeader, StoreError> {
    let header = open(shared, &entry.name, Access::Read, patience).and_then(|file| {
        let header = file.header(&shared.geometries, None, &mut work.bytes);
        let header = header.map_err(|error| header_error(&shared.tree, &entry.name, error))?;
        // Made by another program: its seasons are read with every update.
        shared.check_memory(&header.geometry.definition)?;
        Ok(header)
    });
    match header {
        Ok(header) => {
            let in_file = header.geometry.shape.split(&header.words).last_update;
            buffer.last =
                buffer.last.map(|last| effective_time(&header.geometry.definition, last)).max(Some(in_file));
            buffer.geometry = Some(Arc::clone(&header.geometry));
            Ok(header)
        }
        Err(error) => {
            // A name without an RRD must not stay in memory because of a query.
            if buffer.updates.is_empty() {
                shared.forget(entry, buffer);
            }
            Err(error)
        }
    }
}

/// Calls `ask` with an RRD's open file, its state including all buffered updates, and those updates.
fn ask<T>(
    shared: &Shared,
    name: &RrdName,
    ask: impl FnOnce(&RrdFile, Loaded, &mut Workspace) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let mut work = Workspace::default();
    shared.with_entry(name, |entry, buffer| {
        if buffer.geometry.is_none() {
            load_header(shared, entry, buffer, &mut work, Timeout::Long)?;
        }
        let io = |error| io_error(&shared.tree, name, error);
        let file = open(shared, name, Access::Read, Timeout::Long)?;
        let header = file
            .header(&shared.geometries, buffer.geometry.as_ref(), &mut work.bytes)
            .map_err(|error| header_error(&shared.tree, name, error))?;
        let mut loaded = Loaded::new(header, &file).map_err(io)?;
        loaded.apply(updates::pending(&buffer.updates), &mut work);
        ask(&file, loaded, &mut work)
    })
}

/// Definition and live head.
///
/// # Errors
/// When the file cannot be opened or read, or is damaged.
pub fn snapshot(shared: &Shared, name: &RrdName) -> Result<Snapshot, StoreError> {
    ask(shared, name, |file, loaded, _| {
        let definition = Arc::clone(&loaded.header.geometry.definition);
        let current_rows = loaded.header.current_rows.clone();
        let about = file.handle().stat().map_err(|error| io_error(&shared.tree, name, error))?;
        // What replaces a file is another file.
        let identity = about.map_or(0, |about| about.st_ino);
        Ok(Snapshot { definition, live: loaded.into_live(), current_rows, identity })
    })
}

/// Definition and last update of an RRD, including its buffered updates. Reads only the header.
///
/// # Errors
/// When the file cannot be opened or its header is damaged.
pub fn status(shared: &Shared, name: &RrdName) -> Result<RrdStatus, StoreError> {
    let mut work = Workspace::default();
    shared.with_entry(name, |entry, buffer| {
        // Another program may have updated or replaced the file since it was last read.
        if buffer.updates.is_empty() {
            buffer.last = None;
        }
        let header = load_header(shared, entry, buffer, &mut work, Timeout::Long)?;
        let geometry = &header.geometry;
        let in_file = RrdStatus::of(Arc::clone(&geometry.definition), &geometry.shape, &header.words);
        Ok(RrdStatus {
            last_update: buffer.last.unwrap_or(in_file.last_update),
            is_updated: in_file.is_updated || !buffer.updates.is_empty(),
            ..in_file
        })
    })
}

/// A whole RRD.
///
/// # Errors
/// When the file cannot be opened or read, is damaged, or exceeds [`READ_BYTES_MAX`].
pub fn read(shared: &Shared, name: &RrdName) -> Result<Rrd, StoreError> {
    ask(shared, name, |file, loaded, work| {
        let bytes = loaded.header.geometry.layout.file_bytes;
        if bytes > READ_BYTES_MAX {
            return Err(StoreError::TooLarge(format!(
                "'{name}' has {bytes} bytes, too many to read at once"
            )));
        }
        let mut copy = vec![0; bytes as usize];
        let io = |error| io_error(&shared.tree, name, error);
        file.read_at(&mut copy, 0).map_err(io)?;
        loaded.write(work, &mut copy).map_err(io)?;
        let parts = decode(&copy).map_err(|error| StoreError::Damaged { path: name.to_string(), error })?;
        Ok(parts.rrd)
    })
}

/// Rows from the archive that RRDtool would choose.
///
/// # Errors
/// When no archive can answer, the answer would be too large, or the file cannot be read.
pub fn fetch(shared: &Shared, name: &RrdName, request: FetchRequest) -> Result<FetchRows, StoreError> {
    ask(shared, name, |file, loaded, work| {
        let definition = &loaded.header.geometry.definition;
        let last_update = loaded.last_update().whole;
        let plan = rrd::plan::plan(definition, last_update, &request).map_err(StoreError::Fetch)?;
        // The plan has limited the number of values.
        let values = archive_rows(file, &loaded, work, plan.rra, &plan.rows)
            .map_err(|error| io_error(&shared.tree, name, error))?;
        Ok(FetchRows::new(definition, &plan, values))
    })
}

/// Rows of an archive by their numbers. Those that the archive does not have any more are unknown.
///
/// # Errors
/// When the file is gone or another one by now, or cannot be read.
pub fn rows(
    shared: &Shared,
    name: &RrdName,
    of: &Definition,
    rra: usize,
    rows: Range<i64>,
) -> Result<Vec<f64>, StoreError> {
    shared.with_entry(name, |entry, buffer| {
        if buffer.updates.len() > APPLIED_BYTES_MAX
            && let Err(error) = write::write(shared, entry, buffer, &mut Workspace::default())
        {
            tracing::debug!(%error, "'{name}' is read without writing its updates first");
        }
    });
    ask(shared, name, |file, loaded, work| {
        let definition = &loaded.header.geometry.definition;
        if !are_rows_alike(of, definition) || rra >= definition.rra.len() {
            return Err(StoreError::NoSuchRrd(name.clone()));
        }
        let read = archive_rows(file, &loaded, work, rra, &rows);
        read.map_err(|error| io_error(&shared.tree, name, error))
    })
}

/// The rows that `choose` takes, from a file that is opened once.
///
/// # Errors
/// When the file cannot be opened or read, or is damaged.
pub fn chosen_rows(
    shared: &Shared,
    name: &RrdName,
    choose: Choose<'_>,
) -> Result<Option<Vec<f64>>, StoreError> {
    ask(shared, name, |file, loaded, work| {
        let FileHeader { geometry, words, .. } = &loaded.header;
        let status = RrdStatus::of(Arc::clone(&geometry.definition), &geometry.shape, words);
        let Some((rra, rows)) = choose(&status) else { return Ok(None) };
        let read = archive_rows(file, &loaded, work, rra, &rows);
        read.map(Some).map_err(|error| io_error(&shared.tree, name, error))
    })
}

fn archive_rows(
    file: &RrdFile,
    loaded: &Loaded,
    work: &mut Workspace,
    rra: usize,
    rows: &Range<i64>,
) -> std::io::Result<Vec<f64>> {
    let definition = &loaded.header.geometry.definition;
    let ds_count = definition.ds.len();
    let mut values = vec![UNKNOWN; (rows.end - rows.start) as usize * ds_count];
    let newest = definition.newest_row(rra, loaded.last_update().whole);
    let oldest = newest - definition.rra[rra].row_count as i64 + 1;
    let (from, to) = (rows.start.max(oldest), rows.end.min(newest + 1));
    if from < to {
        let at = (from - rows.start) as usize * ds_count;
        let window = &mut values[at..at + (to - from) as usize * ds_count];
        read_window(file, loaded, work, rra, (newest - from) as u64, window)?;
    }
    Ok(values)
}

/// Fills `window` with consecutive rows of an archive; the first is `age` rows older than the newest.
fn read_window(
    file: &RrdFile,
    loaded: &Loaded,
    work: &mut Workspace,
    rra: usize,
    age: u64,
    window: &mut [f64],
) -> std::io::Result<()> {
    let archive = loaded.header.geometry.layout.archives[rra];
    let first = (loaded.header.current_rows[rra] + archive.row_count - age) % archive.row_count;
    if let Some(season) = loaded.seasons.iter().find(|season| season.rra == rra) {
        let start = first as usize * archive.row_bytes as usize / 8;
        let rows = season.values[start..].iter().chain(&season.values[..start]);
        window.iter_mut().zip(rows).for_each(|(cell, value)| *cell = *value);
        return Ok(());
    }
    file.read_rows(archive, first, window)?;
    work.rows.overlay(rra, archive, first, window);
    Ok(())
}
