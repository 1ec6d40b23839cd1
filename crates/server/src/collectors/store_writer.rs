//! Readings into the store of this process: RRDs are created when they are first fed, and get the data sources that they lack.

mod age;
mod fit;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use collect::inventory::{Inventory, RrdId, RrdSpec};
use collect::reading::Readings;
use rrd::definition::Definition;
use rrd::definition::text::{CreateOptions, DefinitionError, Limits, parse_create};
use rrd::when::Step;
use store::engine::{CreateRequest, Engine, StoreError, UpdateBatch, UpdateFailure};
use store::name::RrdName;
use tokio::sync::oneshot;

use self::age::Ages;
use super::fence::{self, Fence};

/// Bytes of an ordinary name with a time and two counters: no text of many readings is copied as it grows.
const LINE_BYTES: usize = 64;

/// Writes the readings of one inventory.
pub struct StoreWriter {
    engine: Arc<dyn Engine>,
    /// In a poller of a cluster's node: who writes what.
    fence: Option<Arc<Fence>>,
    /// By the RRD's index in the inventory: it is in the store.
    exist: Vec<bool>,
    ages: Ages,
}

/// What became of some readings.
#[derive(Debug, Default)]
pub struct Written {
    /// RRDs created.
    pub created: u64,
    /// Readings that were not taken, in their order.
    pub failures: Vec<WriteFailure>,
}

/// A reading that was not taken.
#[derive(Clone, Debug)]
pub struct WriteFailure {
    /// Its index among the readings.
    pub reading: u32,
    /// Its RRD.
    pub rrd: RrdId,
    /// Why.
    pub error: WriteError,
    /// The RRD could not be created.
    pub at_creation: bool,
}

/// Why a reading was not taken.
#[derive(Clone, Debug)]
pub enum WriteError {
    /// The store refuses it.
    Store(StoreError),
    /// The RRD's name or definition makes no sense.
    Definition(String),
    /// The RRD that is there takes no readings of this kind.
    Other(String),
    /// Another node of the cluster polls this.
    Elsewhere,
    /// Another node polls this now, or the replicated log did not take it.
    LeadLost,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Store(error) => error.fmt(f),
            WriteError::Definition(text) | WriteError::Other(text) => f.write_str(text),
            WriteError::Elsewhere => f.write_str("another node polls this"),
            WriteError::LeadLost => f.write_str("this node no longer leads the RRD's partition"),
        }
    }
}

impl WriteError {
    /// True when it may be tried again: it has nothing to do with the reading or its RRD.
    pub fn is_passing(&self) -> bool {
        matches!(self, WriteError::Store(error) if error.is_passing())
    }
}

