//! Segments: immutable files of runs, sorted by key and row, in checksummed blocks.
//!
//! `docs/format/segment.md` describes the bytes. A segment is written once, front to back, and never changed.
//! Opening it reads only its footer; a run is found by one binary search in memory and one positioned read
//! per block. Damage is reported with its offset and affects only its own block.

mod block;
mod check;
mod footer;
#[doc(hidden)]
pub mod fuzzing;
mod held;
pub mod merge;
mod reader;
mod rebuild;
pub mod salvage;
mod stake;
mod writer;

use std::fmt;
use std::io;

pub use check::Check;
pub(crate) use footer::HEAD_MAGIC;
pub use footer::end_bytes;
pub(crate) use held::with_kept;
pub use held::{KeptBlocks, ReadScratch};
pub use reader::{Entries, Entry, Expected, ReadAt, Segment};
pub use rebuild::Gap;
pub use stake::Stake;
pub use writer::SegmentWriter;

use crate::column::codec::{CodecError, ColumnHint};
use crate::content::Content;

/// Version of the format that is written; its predecessors are read. Before it is raised, [`footer`] must learn to accept
/// this one, or no existing segment can be read.
pub const VERSION: u32 = 3;
/// Size at which the body of a block is closed. Reading 16 KiB costs hardly more than 4 KiB, and a directory
/// entry is then 0.15 % of the file.
pub const BLOCK_BODY_BYTES: usize = 16 * 1024;
/// The largest block: one run of [`RUN_VALUE_BYTES_MAX`] on top of an almost full block, and heads.
pub const BLOCK_BYTES_MAX: usize = 2 * 1024 * 1024;
/// The most rows of a run; longer ones are split. Beyond 1,024 values, longer columns do not compress better.
pub const RUN_ROWS_MAX: usize = 4096;
/// The most bytes of a run's uncompressed values; larger runs are split by rows. A row of the most data
/// sources fits.
pub const RUN_VALUE_BYTES_MAX: usize = 1024 * 1024;
/// The most data sources of a row: the field has 16 bits.
pub const DS_COUNT_MAX: usize = u16::MAX as usize;

/// Identifies whose rows a run has. The order of the fields is the order within a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The group of RRDs with the same geometry: its index in the shard ([`crate::group`]).
    pub group: u32,
    /// Source within the group: a sequence of rows, not a data source.
    pub source: u16,
    /// The RRD: its id in the shard.
    pub slot: u32,
}

/// What a segment contains of one source of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceSummary {
    /// The group.
    pub group: u32,
    /// Source within the group.
    pub source: u16,
    /// Columns per run.
    pub ds_count: u16,
    /// How its values came about.
    pub hint: ColumnHint,
    /// Number of the oldest row.
    pub first_row: i64,
    /// One past the newest row.
    pub end_row: i64,
    /// Number of runs.
    pub entry_count: u64,
    /// Bytes of its runs in the blocks.
    pub bytes: u64,
}

impl SourceSummary {
    /// The source of this run, before any run is added.
    fn of(head: &block::Head) -> Self {
        SourceSummary {
            group: head.key.group,
            source: head.key.source,
            ds_count: head.ds_count as u16,
            hint: head.hint,
            first_row: head.first_row,
            end_row: head.end_row(),
            entry_count: 0,
            bytes: 0,
        }
    }

    /// Adds a run; the caller adds its bytes.
    fn add(&mut self, head: &block::Head) {
        self.first_row = self.first_row.min(head.first_row);
        self.end_row = self.end_row.max(head.end_row());
        self.entry_count += 1;
    }
}

/// Summary of a finished segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentSummary {
    /// The number of the segment.
    pub segment_id: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Hash of the file.
    pub content: Content,
    /// Number of blocks.
    pub block_count: u64,
    /// Number of runs.
    pub entry_count: u64,
    /// Its sources, sorted.
    pub sources: Vec<SourceSummary>,
}

/// Why a segment could not be written or read.
#[derive(Debug)]
pub enum SegmentError {
    /// The disk failed.
    Io {
        /// The file.
        file: String,
        /// Offset in it.
        offset: u64,
        /// The system's error.
        error: io::Error,
    },
    /// Invalid bytes.
    Damaged {
        /// The file.
        file: String,
        /// Where the damaged structure begins.
        offset: u64,
        /// What the decoder expected.
        expected: String,
        /// What it found.
        got: String,
    },
    /// Written by a newer Roundel.
    Newer {
        /// The file.
        file: String,
        /// Its version.
        version: u32,
    },
    /// The file is another segment than it should be.
    Misplaced {
        /// The file.
        file: String,
        /// The number of the segment that it is.
        number: u64,
        /// It belongs to the same shard.
        is_ours: bool,
    },
    /// The file has the number and length of the right one, but another content.
    OfCopy {
        /// The file.
        file: String,
        /// The number of the segment.
        number: u64,
    },
    /// A merge was told to stop.
    Stopped,
    /// The caller pushed runs out of order or of impossible shape: a bug, not damage.
    Misuse(&'static str),
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SegmentError::Io { file, offset, error } => {
                write!(f, "cannot read or write segment \"{file}\" at {offset}: {error}")
            }
            SegmentError::Damaged { file, offset, expected, got } => write!(
                f,
                "segment \"{file}\" is damaged at {offset}: expected {expected}, got {got}; restore it from a backup"
            ),
            SegmentError::Newer { file, version } => write!(
                f,
                "cannot read segment \"{file}\": it has format version {version}, this program knows {VERSION}; use a newer one"
            ),
            SegmentError::Misplaced { file, number, is_ours } => {
                let whose = if *is_ours { "this shard" } else { "another shard or store" };
                write!(
                    f,
                    "the file {file} is segment {number} of {whose}: files were exchanged, this one or STORE and manifest; put the right one in its place, or \
                     let `roundel repair` on the store's directory show what can be done"
                )
            }
            SegmentError::OfCopy { file, number } => write!(
                f,
                "the file {file} is not the segment {number} that the manifest names but that of a copy of the store which has run since: put the right one in its place, \
                 or let `roundel repair` on the store's directory show what can be done"
            ),
            SegmentError::Stopped => f.write_str("the merge of segments was stopped"),
            SegmentError::Misuse(what) => write!(f, "cannot write a segment: {what}"),
        }
    }
}

impl std::error::Error for SegmentError {}

/// Invalid bytes inside a block with a good checksum, or a bad checksum.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    /// Offset within the block.
    at: usize,
    expected: String,
    got: String,
}

impl Fault {
    fn new(at: usize, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Fault { at, expected: expected.into(), got: got.into() }
    }

    fn column(at: usize, error: CodecError) -> Self {
        Fault::new(at, "a column", error.to_string())
    }

    fn in_file(self, file: &str, block_offset: u64) -> SegmentError {
        SegmentError::Damaged {
            file: file.into(),
            offset: block_offset + self.at as u64,
            expected: self.expected,
            got: self.got,
        }
    }
}

/// The most rows of a run of `ds_count` columns.
fn run_rows_max(ds_count: usize) -> usize {
    (RUN_VALUE_BYTES_MAX / 8 / ds_count.max(1)).clamp(1, RUN_ROWS_MAX)
}

#[cfg(test)]
mod tests;
