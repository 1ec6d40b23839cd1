//! Reading: taking what memory holds of an answer, then completing it from segments.
//!
//! The part that runs against the shard's state is short: it plans, copies open rows and takes a reference to
//! the set of segments. Segments are read and decoded on the caller's thread, which shares nothing with
//! writers. Cost of a cold fetch: one read of about 16 KiB from each segment that has rows of the RRD in the
//! range.

use std::ops::Range;
use std::sync::Arc;

use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::fetch::{FetchRequest, FetchRows};
use rrd::live::{Live, UNKNOWN};

use crate::catalogue::{Entry, RrdId};
use crate::engine::{StoreError, are_rows_alike};
use crate::group::{Group, SourceIndex};
use crate::memory::check_whole;
use crate::name::RrdName;
use crate::segment::{Key, with_kept};
use crate::segments::SegmentSet;
use crate::shard::state::State;
use crate::shard::view::View;

/// Rows of one source in a range; rows not filled in are unknown.
#[derive(Debug)]
pub struct RowMatrix {
    /// First row.
    first_row: i64,
    /// The rows that may be filled; all others stay unknown.
    known: Range<i64>,
    ds_count: usize,
    /// Row-major.
    values: Vec<f64>,
}

impl RowMatrix {
    /// `count` unknown rows, of which those in `known` may be filled.
    pub fn new(first_row: i64, count: usize, known: Range<i64>, ds_count: usize) -> Self {
        let end_row = first_row + count as i64;
        let known = known.start.max(first_row)..known.end.min(end_row);
        RowMatrix { first_row, known, ds_count, values: vec![UNKNOWN; count * ds_count] }
    }

    /// Fills rows of one data source from `first_row` on.
    fn fill_column(&mut self, first_row: i64, ds: usize, column: &[f64]) {
        let end_row = first_row + column.len() as i64;
        let (from, to) = (first_row.max(self.known.start), end_row.min(self.known.end));
        if from >= to || ds >= self.ds_count {
            return;
        }
        let source = &column[(from - first_row) as usize..(to - first_row) as usize];
        let at = (from - self.first_row) as usize * self.ds_count + ds;
        // Merged runs fill gaps between their rows with unknown values, for which another segment may
        // have rows.
        let filled = |cell: f64, value: f64| if value.to_bits() == UNKNOWN.to_bits() { cell } else { value };
        if self.ds_count == 1 {
            // Several at once.
            let cells = self.values[at..].iter_mut();
            return cells.zip(source).for_each(|(cell, value)| *cell = filled(*cell, *value));
        }
        for (cell, value) in self.values[at..].iter_mut().step_by(self.ds_count).zip(source) {
            *cell = filled(*cell, *value);
        }
    }

    /// Fills in rows from the RRD's arenas.
    fn fill_open(&mut self, state: &State, entry: &Entry, group: &Group, source: SourceIndex) {
        if self.known.is_empty() {
            return;
        }
        for (rows, chain) in state.arenas_of(entry) {
            for run in rows.runs_of(chain, group, source) {
                let end_row = run.first_row + run.count as i64;
                if end_row <= self.known.start {
                    // The newest come first: all others are older.
                    break;
                }
                let (from, to) = (run.first_row.max(self.known.start), end_row.min(self.known.end));
                for row in from..to {
                    let at = (row - self.first_row) as usize * self.ds_count;
                    for ds in 0..self.ds_count {
                        self.values[at + ds] = run.value((row - run.first_row) as u64, ds, self.ds_count);
                    }
                }
            }
        }
    }

    /// Fills in rows that were copied from the RRD's arenas.
    pub fn fill_copied(&mut self, run: &CopiedRun) {
        let end_row = run.first_row + run.count as i64;
        let (from, to) = (run.first_row.max(self.known.start), end_row.min(self.known.end));
        let values: &[f64] = bytemuck::cast_slice(&run.values);
        for row in from..to {
            let at = (row - self.first_row) as usize * self.ds_count;
            let of = if values.len() == self.ds_count {
                0
            } else {
                (row - run.first_row) as usize * self.ds_count
            };
            self.values[at..at + self.ds_count].copy_from_slice(&values[of..of + self.ds_count]);
        }
    }