impl StoreWriter {
    /// A writer that knows no RRD yet.
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        StoreWriter { engine, fence: None, exist: Vec::new(), ages: Ages::default() }
    }

    /// The same; a fence decides what is written.
    pub fn fenced(engine: Arc<dyn Engine>, fence: Option<Arc<Fence>>) -> Self {
        StoreWriter { fence, ..StoreWriter::new(engine) }
    }

    /// What a failure of the store means for a reading.
    fn error_of(&self, error: StoreError) -> WriteError {
        match &self.fence {
            Some(_) if fence::is_elsewhere(&error) => WriteError::Elsewhere,
            Some(_) if fence::is_lost(&error) => WriteError::LeadLost,
            _ => WriteError::Store(error),
        }
    }

    async fn update(&self, batch: UpdateBatch) -> Option<Vec<UpdateFailure>> {
        if let Some(fence) = &self.fence {
            return Some(fence.update(&batch).await);
        }
        let (sender, receiver) = oneshot::channel();
        self.engine.update(batch, Box::new(move |failures| drop(sender.send(failures))));
        receiver.await.ok()
    }

    /// Creates the RRDs that are new, and passes the readings to the store in their order.
    pub async fn write(&mut self, inventory: &Inventory, readings: &Readings) -> Written {
        self.exist.resize(inventory.len(), false);
        let mut written = Written::default();
        let failed = self.create_new(inventory, readings, &mut written).await;
        let mut batch = UpdateBatch {
            text: Vec::with_capacity(readings.len() * LINE_BYTES),
            lines: Vec::with_capacity(readings.len()),
        };
        // For each line, the reading and its RRD.
        let mut lines = Vec::with_capacity(readings.len());
        let mut text = Vec::new();
        for (index, reading) in (0..).zip(readings.iter()) {
            if let Some(error) = failed.get(&reading.rrd) {
                let error = error.clone();
                let at_creation = matches!(error, WriteError::Store(_) | WriteError::Definition(_));
                let failure = WriteFailure { reading: index, rrd: reading.rrd, error, at_creation };
                written.failures.push(failure);
                continue;
            }
            if let Err(error) = self.ages.admit(&*self.engine, inventory, reading) {
                written.failures.push(WriteFailure {
                    reading: index,
                    rrd: reading.rrd,
                    error,
                    at_creation: false,
                });
                continue;
            }
            text.clear();
            readings.push_text(reading, &mut text);
            batch.push(inventory.name(reading.rrd), &text);
            lines.push((index, reading.rrd));
        }
        let failures = self.update(batch).await;
        let failure = |this: &Self, (reading, rrd): (u32, RrdId), error: StoreError| {
            let error = this.error_of(error);
            WriteFailure { reading, rrd, error, at_creation: false }
        };
        match failures {
            Some(failures) => {
                for failed in failures {
                    let (index, rrd) = lines[failed.line as usize];
                    if matches!(failed.error, StoreError::NoSuchRrd(_)) {
                        // Deleted since: the next reading makes it again.
                        self.exist[rrd.index()] = false;
                    }
                    written.failures.push(failure(self, (index, rrd), failed.error));
                }
            }
            None => {
                let stopping = |&line| failure(self, line, StoreError::Stopping);
                written.failures.extend(lines.iter().map(stopping));
            }
        }
        written.failures.sort_by_key(|failure| failure.reading);
        written
    }

    /// Creates the RRDs of these readings that are not known to exist, all at once; returns why some could not be.
    async fn create_new(
        &mut self,
        inventory: &Inventory,
        readings: &Readings,
        written: &mut Written,
    ) -> BTreeMap<RrdId, WriteError> {
        // With the time of the first reading of each.
        let mut new = BTreeMap::new();
        for reading in readings.iter().filter(|reading| !self.exist[reading.rrd.index()]) {
            new.entry(reading.rrd).or_insert(reading.time.whole);
        }
        let mut waiting = Vec::with_capacity(new.len());
        let mut failed = BTreeMap::new();
        for (rrd, first) in new {
            let spec = inventory.spec(rrd);
            let start = first.saturating_sub_unsigned(spec.starts_before);
            match self.create(inventory.name(rrd), spec, start) {
                Ok(receiver) => waiting.push((rrd, receiver)),
                Err(error) => drop(failed.insert(rrd, WriteError::Definition(error.to_string()))),
            }
        }
        let mut existing = Vec::new();
        for (rrd, receiver) in waiting {
            match receiver.await.unwrap_or(Err(StoreError::Stopping)) {
                Ok(()) => {
                    self.exist[rrd.index()] = true;
                    self.ages.watch(rrd, inventory.spec(rrd));
                    written.created += 1;
                }
                Err(StoreError::Exists(_)) => {
                    existing.push((rrd, inventory.name(rrd).to_vec(), Arc::clone(inventory.spec(rrd))));
                }
                Err(error) => drop(failed.insert(rrd, self.error_of(error))),
            }
        }
        for (rrd, result) in fit::fit_all(&self.engine, existing).await {
            match result {
                Ok(()) => {
                    self.exist[rrd.index()] = true;
                    self.ages.watch(rrd, inventory.spec(rrd));
                }
                Err(error) => drop(failed.insert(rrd, error)),
            }
        }
        failed
    }

    /// Asks the store to create an RRD unless there is one.
    fn create(
        &self,
        name: &[u8],
        spec: &RrdSpec,
        start: i64,
    ) -> Result<oneshot::Receiver<Result<(), StoreError>>, Box<dyn Error + Send + Sync>> {
        let request = CreateRequest { definition: definition(name, spec)?, start, no_overwrite: true };
        let name = RrdName::new(name)?;
        if let Some(fence) = &self.fence {
            return Ok(fence.create(name, request));
        }
        let (sender, receiver) = oneshot::channel();
        self.engine.create(name, request, Box::new(move |result| drop(sender.send(result))));
        Ok(receiver)
    }
}

/// The definition of an RRD that is made.
///
/// # Errors
/// When its arguments are none of `rrdcreate(1)`.
pub(super) fn definition(name: &[u8], spec: &RrdSpec) -> Result<Definition, DefinitionError> {
    let options = CreateOptions {
        step: Step { units: spec.step, units_per_second: 1 },
        limits: Limits::FILE,
        file_name: name,
    };
    parse_create(&options, &spec.create_args())
}
