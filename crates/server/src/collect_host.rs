//! Records metrics of the daemon's own host, so that a new installation has data at once.

use std::collections::HashSet;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use collect::host::{Collected, HostCollector, STEP_SECONDS};
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::time::Timestamp;
use rrd::when::Step;
use store::engine::{CreateRequest, StoreError, UpdateBatch};
use store::name::RrdName;
use tokio::sync::{oneshot, watch};

use crate::service::{Service, stopped};

/// Samples at every multiple of the step until `stop` becomes true.
///
/// # Errors
/// None: failures are logged and sampling continues.
pub async fn run(
    service: Arc<Service>,
    directory: String,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let collector = HostCollector::new(&directory);
    let mut known = HashSet::new();
    loop {
        let step = STEP_SECONDS as i64;
        let due = (service.now().div_euclid(step) + 1) * step;
        let wait = Duration::from_secs((due - service.now()).clamp(0, step) as u64);
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return Ok(()),
            () = tokio::time::sleep(wait) => {}
        }
        match tokio::task::block_in_place(|| collector.collect(Timestamp::whole(due))) {
            Ok(readings) => record(&service, &mut known, due, readings).await,
            Err(error) => tracing::warn!(%error, "cannot read this machine's metrics"),
        }
    }
}

async fn record(service: &Service, known: &mut HashSet<String>, due: i64, readings: Vec<Collected>) {
    let mut batch = UpdateBatch::default();
    for reading in readings {
        if !known.contains(&reading.name) {
            match create(service, &reading, due).await {
                Ok(()) => {
                    known.insert(reading.name.clone());
                }
                Err(error) => {
                    tracing::warn!(name = reading.name, %error, "cannot create an RRD for this machine");
                    continue;
                }
            }
        }
        batch.push(reading.name.as_bytes(), reading.values.as_bytes());
    }
    let (sender, receiver) = oneshot::channel();
    service.engine.update(batch, Box::new(move |failures| drop(sender.send(failures))));
    for failure in receiver.await.unwrap_or_default() {
        tracing::warn!(error = %failure.error, "a reading of this machine was refused");
    }
}

/// Creates the RRD of a reading, unless there is one.
async fn create(
    service: &Service,
    reading: &Collected,
    due: i64,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let name = RrdName::new(reading.name.as_bytes())?;
    let options = CreateOptions {
        step: Step { units: reading.step, units_per_second: 1 },
        limits: Limits::FILE,
        file_name: reading.name.as_bytes(),
    };
    let definition = parse_create(&options, &reading.create_args)?;
    let start = due - reading.step as i64;
    let request = CreateRequest { definition, start, no_overwrite: true };
    let (sender, receiver) = oneshot::channel();
    service.engine.create(name, request, Box::new(move |result| drop(sender.send(result))));
    match receiver.await {
        Ok(Ok(()) | Err(StoreError::Exists(_))) => Ok(()),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(StoreError::Stopping.into()),
    }
}
