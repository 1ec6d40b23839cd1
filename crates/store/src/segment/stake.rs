//! What a damaged part of a segment may cost: the runs that could be in it, by what is known of its neighbours.

use std::ops::{Range, RangeInclusive};

use super::rebuild::Gap;
use super::{Key, Segment};
use crate::column::codec::ColumnHint;

/// Rows of one source that may be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stake {
    /// The group.
    pub group: u32,
    /// The ids of the RRDs.
    pub slots: RangeInclusive<u32>,
    /// Rows.
    pub rows: Range<i64>,
    /// Step and PDPs per row.
    pub hint: ColumnHint,
}

impl Segment {
    /// What a block may hold: from its own first run, which the directory has, to that of the next block.
    pub fn stakes_of_block(&self, index: usize) -> Vec<Stake> {
        let key = |place: &super::footer::BlockPlace| {
            let source = &self.sources[place.source_index as usize];
            let key = Key { group: source.group, source: source.source, slot: place.slot };
            (key, source.first_row.saturating_add(i64::from(place.row)))
        };
        self.stakes(self.directory.get(index).map(key), self.directory.get(index + 1).map(key))
    }

    /// What a gap may have held.
    pub fn stakes_of_gap(&self, gap: &Gap) -> Vec<Stake> {
        self.stakes(gap.after, gap.before)
    }

    /// Per source, what lies between two runs, each given by its key and a row.
    fn stakes(&self, from: Option<(Key, i64)>, to: Option<(Key, i64)>) -> Vec<Stake> {
        let of = |key: Key| (key.group, key.source);
        let mut stakes = Vec::new();
        for source in &self.sources {
            let this = (source.group, source.source);
            if from.is_some_and(|(key, _)| this < of(key)) || to.is_some_and(|(key, _)| this > of(key)) {
                continue;
            }
            let first = from.filter(|(key, _)| of(*key) == this);
            let last = to.filter(|(key, _)| of(*key) == this);
            let slots = first.map_or(0, |(key, _)| key.slot)..=last.map_or(u32::MAX, |(key, _)| key.slot);
            let mut rows = source.first_row..source.end_row;
            if slots.start() == slots.end() {
                rows.start = first.map_or(rows.start, |(_, row)| row);
                rows.end = last.map_or(rows.end, |(_, row)| row);
            }
            stakes.push(Stake { group: source.group, slots, rows, hint: source.hint });
        }
        stakes
    }
}
