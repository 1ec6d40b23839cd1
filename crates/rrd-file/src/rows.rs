//! The rows that pending updates complete, and writing them to a file: each archive's rows in one write.
//!
//! Rows are written before the live part that makes them valid. A kill in between leaves the old live part,
//! with some of the rows after it already overwritten; applying the same updates again writes the same rows.
//! Seasons are the exception, as in RRDtool: an update reads what it later overwrites, so a kill in the
//! microseconds between season and live part leaves coefficients that were adapted once too often.

use std::io;

use rrd::codec::file::{ArchiveLayout, FileLayout};
use rrd::live::{CdpPrep, Season};
use rrd::update::RowSink;

use crate::file::Medium;

/// Largest single write of an archive's rows; only a gap of many thousand rows reaches it.
const WRITE_BYTES_MAX: usize = 256 * 1024;

/// Consecutive rows of one archive; from the second on they have the same values.
#[derive(Clone, Copy, Debug)]
struct Run {
    rra: usize,
    /// Ring position of the first row.
    position: u64,
    count: u64,
    /// Index of the first row's values; those of the other rows follow, if there are any.
    values: usize,
}

/// Completed rows in order of completion.
#[derive(Debug, Default)]
pub struct PendingRows {
    runs: Vec<Run>,
    values: Vec<f64>,
}

impl PendingRows {
    /// Empties it, keeping its memory.
    pub fn clear(&mut self) {
        self.runs.clear();
        self.values.clear();
    }

    /// A sink that adds to these rows and advances `current_rows`.
    pub fn sink<'a>(&'a mut self, layout: &'a FileLayout, current_rows: &'a mut [u64]) -> Sink<'a> {
        Sink { rows: self, layout, current_rows }
    }

    /// Writes all rows.
    ///
    /// # Errors
    /// When a write fails.
    pub fn write(
        &mut self,
        layout: &FileLayout,
        medium: &mut impl Medium,
        buffer: &mut Vec<u8>,
    ) -> io::Result<()> {
        // Stable: within an archive, later rows stay after earlier ones.
        self.runs.sort_by_key(|run| run.rra);
        for runs in self.runs.chunk_by(|a, b| a.rra == b.rra) {
            let archive = layout.archives[runs[0].rra];
            let mut writer = RingWriter { archive, medium, buffer, start: runs[0].position };
            for run in runs {
                writer.run(run, &self.values)?;
            }
            writer.flush()?;
        }
        Ok(())
    }

    /// Copies rows of one archive into `window`, which holds the rows at consecutive ring positions from
    /// `first` on, at most one ring.
    pub fn overlay(&self, rra: usize, archive: ArchiveLayout, first: u64, window: &mut [f64]) {
        let ds_count = (archive.row_bytes / 8) as usize;
        let window_rows = (window.len() / ds_count) as u64;
        let distance = |from: u64, to: u64| (to + archive.row_count - from) % archive.row_count;
        for run in self.runs.iter().filter(|run| run.rra == rra) {
            let mut put = |row: u64, index: u64| {
                let at = row as usize * ds_count;
                window[at..at + ds_count].copy_from_slice(run.row(index, ds_count, &self.values));
            };
            // After a gap, there may be more rows than fit in memory; only the window is needed.
            if run.count <= window_rows {
                for index in 0..run.count {
                    let row = distance(first, (run.position + index) % archive.row_count);
                    if row < window_rows {
                        put(row, index);
                    }
                }
            } else {
                for row in 0..window_rows {
                    let index = distance(run.position, (first + row) % archive.row_count);
                    if index < run.count {
                        put(row, index);
                    }
                }
            }
        }
    }
}

impl Run {
    fn row<'a>(&self, index: u64, ds_count: usize, values: &'a [f64]) -> &'a [f64] {
        let at = self.values + if index == 0 { 0 } else { ds_count };
        &values[at..at + ds_count]
    }
}

/// Collects the rows of one RRD.
pub struct Sink<'a> {
    rows: &'a mut PendingRows,
    layout: &'a FileLayout,
    current_rows: &'a mut [u64],
}

impl RowSink for Sink<'_> {
    fn rows(&mut self, rra: usize, _first_row: i64, count: u64, cells: &[CdpPrep]) {
        if count == 0 {
            return;
        }
        let row_count = self.layout.archives[rra].row_count;
        let position = (self.current_rows[rra] + 1) % row_count;
        self.current_rows[rra] = (self.current_rows[rra] + count % row_count) % row_count;
        let values = self.rows.values.len();
        self.rows.values.extend(cells.iter().map(|cell| cell.primary));
        if count > 1 {
            self.rows.values.extend(cells.iter().map(|cell| cell.secondary));
        }
        self.rows.runs.push(Run { rra, position, count, values });
    }
}

/// Collects rows at consecutive ring positions into one write.
struct RingWriter<'a, M> {
    archive: ArchiveLayout,
    medium: &'a mut M,
    buffer: &'a mut Vec<u8>,
    /// Ring position of the buffer's first row.
    start: u64,
}

