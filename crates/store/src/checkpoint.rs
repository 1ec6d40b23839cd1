//! The checkpoint of a shard: names, definitions, heads and open rows of every RRD.
//!
//! It is written page by page while updates continue. Each page carries the log position at which it was
//! taken, and replay skips what a page already contains. So no update waits for a checkpoint, and only one
//! page at a time is copied. `docs/format/store.md` describes the bytes.
//!
//! A file without an END frame is not a checkpoint, every frame has a checksum, and a manifest names the file
//! only after it is synced.

mod page;
mod read;
pub mod survey;
mod write;

use std::io;
use std::path::PathBuf;

pub use page::{APART, LoadedRows, LoadedRrd, Loader, PageDefinition};
pub use read::{Loaded, LostPage, load};
pub use write::CheckpointWriter;

use crate::catalogue::RrdId;
use crate::log::Position;

/// First bytes of the file: name and version of the format.
pub const MAGIC: &[u8; 8] = b"RNDLCKP\x02";
/// The same of version 1, which is still read: its frames say neither whose they are nor the number of the file.
pub const MAGIC_UNOWNED: &[u8; 8] = b"RNDLCKP\x01";
/// Offset in a frame's head of its owner's tag.
const OWNER_AT: usize = 32;
/// RRDs per page: a page takes about a quarter of a millisecond of the worker's time.
pub const PAGE_IDS: u32 = 256;
/// Bytes of a frame's head.
pub const FRAME_HEAD_BYTES: usize = 40;
/// Larger frames are damage, and none is written: 8 MiB for each RRD of a page, seasons included.
const FRAME_BYTES_MAX: u32 = 1 << 31;

const KIND_PAGE: u32 = 1;
const KIND_END: u32 = 2;

/// Which checkpoint a file is. Each frame says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// The tag of the shard ([`crate::identity::Owner::tag`]); 0 = not known.
    pub owner: u32,
    /// The number of the checkpoint; the end frame has its low 32 bits. 0 = not known.
    pub number: u64,
}

impl Label {
    /// True when a file that says `stored` of itself is this checkpoint, as far as it says.
    pub fn matches(&self, stored: Label) -> bool {
        let number = self.number & u64::from(u32::MAX);
        stored.owner == 0 || (stored.owner, stored.number) == (self.owner, number)
    }
}

/// A page or the end frame, not yet compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawFrame {
    kind: u32,
    /// First id covered.
    first_id: RrdId,
    /// One past the last id covered.
    next_id: RrdId,
    /// The log position up to which it contains all changes.
    position: Position,
    body: Vec<u8>,
}

impl RawFrame {
    /// The page of ids `first_id..next_id`.
    pub fn page(first_id: RrdId, next_id: RrdId, position: Position, body: Vec<u8>) -> Self {
        RawFrame { kind: KIND_PAGE, first_id, next_id, position, body }
    }

    /// The end frame; `next_id` is the catalogue's.
    pub fn end(next_id: RrdId, position: Position, body: Vec<u8>) -> Self {
        RawFrame { kind: KIND_END, first_id: 0, next_id, position, body }
    }
}

/// Why a checkpoint could not be read.
#[derive(Debug)]
pub enum CheckpointError {
    /// The disk failed.
    Io(io::Error),
    /// The file is damaged.
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
                "checkpoint {} is damaged at byte {offset}: {what}; `roundel repair` says what can be restored",
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
