//! Flushing a frozen arena to a segment: the rows of many RRDs, stored in order of time, are written in order
//! of (group, source, RRD).
//!
//! Cost: each row is read twice, once along its chain and once to copy it; 4 bytes of index per run, and per source
//! of each RRD, while a group is written. With many RRDs each read is a cache miss, so several chains are followed at
//! once.

use std::io;
use std::sync::Arc;

use crate::column::codec::ColumnHint;
use crate::group::{Group, SourceIndex};
use crate::open_rows::{ChainIndex, OpenRows};
use crate::segment::{Key, SegmentWriter};
use crate::segments::{DiskSink, into_io};

/// The most rows of one run in a segment. Longer runs are split, so that a reader never decodes much more
/// than it needs.
pub const FLUSHED_RUN_ROWS: usize = 1024;

/// Writes all rows of `arena` in the segment's order.
///
/// # Errors
/// When the segment cannot be written.
pub fn write_rows(
    arena: &OpenRows,
    groups: &[Arc<Group>],
    writer: &mut SegmentWriter<DiskSink>,
) -> io::Result<()> {
    let chains = arena.chains();
    let mut order: Vec<ChainIndex> = (0..chains.len() as ChainIndex).collect();
    order.sort_unstable_by_key(|&chain| (chains[chain as usize].group, chains[chain as usize].id));
    for same_group in order.chunk_by(|&a, &b| chains[a as usize].group == chains[b as usize].group) {
        let group_index = chains[same_group[0] as usize].group;
        write_group(arena, group_index, &groups[group_index as usize], same_group, writer)?;
    }
    Ok(())
}

fn write_group(
    arena: &OpenRows,
    group_index: u32,
    group: &Group,
    chains: &[ChainIndex],
    writer: &mut SegmentWriter<DiskSink>,
) -> io::Result<()> {
    let runs_of = runs_by_source(arena, group.sources.len(), chains);
    let mut columns = Columns::new(group.geometry.ds_count);
    for (source, runs) in (0..).zip(&runs_of) {
        let hint = group.hint(source);
        let reader = arena.reader(group, source);
        // Chains run from newest to oldest, so the oldest run is the last.
        let mut ahead = 0;
        for (&chain, &end) in chains.iter().zip(&runs.ends) {
            let of_one = &runs.places[ahead..end as usize];
            let key = Key { group: group_index, source, slot: arena.chains()[chain as usize].id };
            ahead = end as usize;
            let coming = &runs.places[ahead..runs.places.len().min(ahead + of_one.len())];
            for (index, &place) in of_one.iter().rev().enumerate() {
                if let Some(&coming) = coming.get(index) {
                    arena.touch(coming);
                }
                let run = reader.run_at(place);
                for index in 0..run.count {
                    let row = run.first_row + index as i64;
                    if columns.is_full() || !columns.continues_at(row) {
                        columns.write(key, &hint, writer)?;
                        columns.first_row = row;
                    }
                    columns.push_row(|ds| run.value(index, ds, group.geometry.ds_count));
                }
            }
            columns.write(key, &hint, writer)?;
        }
    }
    Ok(())
}

/// Chains followed at once: each step waits for memory, and the waits of several chains overlap.
const CHAINS_AT_ONCE: usize = 16;

/// The runs of one source.
#[derive(Clone, Default)]
struct Runs {
    /// The place of each, chain after chain, newest run first.
    places: Vec<u32>,
    /// For each chain, where its places end.
    ends: Vec<u32>,
}

/// The runs of each source.
fn runs_by_source(arena: &OpenRows, source_count: usize, chains: &[ChainIndex]) -> Vec<Runs> {
    let mut runs_of = vec![Runs::default(); source_count];
    runs_of.iter_mut().for_each(|runs| runs.ends.reserve_exact(chains.len()));
    let mut walks: [Vec<(SourceIndex, u32)>; CHAINS_AT_ONCE] = Default::default();
    for (piece, together) in chains.chunks(CHAINS_AT_ONCE).enumerate() {
        let mut next: Vec<_> = together.iter().map(|&chain| arena.newest_of(chain)).collect();
        while next.iter().any(Option::is_some) {
            for (walk, next) in walks.iter_mut().zip(&mut next) {
                if let Some(place) = *next {
                    let (source, previous) = arena.link(place);
                    walk.push((source, place));
                    *next = previous;
                }
            }
        }
        for walk in walks.iter_mut().take(together.len()) {
            for (source, place) in walk.drain(..) {
                runs_of[usize::from(source)].places.push(place);
            }
            runs_of.iter_mut().for_each(|runs| runs.ends.push(runs.places.len() as u32));
        }
        if piece == 0 {
            // The chains of a group are about as long as the first ones: little is copied while the index grows.
            let pieces = chains.len().div_ceil(CHAINS_AT_ONCE);
            let mut left = arena.bytes() / 16;
            for Runs { places, .. } in &mut runs_of {
                let more = (places.len() * pieces).min(left);
                left -= more;
                places.reserve_exact(more);
            }
        }
    }
    runs_of
}

/// A run being assembled, column by column.
struct Columns {
    first_row: i64,
    columns: Vec<Vec<f64>>,
}

impl Columns {
    fn new(ds_count: usize) -> Self {
        Columns { first_row: 0, columns: vec![Vec::with_capacity(FLUSHED_RUN_ROWS); ds_count] }
    }

    fn row_count(&self) -> usize {
        self.columns[0].len()
    }

    fn is_full(&self) -> bool {
        self.row_count() >= FLUSHED_RUN_ROWS
    }

    fn continues_at(&self, row: i64) -> bool {
        self.row_count() > 0 && self.first_row + self.row_count() as i64 == row
    }

    fn push_row(&mut self, value: impl Fn(usize) -> f64) {
        for (ds, column) in self.columns.iter_mut().enumerate() {
            column.push(value(ds));
        }
    }

    fn write(&mut self, key: Key, hint: &ColumnHint, writer: &mut SegmentWriter<DiskSink>) -> io::Result<()> {
        if self.row_count() == 0 {
            return Ok(());
        }
        let columns: Vec<&[f64]> = self.columns.iter().map(Vec::as_slice).collect();
        writer.push(key, self.first_row, &columns, hint).map_err(into_io)?;
        self.columns.iter_mut().for_each(Vec::clear);
        Ok(())
    }
}
