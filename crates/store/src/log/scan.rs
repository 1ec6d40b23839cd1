//! Scans one log file for `inspect`: every record in it, and all bytes that are not a record.
//!
//! Every visited record has passed its checksum and is at its own position. Unlike
//! [`super::replay`](fn@super::replay), the scan continues after any damage and decides nothing.

use std::io;
use std::path::Path;

use super::Position;
use super::envelope::{ENVELOPE_BYTES, NotRecord, Record};
use super::replay::{Damage, Fault, Window};
use crate::disk::{Disk, Mode};

/// What the scan finds at a position.
#[derive(Debug)]
pub enum Item<'a> {
    /// An intact record.
    Record(Record<'a>),
    /// An intact record whose version or kind this program does not know.
    Unknown {
        /// Where it starts.
        position: Position,
        /// Its version.
        version: u8,
        /// Its kind.
        kind: u8,
    },
    /// Invalid bytes with a good record after them. `durable`: that record proves that they were synced once;
    /// otherwise a crash tore them, and recovery cuts the log here.
    Damaged {
        /// Where, and what is wrong.
        damage: Damage,
        /// The bytes had been synced.
        durable: bool,
    },
    /// Whatever follows the last good record.
    Tail(Tail),
}

/// The end of a log file.
#[derive(Debug, PartialEq, Eq)]
pub struct Tail {
    /// Where the next record would go.
    pub position: Position,
    /// Bytes of the file from there on.
    pub bytes: u64,
    /// How many of them, from the start, are reserved and still zero; usually all.
    pub zero_bytes: u64,
    /// A torn or damaged record begins here.
    pub torn: Option<Fault>,
}

/// Visits the content of a log file in order. `end` is the offset in the generation at which the next file
/// starts, if there is one; anything after it is ignored.
///
/// # Errors
/// When the file cannot be read.
pub fn scan(
    disk: &dyn Disk,
    path: &Path,
    start: Position,
    end: Option<u64>,
    visit: &mut dyn FnMut(Item<'_>),
) -> io::Result<()> {
    let file = disk.open(path, Mode::Read)?;
    let file_end = start.offset.saturating_add(file.length()?);
    let end = end.map_or(file_end, |end| file_end.min(end));
    let mut window = Window::new(file, start, end, 0);
    let mut position = start;
    while position.offset < end {
        let (fault, length) = match window.record_at(position)? {
            Ok(record) => {
                position = record.end;
                visit(Item::Record(record));
                continue;
            }
            Err(NotRecord::Unknown { version, kind }) => {
                visit(Item::Unknown { position, version, kind });
                // Its checksum is good, therefore its length too.
                (None, window.record_bytes(position)?)
            }
            Err(NotRecord::Foreign) => (Some(Fault::NoRecord), None),
            Err(NotRecord::Stranger) => (Some(Fault::Stranger), None),
            Err(NotRecord::Cut) => (Some(Fault::Cut), None),
            Err(NotRecord::Checksum { expected, found }) => (Some(Fault::Checksum { expected, found }), None),
        };
        if let Some(length) = length {
            position = position.plus(length as u64);
            continue;
        }
        let fault = fault.unwrap_or(Fault::NoRecord);
        let Some((next, durable)) = next_good(&mut window, position, end)? else {
            let tail = tail(&mut window, position, end, fault)?;
            visit(Item::Tail(tail));
            return Ok(());
        };
        let damage = Damage {
            path: path.to_owned(),
            file_offset: position.offset - start.offset,
            from: position,
            to: next,
            fault,
        };
        visit(Item::Damaged { damage, durable });
        position = next;
    }
    Ok(())
}

/// The next good record after invalid bytes, and whether one of the records there proves that they had been
/// synced.
fn next_good(window: &mut Window, bad: Position, end: u64) -> io::Result<Option<(Position, bool)>> {
    let mut first_good = None;
    let mut position = bad.plus(1);
    while position.offset < end && window.find_magic(&mut position)? {
        let Ok(record) = window.record_at(position)? else {
            position.offset += 1;
            continue;
        };
        let good = *first_good.get_or_insert(position);
        if record.durable > bad.offset {
            return Ok(Some((good, true)));
        }
        position = record.end;
    }
    Ok(first_good.map(|good| (good, false)))
}

fn tail(window: &mut Window, position: Position, end: u64, fault: Fault) -> io::Result<Tail> {
    let mut zero_bytes = 0;
    while position.offset + zero_bytes < end {
        let bytes = window.bytes(position.offset + zero_bytes, ENVELOPE_BYTES)?;
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        zero_bytes += zeros as u64;
        if zeros < bytes.len() || bytes.is_empty() {
            break;
        }
    }
    let torn = (fault != Fault::NoRecord && zero_bytes == 0).then_some(fault);
    Ok(Tail { position, bytes: end - position.offset, zero_bytes, torn })
}
