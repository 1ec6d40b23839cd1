//! Reads the log back: every record from a position on, in order, and decides what invalid bytes mean.
//!
//! The rule: every record contains a *durable mark*, the offset up to which the log was synced when it was
//! written. Invalid bytes at offset B are **damage** if a good record after them has a mark beyond B, because
//! then B had once been on the disk: they are reported, and replay continues with the next good record.
//! They are damage too if B lies before the durable end that the manifest records: then there need be nothing after them, not
//! even a file. Otherwise they are the **end** of the log: what a crash tore or lost there was never durable, and good
//! records after it (the disk may write in any order) are cut off too, so that what remains is a prefix; the end says how much
//! is cut. The limit of the rule: damage to what was synced after the manifest was written, with nothing written since, looks
//! like the end.
//!
//! No record is delivered twice or out of order, memory is bounded by two read units and one record, and
//! every delivered record has passed its checksum.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::LogError;
use super::Position;
use super::envelope::{self, ENVELOPE_BYTES, MAGIC, NotRecord, Record};
use super::writer::log_files;
use crate::disk::{Advice, Disk, DiskFile, Mode};
use crate::filenames;

/// Bytes per disk read: large enough for read-ahead, small enough to stay in the cache.
const READ_BYTES: usize = 1 << 20;

/// What is known of a log from elsewhere: its manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Everything before this was synced once.
    pub durable: Position,
    /// The file that held the end of that begins here.
    pub newest_file: Position,
    /// The tag of the shard; records of another one are damage. 0 = not known.
    pub owner: u32,
}

/// How replay ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayEnd {
    /// Where the next record goes.
    pub end: Position,
    /// Ranges that were once durable and can no longer be read, in order.
    pub damage: Vec<Damage>,
    /// What follows the end and must be cut off, when it is more than unused space.
    pub cut: Option<Cut>,
    /// Files with good records that are not at their places, as bytes that were removed or added leave them;
    /// [`super::straighten`] puts them there.
    pub misplaced: Vec<PathBuf>,
    /// Records delivered.
    pub record_count: u64,
}

/// Bytes after the end of the log. A crash leaves them: they were never synced, and lack what should stand before them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The file in which they begin.
    pub path: PathBuf,
    /// Offset in that file.
    pub file_offset: u64,
    /// Position in the log.
    pub from: Position,
    /// Where the last good record among them ends.
    pub to: Position,
    /// Good records among them.
    pub record_count: u64,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cut { path, file_offset, from, to, record_count } = self;
        write!(f, "log file {} ends at byte {file_offset} (position {from})", path.display())?;
        match record_count {
            0 => f.write_str(" with an unfinished record"),
            count => {
                let bytes = to.offset - from.offset;
                write!(
                    f,
                    "; {count} complete records in the {bytes} bytes after it lack what was before them"
                )
            }
        }
    }
}

/// A range of the log that was durable and is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file it starts in, or the missing file.
    pub path: PathBuf,
    /// Offset in that file.
    pub file_offset: u64,
    /// Position in the log.
    pub from: Position,
    /// Where the next good record starts.
    pub to: Position,
    /// What is wrong at its start.
    pub fault: Fault,
}

/// Why there is no record at some position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No file contains this position.
    Missing,
    /// Other bytes than a record of this position.
    NoRecord,
    /// A record longer than the rest of the file.
    Cut,
    /// A good record of another shard or store.
    Stranger,
    /// A record with a bad checksum.
    Checksum {
        /// The checksum in its envelope.
        expected: u32,
        /// The computed checksum.
        found: u32,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.to.offset.saturating_sub(self.from.offset);
        write!(
            f,
            "log file {} is damaged at byte {} (position {}, {bytes} bytes lost): ",
            self.path.display(),
            self.file_offset,
            self.from
        )?;
        match self.fault {
            Fault::Missing => f.write_str("the file is missing or too short"),
            Fault::NoRecord => f.write_str("expected a record, found other bytes"),
            Fault::Cut => f.write_str("the record is longer than the file"),
            Fault::Stranger => f.write_str("the record is one of another shard or store"),
            Fault::Checksum { expected, found } => {
                write!(f, "expected checksum {expected:08x}, found {found:08x}")
            }
        }
    }
}

/// Why replay stopped early.
#[derive(Debug)]
pub enum ReplayError<E> {
    /// The log could not be read.
    Log(LogError),
    /// The visitor refused a record.
    Visitor(E),
}

impl<E> From<LogError> for ReplayError<E> {
    fn from(error: LogError) -> Self {
        ReplayError::Log(error)
    }
}

