//! Blocks that a reader holds: the rows of the next RRD are often in the block of the one before, and need no second read, checksum and
//! search then.

use std::cell::RefCell;
use std::marker::PhantomData;

use super::block::{RunPlace, Runs};
use super::reader::Segment;
use super::{Key, SegmentError};

/// The most blocks that are held: one or two of each segment of a shard. Most have 16 KiB.
const HELD_MAX: usize = 16;
/// Longer blocks are not held.
const HELD_BYTES_MAX: usize = 64 << 10;

thread_local! {
    /// What the reads of this thread share, while it has [`KeptBlocks`].
    static KEPT: RefCell<Option<ReadScratch>> = const { RefCell::new(None) };
}

/// While it exists, the thread holds the blocks that it read last. For reading many RRDs, in the order of their making if possible: then
/// each block is read and searched once.
#[derive(Debug)]
pub struct KeptBlocks {
    is_outermost: bool,
    /// It belongs to the thread.
    _thread: PhantomData<*const ()>,
}

impl KeptBlocks {
    /// Begins to hold blocks.
    pub fn begin() -> Self {
        let is_outermost = KEPT.with_borrow_mut(|kept| match kept {
            Some(_) => false,
            None => {
                *kept = Some(ReadScratch::default());
                true
            }
        });
        KeptBlocks { is_outermost, _thread: PhantomData }
    }
}

impl Drop for KeptBlocks {
    fn drop(&mut self) {
        if self.is_outermost {
            KEPT.with_borrow_mut(Option::take);
        }
    }
}

/// Reads with the blocks that the thread holds, if it holds any.
pub(crate) fn with_kept<T>(read: impl FnOnce(&mut ReadScratch) -> T) -> T {
    KEPT.with_borrow_mut(|kept| match kept {
        Some(scratch) => read(scratch),
        None => read(&mut ReadScratch::default()),
    })
}

/// Buffers of a reader, to be reused for each read, with the blocks that were read last.
#[derive(Debug, Default)]
pub struct ReadScratch {
    held: Vec<HeldBlock>,
    /// The place of the block that goes for the next.
    next: usize,
    /// A block that is only checked.
    pub(super) block: Vec<u8>,
    pub(super) values: Vec<f64>,
}

/// A block that was read and whose checksum is right.
#[derive(Debug, Default)]
pub(super) struct HeldBlock {
    /// The serial number of its segment, and its index there; `None` if it may not be used again.
    of: Option<(u64, usize)>,
    bytes: Vec<u8>,
    first: RunPlace,
    /// A later place, with which the search for a later key begins.
    later: RunPlace,
}

impl ReadScratch {
    /// The bytes of the block that was checked last.
    pub(super) fn block(&self) -> &[u8] {
        &self.block
    }

    /// A block of a segment, and a buffer for values.
    pub(super) fn held(
        &mut self,
        segment: &Segment,
        index: usize,
    ) -> Result<(&mut HeldBlock, &mut Vec<f64>), SegmentError> {
        let of = Some((segment.serial(), index));
        let at = match self.held.iter().position(|block| block.of == of) {
            Some(at) => at,
            None => self.read(segment, index)?,
        };
        Ok((&mut self.held[at], &mut self.values))
    }

    fn read(&mut self, segment: &Segment, index: usize) -> Result<usize, SegmentError> {
        let at = self.next;
        if at == self.held.len() {
            self.held.push(HeldBlock::default());
        }
        let block = &mut self.held[at];
        block.of = None;
        block.first = segment.read_runs(index, &mut block.bytes)?;
        block.later = block.first;
        if block.bytes.len() <= HELD_BYTES_MAX {
            block.of = Some((segment.serial(), index));
            self.next = (at + 1) % HELD_MAX;
        }
        Ok(at)
    }
}

impl HeldBlock {
    /// Its runs, from one that is not after the first of `key`.
    pub(super) fn runs(&self, key: Key) -> Runs<'_> {
        let is_before = self.later.previous_key().is_none_or(|previous| previous < key);
        Runs::from(&self.bytes, if is_before { self.later } else { self.first })
    }

    /// Remembers where a search has ended.
    pub(super) fn set_later(&mut self, later: RunPlace) {
        self.later = later;
    }
}
