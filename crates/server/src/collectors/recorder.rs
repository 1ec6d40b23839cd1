//! From a collector's readings to the store: RRDs are created when they are first fed.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use collect::inventory::{Inventory, RrdId, RrdSpec};
use collect::reading::Readings;
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::when::Step;
use store::engine::{CreateRequest, StoreError, UpdateBatch};
use store::name::RrdName;
use tokio::sync::oneshot;

use crate::service::Service;

/// How many failures of one call are logged one by one; of the others, only the number is.
const FAILURES_LOGGED: usize = 5;
/// After a failure, the next one of the same RRD is logged only after this many readings without one: of a name with two
/// sources, every other reading is refused.
const READINGS_WELL: u8 = 60;

/// What became of some readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// RRDs created.
    pub created: u64,
    /// Readings that the store took.
    pub accepted: u64,
    /// Readings that the store refused, or whose RRD could not be created.
    pub refused: u64,
}

/// What is known of an RRD of the inventory.
#[derive(Clone, Copy, Debug, Default)]
struct Fed {
    /// It is in the store.
    exists: bool,
    /// Readings without a failure until one is logged again; 0 when none was logged.
    unlogged_readings: u8,
}

impl Fed {
    /// Notes a failure; true when it is to be logged.
    fn fails(&mut self) -> bool {
        std::mem::replace(&mut self.unlogged_readings, READINGS_WELL) == 0
    }

    /// Notes that a reading was passed on.
    fn was_fed(&mut self) {
        self.unlogged_readings = self.unlogged_readings.saturating_sub(1);
    }
}

/// Records the readings of one collector.
pub struct Recorder {
    service: Arc<Service>,
    /// What the log calls the collector, such as `host`.
    collector: &'static str,
    /// By the RRD's index in the inventory.
    fed: Vec<Fed>,
}

impl Recorder {
    /// A recorder for one collector, whose inventory is passed with each call.
    pub fn new(service: Arc<Service>, collector: &'static str) -> Self {
        Recorder { service, collector, fed: Vec::new() }
    }

    /// Creates the RRDs that are new, and passes the readings to the store in their order.
    pub async fn record(&mut self, inventory: &Inventory, readings: &Readings) -> Recorded {
        let mut recorded = Recorded::default();
        self.fed.resize(inventory.len(), Fed::default());
        self.create_new(inventory, readings, &mut recorded).await;
        let mut batch = UpdateBatch::default();
        let mut rrds = Vec::with_capacity(readings.len());
        let mut text = Vec::new();
        for reading in readings.iter() {
            if !self.fed[reading.rrd.index()].exists {
                recorded.refused += 1;
                continue;
            }
            text.clear();
            readings.push_text(reading, &mut text);
            batch.push(inventory.name(reading.rrd), &text);
            rrds.push(reading.rrd);
        }
        let (sender, receiver) = oneshot::channel();
        self.service.engine.update(batch, Box::new(move |failures| drop(sender.send(failures))));
        let Ok(failures) = receiver.await else {
            // The store is stopping.
            recorded.refused += rrds.len() as u64;
            return recorded;
        };
        recorded.accepted += (rrds.len() - failures.len()) as u64;
        recorded.refused += failures.len() as u64;
        let mut failed = Vec::with_capacity(failures.len());
        for failure in failures {
            let rrd = rrds[failure.line as usize];
            if matches!(failure.error, StoreError::NoSuchRrd(_)) {
                // Deleted since: the next reading makes it again.
                self.fed[rrd.index()].exists = false;
            }
            failed.push((rrd, failure.error.to_string()));
        }
        self.log("a reading was refused", inventory, failed);
        rrds.iter().for_each(|rrd| self.fed[rrd.index()].was_fed());
        recorded
    }

    /// Creates the RRDs of these readings that are not known to exist, all at once.
    async fn create_new(&mut self, inventory: &Inventory, readings: &Readings, recorded: &mut Recorded) {
        // With the time of the first reading of each.
        let mut new = BTreeMap::new();
        for reading in readings.iter().filter(|reading| !self.fed[reading.rrd.index()].exists) {
            new.entry(reading.rrd).or_insert(reading.time.whole);
        }
        let mut waiting = Vec::with_capacity(new.len());
        let mut failed = Vec::new();
        for (rrd, first) in new {
            let spec = inventory.spec(rrd);
            let start = first - spec.starts_before as i64;
            match create(&self.service, inventory.name(rrd), spec, start) {
                Ok(receiver) => waiting.push((rrd, receiver)),
                Err(error) => failed.push((rrd, error.to_string())),
            }
        }
        for (rrd, receiver) in waiting {
            match receiver.await.unwrap_or(Err(StoreError::Stopping)) {
                Ok(()) => {
                    self.fed[rrd.index()].exists = true;
                    recorded.created += 1;
                }
                Err(StoreError::Exists(_)) => self.fed[rrd.index()].exists = true,
                Err(error) => failed.push((rrd, error.to_string())),
            }
        }
        self.log("cannot create an RRD", inventory, failed);
    }

    /// Logs the failures of RRDs that have had none of late.
    fn log(&mut self, what: &str, inventory: &Inventory, failed: Vec<(RrdId, String)>) {
        let mut count: usize = 0;
        for (rrd, error) in failed {
            if !self.fed[rrd.index()].fails() {
                continue;
            }
            count += 1;
            if count <= FAILURES_LOGGED {
                let name = String::from_utf8_lossy(inventory.name(rrd)).into_owned();
                tracing::warn!(collector = self.collector, name, error, "{what}");
            }
        }
        if let Some(more) = count.checked_sub(FAILURES_LOGGED + 1) {
            tracing::warn!(collector = self.collector, more = more + 1, "{what}: further RRDs");
        }
    }
}

/// Asks the store to create an RRD unless there is one.
fn create(
    service: &Service,
    name: &[u8],
    spec: &RrdSpec,
    start: i64,
) -> Result<oneshot::Receiver<Result<(), StoreError>>, Box<dyn Error + Send + Sync>> {
    let options = CreateOptions {
        step: Step { units: spec.step, units_per_second: 1 },
        limits: Limits::FILE,
        file_name: name,
    };
    let definition = parse_create(&options, &spec.args)?;
    let request = CreateRequest { definition, start, no_overwrite: true };
    let (sender, receiver) = oneshot::channel();
    service.engine.create(RrdName::new(name)?, request, Box::new(move |result| drop(sender.send(result))));
    Ok(receiver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_logged_again_after_readings_without_one() {
        let mut fed = Fed::default();
        assert!(fed.fails());
        for _ in 0..200 {
            fed.was_fed();
            assert!(!fed.fails(), "every other reading is refused");
        }
        (0..READINGS_WELL).for_each(|_| fed.was_fed());
        assert!(fed.fails());
    }
}
