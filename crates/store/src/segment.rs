//! Segments: immutable files of runs, sorted by key and row, in checksummed blocks.
//!
//! `docs/format/segment.md` is the description of the bytes. A segment is written once, front to back,
//! and never changed; opening it reads its footer only; a run is found by one binary search in memory and
//! one positioned read a block. Damage is reported with its place and stays within the block it hit.

mod block;
mod footer;
#[doc(hidden)]
pub mod fuzzing;
pub mod merge;
mod reader;
pub mod salvage;
mod writer;

use std::fmt;
use std::io;

pub(crate) use footer::HEAD_MAGIC;
pub use reader::{Entries, Entry, ReadAt, ReadScratch, Segment};
pub use writer::SegmentWriter;

use crate::column::codec::{CodecError, ColumnHint};

/// Version of the format this code writes; it reads this one only.
pub const VERSION: u32 = 1;
/// The body of a block is closed when it has reached this many bytes. A read of 16 KiB costs hardly more
/// than one of 4 KiB and a directory entry then is 0.15 % of the file.
pub const BLOCK_BODY_BYTES: usize = 16 * 1024;
/// No block is longer: one run of [`RUN_VALUE_BYTES_MAX`] on top of an almost full block, and heads.
pub const BLOCK_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Rows in a run; longer ones are cut. From 1,024 values on longer columns do not compress better.
pub const RUN_ROWS_MAX: usize = 4096;
/// Bytes of the values of a run, raw; wider ones are cut by rows. A row of the most data sources fits.
pub const RUN_VALUE_BYTES_MAX: usize = 1024 * 1024;
/// Data sources in a row: the field has 16 bits.
pub const DS_COUNT_MAX: usize = u16::MAX as usize;

/// Whose rows: the order of its fields is the order in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Stripe group.
    pub group: u32,
    /// Source within the group.
    pub source: u16,
    /// Place of the RRD within the group.
    pub slot: u32,
}

/// What a segment holds of one source of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceSummary {
    /// Stripe group.
    pub group: u32,
    /// Source within the group.
    pub source: u16,
    /// Columns in a run.
    pub ds_count: u16,
    /// How its values were made.
    pub hint: ColumnHint,
    /// Number of the oldest row.
    pub first_row: i64,
    /// Number of the newest row, and one.
    pub end_row: i64,
    /// Runs.
    pub entry_count: u64,
    /// Bytes of its entries in the blocks.
    pub bytes: u64,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentSummary {
    /// The number the segment was given.
    pub segment_id: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Blocks.
    pub block_count: u64,
    /// Runs.
    pub entry_count: u64,
    /// By source, sorted.
    pub sources: Vec<SourceSummary>,
}

/// Why a segment could not be written or read.
#[derive(Debug)]
pub enum SegmentError {
    /// The operating system refused.
    Io {
        /// The file.
        file: String,
        /// Where in it.
        offset: u64,
        /// What it said.
        error: io::Error,
    },
    /// Bytes that cannot be right.
    Damaged {
        /// The file.
        file: String,
        /// Where the damaged structure begins.
        offset: u64,
        /// What should have been there.
        expected: String,
        /// What is there.
        got: String,
    },
    /// Written by a later Roundel.
    Newer {
        /// The file.
        file: String,
        /// Its version.
        version: u32,
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
            SegmentError::Stopped => f.write_str("the merge of segments was stopped"),
            SegmentError::Misuse(what) => write!(f, "cannot write a segment: {what}"),
        }
    }
}

impl std::error::Error for SegmentError {}

/// An undecodable place inside a block whose checksum is good, or a bad checksum.
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

/// Rows of `ds_count` columns that one run may have.
fn run_rows_max(ds_count: usize) -> usize {
    (RUN_VALUE_BYTES_MAX / 8 / ds_count.max(1)).clamp(1, RUN_ROWS_MAX)
}

#[cfg(test)]
mod tests;
