//! A restore that is not complete: what is missing comes while the daemon serves, first what is read.
//!
//! `roundel restore --from URL --early` leaves the file RESTORING in the store ([`backup::later`]). Reads fetch what they need by
//! themselves; a thread fetches the rest.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use backup::later::{Restoring, THREADS};
use backup::run::BackupSettings;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use store::awaited::{Awaited, Coming};
use store::disk::RealDisk;

use crate::backing::be_nice;
use crate::service::Service;

/// How often the log says how far it is.
const REPORT_INTERVAL: Duration = Duration::from_secs(30);
/// How soon the thread that reports ends.
const LOOK: Duration = Duration::from_millis(50);

/// What the store in a directory still awaits, if its restore is not complete. `own` are the settings of the store's backup.
///
/// # Errors
/// A text for the operator.
pub fn find(store: &Path, own: Option<&BackupSettings>) -> Result<Option<Arc<Awaited>>, String> {
    let Some(restoring) = Restoring::read(store)? else { return Ok(None) };
    let cannot = |cause: &dyn std::fmt::Display| {
        format!(
            "cannot complete the restore of \"{}\" from \"{}\": {cause}",
            store.display(),
            restoring.origin.from
        )
    };
    let objects = restoring.origin.settings(own).objects(false).map_err(|error| cannot(&error))?;
    let disk = RealDisk::open(store).map_err(|error| cannot(&error))?;
    let awaited = restoring.awaited(Arc::new(disk), objects).map_err(|error| cannot(&error))?;
    Ok(Some(awaited))
}

/// The thread that fetches. Dropping it stops it, and has reads of what has not come fail.
#[derive(Debug)]
pub struct Completing {
    awaited: Arc<Awaited>,
    thread: Option<JoinHandle<()>>,
}

/// Starts fetching what the store of `service` awaits.
///
/// # Errors
/// When the thread cannot be started.
pub fn start(service: &Arc<Service>, awaited: Arc<Awaited>) -> io::Result<Completing> {
    let _ = service.metrics.restoring.set(Arc::clone(&awaited));
    let of_thread = Arc::clone(&awaited);
    let thread = std::thread::Builder::new().name("restore".into()).spawn(move || {
        be_nice();
        complete(&of_thread);
    })?;
    Ok(Completing { awaited, thread: Some(thread) })
}

fn complete(awaited: &Awaited) {
    let is_over = AtomicBool::new(false);
    tracing::info!(bytes = awaited.coming().left, "the restore is completed while the store is served");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            awaited.fill(THREADS);
            is_over.store(true, Ordering::SeqCst);
        });
        let mut reported = Instant::now();
        while !is_over.load(Ordering::SeqCst) {
            std::thread::sleep(LOOK);
            if reported.elapsed() >= REPORT_INTERVAL {
                reported = Instant::now();
                let Coming { total, left, failure, .. } = awaited.coming();
                tracing::info!(total, left, failure, "bytes of the restore that have not come");
            }
        }
    });
    let Coming { left, lost, .. } = awaited.coming();
    match left {
        0 => tracing::info!(lost_parts = lost.len(), "the restore is complete"),
        left => tracing::info!(left, "the restore goes on with the next start"),
    }
}

impl Drop for Completing {
    fn drop(&mut self) {
        self.awaited.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What is to be said of a restore on the page.
pub fn problem(awaited: &Awaited) -> Option<String> {
    let Coming { total, left, lost, failure } = awaited.coming();
    let why = failure.map_or_else(String::new, |text| format!(" ({text})"));
    match (left, lost.first()) {
        (0, None) => None,
        (0, Some(first)) => Some(format!("{} parts of the restored store are lost: {first}", lost.len())),
        (left, _) => {
            let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
            Some(format!(
                "The restore is not complete: {} of {} MB have not come{why}; {} parts are lost",
                megabytes(left),
                megabytes(total),
                lost.len()
            ))
        }
    }
}

/// `roundel_restore_*`
#[derive(Debug)]
pub struct RestoreCollector(pub Arc<Awaited>);

impl Collector for RestoreCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let Coming { total, left, lost, .. } = self.0.coming();
        let gauges = [
            ("restore_bytes", "Bytes that the restore lacked when the daemon was started", total),
            ("restore_left_bytes", "Bytes that have not come", left),
            ("restore_lost_parts", "Parts that are missing from the backup or damaged", lost.len() as u64),
        ];
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            let one = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
            gauge.encode(one)?;
        }
        Ok(())
    }
}
