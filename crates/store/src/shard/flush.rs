//! From a frozen arena to one segment: rows of many RRDs, arrived in the order of time, written in the
//! order of (group, source, RRD).
//!
//! Cost: every row is touched once along its chain and once to copy; 8 bytes of index a run while a group
//! is being written.

use std::io;
use std::sync::Arc;

use crate::group::Group;
use crate::open_rows::{ChainIndex, OpenRows};
use crate::segment::{Key, SegmentWriter};
use crate::segments::{DiskSink, into_io};
use crate::stripe::codec::ColumnHint;

/// Rows of one run in a segment, at most: a longer run is cut so that a reader never decodes much more
/// than it wants.
pub const RUN_ROWS_MAX: usize = 1024;

/// Writes all rows of `arena` in the order a segment wants them.
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
    // For each source: the chain and the place of each of its runs, chains in order, newest run first.
    let mut runs_of: Vec<Vec<(ChainIndex, u32)>> = vec![Vec::new(); group.sources.len()];
    for &chain in chains {
        for run in arena.runs(chain, group) {
            runs_of[usize::from(run.source)].push((chain, run.place));
        }
    }
    let mut columns = Columns::new(group.geometry.ds_count);
    for (source, runs) in runs_of.iter().enumerate() {
        let hint = group.hint(source as u16);
        for of_one in runs.chunk_by(|a, b| a.0 == b.0) {
            let slot = arena.chains()[of_one[0].0 as usize].id;
            let key = Key { group: group_index, source: source as u16, slot };
            for &(_, place) in of_one.iter().rev() {
                let run = arena.run_at(place, group);
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

/// A run under construction, column by column.
struct Columns {
    first_row: i64,
    columns: Vec<Vec<f64>>,
}

impl Columns {
    fn new(ds_count: usize) -> Self {
        Columns { first_row: 0, columns: vec![Vec::with_capacity(RUN_ROWS_MAX); ds_count] }
    }

    fn row_count(&self) -> usize {
        self.columns[0].len()
    }

    fn is_full(&self) -> bool {
        self.row_count() >= RUN_ROWS_MAX
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
