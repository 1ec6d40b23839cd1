//! A newly made RRD that takes its past as updates, in memory.

use std::fmt;
use std::io::Write;

use rrd::content::Rrd;
use rrd::create::new_live;
use rrd::definition::{Definition, DsKind};
use rrd::grid;
use rrd::live::{CdpPrep, HeadShape, Live, UNKNOWN};
use rrd::reading::{Reading, TIME_MAX};
use rrd::time::Timestamp;
use rrd::update::{RowSink, Scratch, Updater};

use crate::rows::MS;

/// Microseconds in a millisecond.
const MICROS: i64 = 1000;
/// Times in milliseconds that history may have.
pub const TIMES: std::ops::RangeInclusive<i64> = 0..=TIME_MAX;

/// Rows that an RRD may have while it is filled: 1 GiB of values.
const VALUES_MAX: u64 = 128 << 20;

/// An RRD whose rows do not fit in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyRows {
    values: u64,
}

impl fmt::Display for TooManyRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = self.values;
        write!(f, "its archives have {values} rows, more than {VALUES_MAX}; give shorter ones (--archives)")
    }
}

impl std::error::Error for TooManyRows {}

/// An RRD of one data source while it is filled.
#[derive(Debug)]
pub struct Filler {
    definition: Definition,
    shape: HeadShape,
    live: Live,
    scratch: Scratch,
    /// The rows of each archive, where [`grid::ring_index`] puts them.
    rings: Vec<Vec<f64>>,
    text: Vec<u8>,
    /// What the heartbeat is afterwards, in units.
    heartbeat: Option<u64>,
    /// Updates that were not newer than the one before.
    refused: u64,
}

/// Puts rows in their rings.
struct Rings<'a>(&'a mut [Vec<f64>]);

impl RowSink for Rings<'_> {
    fn rows(&mut self, rra: usize, first_row: i64, count: u64, cells: &[CdpPrep]) {
        let ring = &mut self.0[rra];
        let row_count = (ring.len() / cells.len()) as u64;
        for index in 0..count {
            let at = grid::ring_index(first_row + index as i64, row_count) as usize * cells.len();
            for (slot, cell) in ring[at..].iter_mut().zip(cells) {
                *slot = if index == 0 { cell.primary } else { cell.secondary };
            }
        }
    }
}

impl Filler {
    /// An RRD that begins at `start`, in milliseconds since the epoch; rounded down to a primary point.
    ///
    /// # Errors
    /// [`TooManyRows`].
    pub fn new(definition: Definition, start: i64) -> Result<Self, TooManyRows> {
        let rows = definition.rra.iter().map(|rra| rra.row_count);
        let values = rows.fold(0, u64::saturating_add).saturating_mul(definition.ds.len() as u64);
        if values > VALUES_MAX {
            return Err(TooManyRows { values });
        }
        let units = start.saturating_mul(i64::from(definition.units_per_second)).div_euclid(MS);
        let step = definition.step as i64;
        let live = new_live(&definition, units.div_euclid(step) * step);
        let shape = HeadShape::of(&definition);
        let ring = |rra: &rrd::definition::Rra| match rra.cf.is_season() {
            true => Vec::new(),
            false => vec![UNKNOWN; rra.row_count as usize * definition.ds.len()],
        };
        let rings = definition.rra.iter().map(ring).collect();
        let (scratch, text) = (Scratch::default(), Vec::new());
        Ok(Filler { definition, shape, live, scratch, rings, text, heartbeat: None, refused: 0 })
    }

    /// While it is filled, only [`Filler::interval`] says what is unknown, not the heartbeat.
    pub fn by_intervals(mut self) -> Self {
        for ds in &mut self.definition.ds {
            if let DsKind::Fed { heartbeat, .. } = &mut ds.kind {
                self.heartbeat = Some(*heartbeat);
                *heartbeat = u64::MAX >> 1;
            }
        }
        self
    }

    /// A value at a time in milliseconds, as an update.
    pub fn point(&mut self, time: i64, value: f64) {
        self.text.clear();
        if value.is_nan() || write!(self.text, "{value}").is_err() {
            self.text.clear();
            self.text.push(b'U');
        }
        let text = std::mem::take(&mut self.text);
        self.update(time, &text);
        self.text = text;
    }

