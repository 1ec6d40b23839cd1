//! The last record of a log, and what stands at the end of another one.

use std::io;
use std::path::Path;

use super::envelope::{self, ENVELOPE_BYTES};
use super::scan::{Item, scan};
use super::writer::log_files;
use super::{Position, range};
use crate::disk::Disk;
use crate::filenames;
use crate::replication::LastRecord;

/// The record that ends at `end`, if it is still there.
///
/// # Errors
/// The disk's.
pub fn find(disk: &dyn Disk, dir: &Path, end: Position) -> io::Result<Option<LastRecord>> {
    let starts = log_files(disk, dir)?;
    let before = starts.partition_point(|start| *start < end);
    let Some(&start) = starts[..before].last().filter(|start| start.generation == end.generation) else {
        return Ok(None);
    };
    let mut found = None;
    scan(disk, &filenames::log(dir, start), start, Some(end.offset), &mut |item| {
        if let Item::Record(record) = item
            && record.end == end
        {
            found = Some(record.position);
        }
    })?;
    let Some(start) = found else { return Ok(None) };
    at(disk, dir, start, end)
}

/// The record from `start` to `end`; `None` when none stands there.
///
/// # Errors
/// The disk's.
pub fn at(disk: &dyn Disk, dir: &Path, start: Position, end: Position) -> io::Result<Option<LastRecord>> {
    let bytes = end.offset.saturating_sub(start.offset);
    if start.generation != end.generation || bytes < ENVELOPE_BYTES as u64 {
        return Ok(None);
    }
    if bytes > (ENVELOPE_BYTES + super::BODY_BYTES_MAX) as u64 {
        return Ok(None);
    }
    let mut record = vec![0; bytes as usize];
    match range::read(disk, dir, start, &mut record) {
        Ok(()) => {}
        Err(error) if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::NotFound) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    }
    let is_whole = envelope::peek(&record, start) == Ok(record.len());
    let decoded = if is_whole { envelope::decode(&record, start).ok() } else { None };
    Ok(decoded.map(|decoded| LastRecord {
        start,
        check: envelope::check_of(&record),
        epoch: decoded.stamp.epoch,
    }))
}
