//! Merges several segments into one with fewer, longer runs, and drops rows that need not be kept.
//!
//! The merge is streaming: it holds one block of each input and the rows of one RRD that wait to be joined.
//! Runs that are already long are copied without decoding.

use std::io::Write;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use rrd::live::UNKNOWN;

use super::block::Head;
use super::reader::{Entries, Segment};
use super::{Key, SegmentError, SegmentWriter};

/// Rows of a joined run. Longer columns do not compress better, and with shorter runs a reader decodes fewer
/// rows it does not need.
pub const JOINED_ROWS: usize = 1024;
/// Runs this close to each other are joined, with unknown rows in between: a separate run would take more
/// space.
pub const GAP_ROWS_MAX: i64 = 64;

/// Appends to `output` the rows of `inputs` whose (group, source) is `wanted`.
///
/// `oldest_row(group, source, slot)` returns the first row to keep, `None` for a removed RRD. Where several
/// inputs hold the same row, the last input wins.
///
/// # Errors
/// [`SegmentError::Stopped`] soon after `stopping` was set; the first damage. The inputs must then be kept,
/// because they hold rows that were not copied.
pub fn merge<W: Write>(
    inputs: &[&Segment],
    wanted: &dyn Fn(u32, u16) -> bool,
    oldest_row: &dyn Fn(u32, u16, u32) -> Option<i64>,
    stopping: &AtomicBool,
    output: &mut SegmentWriter<W>,
) -> Result<(), SegmentError> {
    let mut cursors = Vec::with_capacity(inputs.len());
    for segment in inputs {
        let mut entries = segment.entries_of(wanted);
        let head = entries.advance()?;
        cursors.push(Cursor { entries, head });
    }
    let mut pending = Pending::default();
    let mut kept_from = None;
    while let Some((index, head)) = next_run(&cursors) {
        if stopping.load(Ordering::Relaxed) {
            return Err(SegmentError::Stopped);
        }
        if pending.key != Some(head.key) {
            pending.finish(output)?;
            pending.start(&head);
            kept_from = oldest_row(head.key.group, head.key.source, head.key.slot);
        }
        pending.write_before(head.first_row, output)?;
        let kept_from = kept_from.unwrap_or(i64::MAX).max(pending.written_to);
        if head.end_row() > kept_from {
            if pending.is_empty() && head.first_row >= kept_from && stands_alone(&cursors, index, &head) {
                output.push_encoded(head, cursors[index].entries.encoded())?;
                pending.written_to = head.end_row();
            } else {
                let rows = kept_from.max(head.first_row)..head.end_row();
                let values = cursors[index].entries.decoded()?;
                pending.add(&head, rows, values, index, output)?;
            }
        }
        let cursor = &mut cursors[index];
        cursor.head = cursor.entries.advance()?;
    }
    pending.finish(output)
}

struct Cursor<'a> {
    entries: Entries<'a>,
    head: Option<Head>,
}

