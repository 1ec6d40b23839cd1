//! The backup beside the daemon: its thread, its metrics, and what an operator is told of it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use backup::run::{Backed, BackupSettings, BackupStatus, Running};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::cluster::backed::NodeReplicas;
use crate::service::Service;

/// How nice the thread is: below whatever answers clients, but not so low that a busy machine has no backup.
const NICE: i32 = 10;
/// A backup that is so much older than its interval is a problem.
const LATE: Duration = Duration::from_mins(5);

/// A backup and what it was told.
#[derive(Debug)]
pub struct Backing {
    /// How it is.
    pub status: Arc<BackupStatus>,
    interval: Duration,
    started: SystemTime,
}

/// Starts the backup of the store of `service`, or of the replicas of its node.
///
/// # Errors
/// When its thread cannot be started.
pub fn start(service: &Arc<Service>, settings: BackupSettings) -> io::Result<Running> {
    let status = Arc::new(BackupStatus::default());
    let backing =
        Backing { status: Arc::clone(&status), interval: settings.interval, started: SystemTime::now() };
    let _ = service.metrics.backing.set(Arc::new(backing));
    let backed = match service.node.get() {
        Some(node) => Backed::Replicas(Arc::new(NodeReplicas(Arc::clone(node)))),
        None => Backed::Store(Arc::clone(&service.engine)),
    };
    Running::start(settings, backed, status, be_nice)
}

/// Lowers the priority of the calling thread.
pub(crate) fn be_nice() {
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "backup and restore run at normal priority");
    }
}

impl Backing {
    /// What is wrong with it, for the page.
    pub fn problem(&self) -> Option<String> {
        let now = SystemTime::now();
        let age = self.status.age(now);
        let is_late = age
            .or_else(|| now.duration_since(self.started).ok())
            .is_some_and(|age| age > self.interval + LATE);
        if !is_late {
            return None;
        }
        let why = self.status.failure().map_or_else(String::new, |text| format!(": {text}"));
        Some(match age {
            Some(age) => format!("The newest complete backup is {} minutes old{why}", age.as_secs() / 60),
            None => format!("There is no complete backup yet{why}"),
        })
    }
}

/// `roundel_backup_*`
#[derive(Debug)]
pub struct BackupCollector(pub Arc<Backing>);

impl Collector for BackupCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let status = &self.0.status;
        let complete = status.complete_ms.load(Ordering::Relaxed) / 1000;
        let counters = [
            ("backup_rounds", "Rounds of the backup completed", &status.rounds),
            ("backup_failures", "Rounds of the backup that failed", &status.failures),
            ("backup_sent_bytes", "Bytes sent to the backup", &status.bytes_sent),
            ("backup_requests", "Requests of the backup", &status.requests),
        ];
        let gauge = ConstGauge::new(complete);
        let help = "When the newest complete backup was taken, in seconds since 1970; 0 = there is none yet";
        let one = encoder.encode_descriptor("backup_complete_seconds", help, None, gauge.metric_type())?;
        gauge.encode(one)?;
        for (name, help, counter) in counters {
            let metric = ConstCounter::new(counter.load(Ordering::Relaxed));
            let one = encoder.encode_descriptor(name, help, None, metric.metric_type())?;
            metric.encode(one)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_that_is_late_is_a_problem() {
        let interval = Duration::from_secs(10);
        let started =
            |ago: Duration| Backing { status: Arc::default(), interval, started: SystemTime::now() - ago };
        assert_eq!(started(Duration::from_secs(60)).problem(), None);
        let none = started(Duration::from_hours(1));
        assert_eq!(none.problem().as_deref(), Some("There is no complete backup yet"));
        let complete = |ago: Duration| {
            let since = (SystemTime::now() - ago).duration_since(SystemTime::UNIX_EPOCH).unwrap();
            none.status.complete_ms.store(since.as_millis() as i64, Ordering::Relaxed);
            none.problem()
        };
        assert_eq!(complete(LATE), None);
        let late = complete(Duration::from_mins(7)).unwrap();
        assert_eq!(late, "The newest complete backup is 7 minutes old");
    }
}