    /// A value that holds from `start` to `end`, both in milliseconds; from the one before to `start` nothing is known.
    pub fn interval(&mut self, start: i64, end: i64, value: f64) {
        let last = *self.shape.split_mut(&mut self.live.words).last_update;
        if self.timestamp(start) > last {
            self.update(start, b"U");
        }
        self.point(end, value);
    }

    fn timestamp(&self, time: i64) -> Timestamp {
        let micros = (time.rem_euclid(MS) * MICROS) as u32;
        Timestamp::new(time.div_euclid(MS), micros).in_units(self.definition.units_per_second)
    }

    fn update(&mut self, time: i64, text: &[u8]) {
        if !TIMES.contains(&time) {
            self.refused += 1;
            return;
        }
        let reading = Reading { time: self.timestamp(time), values: &[text] };
        let mut updater = Updater {
            definition: &self.definition,
            shape: &self.shape,
            head: self.shape.split_mut(&mut self.live.words),
            seasons: &mut self.live.seasons,
            scratch: &mut self.scratch,
            sink: Rings(&mut self.rings),
        };
        self.refused += u64::from(updater.apply(&reading).is_err());
    }

    /// The RRD, and how many updates were refused because they were not newer than the one before.
    pub fn finish(mut self) -> (Rrd, u64) {
        if let Some(after) = self.heartbeat {
            for ds in &mut self.definition.ds {
                if let DsKind::Fed { heartbeat, .. } = &mut ds.kind {
                    *heartbeat = after;
                }
            }
        }
        let last = self.shape.split(&self.live.words).last_update.whole;
        let ds_count = self.definition.ds.len();
        for (rra, ring) in self.rings.iter_mut().enumerate().filter(|(_, ring)| !ring.is_empty()) {
            let row_count = (ring.len() / ds_count) as u64;
            let newest = grid::ring_index(self.definition.newest_row(rra, last), row_count) as usize;
            // The row after the newest one is the oldest.
            ring.rotate_left((newest + 1) % row_count as usize * ds_count);
        }
        (Rrd { definition: self.definition, live: self.live, archives: self.rings }, self.refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{Archives, Selection};
    use rrd::definition::text::{CreateOptions, Limits, parse_create};
    use rrd::when::Step;

    fn definition(args: &[&str]) -> Definition {
        let step = Step { units: 60, units_per_second: 1 };
        parse_create(&CreateOptions { step, limits: Limits::STORE, file_name: b"x" }, args)
            .expect("a definition")
    }

    #[test]
    fn rows_are_the_intervals_and_gaps_are_unknown() {
        let args = ["DS:value:GAUGE:120:U:U", "RRA:AVERAGE:0.5:1:10", "RRA:AVERAGE:0.5:5:4"];
        let mut filler = Filler::new(definition(&args), 600_000).expect("few rows").by_intervals();
        for (minute, value) in [(10, 1.0), (11, 2.0), (12, 3.0), (13, 4.0), (14, 5.0), (20, 7.0), (21, 9.0)] {
            filler.interval(minute * 60_000, (minute + 1) * 60_000, value);
        }
        let (rrd, refused) = filler.finish();
        assert_eq!(refused, 0);
        let runs = Selection { archives: Archives::All, ..Selection::default() }.runs(&rrd);
        let minutes = |index: usize| runs[index].times.iter().map(|time| time / 60_000).collect::<Vec<_>>();
        // Ten rows end at minute 22.
        assert_eq!(minutes(0), [13, 14, 15, 21, 22]);
        assert_eq!(runs[0].values, [3.0, 4.0, 5.0, 7.0, 9.0]);
        assert_eq!((minutes(1), runs[1].values.clone()), (vec![15], vec![3.0]));
        assert!(matches!(rrd.definition.ds[0].kind, DsKind::Fed { heartbeat: 120, .. }));
    }

    #[test]
    fn what_is_not_newer_is_counted() {
        let mut filler =
            Filler::new(definition(&["DS:v:GAUGE:120:U:U", "RRA:LAST:0.5:1:5"]), 0).expect("few rows");
        for time in [60_000, 60_000, 30_000, -1, i64::MAX, 120_500] {
            filler.point(time, 1.0);
        }
        assert_eq!(filler.finish().1, 4);
    }
}
