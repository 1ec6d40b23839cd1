//! From a collector's readings to the store: RRDs are created when they are first fed.

use std::error::Error;
use std::sync::Arc;

use collect::inventory::{Inventory, RrdSpec};
use collect::reading::{Reading, Readings};
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::when::Step;
use store::engine::{CreateRequest, StoreError, UpdateBatch};
use store::name::RrdName;
use tokio::sync::oneshot;

use crate::service::Service;

/// How many failures are logged one by one; of the others, only the number is.
const FAILURES_LOGGED: usize = 5;

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

/// Records the readings of one collector.
pub struct Recorder {
    service: Arc<Service>,
    /// What the log calls the collector, such as `host`.
    collector: &'static str,
    /// Whether each RRD of the inventory is known to exist.
    exists: Vec<bool>,
}

impl Recorder {
    /// A recorder for one collector, whose inventory is passed with each call.
    pub fn new(service: Arc<Service>, collector: &'static str) -> Self {
        Recorder { service, collector, exists: Vec::new() }
    }

    /// Creates the RRDs that are new, and passes the readings to the store in their order.
    pub async fn record(&mut self, inventory: &Inventory, readings: &Readings) -> Recorded {
        let mut recorded = Recorded::default();
        let mut batch = UpdateBatch::default();
        let mut rrds = Vec::with_capacity(readings.len());
        let mut text = Vec::new();
        for reading in readings.iter() {
            if !self.ensure_exists(inventory, reading, &mut recorded).await {
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
        let failures = receiver.await.unwrap_or_default();
        recorded.accepted += (rrds.len() - failures.len()) as u64;
        recorded.refused += failures.len() as u64;
        for (nth, failure) in failures.iter().enumerate() {
            let rrd = rrds[failure.line as usize];
            if matches!(failure.error, StoreError::NoSuchRrd(_)) {
                // Deleted since: the next reading makes it again.
                self.exists[rrd.index()] = false;
            }
            if nth < FAILURES_LOGGED {
                let name = String::from_utf8_lossy(inventory.name(rrd)).into_owned();
                tracing::warn!(collector = self.collector, name, error = %failure.error, "a reading was refused");
            }
        }
        if failures.len() > FAILURES_LOGGED {
            let more = failures.len() - FAILURES_LOGGED;
            tracing::warn!(collector = self.collector, more, "further readings were refused");
        }
        recorded
    }

    /// True when the RRD of a reading exists, made now if need be.
    async fn ensure_exists(
        &mut self,
        inventory: &Inventory,
        reading: &Reading,
        recorded: &mut Recorded,
    ) -> bool {
        let index = reading.rrd.index();
        if self.exists.len() <= index {
            self.exists.resize(inventory.len(), false);
        }
        if self.exists[index] {
            return true;
        }
        let spec = inventory.spec(reading.rrd);
        let start = reading.time.whole - spec.starts_before as i64;
        match create(&self.service, inventory.name(reading.rrd), spec, start).await {
            Ok(is_new) => {
                self.exists[index] = true;
                recorded.created += u64::from(is_new);
                true
            }
            Err(error) => {
                let name = String::from_utf8_lossy(inventory.name(reading.rrd)).into_owned();
                tracing::warn!(collector = self.collector, name, %error, "cannot create an RRD");
                false
            }
        }
    }
}

/// Creates an RRD unless there is one; true when it is new.
async fn create(
    service: &Service,
    name: &[u8],
    spec: &RrdSpec,
    start: i64,
) -> Result<bool, Box<dyn Error + Send + Sync>> {
    let options = CreateOptions {
        step: Step { units: spec.step, units_per_second: 1 },
        limits: Limits::FILE,
        file_name: name,
    };
    let definition = parse_create(&options, &spec.args)?;
    let request = CreateRequest { definition, start, no_overwrite: true };
    let (sender, receiver) = oneshot::channel();
    service.engine.create(RrdName::new(name)?, request, Box::new(move |result| drop(sender.send(result))));
    match receiver.await {
        Ok(Ok(())) => Ok(true),
        Ok(Err(StoreError::Exists(_))) => Ok(false),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(StoreError::Stopping.into()),
    }
}
