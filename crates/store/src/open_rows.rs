//! Open rows: the completed rows of all RRDs of a shard that no segment holds yet, in one arena.
//!
//! Rows are appended in order of completion, so all updates write to the same warm cache lines; the rows of
//! one RRD are linked from the newest to the oldest. A full arena is frozen: from then on it never changes,
//! and readers and the flush share it through an `Arc`.
//!
//! Cost of one row: 8 bytes plus 8 per data source (16 bytes in W1, 24 in W2). Rows whose values are all the
//! unknown NaN are not stored at all: a missing row reads as unknown.

use rrd::live::{CdpPrep, UNKNOWN};

use crate::error::StoreError;
use crate::group::{Group, SourceIndex};

/// Index of an RRD's chain in an arena.
pub type ChainIndex = u32;

/// The end of a chain. Entries are addressed in words of 8 bytes, so an arena holds at most 32 GiB.
const NONE: u32 = u32::MAX;
/// Bytes at which an arena takes no more: what one command adds after that, an RRD of 1 GiB at most, still has a place.
pub const ARENA_BYTES_MAX: usize = 24 << 30;

const KIND_SHIFT: u32 = 28;
const SOURCE_SHIFT: u32 = 16;
const SOURCE_MASK: u32 = 0xfff;
/// The most sources a group may have: an entry's head has 12 bits for them.
pub const SOURCES_MAX: usize = SOURCE_MASK as usize + 1;

/// One row; its number is the arena's base row of the source plus a signed 16-bit distance.
const NEAR: u32 = 0;
/// One row; its number is in the next word.
const FAR: u32 = 1;
/// Equal rows: first row number and count in the next two words, then one value per data source.
const REPEAT: u32 = 2;
/// Rows: first row number and count in the next two words, then `count * ds_count` values, row-major.
const BLOCK: u32 = 3;

/// The rows of one RRD in an arena.
#[derive(Clone, Copy, Debug)]
pub struct Chain {
    /// The RRD.
    pub id: u32,
    /// Its group.
    pub group: u32,
    newest: u32,
}

/// An arena of rows.
#[derive(Debug)]
pub struct OpenRows {
    words: Vec<u64>,
    chains: Vec<Chain>,
    /// Time in seconds since the epoch from which near rows are counted.
    base_seconds: i64,
}

/// A run of rows in an arena.
#[derive(Clone, Copy, Debug)]
pub struct OpenRun<'a> {
    /// Its source.
    pub source: SourceIndex,
    /// Number of its first row.
    pub first_row: i64,
    /// Number of rows.
    pub count: u64,
    /// One row of values when all rows are equal, else `count` rows, row-major.
    pub values: &'a [u64],
}

impl OpenRun<'_> {
    /// The value of data source `ds` in the `index`-th row of the run.
    pub fn value(&self, index: u64, ds: usize, ds_count: usize) -> f64 {
        let row = if self.values.len() == ds_count { 0 } else { index as usize * ds_count };
        f64::from_bits(self.values[row + ds])
    }
}

fn is_unknown(value: f64) -> bool {
    value.to_bits() == UNKNOWN.to_bits()
}

impl OpenRows {
    /// An empty arena. `base_seconds` should be close to the times of the rows to come; capacity for `words`
    /// words is reserved but not touched.
    pub fn new(base_seconds: i64, words: usize) -> Self {
        OpenRows { words: Vec::with_capacity(words), chains: Vec::new(), base_seconds }
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        self.words.len() * 8 + self.chains.len() * size_of::<Chain>()
    }

    /// Whether more may be appended.
    ///
    /// # Errors
    /// [`StoreError::Backlog`].
    #[inline]
    pub fn check_room(&self) -> Result<(), StoreError> {
        if self.words.len() < ARENA_BYTES_MAX / 8 {
            return Ok(());
        }
        let limit = ARENA_BYTES_MAX >> 30;
        Err(StoreError::Backlog(format!("{limit} GiB of a shard's rows wait to be written; use more shards")))
    }

