//! Pieces of a log: whole records, each of which has passed its checksum, and what cannot be read.

use std::io;

use super::{ShardTail, TailError};
use crate::filenames;
use crate::log::envelope::{self, ENVELOPE_BYTES, NotRecord};
use crate::log::writer::log_files;
use crate::log::{self, Position, Record};

/// Bytes read at once in search of the next good record.
const SEARCH_BYTES: u64 = 1 << 20;

/// What follows a position.
#[derive(Debug)]
pub enum Piece {
    /// Records.
    Records(RawRecords),
    /// A range that is not there any more, or is damaged.
    Lost {
        /// Where it begins.
        from: Position,
        /// Where the log goes on.
        to: Position,
    },
}

/// Consecutive whole records, as they stand in the log.
#[derive(Debug)]
pub struct RawRecords {
    /// Where the first one starts.
    pub from: Position,
    /// Their bytes.
    pub bytes: Vec<u8>,
}

impl RawRecords {
    /// Where the next record starts.
    pub fn end(&self) -> Position {
        self.from.plus(self.bytes.len() as u64)
    }

    /// The records. Their checksums were checked when they were read.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record<'_>> {
        envelope::records(&self.bytes, self.from)
    }

    /// When its first record was written, in milliseconds since the epoch.
    pub fn logged_ms(&self) -> Option<i64> {
        self.records().next().map(|record| record.stamp.time_ms)
    }
}

impl ShardTail {
    /// The next whole records of together at most `bytes_max` bytes, or one that is longer; `None` when there are none yet.
    ///
    /// # Errors
    /// When the disk fails, or a newer program wrote the next record.
    pub fn read(&mut self, bytes_max: usize) -> Result<Option<Piece>, TailError> {
        self.read_before(self.end(), bytes_max)
    }

    /// The same, of the records before `end`, where one ends.
    ///
    /// # Errors
    /// As [`ShardTail::read`].
    pub fn read_before(&mut self, end: Position, bytes_max: usize) -> Result<Option<Piece>, TailError> {
        let from = self.next;
        let piece = self.read_between(from, end.min(self.end()), bytes_max)?;
        self.next = match &piece {
            None => from,
            Some(Piece::Records(raw)) => raw.end(),
            Some(Piece::Lost { to, .. }) => *to,
        };
        Ok(piece)
    }

    /// The same without moving on, up to `end`.
    pub(super) fn read_between(
        &self,
        from: Position,
        end: Position,
        bytes_max: usize,
    ) -> Result<Option<Piece>, TailError> {
        let left = end.offset.saturating_sub(from.offset);
        if left == 0 || end.generation != from.generation {
            return Ok(None);
        }
        let wanted = left.min(bytes_max.max(ENVELOPE_BYTES) as u64) as usize;
        let Some(mut bytes) = self.bytes(from, wanted)? else { return self.lost(from, end).map(Some) };
        // One that is longer than asked for.
        if let Ok(length) = envelope::peek(&bytes, from)
            && length > bytes.len()
            && length as u64 <= left
        {
            bytes = match self.bytes(from, length)? {
                Some(bytes) => bytes,
                None => return self.lost(from, end).map(Some),
            };
        }
        let good = self.good_bytes(&bytes, from)?;
        if good == 0 {
            return self.lost(from, end).map(Some);
        }
        bytes.truncate(good);
        Ok(Some(Piece::Records(RawRecords { from, bytes })))
    }

    /// Bytes of the log; `None` when it does not have all of them.
    fn bytes(&self, from: Position, count: usize) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = vec![0; count];
        match log::range::read(&*self.disk, &self.dir, from, &mut bytes) {
            Ok(()) => Ok(Some(bytes)),
            // A released file may have gone since the directory was listed.
            Err(error) if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::NotFound) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// How many bytes whole good records take up, from the first on.
    fn good_bytes(&self, bytes: &[u8], from: Position) -> Result<usize, TailError> {
        let mut good = 0;
        while bytes.len() - good >= ENVELOPE_BYTES {
            let position = from.plus(good as u64);
            let Ok(length) = envelope::peek(&bytes[good..], position) else { break };
            let Some(record) = bytes.get(good..good + length) else { break };
            match envelope::decode(record, position) {
                Ok(record) if self.is_ours(&record) => good += length,
                Err(NotRecord::Unknown { version, kind }) if good == 0 => {
                    let what =
                        format!("it is one of version {version}, kind {kind}; a newer program wrote it");
                    return Err(TailError::Unknown { position, what });
                }
                _ => break,
            }
        }
        Ok(good)
    }

    fn is_ours(&self, record: &Record<'_>) -> bool {
        self.owner == 0 || record.owner == 0 || record.owner == self.owner
    }

    /// From `from`, where there is no record, to the next good one, or to `end`.
    fn lost(&self, from: Position, end: Position) -> Result<Piece, TailError> {
        let starts = log_files(&*self.disk, &self.dir)?;
        let mut at = from.plus(1);
        while at < end {
            let count = SEARCH_BYTES.min(end.offset - at.offset) as usize;
            // What lies across the end of a file that is cut short cannot be read, what comes before can.
            let bytes = match self.bytes(at, count)? {
                Some(bytes) => bytes,
                None => {
                    let next = starts.iter().find(|start| start.generation == at.generation && **start > at);
                    let in_file = |next: &Position| self.file_bytes(&starts, at, *next, count);
                    match next.map(in_file).transpose()?.flatten() {
                        Some(bytes) => bytes,
                        None => match next {
                            Some(next) if *next < end => {
                                at = *next;
                                continue;
                            }
                            _ => break,
                        },
                    }
                }
            };
            if let Some(to) = self.find_record(&bytes, at, end)? {
                return Ok(Piece::Lost { from, to });
            }
            // An envelope may begin in the last bytes.
            at = at.plus((bytes.len().saturating_sub(ENVELOPE_BYTES - 1)).max(1) as u64);
        }
        Ok(Piece::Lost { from, to: end })
    }

    /// Up to `count` bytes at `at` of the file that has them, when all of the log from there to `next` is not there.
    fn file_bytes(
        &self,
        starts: &[Position],
        at: Position,
        next: Position,
        count: usize,
    ) -> io::Result<Option<Vec<u8>>> {
        let Some(start) =
            starts.iter().rev().find(|start| start.generation == at.generation && **start <= at)
        else {
            return Ok(None);
        };
        let length = self.disk.length(&filenames::log(&self.dir, *start))?;
        let end = start.offset.saturating_add(length).min(next.offset);
        match end.checked_sub(at.offset) {
            None | Some(0) => Ok(None),
            Some(there) => self.bytes(at, count.min(there as usize)),
        }
    }

    /// Where the first good record in `bytes` starts, which stand at `at`.
    fn find_record(&self, bytes: &[u8], at: Position, end: Position) -> Result<Option<Position>, TailError> {
        for found in memchr::memmem::find_iter(bytes, &envelope::MAGIC) {
            let position = at.plus(found as u64);
            let Some(envelope) = bytes.get(found..found + ENVELOPE_BYTES) else { break };
            let Ok(length) = envelope::peek(envelope, position) else { continue };
            if length as u64 > end.offset - position.offset {
                continue;
            }
            if let Some(record) = self.bytes(position, length)?
                && self.good_bytes(&record, position)? == length
            {
                return Ok(Some(position));
            }
        }
        Ok(None)
    }
}
