//! The checkpoint of a shard: names, definitions, heads and the still open rows of every RRD.
//!
//! Written while updates go on, a page of RRDs at a time: each page carries the log position it was taken
//! at, and replay skips what a page already holds. So no update waits for a checkpoint, and nothing
//! is copied but the page at hand. `docs/format/store.md` describes the bytes.
//!
//! What holds: the file ends in an END frame or it is not a checkpoint; every frame has a checksum; a
//! manifest names the file only after it is synced.

mod page;
mod read;
pub mod survey;
mod write;

use std::io;
use std::path::PathBuf;

pub use page::{LoadedRows, LoadedRrd, Loader, PageDefinition};
pub use read::{Loaded, load};
pub use write::{CheckpointWriter, take_end, take_page};

use crate::catalogue::RrdId;
use crate::log::Position;

/// First bytes of the file: name and format version.
pub const MAGIC: &[u8; 8] = b"RNDLCKP\x01";
/// RRDs in a page: one page is about a quarter of a millisecond of the shard's time.
pub const PAGE_IDS: u32 = 256;
/// Bytes of a frame's head.
pub const FRAME_HEAD_BYTES: usize = 40;
/// A frame larger than this is damage: a page of 256 RRDs with a season of a year at a second each.
const FRAME_BYTES_MAX: u32 = 1 << 31;

const KIND_PAGE: u32 = 1;
const KIND_END: u32 = 2;

/// A page or the end, as bytes not yet compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawFrame {
    kind: u32,
    /// First id covered.
    first_id: RrdId,
    /// One past the last id covered.
    next_id: RrdId,
    /// Everything up to here is in it.
    position: Position,
    body: Vec<u8>,
}

/// Why a checkpoint could not be read.
#[derive(Debug)]
pub enum CheckpointError {
    /// The disk said no.
    Io(io::Error),
    /// Not what was written.
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the frame starts.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
}

impl std::error::Error for CheckpointError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CheckpointError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl std::fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CheckpointError::Io(error) => write!(f, "cannot read the checkpoint: {error}"),
            CheckpointError::Damaged { path, offset, what } => write!(
                f,
                "checkpoint {} is damaged at byte {offset}: {what}; restore the shard from a backup",
                path.display()
            ),
        }
    }
}

impl From<io::Error> for CheckpointError {
    fn from(error: io::Error) -> Self {
        CheckpointError::Io(error)
    }
}

#[cfg(test)]
mod tests;