    /// True when nothing is held.
    pub fn is_empty(&self) -> bool {
        self.chains.is_empty()
    }

    /// Starts an RRD's chain.
    pub fn start_chain(&mut self, id: u32, group: u32) -> ChainIndex {
        self.chains.push(Chain { id, group, newest: NONE });
        (self.chains.len() - 1) as ChainIndex
    }

    /// The chains, in the order they were started. An RRD has at most one.
    pub fn chains(&self) -> &[Chain] {
        &self.chains
    }

    /// Appends the rows an update completed, as [`rrd::update::RowSink::rows`] gives them.
    pub fn push_cells(
        &mut self,
        chain: ChainIndex,
        group: &Group,
        source: SourceIndex,
        first_row: i64,
        count: u64,
        cells: &[CdpPrep],
    ) {
        if !cells.iter().all(|cell| is_unknown(cell.primary)) {
            self.begin_row(chain, group, source, first_row);
            self.words.extend(cells.iter().map(|cell| cell.primary.to_bits()));
        }
        if count > 1 {
            self.push_same(chain, source, first_row + 1, count - 1, cells.iter().map(|cell| cell.secondary));
        }
    }

    /// Appends `count` equal rows.
    pub fn push_repeat(
        &mut self,
        chain: ChainIndex,
        group: &Group,
        source: SourceIndex,
        first_row: i64,
        count: u64,
        row: &[f64],
    ) {
        debug_assert!(row.len() == group.geometry.ds_count);
        self.push_same(chain, source, first_row, count, row.iter().copied());
    }

    fn push_same(
        &mut self,
        chain: ChainIndex,
        source: SourceIndex,
        first_row: i64,
        count: u64,
        row: impl Iterator<Item = f64> + Clone,
    ) {
        if row.clone().all(is_unknown) {
            return;
        }
        self.begin(chain, REPEAT, source, 0);
        self.words.push(first_row as u64);
        self.words.push(count);
        self.words.extend(row.map(f64::to_bits));
    }

    /// Appends `values` (row-major, `ds_count` per row) as rows from `first_row` on. Rows that are entirely
    /// unknown are dropped at both ends.
    pub fn push_block(
        &mut self,
        chain: ChainIndex,
        group: &Group,
        source: SourceIndex,
        first_row: i64,
        values: &[f64],
    ) {
        let ds_count = group.geometry.ds_count;
        let known = |row: &[f64]| !row.iter().copied().all(is_unknown);
        let rows = || values.chunks_exact(ds_count);
        let (Some(from), Some(last)) = (rows().position(known), rows().rposition(known)) else { return };
        let first_row = first_row + from as i64;
        let kept = &values[from * ds_count..(last + 1) * ds_count];
        if from == last {
            self.begin_row(chain, group, source, first_row);
        } else {
            self.begin(chain, BLOCK, source, 0);
            self.words.push(first_row as u64);
            self.words.push((last + 1 - from) as u64);
        }
        self.words.extend(kept.iter().map(|value| value.to_bits()));
    }

    fn base_row(&self, group: &Group, source: SourceIndex) -> i64 {
        let units = self.base_seconds * i64::from(group.geometry.units_per_second);
        rrd::grid::row_number(units, group.sources[usize::from(source)].span)
    }

    fn begin_row(&mut self, chain: ChainIndex, group: &Group, source: SourceIndex, row: i64) {
        match i16::try_from(row.wrapping_sub(self.base_row(group, source))) {
            Ok(distance) => self.begin(chain, NEAR, source, distance as u16),
            Err(_) => {
                self.begin(chain, FAR, source, 0);
                self.words.push(row as u64);
            }
        }
    }

    fn begin(&mut self, chain: ChainIndex, kind: u32, source: SourceIndex, distance: u16) {
        let place = self.words.len() as u32;
        let chain = &mut self.chains[chain as usize];
        let head = (kind << KIND_SHIFT) | (u32::from(source) << SOURCE_SHIFT) | u32::from(distance);
        self.words.push((u64::from(chain.newest) << 32) | u64::from(head));
        chain.newest = place;
    }