/// The run that comes first in the output; among equal ones, the one of the earlier input.
fn next_run(cursors: &[Cursor<'_>]) -> Option<(usize, Head)> {
    let heads = cursors.iter().enumerate().filter_map(|(index, cursor)| Some((index, cursor.head?)));
    heads.min_by_key(|(index, head)| (head.key, head.first_row, *index))
}

/// True when a run is as long as a joined one and no other input has rows in its range.
fn stands_alone(cursors: &[Cursor<'_>], index: usize, head: &Head) -> bool {
    let overlaps = |other: &Head| other.key == head.key && other.first_row < head.end_row();
    let mut others = cursors.iter().enumerate().filter(|(other, _)| *other != index);
    head.count == JOINED_ROWS && !others.any(|(_, cursor)| cursor.head.as_ref().is_some_and(overlaps))
}

/// Rows of one RRD and source, waiting for more to be joined with.
#[derive(Default)]
struct Pending {
    key: Option<Key>,
    shape: Option<Head>,
    first_row: i64,
    columns: Vec<Vec<f64>>,
    /// For each row, the last input that had it.
    owners: Vec<usize>,
    /// Rows before this one have been written.
    written_to: i64,
}

impl Pending {
    fn start(&mut self, head: &Head) {
        self.key = Some(head.key);
        self.shape = Some(*head);
        self.columns.resize_with(head.ds_count, Vec::new);
        self.written_to = i64::MIN;
    }

    fn count(&self) -> usize {
        self.owners.len()
    }

    fn is_empty(&self) -> bool {
        self.count() == 0
    }

    fn end_row(&self) -> i64 {
        self.first_row + self.count() as i64
    }

    /// Adds the rows in `rows` of a run whose concatenated columns are `values`.
    fn add<W: Write>(
        &mut self,
        head: &Head,
        rows: Range<i64>,
        values: &[f64],
        input: usize,
        output: &mut SegmentWriter<W>,
    ) -> Result<(), SegmentError> {
        if self.columns.len() != head.ds_count {
            return Err(SegmentError::Misuse("segments disagree about the columns of a source"));
        }
        if rows.start > self.end_row().saturating_add(GAP_ROWS_MAX) {
            self.finish(output)?;
        }
        if self.is_empty() {
            self.first_row = rows.start;
        }
        let at = (rows.start - self.first_row) as usize;
        let end = at + (rows.end - rows.start) as usize;
        let count = self.count().max(end);
        self.owners.resize(count, 0);
        for (column, values) in self.columns.iter_mut().zip(values.chunks_exact(head.count)) {
            column.resize(count, UNKNOWN);
            let values = &values[(rows.start - head.first_row) as usize..];
            for ((into, value), owner) in column[at..end].iter_mut().zip(values).zip(&self.owners[at..end]) {
                // An unknown value may fill a gap of the input, so it overrides nothing.
                let is_newest = *owner <= input || into.to_bits() == UNKNOWN.to_bits();
                if is_newest && value.to_bits() != UNKNOWN.to_bits() {
                    *into = *value;
                }
            }
        }
        self.owners[at..end].iter_mut().for_each(|owner| *owner = input.max(*owner));
        Ok(())
    }

    /// Writes full runs of rows before `row`: no later run can have such rows.
    fn write_before<W: Write>(
        &mut self,
        row: i64,
        output: &mut SegmentWriter<W>,
    ) -> Result<(), SegmentError> {
        while self.count() >= JOINED_ROWS && self.first_row.saturating_add(JOINED_ROWS as i64) <= row {
            self.write(JOINED_ROWS, output)?;
        }
        Ok(())
    }

    /// Writes the oldest `count` rows.
    fn write<W: Write>(&mut self, count: usize, output: &mut SegmentWriter<W>) -> Result<(), SegmentError> {
        let Some(shape) = self.shape.filter(|_| count > 0) else { return Ok(()) };
        let columns: Vec<&[f64]> = self.columns.iter().map(|column| &column[..count]).collect();
        output.push(shape.key, self.first_row, &columns, &shape.hint)?;
        self.columns.iter_mut().for_each(|column| {
            column.drain(..count);
        });
        self.owners.drain(..count);
        self.first_row += count as i64;
        self.written_to = self.first_row;
        Ok(())
    }

    /// Writes all remaining rows in runs of the joined length.
    fn finish<W: Write>(&mut self, output: &mut SegmentWriter<W>) -> Result<(), SegmentError> {
        while !self.is_empty() {
            self.write(self.count().min(JOINED_ROWS), output)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::codec::ColumnHint;
    use crate::segment::ReadScratch;
    use std::collections::BTreeMap;

    const HINT: ColumnHint = ColumnHint { units_per_second: 1, step: 10, pdp_per_row: 1 };

    type Rows = BTreeMap<(Key, i64), f64>;

    fn segment(id: u64, rows: &Rows) -> Segment {
        let mut writer = SegmentWriter::new(Vec::new(), "in", id).unwrap();
        let rows: Vec<_> = rows.iter().collect();
        let follows = |a: &(&(Key, i64), &f64), b: &(&(Key, i64), &f64)| a.0.0 == b.0.0 && a.0.1 + 1 == b.0.1;
        for run in rows.chunk_by(follows) {
            let values: Vec<f64> = run.iter().map(|(_, value)| **value).collect();
            writer.push(run[0].0.0, run[0].0.1, &[&values, &values], &HINT).unwrap();
        }
        Segment::open(Box::new(writer.finish().unwrap().1), "in").unwrap()
    }

    fn merged(
        inputs: &[Segment],
        wanted: &dyn Fn(u32, u16) -> bool,
        oldest_row: &dyn Fn(u32, u16, u32) -> Option<i64>,
    ) -> Segment {
        let mut writer = SegmentWriter::new(Vec::new(), "out", 99).unwrap();
        let inputs: Vec<&Segment> = inputs.iter().collect();
        merge(&inputs, wanted, oldest_row, &AtomicBool::new(false), &mut writer).unwrap();
        Segment::open(Box::new(writer.finish().unwrap().1), "out").unwrap()
    }

    /// All rows except unknown ones, read RRD by RRD.
    fn rows_of(segment: &Segment, keys: &[Key]) -> Rows {
        let mut rows = Rows::new();
        for key in keys {
            let visit = &mut |first_row: i64, ds: usize, values: &[f64]| {
                for (index, value) in values.iter().enumerate().filter(|(_, value)| !value.is_nan()) {
                    let row = (*key, first_row + index as i64);
                    assert_eq!(rows.insert(row, *value), if ds == 0 { None } else { Some(*value) });
                }
            };
            segment.read(*key, i64::MIN..i64::MAX, &mut ReadScratch::default(), visit).unwrap();
        }
        rows
    }

    /// A small xorshift generator.
    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    #[test]
    fn a_merge_equals_a_merge_of_maps() {
        for seed in 1..60u64 {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let key = |number: u64| Key { group: 1, source: (number % 3) as u16, slot: (number / 3) as u32 };
            let keys: Vec<Key> = (0..9).map(key).collect();
            let mut want = Rows::new();
            let mut inputs = Vec::new();
            for id in 0..1 + random(&mut state) % 4 {
                let mut rows = Rows::new();
                for _ in 0..random(&mut state) % 8 {
                    let key = keys[(random(&mut state) % 9) as usize];
                    let first = (random(&mut state) % 3000) as i64;
                    for row in first..first + [1, 20, 1024, 1500, 3000][(random(&mut state) % 5) as usize] {
                        rows.insert((key, row), (random(&mut state) % 1000) as f64 / 4.0);
                    }
                }
                inputs.push(segment(id, &rows));
                want.extend(rows);
            }
            let oldest = |slot: u32| if slot == 1 { None } else { Some(i64::from(slot) * 700) };
            want.retain(|(key, row), _| {
                key.source != 2 && oldest(key.slot).is_some_and(|oldest| *row >= oldest)
            });
            let result = merged(&inputs, &|_, source| source != 2, &|_, _, slot| oldest(slot));
            assert!(rows_of(&result, &keys) == want, "seed {seed}");
        }
    }

    #[test]
    fn a_gap_in_a_later_input_overrides_nothing() {
        let key = Key { group: 0, source: 0, slot: 3 };
        let rows = |id: i64| -> Rows { (id * 4..id * 4 + 4).map(|row| ((key, row), row as f64)).collect() };
        let outer = [segment(0, &rows(0)), segment(2, &rows(2))];
        let with_gap = merged(&outer, &|_, _| true, &|_, _, _| Some(0));
        let all = merged(&[segment(1, &rows(1)), with_gap], &|_, _| true, &|_, _, _| Some(0));
        assert_eq!(rows_of(&all, &[key]).len(), 12);
    }

    #[test]
    fn neighbours_are_joined_and_long_runs_copied() {
        let key = Key { group: 0, source: 0, slot: 3 };
        let flush = |id: i64| {
            segment(id as u64, &(id * 16..id * 16 + 16).map(|row| ((key, row), row as f64)).collect())
        };
        let inputs: Vec<Segment> = (0..130).map(flush).collect();
        let all = merged(&inputs, &|_, _| true, &|_, _, _| Some(0));
        assert_eq!(all.entry_count(), 3);
        let again = merged(&[all], &|_, _| true, &|_, _, _| Some(0));
        assert_eq!(again.entry_count(), 3);
        assert_eq!(rows_of(&again, &[key]).len(), 130 * 16);
    }

    #[test]
    fn a_merge_stops_on_request() {
        let key = Key { group: 0, source: 0, slot: 0 };
        let input = segment(1, &Rows::from([((key, 1), 1.0)]));
        let mut writer = SegmentWriter::new(Vec::new(), "out", 2).unwrap();
        let outcome = merge(&[&input], &|_, _| true, &|_, _, _| Some(0), &AtomicBool::new(true), &mut writer);
        assert!(matches!(outcome, Err(SegmentError::Stopped)));
    }
}
