//! Finds the blocks of a segment without its footer, for `inspect` and for [`super::rebuild`].
//!
//! A block contains its own length, and its checksum covers number and offset. So a walk goes from block to block, and where
//! there is none, from byte to byte until there is one again: damage costs the blocks that it hits.

use std::io;
use std::ops::Range;

use super::block::{self, BLOCK_HEAD_BYTES, BODY_BYTES_AT, ENTRY_COUNT_AT, Head, SegmentSeal};
use super::footer::{self, FILE_HEAD_BYTES};
use super::{BLOCK_BYTES_MAX, Fault, Key, ReadAt, SegmentError};
use crate::column::codec::ColumnHint;

/// Bytes of a read: two of the largest blocks.
const WINDOW_BYTES: usize = 2 * BLOCK_BYTES_MAX;
/// Where a read fails, this much is given up: a sector of today's disks.
const SECTOR_BYTES: usize = 4096;

/// One run of a block, without its values.
#[derive(Clone, Copy, Debug)]
pub struct RunHead {
    /// Identifies whose rows these are.
    pub key: Key,
    /// Columns.
    pub ds_count: usize,
    /// How the values came about.
    pub hint: ColumnHint,
    /// Number of the first row.
    pub first_row: i64,
    /// Rows.
    pub count: usize,
    /// Bytes of its columns.
    pub bytes: usize,
}

/// What [`salvage`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// The segment's number, from its head.
    pub segment_id: u64,
    /// Number of good blocks.
    pub block_count: u64,
    /// Bytes that are no block; the last such range includes what there is of the footer.
    pub gaps: Vec<Range<u64>>,
}

/// Visits the runs of every block that can be read without the footer.
///
/// # Errors
/// When the head is damaged or the file cannot be read; blocks cannot be checked without the head.
pub fn salvage(
    file: &dyn ReadAt,
    name: &str,
    visit: &mut dyn FnMut(&RunHead),
) -> Result<Salvaged, SegmentError> {
    let failed = |error| SegmentError::Io { file: name.into(), offset: 0, error };
    let file_bytes = file.bytes().map_err(failed)?;
    let mut bytes = [0; FILE_HEAD_BYTES];
    file.read_at(0, &mut bytes).map_err(failed)?;
    let Some(head) = footer::decode_file_head(&bytes) else {
        let fault = Fault::new(0, "the head of a segment", bytes.escape_ascii().to_string());
        return Err(fault.in_file(name, 0));
    };
    let mut found = Salvaged { segment_id: head.segment_id, ..Salvaged::default() };
    walk(file, head.seal(), FILE_HEAD_BYTES as u64..file_bytes, &mut |piece| match piece {
        Piece::Gap(range) => found.gaps.push(range),
        Piece::Block { runs, .. } => {
            found.block_count += 1;
            for &(block::Head { key, ds_count, hint, first_row, count }, bytes) in runs {
                visit(&RunHead { key, ds_count, hint, first_row, count, bytes });
            }
        }
    })
    .map_err(failed)?;
    Ok(found)
}

/// What the walk meets, in order.
pub(super) enum Piece<'a> {
    /// A block with a good checksum: where it is, and its runs with the bytes of their columns.
    Block {
        /// Its place in the file.
        range: Range<u64>,
        /// Its runs.
        runs: &'a [(Head, usize)],
    },
    /// Bytes that are no block, or could not be read.
    Gap(Range<u64>),
}

/// Walks over the blocks with the seal `segment` in a range of a file.
pub(super) fn walk(
    file: &dyn ReadAt,
    segment: SegmentSeal,
    range: Range<u64>,
    visit: &mut dyn FnMut(Piece<'_>),
) -> io::Result<()> {
    let mut window = Window { file, end: range.end, from: range.start, bytes: Vec::new() };
    let mut runs = Vec::new();
    let mut previous: Option<Head> = None;
    let (mut at, mut gap_from) = (range.start, range.start);
    while at < range.end {
        let Some(length) = window.block_at(at, segment, &mut runs)? else {
            at += 1;
            continue;
        };
        let (first, last) = (runs[0].0, runs[runs.len() - 1].0);
        // As the writer orders them; anything else has only the looks of a block.
        if previous.is_some_and(|before| (first.key, first.first_row) < (before.key, before.end_row())) {
            at += 1;
            continue;
        }
        if gap_from < at {
            visit(Piece::Gap(gap_from..at));
        }
        visit(Piece::Block { range: at..at + length, runs: &runs });
        previous = Some(last);
        at += length;
        gap_from = at;
    }
    if gap_from < range.end {
        visit(Piece::Gap(gap_from..range.end));
    }
    Ok(())
}

/// The part of a file that was read last.
struct Window<'a> {
    file: &'a dyn ReadAt,
    /// Nothing is read from here on.
    end: u64,
    from: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    /// The length of the block at `at`, if there is one; then `runs` has its runs.
    fn block_at(
        &mut self,
        at: u64,
        segment: SegmentSeal,
        runs: &mut Vec<(Head, usize)>,
    ) -> io::Result<Option<u64>> {
        let Some(front) = self.get(at, BLOCK_HEAD_BYTES + 1)? else { return Ok(None) };
        let word = |from: usize| {
            u32::from_le_bytes([front[from], front[from + 1], front[from + 2], front[from + 3]])
        };
        let (body, count) = (word(BODY_BYTES_AT) as usize, word(ENTRY_COUNT_AT) as usize);
        if count == 0 || count > body || body > BLOCK_BYTES_MAX - BLOCK_HEAD_BYTES {
            return Ok(None);
        }
        let Some(block) = self.get(at, BLOCK_HEAD_BYTES + body)? else { return Ok(None) };
        let Ok(mut found) = block::open(block, segment, at) else { return Ok(None) };
        runs.clear();
        loop {
            match found.next() {
                Ok(Some(run)) => runs.push((run.head, run.columns.len())),
                Ok(None) if runs.is_empty() => return Ok(None),
                Ok(None) => return Ok(Some((BLOCK_HEAD_BYTES + body) as u64)),
                Err(_) => return Ok(None),
            }
        }
    }

    /// `count` bytes from `at` on; `None` when they go beyond the end.
    fn get(&mut self, at: u64, count: usize) -> io::Result<Option<&[u8]>> {
        if at + count as u64 > self.end {
            return Ok(None);
        }
        if at < self.from || at + count as u64 > self.from + self.bytes.len() as u64 {
            self.from = at;
            self.bytes.clear();
            self.bytes.resize(WINDOW_BYTES.min((self.end - at) as usize), 0);
            read_what_can_be_read(self.file, at, &mut self.bytes)?;
        }
        let from = (at - self.from) as usize;
        Ok(Some(&self.bytes[from..from + count]))
    }
}

/// Fills `bytes` from `offset` on. What the disk cannot read stays zero.
fn read_what_can_be_read(file: &dyn ReadAt, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
    match file.read_at(offset, bytes) {
        Ok(()) => return Ok(()),
        Err(error) if disk::Shortage::of(&error).is_some() => return Err(error),
        Err(_) => {}
    }
    for (index, sector) in bytes.chunks_mut(SECTOR_BYTES).enumerate() {
        let at = offset + (index * SECTOR_BYTES) as u64;
        if file.read_at(at, sector).is_err() {
            sector.fill(0);
        }
    }
    Ok(())
}