impl<M: Medium> RingWriter<'_, M> {
    fn run(&mut self, run: &Run, values: &[f64]) -> io::Result<()> {
        let ds_count = (self.archive.row_bytes / 8) as usize;
        for index in 0..run.count {
            let position = (run.position + index) % self.archive.row_count;
            let next = self.start + self.buffer.len() as u64 / self.archive.row_bytes;
            if position != next || self.buffer.len() >= WRITE_BYTES_MAX {
                self.flush()?;
                self.start = position;
            }
            for value in run.row(index, ds_count, values) {
                self.buffer.extend_from_slice(&value.to_le_bytes());
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            self.medium.write_at(self.buffer, self.archive.row_offset(self.start))?;
            self.buffer.clear();
        }
        Ok(())
    }
}

/// Writes the changed parts of the seasons: the spans of values that differ.
///
/// # Errors
/// When a write fails.
pub fn write_seasons(
    before: &[Season],
    after: &[Season],
    layout: &FileLayout,
    medium: &mut impl Medium,
    buffer: &mut Vec<u8>,
) -> io::Result<()> {
    for (before, after) in before.iter().zip(after) {
        let differs = |index: usize| before.values[index].to_bits() != after.values[index].to_bits();
        let mut index = 0;
        while index < after.values.len() {
            if !differs(index) {
                index += 1;
                continue;
            }
            let start = index;
            buffer.clear();
            while index < after.values.len() && differs(index) {
                buffer.extend_from_slice(&after.values[index].to_le_bytes());
                index += 1;
            }
            let offset = layout.archives[after.rra].offset + start as u64 * 8;
            medium.write_at(buffer, offset)?;
        }
    }
    buffer.clear();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A medium that only records writes.
    #[derive(Default)]
    struct Trace(Vec<(u64, Vec<f64>)>);

    impl Medium for Trace {
        fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
            let values = bytes.chunks_exact(8).map(|chunk| f64::from_le_bytes(chunk.try_into().unwrap()));
            self.0.push((offset, values.collect()));
            Ok(())
        }
    }

    fn layout(row_counts: &[u64]) -> FileLayout {
        let mut offset = 1000;
        let archives = row_counts
            .iter()
            .map(|&row_count| {
                offset += 1000;
                ArchiveLayout { offset, row_bytes: 8, row_count }
            })
            .collect();
        FileLayout {
            live_head: 0,
            pdp_prep: 0,
            cdp_prep: 0,
            rra_ptr: 0,
            header_bytes: 0,
            archives,
            file_bytes: 0,
        }
    }

    fn cell(primary: f64, secondary: f64) -> CdpPrep {
        CdpPrep { value: 0.0, unknown_pdps: 0, primary, secondary }
    }

    #[test]
    fn rows_of_an_archive_take_one_write_and_wrap_around() {
        let layout = layout(&[4, 10]);
        let mut current = [2, 9];
        let mut rows = PendingRows::default();
        let mut sink = rows.sink(&layout, &mut current);
        sink.rows(0, 100, 1, &[cell(1.0, 0.0)]);
        sink.rows(1, 100, 3, &[cell(2.0, 3.0)]);
        sink.rows(0, 101, 2, &[cell(4.0, 5.0)]);
        assert_eq!(current, [1, 2]);
        let mut trace = Trace::default();
        rows.write(&layout, &mut trace, &mut Vec::new()).unwrap();
        assert_eq!(trace.0, [(2024, vec![1.0]), (2000, vec![4.0, 5.0]), (3000, vec![2.0, 3.0, 3.0])]);
        let overlaid = |rra: usize, first: u64, mut window: Vec<f64>| {
            rows.overlay(rra, layout.archives[rra], first, &mut window);
            window
        };
        assert_eq!(overlaid(0, 2, vec![0.0; 4]), [0.0, 1.0, 4.0, 5.0]);
        assert_eq!(overlaid(0, 1, vec![0.0; 2]), [5.0, 0.0]);
        assert_eq!(overlaid(1, 1, vec![0.0; 3]), [3.0, 3.0, 0.0]);
        assert_eq!(overlaid(1, 1, vec![0.0; 2]), [3.0, 3.0]);
    }

    #[test]
    fn only_changed_spans_of_a_season_are_written() {
        let layout = layout(&[6]);
        let season = |values: &[f64]| Season { rra: 0, current_row: 0, values: values.to_vec() };
        let before = season(&[0.0, 1.0, f64::NAN, 3.0, 4.0, 5.0]);
        let after = season(&[0.0, 9.0, 8.0, 3.0, 4.0, -5.0]);
        let mut trace = Trace::default();
        write_seasons(&[before], &[after], &layout, &mut trace, &mut Vec::new()).unwrap();
        assert_eq!(trace.0, [(2008, vec![9.0, 8.0]), (2040, vec![-5.0])]);
    }
}