    /// The rows, row-major.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Fills in rows from segments.
    ///
    /// # Errors
    /// When a segment cannot be read or is damaged.
    pub fn fill_segments(&mut self, segments: &SegmentSet, key: Key) -> Result<(), StoreError> {
        if self.known.is_empty() {
            return Ok(());
        }
        with_kept(|scratch| {
            for file in &segments.files {
                let range = self.known.clone();
                let mut fill = |first_row, ds, column: &[f64]| self.fill_column(first_row, ds, column);
                file.segment.read(key, range, scratch, &mut fill).map_err(StoreError::from)?;
            }
            Ok(())
        })
    }
}

/// Rows that were copied from an arena.
pub struct CopiedRun {
    first_row: i64,
    count: u64,
    /// One row when all are equal, else `count` rows, row-major.
    values: Box<[u64]>,
}

impl CopiedRun {
    /// Copies the rows of a source, of which at least one is in `rows`.
    pub fn copy(
        state: &State,
        entry: &Entry,
        (group, source): (&Group, SourceIndex),
        rows: Range<i64>,
        take: &mut dyn FnMut(CopiedRun),
    ) {
        for (arena, chain) in state.arenas_of(entry) {
            for run in arena.runs_of(chain, group, source) {
                if run.first_row + run.count as i64 <= rows.start {
                    // The newest come first: all others are older.
                    break;
                }
                take(CopiedRun { first_row: run.first_row, count: run.count, values: run.values.into() });
            }
        }
    }

    /// What it takes in memory.
    pub fn bytes(&self) -> usize {
        size_of::<CopiedRun>() + self.values.len() * 8
    }
}

/// The part of some rows that was read from memory.
#[derive(Debug)]
pub struct RowsTicket {
    matrix: RowMatrix,
    key: Option<Key>,
    segments: Arc<SegmentSet>,
}

impl RowsTicket {
    /// Copies what memory holds of the rows of an archive with these numbers. Where the archive has lost some since
    /// the definition `of` was asked for, they may still be in a segment.
    ///
    /// # Errors
    /// When there is no such RRD, or another one by now.
    pub fn take(
        view: &View<'_>,
        name: &RrdName,
        of: &Definition,
        rra: usize,
        rows: Range<i64>,
    ) -> Result<Self, StoreError> {
        let (id, entry) = view.find(name)?;
        let definition = view.state.catalogue.definition(entry.definition);
        if !are_rows_alike(of, definition) || rra >= definition.rra.len() {
            return Err(StoreError::NoSuchRrd(name.clone()));
        }
        let newest = definition.newest_row(rra, view.state.last_update(&entry).whole);
        let oldest = match definition.rra[rra].cf.is_season() {
            true => newest - definition.rra[rra].row_count as i64 + 1,
            false => rows.start,
        };
        Ok(Self::known(view, (id, &entry), rra, rows, oldest..newest + 1))
    }

    /// `rows` of an archive, of which only those in `known` are filled.
    fn known(
        view: &View<'_>,
        (id, entry): (RrdId, &Entry),
        rra: usize,
        rows: Range<i64>,
        known: Range<i64>,
    ) -> Self {
        let state = view.state;
        let definition = state.catalogue.definition(entry.definition);
        let group = &state.groups()[entry.group as usize].group;
        let count = (rows.end - rows.start) as usize;
        let mut matrix = RowMatrix::new(rows.start, count, known.clone(), definition.ds.len());
        let key = group.source_of_archive[rra].map(|source| {
            matrix.fill_open(state, entry, group, source);
            Key { group: entry.group, source, slot: id }
        });
        if key.is_none() {
            fill_season(&mut matrix, definition, rra, known.end - 1, state.seasons(id));
        }
        RowsTicket { matrix, key, segments: Arc::clone(view.segments) }
    }

    /// Reads the rest from segments.
    ///
    /// # Errors
    /// When a segment cannot be read or is damaged.
    pub fn complete(mut self) -> Result<Vec<f64>, StoreError> {
        if let Some(key) = self.key {
            self.matrix.fill_segments(&self.segments, key)?;
        }
        Ok(self.matrix.values)
    }
}

/// The part of a fetch that was answered from memory.
#[derive(Debug)]
pub struct FetchTicket {
    rows: RowsTicket,
    answer: FetchRows,
}