    /// The runs of a chain, newest first.
    pub fn runs<'a>(&'a self, chain: ChainIndex, group: &'a Group) -> impl Iterator<Item = OpenRun<'a>> {
        let mut place = self.chains[chain as usize].newest;
        std::iter::from_fn(move || {
            if place == NONE {
                return None;
            }
            let (run, previous) = self.entry(place, group);
            place = previous;
            Some(run)
        })
    }

    /// The runs of one source of a chain, newest first. Skipping an entry of another source costs one read of
    /// its head.
    pub fn runs_of<'a>(
        &'a self,
        chain: ChainIndex,
        group: &Group,
        source: SourceIndex,
    ) -> impl Iterator<Item = OpenRun<'a>> {
        let mut place = self.chains[chain as usize].newest;
        let (base_row, ds_count) = (self.base_row(group, source), group.geometry.ds_count);
        std::iter::from_fn(move || {
            while place != NONE {
                let (at, word) = (place, self.words[place as usize]);
                place = (word >> 32) as u32;
                if source_of(word) == source {
                    return Some(self.run(at, word, ds_count, base_row));
                }
            }
            None
        })
    }

    /// The place of the newest run of a chain.
    pub fn newest_of(&self, chain: ChainIndex) -> Option<u32> {
        Some(self.chains[chain as usize].newest).filter(|&place| place != NONE)
    }

    /// The source of the run at `place`, and the place of the previous run in its chain.
    #[inline]
    pub fn link(&self, place: u32) -> (SourceIndex, Option<u32>) {
        let word = self.words[place as usize];
        (source_of(word), Some((word >> 32) as u32).filter(|&place| place != NONE))
    }

    /// Prefetches the run at `place` into the cache.
    #[inline]
    pub fn touch(&self, place: u32) {
        std::hint::black_box(self.words[place as usize]);
    }

    /// A reader for many runs of one source.
    pub fn reader(&self, group: &Group, source: SourceIndex) -> RunReader<'_> {
        RunReader { rows: self, base_row: self.base_row(group, source), ds_count: group.geometry.ds_count }
    }

    fn entry<'a>(&'a self, place: u32, group: &Group) -> (OpenRun<'a>, u32) {
        let word = self.words[place as usize];
        let base_row = self.base_row(group, source_of(word));
        (self.run(place, word, group.geometry.ds_count, base_row), (word >> 32) as u32)
    }

    /// The run whose first word is `word`; `base_row` is the base row of its source.
    #[inline]
    fn run(&self, place: u32, word: u64, ds_count: usize, base_row: i64) -> OpenRun<'_> {
        let at = place as usize;
        let head = word as u32;
        let (first_row, count, values_at, value_count) = match head >> KIND_SHIFT {
            NEAR => (base_row + i64::from(head as u16 as i16), 1, at + 1, ds_count),
            FAR => (self.words[at + 1] as i64, 1, at + 2, ds_count),
            REPEAT => (self.words[at + 1] as i64, self.words[at + 2], at + 3, ds_count),
            _ => {
                let count = self.words[at + 2];
                (self.words[at + 1] as i64, count, at + 3, count as usize * ds_count)
            }
        };
        let values = &self.words[values_at..values_at + value_count];
        OpenRun { source: source_of(word), first_row, count, values }
    }
}

/// Reads runs of one source.
#[derive(Debug)]
pub struct RunReader<'a> {
    rows: &'a OpenRows,
    base_row: i64,
    ds_count: usize,
}

impl<'a> RunReader<'a> {
    /// The run at a place from [`OpenRows::link`], which must belong to the reader's source.
    #[inline]
    pub fn run_at(&self, place: u32) -> OpenRun<'a> {
        let word = self.rows.words[place as usize];
        self.rows.run(place, word, self.ds_count, self.base_row)
    }
}

