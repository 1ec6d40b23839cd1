//! The rates that thresholds look at, where the store is on another machine: of each RRD with thresholds, what its first AVERAGE
//! archive would have as its newest row. The step is that of every RRD, so the rates are those that the store has.
//!
//! Nothing is kept across a restart: then rates are known from the second reading on.

use std::collections::HashMap;

use rrd::create::new_live;
use rrd::definition::Definition;
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::grid;
use rrd::live::{CdpPrep, HeadShape, Live};
use rrd::update::{RowSink, Scratch, Updater};
use rrd::when::Step;

use crate::inventory::{Inventory, RrdId, RrdSpec};
use crate::reading::{Reading, Readings};

/// The archive whose rows are looked at.
const ARCHIVE: &str = "RRA:AVERAGE:0.5:1:1";

/// The newest rates of some RRDs.
#[derive(Debug, Default)]
pub struct LocalRates {
    by_name: HashMap<Box<[u8]>, LocalRrd>,
    scratch: Scratch,
    text: Vec<u8>,
}

#[derive(Debug)]
struct LocalRrd {
    /// What it was made by.
    spec: RrdSpec,
    definition: Definition,
    shape: HeadShape,
    live: Live,
    newest: Newest,
}

/// The newest row: its number, and its values.
#[derive(Debug, Default)]
struct Newest(Option<(i64, [f64; 2])>);

impl RowSink for &mut Newest {
    fn rows(&mut self, _rra: usize, first_row: i64, count: u64, cells: &[CdpPrep]) {
        let values = [0, 1].map(|nth| {
            let value = |cell: &CdpPrep| if count == 1 { cell.primary } else { cell.secondary };
            cells.get(nth).map_or(f64::NAN, value)
        });
        self.0 = Some((first_row + count as i64 - 1, values));
    }
}

impl LocalRrd {
    /// `None` when the arguments make no RRD, which the store says, too.
    fn new(spec: &RrdSpec, first: i64) -> Option<Self> {
        let step = Step { units: spec.step, units_per_second: 1 };
        let options = CreateOptions { step, limits: Limits::FILE, file_name: b"" };
        let mut args = spec.create_args();
        args.retain(|arg| arg.starts_with("DS:"));
        args.push(ARCHIVE.to_string());
        let definition = parse_create(&options, &args).ok()?;
        let live = new_live(&definition, first.saturating_sub_unsigned(spec.starts_before));
        let shape = HeadShape::of(&definition);
        Some(LocalRrd { spec: spec.clone(), definition, shape, live, newest: Newest::default() })
    }
}

impl LocalRates {
    /// Forgets RRDs that are not among these.
    pub fn keep(&mut self, is_wanted: impl Fn(&[u8]) -> bool) {
        self.by_name.retain(|name, _| is_wanted(name));
    }

    /// Takes a reading of an RRD. One that an RRD refuses changes nothing.
    pub fn take(&mut self, inventory: &Inventory, readings: &Readings, reading: &Reading) {
        let (name, spec) = (inventory.name(reading.rrd), inventory.spec(reading.rrd));
        if self.by_name.get(name).is_none_or(|rrd| rrd.spec != **spec) {
            let Some(rrd) = LocalRrd::new(spec, reading.time.whole) else { return };
            self.by_name.insert(name.into(), rrd);
        }
        let Some(rrd) = self.by_name.get_mut(name) else { return };
        self.text.clear();
        readings.push_text(reading, &mut self.text);
        // The first is the time.
        let values: Vec<&[u8]> = self.text.split(|&byte| byte == b':').skip(1).collect();
        let LocalRrd { definition, shape, live: Live { words, seasons }, newest, .. } = rrd;
        let (head, scratch) = (shape.split_mut(words), &mut self.scratch);
        let mut updater = Updater { definition, shape, head, seasons, scratch, sink: newest };
        // The store refuses what is refused here, and says so.
        let _ = updater.apply(&rrd::reading::Reading { time: reading.time, values: &values });
    }

    /// The rates of an RRD in the row before `now`; unknown ones are `None`.
    pub fn of(&self, inventory: &Inventory, rrd: RrdId, now: i64) -> [Option<f64>; 2] {
        let Some(rrd) = self.by_name.get(inventory.name(rrd)) else { return [None; 2] };
        let wanted = grid::row_number(now, grid::row_span(rrd.definition.step, 1));
        match rrd.newest.0 {
            Some((number, values)) if number == wanted => {
                values.map(|value| Some(value).filter(|value| value.is_finite()))
            }
            _ => [None; 2],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rrd::time::Timestamp;

    use super::*;
    use crate::reading::Value;

    /// Each reading as its time and its two counters; the rates at that time.
    fn check(rates: &mut LocalRates, max: &str, steps: &[(i64, u64, u64, [Option<f64>; 2])]) {
        let mut inventory = Inventory::new(1);
        let args = [0, 1].map(|nth| format!("DS:ds{nth}:COUNTER:20:0:{max}")).to_vec();
        let spec = Arc::new(RrdSpec { step: 10, starts_before: 10, args });
        let rrd = inventory.find_or_add(b"a.rrd", || spec).unwrap();
        for &(time, input, output, want) in steps {
            let mut readings = Readings::default();
            readings.push(rrd, Timestamp::whole(time), [Value::Unsigned(input), Value::Unsigned(output)]);
            rates.take(&inventory, &readings, readings.iter().next().unwrap());
            assert_eq!(rates.of(&inventory, rrd, time), want, "{time}");
            assert_eq!(rates.of(&inventory, rrd, time + 10), [None; 2], "the row after {time}");
        }
    }

    #[test]
    fn rates_are_those_of_the_newest_row() {
        let mut rates = LocalRates::default();
        check(
            &mut rates,
            "1000",
            &[
                (1000, 100, 7, [None; 2]),
                (1010, 200, 17, [Some(10.0), Some(1.0)]),
                // 500 a second are possible, 2,000 are not.
                (1020, 5200, 20_017, [Some(500.0), None]),
                // Refused: not later.
                (1020, 9000, 30_000, [Some(500.0), None]),
                // The row ends at 1030, five seconds ago.
                (1035, 5350, 20_032, [Some(10.0), Some(1.0)]),
                // Beyond the heartbeat.
                (1070, 6000, 20_040, [None; 2]),
            ],
        );
        // With another maximum, it is another RRD.
        check(&mut rates, "10", &[(1080, 6100, 20_050, [None; 2]), (1090, 6100, 20_550, [Some(0.0), None])]);
        rates.keep(|name| name != b"a.rrd");
        assert!(rates.by_name.is_empty());
    }
}
