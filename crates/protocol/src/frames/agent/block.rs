//! A block: readings of many RRDs, compressed.
//!
//! Names, definitions and last values are sent once: a *context* holds them, on both sides, from the block that begins it to
//! the one that begins the next. So a block is read only after all those since its context began, applied or not.

mod decode;
mod encode;

use std::fmt;

use super::super::FrameError;

pub use decode::{BlockReader, BlockSink, RrdDefinition};
pub use encode::BlockWriter;

/// Bytes of a block before compression: a hundred times as much as a second of a large agent, and little memory.
pub const BLOCK_PLAIN_BYTES_MAX: usize = 4 << 20;
/// RRDs of a context.
pub const CONTEXT_RRDS_MAX: usize = 1 << 20;
/// Values of one reading. RRDtool has no limit; files of a thousand data sources have been seen.
pub const VALUES_MAX: usize = 4096;
/// Values of all RRDs of a context.
pub const CONTEXT_VALUES_MAX: usize = 1 << 22;
/// Bytes of a context's names and definitions.
pub const CONTEXT_BYTES_MAX: usize = 64 << 20;

/// Offset in the body of the bytes before compression.
const OFFSET_PLAIN_BYTES: usize = 8;
/// Offset of the CRC32C of all other bytes of the body.
const OFFSET_CHECKSUM: usize = 12;
/// Offset of the flags.
const OFFSET_FLAGS: usize = 16;
/// Offset of the compressed content.
const OFFSET_CONTENT: usize = 17;

/// A context begins with this block.
const FLAG_BEGINS: u8 = 1;

const KIND_UNKNOWN: u8 = 0;
const KIND_UNSIGNED: u8 = 1;
const KIND_SIGNED: u8 = 2;
const KIND_WHOLE: u8 = 3;
const KIND_FLOAT: u8 = 4;
const KIND_TEXT: u8 = 5;
const KIND_DROPPED: u8 = 6;

/// Whole numbers up to here are exact as floats, and have no more than the 15 digits with which those are written.
const WHOLE_MAX: f64 = 999_999_999_999_999.0;

/// A value of a reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BlockValue<'a> {
    /// Not known.
    Unknown,
    /// Not known, and stands for so many readings that the agent had to drop.
    Dropped(u64),
    /// A counter, or another whole number.
    Unsigned(u64),
    /// A whole number that may be negative.
    Signed(i64),
    /// A number.
    Float(f64),
    /// A number as its sender wrote it.
    Text(&'a [u8]),
}

/// Why a block cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockError {
    /// Its head.
    Head(FrameError),
    /// Its checksum is that of other bytes.
    Checksum,
    /// It cannot be decompressed to the length that it says.
    Compression,
    /// This is not what it should be.
    Content(&'static str),
    /// More of this than a context may hold.
    Limit(&'static str),
}

impl fmt::Display for BlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockError::Head(error) => error.fmt(f),
            BlockError::Checksum => f.write_str("bad block: its checksum is that of other bytes"),
            BlockError::Compression => f.write_str("bad block: it cannot be decompressed"),
            BlockError::Content(what) => write!(f, "bad block: {what} cannot be"),
            BlockError::Limit(what) => write!(f, "bad block: too many {what}"),
        }
    }
}

impl std::error::Error for BlockError {}

/// What is known of a block without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHead<'a> {
    /// Its number.
    pub sequence: u64,
    /// A context begins with it.
    pub begins_context: bool,
    plain_bytes: usize,
    packed: &'a [u8],
}

impl<'a> BlockHead<'a> {
    /// Reads and checks the body of a frame.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn parse(body: &'a [u8]) -> Result<Self, BlockError> {
        let Some((head, packed)) = body.split_first_chunk::<OFFSET_CONTENT>() else {
            return Err(BlockError::Head(FrameError::Truncated("a block's head")));
        };
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        if word(OFFSET_CHECKSUM) != checksum(body) {
            return Err(BlockError::Checksum);
        }
        let sequence = u64::from(word(0)) | u64::from(word(4)) << 32;
        let plain_bytes = word(OFFSET_PLAIN_BYTES) as usize;
        if plain_bytes > BLOCK_PLAIN_BYTES_MAX {
            return Err(BlockError::Limit("bytes"));
        }
        match head[OFFSET_FLAGS] {
            flags @ (0 | FLAG_BEGINS) => {
                Ok(BlockHead { sequence, begins_context: flags == FLAG_BEGINS, plain_bytes, packed })
            }
            _ => Err(BlockError::Content("a flag")),
        }
    }
}

/// The CRC32C of a body without the place where it stands.
fn checksum(body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&body[..OFFSET_CHECKSUM]), &body[OFFSET_FLAGS..])
}

/// The values that a RRD had last, by the number of the RRD: both sides keep them.
#[derive(Clone, Debug, Default)]
struct LastValues {
    /// By RRD: where its values begin, and how many it has.
    rrds: Vec<(u32, u16)>,
    last: Vec<u64>,
}

impl LastValues {
    /// Adds an RRD with so many values; `None` when there is no room.
    fn add(&mut self, count: usize) -> Option<()> {
        let fits = self.rrds.len() < CONTEXT_RRDS_MAX
            && (1..=VALUES_MAX).contains(&count)
            && self.last.len() + count <= CONTEXT_VALUES_MAX;
        if fits {
            self.rrds.push((self.last.len() as u32, count as u16));
            self.last.resize(self.last.len() + count, 0);
        }
        fits.then_some(())
    }

    /// The last values of an RRD.
    fn of(&mut self, rrd: u32) -> Option<&mut [u64]> {
        let &(start, count) = self.rrds.get(rrd as usize)?;
        self.last.get_mut(start as usize..start as usize + usize::from(count))
    }

    /// Bytes in memory.
    fn bytes(&self) -> usize {
        self.rrds.capacity() * 8 + self.last.capacity() * 8
    }
}

#[cfg(test)]
mod tests;
