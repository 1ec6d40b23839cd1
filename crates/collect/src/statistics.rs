//! What a collector says of itself: numbers for `/metrics`, and the same numbers as an RRD, so that they can be graphed.

use std::sync::Arc;

use rrd::time::Timestamp;

use crate::host::{ARCHIVES, STEP_SECONDS};
use crate::inventory::{Inventory, RrdId, RrdSpec};
use crate::reading::{Readings, Value};

/// A number of a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistic {
    /// Its name: of the data source, so at most 19 characters; in `/metrics` after the collector's.
    pub name: &'static str,
    /// What it counts, for `/metrics`.
    pub help: &'static str,
    /// Its value now.
    pub value: u64,
    /// True for a counter, false for a level.
    pub grows: bool,
}

impl Statistic {
    /// A count since the start.
    pub fn count(name: &'static str, help: &'static str, value: u64) -> Self {
        Statistic { name, help, value, grows: true }
    }

    /// A level.
    pub fn level(name: &'static str, help: &'static str, value: u64) -> Self {
        Statistic { name, help, value, grows: false }
    }
}

/// The RRD of a collector's own numbers, with this machine's steps and archives. A release only ever appends numbers: then the RRDs
/// that an earlier one has made get the new ones, and otherwise they could not be fed
/// (`crates/server/src/collectors/store_writer/fit.rs`).
#[derive(Clone, Debug)]
pub struct OwnRrd {
    inventory: Inventory,
    name: String,
    due: i64,
}

impl OwnRrd {
    /// The RRD `roundel/COLLECTOR.rrd`.
    pub fn new(collector: &str) -> Self {
        OwnRrd { inventory: Inventory::new(1), name: format!("roundel/{collector}.rrd"), due: i64::MIN }
    }

    /// Its inventory.
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// Appends a reading once per step; the numbers are always the same ones.
    pub fn read(&mut self, now: i64, numbers: &[Statistic], readings: &mut Readings) {
        let step = STEP_SECONDS as i64;
        if now < self.due {
            return;
        }
        self.due = (now.div_euclid(step) + 1) * step;
        let Some(rrd) = self.rrd(numbers) else { return };
        readings.push(rrd, Timestamp::whole(now), numbers.iter().map(|number| Value::Unsigned(number.value)));
    }

    fn rrd(&mut self, numbers: &[Statistic]) -> Option<RrdId> {
        let spec = || {
            let source = |number: &Statistic| {
                let kind = if number.grows { "DERIVE" } else { "GAUGE" };
                format!("DS:{}:{kind}:{}:0:U", number.name, 3 * STEP_SECONDS)
            };
            let archives = ARCHIVES.iter().map(|arg| arg.to_string());
            let args = numbers.iter().map(source).chain(archives).collect();
            Arc::new(RrdSpec { step: STEP_SECONDS, starts_before: STEP_SECONDS, args })
        };
        self.inventory.find_or_add(self.name.as_bytes(), spec).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_one_reading() {
        let mut own = OwnRrd::new("x");
        let mut readings = Readings::default();
        let numbers = [Statistic::count("in", "", 5), Statistic::level("rrds", "", 7)];
        for now in [103, 104, 109, 110, 111, 125] {
            own.read(now, &numbers, &mut readings);
        }
        let times: Vec<i64> = readings.iter().map(|reading| reading.time.whole).collect();
        assert_eq!(times, [103, 110, 125]);
        let rrd = readings.iter().next().unwrap().rrd;
        assert_eq!(own.inventory().name(rrd), b"roundel/x.rrd");
        assert_eq!(own.inventory().spec(rrd).args[..2], ["DS:in:DERIVE:30:0:U", "DS:rrds:GAUGE:30:0:U"]);
    }
}