impl FetchTicket {
    /// Plans a fetch and copies what memory holds of it.
    ///
    /// # Errors
    /// When there is no such RRD, no archive can answer it, or the answer would exceed the request's limit.
    pub fn take(view: &View<'_>, name: &RrdName, request: FetchRequest) -> Result<Self, StoreError> {
        let (id, entry) = view.find(name)?;
        let state = view.state;
        let definition = state.catalogue.definition(entry.definition);
        let last_update = state.last_update(&entry).whole;
        let plan = rrd::plan::plan(definition, last_update, &request).map_err(StoreError::Fetch)?;
        let newest = definition.newest_row(plan.rra, last_update);
        let known = newest - definition.rra[plan.rra].row_count as i64 + 1..newest + 1;
        let answer = FetchRows::new(definition, &plan, Vec::new());
        let rows = RowsTicket::known(view, (id, &entry), plan.rra, plan.rows, known);
        Ok(FetchTicket { rows, answer })
    }

    /// Reads the rest from segments.
    ///
    /// # Errors
    /// When a segment cannot be read or is damaged.
    pub fn complete(mut self) -> Result<FetchRows, StoreError> {
        self.answer.values = self.rows.complete()?;
        Ok(self.answer)
    }
}

fn fill_season(
    matrix: &mut RowMatrix,
    definition: &Definition,
    rra: usize,
    newest: i64,
    seasons: &[rrd::live::Season],
) {
    let Some(season) = seasons.iter().find(|season| season.rra == rra) else { return };
    let row_count = definition.rra[rra].row_count;
    for row in matrix.known.clone() {
        let back = (newest - row) as u64;
        let ring = (season.current_row + row_count - back % row_count) % row_count;
        let from = ring as usize * matrix.ds_count;
        let at = (row - matrix.first_row) as usize * matrix.ds_count;
        let ds_count = matrix.ds_count;
        matrix.values[at..at + ds_count].copy_from_slice(&season.values[from..from + ds_count]);
    }
}

/// The part of a whole RRD that was read from memory.
#[derive(Debug)]
pub struct ReadTicket {
    id: RrdId,
    group_index: u32,
    definition: Arc<Definition>,
    group: Arc<Group>,
    live: Live,
    matrices: Vec<Option<RowMatrix>>,
    segments: Arc<SegmentSet>,
}

impl ReadTicket {
    /// Copies what memory holds of the RRD.
    ///
    /// # Errors
    /// When there is no such RRD, or it is too large to be held as a whole.
    pub fn take(view: &View<'_>, name: &RrdName) -> Result<Self, StoreError> {
        let (id, entry) = view.find(name)?;
        let state = view.state;
        let definition = Arc::clone(state.catalogue.definition(entry.definition));
        check_whole(&definition)?;
        let group = Arc::clone(&state.groups()[entry.group as usize].group);
        let last_update = state.last_update(&entry).whole;
        let matrices = (0..definition.rra.len())
            .map(|rra| {
                let source = group.source_of_archive[rra]?;
                let newest = definition.newest_row(rra, last_update);
                let count = definition.rra[rra].row_count;
                let first_row = newest - count as i64 + 1;
                let mut matrix =
                    RowMatrix::new(first_row, count as usize, first_row..newest + 1, definition.ds.len());
                matrix.fill_open(state, &entry, &group, source);
                Some(matrix)
            })
            .collect();
        Ok(ReadTicket {
            id,
            group_index: entry.group,
            live: state.live(id, &entry),
            definition,
            group,
            matrices,
            segments: Arc::clone(view.segments),
        })
    }

    /// Reads the rest from segments.
    ///
    /// # Errors
    /// When a segment cannot be read or is damaged.
    pub fn complete(self) -> Result<Rrd, StoreError> {
        let mut archives = Vec::with_capacity(self.matrices.len());
        for (rra, matrix) in self.matrices.into_iter().enumerate() {
            let (Some(mut matrix), Some(source)) = (matrix, self.group.source_of_archive[rra]) else {
                archives.push(Vec::new());
                continue;
            };
            let key = Key { group: self.group_index, source, slot: self.id };
            matrix.fill_segments(&self.segments, key)?;
            archives.push(matrix.values);
        }
        Ok(Rrd { definition: Definition::clone(&self.definition), live: self.live, archives })
    }
}
