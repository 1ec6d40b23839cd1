//! Opens a segment whose footer is damaged, by walking its blocks: one damaged place costs the rows in it, not the segment.
//!
//! The rows between two good blocks are lost only if there are bytes between them: such a [`Gap`] is remembered, and each read
//! that could have found rows in it reports it.

use std::ops::Range;

use super::block::{Head, SegmentSeal};
use super::footer::{self, BlockPlace, FILE_HEAD_BYTES, PLACE_BYTES, SOURCE_BYTES, TRAILER_BYTES};
use super::reader::{Expected, ReadAt};
use super::salvage::{Piece, walk};
use super::writer::relative_row;
use super::{Fault, Key, SegmentError, SourceSummary};

/// Bytes of a segment in which blocks are lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Where it is in the file.
    pub bytes: Range<u64>,
    /// The last run before it: its key, and one past its last row.
    pub after: Option<(Key, i64)>,
    /// The first run after it: its key, and its first row.
    pub before: Option<(Key, i64)>,
}

impl Gap {
    /// True when rows of `key` in `rows` may be lost in it.
    pub fn may_hold(&self, key: Key, rows: &Range<i64>) -> bool {
        let is_later = self.after.is_none_or(|(last, end)| key > last || (key == last && rows.end > end));
        let is_earlier =
            self.before.is_none_or(|(next, first)| key < next || (key == next && rows.start < first));
        is_later && is_earlier
    }

    /// What is wrong with the file of this name.
    pub fn error(&self, file: &str) -> SegmentError {
        let got = format!("{} bytes that are none", self.bytes.end - self.bytes.start);
        Fault::new(0, "blocks", got).in_file(file, self.bytes.start)
    }
}

/// What a walk found of a segment.
pub(super) struct Rebuilt {
    pub owner: u32,
    /// What its blocks are sealed with.
    pub seal: SegmentSeal,
    pub footer_offset: u64,
    pub entry_count: u64,
    pub sources: Vec<SourceSummary>,
    pub directory: Vec<BlockPlace>,
    pub gaps: Vec<Gap>,
}

/// Finds the blocks of a segment whose footer cannot be read because of `damage`.
///
/// # Errors
/// `damage`, when neither head nor trailer proves that the file is the expected segment; [`SegmentError::Misplaced`], when
/// one of them says that it is another one; when the disk fails.
pub(super) fn rebuild(
    file: &dyn ReadAt,
    name: &str,
    expected: &Expected,
    damage: SegmentError,
) -> Result<(Rebuilt, SegmentError), SegmentError> {
    let failed = |error| SegmentError::Io { file: name.into(), offset: 0, error };
    let end = file.bytes().map_err(failed)?.min(expected.bytes);
    let mut head = [0; FILE_HEAD_BYTES];
    let by_head = file.read_at(0, &mut head).ok().and_then(|()| footer::decode_file_head(&head));
    let mut trailer = [0; TRAILER_BYTES];
    let by_trailer = end
        .checked_sub(TRAILER_BYTES as u64)
        .and_then(|at| file.read_at(at, &mut trailer).ok())
        .and_then(|()| footer::decode_trailer(&trailer, end, name).ok());
    let said_by_trailer = by_trailer.map(|trailer| (trailer.segment_id, trailer.owner));
    let said_by_head = by_head.map(|head| (head.segment_id, head.owner));
    for (number, owner) in said_by_trailer.into_iter().chain(said_by_head) {
        if number != expected.number || (owner != 0 && owner != expected.owner) {
            return Err(SegmentError::Misplaced {
                file: name.into(),
                number,
                is_ours: owner == expected.owner,
            });
        }
    }
    // A good trailer is the expected one. A head proves it only if it names the owner.
    let by_owned_head = by_head.filter(|head| head.owner != 0).map(|head| head.seal());
    let Some(seal) = by_trailer.map(|trailer| trailer.seal()).or(by_owned_head) else { return Err(damage) };
    let limit = by_trailer.map_or(end, |trailer| trailer.footer_offset);
    let mut found = Found::default();
    let blocks = FILE_HEAD_BYTES as u64..limit;
    walk(file, seal, blocks, &mut |piece| found.add(piece)).map_err(failed)?;
    Ok((found.finish(expected, seal, by_trailer.map(|trailer| trailer.footer_offset)), damage))
}

/// The blocks found so far.
#[derive(Default)]
struct Found {
    entry_count: u64,
    sources: Vec<SourceSummary>,
    /// Offset, source index, slot and first row of each block.
    places: Vec<(u64, u32, u32, i64)>,
    gaps: Vec<Gap>,
    last: Option<Head>,
    /// Where the last block ends.
    end: u64,
}

impl Found {
    fn add(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Gap(bytes) => {
                let after = self.last.map(|last| (last.key, last.end_row()));
                self.gaps.push(Gap { bytes, after, before: None });
            }
            Piece::Block { range, runs } => {
                if let Some(gap) = self.gaps.last_mut().filter(|gap| gap.bytes.end == range.start) {
                    gap.before = Some((runs[0].0.key, runs[0].0.first_row));
                }
                self.end = range.end;
                for (index, (head, bytes)) in runs.iter().enumerate() {
                    let source = self.note(head, *bytes as u64);
                    if index == 0 {
                        self.places.push((range.start, source, head.key.slot, head.first_row));
                    }
                }
            }
        }
    }

    /// Adds a run to the summary of its source; returns the source's index.
    fn note(&mut self, head: &Head, bytes: u64) -> u32 {
        self.entry_count += 1;
        self.last = Some(*head);
        let key = (head.key.group, head.key.source);
        if self.sources.last().is_none_or(|source| (source.group, source.source) != key) {
            self.sources.push(SourceSummary::of(head));
        }
        let index = self.sources.len() - 1;
        let source = &mut self.sources[index];
        source.add(head);
        source.bytes += bytes;
        index as u32
    }

    /// `footer_offset`: where the blocks end, if a good trailer says so.
    fn finish(mut self, expected: &Expected, seal: SegmentSeal, footer_offset: Option<u64>) -> Rebuilt {
        let mut blocks_end = footer_offset.unwrap_or(expected.bytes);
        if footer_offset.is_none() {
            // What follows the last block is the footer if it is exactly as long as the footer of these blocks: one more block
            // would make the file longer, by itself and by its place.
            self.gaps.pop_if(|gap| gap.before.is_none());
            let from = self.end.max(FILE_HEAD_BYTES as u64);
            let footer = self.sources.len() * SOURCE_BYTES + self.places.len() * PLACE_BYTES + TRAILER_BYTES;
            if self.gaps.is_empty() && from + footer as u64 == expected.bytes {
                blocks_end = from;
            } else {
                let after = self.last.map(|last| (last.key, last.end_row()));
                self.gaps.push(Gap { bytes: from..expected.bytes, after, before: None });
            }
        }
        let sources = self.sources;
        let place = |(offset, source_index, slot, first_row): (u64, u32, u32, i64)| {
            let row = relative_row(first_row, sources[source_index as usize].first_row);
            BlockPlace { offset, source_index, slot, row }
        };
        let directory = self.places.into_iter().map(place).collect();
        Rebuilt {
            owner: expected.owner,
            seal,
            footer_offset: blocks_end,
            entry_count: self.entry_count,
            directory,
            sources,
            gaps: self.gaps,
        }
    }
}

#[cfg(test)]
mod tests;