/// The source of the entry that begins with `word`.
fn source_of(word: u64) -> SourceIndex {
    ((word as u32 >> SOURCE_SHIFT) & SOURCE_MASK) as SourceIndex
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::Geometry;
    use rrd::definition::{Consolidation, Definition, Ds, DsKind, DsType, PlainCf, Rra};

    fn group() -> Group {
        let kind = DsKind::Fed { ds_type: DsType::Gauge, heartbeat: 20, min: f64::NAN, max: f64::NAN };
        let ds = ["a", "b"].map(|name| Ds { name: name.into(), kind: kind.clone() }).to_vec();
        let rra = [1, 6].map(|pdp_per_row| Rra {
            cf: Consolidation::Plain { cf: PlainCf::Average, xff: 0.5 },
            pdp_per_row,
            row_count: 100,
        });
        let definition = Definition { version: 3, units_per_second: 1, step: 10, ds, rra: rra.to_vec() };
        Group::of(Geometry::of(&definition))
    }

    fn cell(primary: f64, secondary: f64) -> CdpPrep {
        CdpPrep { value: 0.0, unknown_pdps: 0, primary, secondary }
    }

    #[test]
    fn a_chain_returns_its_runs_newest_first() {
        let group = group();
        let mut rows = OpenRows::new(1_000_000, 64);
        let first = rows.start_chain(7, 0);
        let second = rows.start_chain(8, 0);
        rows.push_cells(first, &group, 0, 100_000, 1, &[cell(1.0, 0.0), cell(2.0, 0.0)]);
        rows.push_cells(second, &group, 0, 100_000, 1, &[cell(3.0, 0.0), cell(UNKNOWN, 0.0)]);
        rows.push_cells(first, &group, 1, 9_999_999, 4, &[cell(5.0, 6.0), cell(7.0, 8.0)]);
        rows.push_cells(first, &group, 0, 100_001, 3, &[cell(UNKNOWN, UNKNOWN); 2]);
        rows.push_block(second, &group, 0, 50, &[UNKNOWN, UNKNOWN, 1.0, 2.0, UNKNOWN, 4.0, UNKNOWN, UNKNOWN]);
        let seen = |chain| -> Vec<(u16, i64, u64, Vec<f64>)> {
            rows.runs(chain, &group)
                .map(|run| {
                    let values = (0..run.count).flat_map(|i| [run.value(i, 0, 2), run.value(i, 1, 2)]);
                    (run.source, run.first_row, run.count, values.collect())
                })
                .collect()
        };
        let text = |runs: Vec<(u16, i64, u64, Vec<f64>)>| format!("{runs:?}");
        assert_eq!(
            text(seen(first)),
            "[(1, 10000000, 3, [6.0, 8.0, 6.0, 8.0, 6.0, 8.0]), (1, 9999999, 1, [5.0, 7.0]), (0, 100000, 1, [1.0, 2.0])]"
        );
        assert_eq!(text(seen(second)), "[(0, 51, 2, [1.0, 2.0, NaN, 4.0]), (0, 100000, 1, [3.0, NaN])]");
        for (chain, source) in [(first, 0), (first, 1), (second, 0), (second, 1)] {
            let of_all = rows.runs(chain, &group).filter(|run| run.source == source);
            let of_one = rows.runs_of(chain, &group, source);
            assert_eq!(
                of_one.map(|run| format!("{run:?}")).collect::<Vec<_>>(),
                of_all.map(|run| format!("{run:?}")).collect::<Vec<_>>()
            );
        }
        let (mut linked, mut place) = (Vec::new(), rows.newest_of(first));
        while let Some(at) = place {
            let (source, previous) = rows.link(at);
            linked.push(format!("{:?}", rows.reader(&group, source).run_at(at)));
            place = previous;
        }
        assert_eq!(linked, rows.runs(first, &group).map(|run| format!("{run:?}")).collect::<Vec<_>>());
    }
}