impl<E> From<io::Error> for ReplayError<E> {
    fn from(error: io::Error) -> Self {
        ReplayError::Log(LogError::Io(error))
    }
}

impl<E: fmt::Display> fmt::Display for ReplayError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::Log(error) => error.fmt(f),
            ReplayError::Visitor(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for ReplayError<E> {}

/// Delivers every record from `from` on, through all generations. `from` is the start of a record or the end
/// of the log. A log that ends earlier (the checkpoint outlived it) ends at `from`. `known` says
/// what was there once.
///
/// # Errors
/// When the log cannot be read, or `visit` returns an error.
pub fn replay<E>(
    disk: &dyn Disk,
    dir: &Path,
    from: Position,
    known: Known,
    visit: &mut dyn FnMut(Record<'_>) -> Result<(), E>,
) -> Result<ReplayEnd, ReplayError<E>> {
    let starts = if disk.exists(dir)? { log_files(disk, dir)? } else { Vec::new() };
    let mut end =
        ReplayEnd { end: from, damage: Vec::new(), cut: None, misplaced: Vec::new(), record_count: 0 };
    replay_generation(disk, dir, &starts, known, visit, &mut end)?;
    let mut generations: Vec<u32> = starts.iter().map(|start| start.generation).collect();
    generations.dedup();
    for generation in generations.into_iter().filter(|&generation| generation > from.generation) {
        end.end = Position { generation, offset: 0 };
        replay_generation(disk, dir, &starts, known, visit, &mut end)?;
    }
    Ok(end)
}

/// Continues at `end.end` until its generation ends.
fn replay_generation<E>(
    disk: &dyn Disk,
    dir: &Path,
    starts: &[Position],
    known: Known,
    visit: &mut dyn FnMut(Record<'_>) -> Result<(), E>,
    end: &mut ReplayEnd,
) -> Result<(), ReplayError<E>> {
    let mut reader = Reader::new(disk, dir, starts, end.end, known.owner)?;
    loop {
        let fault = match reader.record_at(end.end)? {
            Ok(record) => {
                let next = record.end;
                visit(record).map_err(ReplayError::Visitor)?;
                end.record_count += 1;
                end.end = next;
                continue;
            }
            Err(fault) => fault,
        };
        let bad = end.end;
        let Rest { first_good, is_proof, last_end, record_count, misplaced } = reader.rest_after(bad)?;
        for path in misplaced {
            if !end.misplaced.contains(&path) {
                end.misplaced.push(path);
            }
        }
        let (path, file_offset) = reader.address(bad, known.newest_file);
        let is_of_generation = known.durable.generation == bad.generation;
        let synced_end = if is_of_generation { known.durable } else { Position { offset: 0, ..bad } };
        let next = match first_good {
            Some(good) if is_proof || good <= synced_end => good,
            // Nothing that remains is proven to have been on the disk but what the manifest says.
            _ if bad < synced_end => synced_end,
            _ => {
                let is_torn = matches!(fault, Fault::Cut | Fault::Stranger | Fault::Checksum { .. })
                    && !reader.is_at_end(bad);
                end.cut = (record_count > 0 || is_torn).then_some(Cut {
                    path,
                    file_offset,
                    from: bad,
                    to: last_end.unwrap_or(bad),
                    record_count,
                });
                return Ok(());
            }
        };
        end.damage.push(Damage { path, file_offset, from: bad, to: next, fault });
        end.end = next;
    }
}

/// What the search after invalid bytes has found.
#[derive(Default)]
struct Rest {
    /// Where the first good record starts.
    first_good: Option<Position>,
    /// One of them has a durable mark that proves the invalid bytes to be damage; the search has then stopped.
    is_proof: bool,
    /// Where the last good record ends.
    last_end: Option<Position>,
    /// Good records.
    record_count: u64,
    /// Files with good records of later positions at wrong places.
    misplaced: Vec<PathBuf>,
}

/// The files of one generation, one open at a time.
struct Reader<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    /// Starts of the files, from the one that contains the first position on, with the end of what each may
    /// hold.
    ranges: Vec<(Position, u64)>,
    /// The tag that records must have.
    owner: u32,
    open: Option<Window>,
}

impl<'a> Reader<'a> {
    fn new(
        disk: &'a dyn Disk,
        dir: &'a Path,
        starts: &[Position],
        from: Position,
        owner: u32,
    ) -> io::Result<Self> {
        let generation: Vec<Position> =
            starts.iter().copied().filter(|start| start.generation == from.generation).collect();
        let first = generation.partition_point(|&start| start <= from).saturating_sub(1);
        let mut ranges = Vec::new();
        for (index, &start) in generation.iter().enumerate().skip(first) {
            let file_end = start.offset.saturating_add(disk.length(&filenames::log(dir, start))?);
            // Bytes after the start of the next file were cut off or only reserved.
            let end = generation.get(index + 1).map_or(file_end, |next| file_end.min(next.offset));
            ranges.push((start, end));
        }
        Ok(Reader { disk, dir, ranges, owner, open: None })
    }

    /// Index in `ranges` of the file that contains `position`.
    fn file_of(&self, position: Position) -> Option<usize> {
        self.ranges.iter().position(|&(start, end)| start <= position && position.offset < end)
    }

    /// File and offset of a position, for messages. The file may be missing, like the `newest` one.
    fn address(&self, position: Position, newest: Position) -> (PathBuf, u64) {
        let before = self.ranges.iter().map(|&(start, _)| start).filter(|start| *start <= position).max();
        let newest =
            Some(newest).filter(|start| start.generation == position.generation && *start <= position);
        let start = before.max(newest).unwrap_or(position);
        (filenames::log(self.dir, start), position.offset - start.offset)
    }

    fn window(&mut self, index: usize) -> io::Result<&mut Window> {
        let (start, end) = self.ranges[index];
        if self.open.as_ref().is_none_or(|window| window.start != start) {
            let buffer = self.open.take().map_or_else(Vec::new, |window| window.buffer);
            let file = self.disk.open(&filenames::log(self.dir, start), Mode::Read)?;
            file.advise(0, 0, Advice::Sequential);
            self.open = Some(Window { buffer, ..Window::new(file, start, end, self.owner) });
        }
        let Some(window) = &mut self.open else { unreachable!("just opened") };
        Ok(window)
    }

    /// The record at a position, or why there is none.
    fn record_at(&mut self, position: Position) -> Result<Result<Record<'_>, Fault>, LogError> {
        let Some(index) = self.file_of(position) else { return Ok(Err(Fault::Missing)) };
        let (dir, start) = (self.dir, self.ranges[index].0);
        let not = match self.window(index)?.record_at(position)? {
            Ok(record) => return Ok(Ok(record)),
            Err(not) => not,
        };
        Ok(Err(match not {
            NotRecord::Foreign => Fault::NoRecord,
            NotRecord::Cut => Fault::Cut,
            NotRecord::Stranger => Fault::Stranger,
            NotRecord::Checksum { expected, found } => Fault::Checksum { expected, found },
            NotRecord::Unknown { version, kind } => {
                return Err(LogError::Unsupported {
                    path: filenames::log(dir, start),
                    offset: position.offset - start.offset,
                    what: format!("a record of version {version}, kind {kind}"),
                });
            }
        }))
    }

    /// True when fewer bytes than an envelope are left in the last file: a record that was never begun.
    fn is_at_end(&self, position: Position) -> bool {
        let end = self.ranges.iter().map(|&(_, end)| end).max().unwrap_or_default();
        end.saturating_sub(position.offset) < ENVELOPE_BYTES as u64
    }

    /// Searches the bytes after `bad` for good records, until one has a durable mark beyond `bad`.
    fn rest_after(&mut self, bad: Position) -> Result<Rest, LogError> {
        let mut rest = Rest::default();
        let mut position = bad;
        for index in 0..self.ranges.len() {
            let (start, end) = self.ranges[index];
            position.offset = position.offset.max(start.offset);
            while position.offset < end {
                let window = self.window(index)?;
                if !window.find_magic(&mut position)? {
                    break;
                }
                let Ok(record) = window.record_at(position)? else {
                    if window.holds_later_record(position, bad)? {
                        let path = filenames::log(self.dir, start);
                        if !rest.misplaced.contains(&path) {
                            rest.misplaced.push(path);
                        }
                    }
                    position.offset += 1;
                    continue;
                };
                rest.first_good.get_or_insert(position);
                rest.last_end = Some(record.end);
                rest.record_count += 1;
                if record.durable > bad.offset {
                    rest.is_proof = true;
                    return Ok(rest);
                }
                position = record.end;
            }
        }
        Ok(rest)
    }
}

/// An open file and the part of it in memory.
pub(super) struct Window {
    file: Arc<dyn DiskFile>,
    /// The position of the file's first byte.
    start: Position,
    /// Offset in the generation at which the file ends for the reader.
    end: u64,
    /// The tag that records must have, unless it or theirs is 0.
    owner: u32,
    buffer: Vec<u8>,
    /// Offset in the generation of the buffer's first byte.
    buffer_offset: u64,
    /// Bytes of the buffer that are valid.
    filled: usize,
}

impl Window {
    /// A file whose first byte is `start`, as far as `end`, with records of `owner`.
    pub(super) fn new(file: Arc<dyn DiskFile>, start: Position, end: u64, owner: u32) -> Self {
        Window { file, start, end, owner, buffer: Vec::new(), buffer_offset: 0, filled: 0 }
    }

    /// The position of the file's first byte.
    pub(super) fn start(&self) -> Position {
        self.start
    }

    /// Bytes from `offset` (in the generation, within this file) on: at least `want`, or all that remain.
    pub(super) fn bytes(&mut self, offset: u64, want: usize) -> io::Result<&[u8]> {
        let left = (self.end - offset).min(usize::MAX as u64) as usize;
        let want = want.min(left);
        let buffered = self.buffer_offset..self.buffer_offset + self.filled as u64;
        if !(buffered.contains(&offset) && buffered.end - offset >= want as u64) {
            self.read(offset, want.max(READ_BYTES).min(left))?;
        }
        let at = (offset - self.buffer_offset) as usize;
        Ok(&self.buffer[at.min(self.filled)..self.filled])
    }

    /// Fills the buffer with `count` bytes from `offset` on, keeping those it already has.
    fn read(&mut self, offset: u64, count: usize) -> io::Result<()> {
        let skip = offset.checked_sub(self.buffer_offset).filter(|&skip| skip < self.filled as u64);
        let kept = match skip {
            Some(skip) => {
                self.buffer.copy_within(skip as usize..self.filled, 0);
                self.filled - skip as usize
            }
            None => 0,
        };
        if self.buffer.len() < count {
            self.buffer.resize(count, 0);
        }
        self.buffer_offset = offset;
        self.filled = kept;
        if kept < count {
            let file_offset = offset - self.start.offset + kept as u64;
            self.filled += self.file.read_at(&mut self.buffer[kept..count], file_offset)?;
        }
        Ok(())
    }

    /// The record at a position of the file, or why there is none.
    pub(super) fn record_at(&mut self, position: Position) -> io::Result<Result<Record<'_>, NotRecord>> {
        self.record_of(position.offset, position)
    }

    /// The record of `position` that stands where `offset` should, or why there is none.
    pub(super) fn record_of(
        &mut self,
        offset: u64,
        position: Position,
    ) -> io::Result<Result<Record<'_>, NotRecord>> {
        let bytes = self.bytes(offset, ENVELOPE_BYTES)?;
        if bytes.len() < ENVELOPE_BYTES {
            return Ok(Err(NotRecord::Cut));
        }
        let length = match envelope::peek(bytes, position) {
            Ok(length) => length,
            Err(not) => return Ok(Err(not)),
        };
        // Reads no more than there is, so a wrong length costs nothing.
        if length as u64 > self.end - offset {
            return Ok(Err(NotRecord::Cut));
        }
        let owner = self.owner;
        let bytes = self.bytes(offset, length)?;
        if bytes.len() < length {
            return Ok(Err(NotRecord::Cut));
        }
        Ok(envelope::decode(&bytes[..length], position).and_then(|record| {
            let is_ours = owner == 0 || record.owner == 0 || record.owner == owner;
            if is_ours { Ok(record) } else { Err(NotRecord::Stranger) }
        }))
    }

    /// True when a good record stands at `position` that belongs elsewhere: at or after `bad`.
    fn holds_later_record(&mut self, position: Position, bad: Position) -> io::Result<bool> {
        let place = envelope::place_of(self.bytes(position.offset, ENVELOPE_BYTES)?);
        let Some(place) = place.filter(|place| place.generation == bad.generation && *place >= bad) else {
            return Ok(false);
        };
        Ok(self.record_of(position.offset, place)?.is_ok())
    }

    /// Length of the record at a position, according to its envelope alone.
    pub(super) fn record_bytes(&mut self, position: Position) -> io::Result<Option<usize>> {
        let bytes = self.bytes(position.offset, ENVELOPE_BYTES)?;
        Ok(if bytes.len() < ENVELOPE_BYTES { None } else { envelope::peek(bytes, position).ok() })
    }

    /// Advances `position` to the next place in this file where a record could start.
    pub(super) fn find_magic(&mut self, position: &mut Position) -> io::Result<bool> {
        loop {
            let bytes = self.bytes(position.offset, ENVELOPE_BYTES)?;
            if bytes.len() < ENVELOPE_BYTES {
                return Ok(false);
            }
            if let Some(at) = memchr::memmem::find(bytes, &MAGIC) {
                position.offset += at as u64;
                return Ok(true);
            }
            position.offset += (bytes.len() - (MAGIC.len() - 1)) as u64;
        }
    }
}
