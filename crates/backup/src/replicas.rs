//! Backups of what a node of a cluster has: of each partition the node that leads it sends rounds to a place of the partition's own. What all nodes
//! have lost is made of that and of the replicated log, which has everything since.
//!
//! Another node that leads goes on with the same backup: both have the same log, and files with the same content are the same objects.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use store::capture::Capture;
use store::replication::Mark;

use crate::keep::Keep;
use crate::manifest;
use crate::moments::{self, Moment};
use crate::restore::{self, Progress, Wanted};
use crate::run::{
    BackupSettings, BackupStatus, PAUSE_MAX, PAUSE_MIN, PRUNE_INTERVAL, milliseconds, prune_now,
};
use crate::upload::Uploader;

/// How long it may take to find out whether there is a backup: who asks has another way.
const LOOK_PATIENCE: Duration = Duration::from_secs(10);

/// A partition of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Partition<'l> {
    /// Its number.
    pub number: u32,
    /// How many there are: those of another number of partitions have other places.
    pub count: u32,
    /// The identity of the replicated log.
    pub log: &'l str,
}

/// The replicas of a node.
pub trait Replicas: Send + Sync {
    /// How many partitions the cluster has.
    fn partitions(&self) -> u32;
    /// The partitions that this node leads, with the epoch in which it does.
    fn led(&self) -> BTreeMap<u32, u32>;
    /// One of them at this moment, with the text of its file REPLICATED.
    ///
    /// # Errors
    /// When it cannot be read.
    fn capture(&self, partition: u32) -> Result<(Capture, String), String>;
}

/// The backup of one partition.
struct PartitionBackup {
    epoch: u32,
    uploader: Uploader,
    complete_ms: i64,
    pruned: Option<Instant>,
}

impl BackupSettings {
    /// Those of one of so many partitions of a cluster: its place is below that of the cluster.
    pub fn of_partition(&self, number: u32, count: u32) -> BackupSettings {
        let to = format!("{}/partition-{number:04}-of-{count}", self.to.trim_end_matches('/'));
        BackupSettings { to, own: None, ..self.clone() }
    }
}

/// The backups of all partitions that the node leads.
#[derive(Default)]
struct NodeBackup {
    partitions: BTreeMap<u32, PartitionBackup>,
    /// Bytes and requests of those that it leads no longer.
    gone: [u64; 2],
}

/// Sends rounds of all that the node leads, one after the other. One that fails does not keep the others back.
pub(crate) async fn rounds(
    settings: &BackupSettings,
    replicas: &dyn Replicas,
    status: &BackupStatus,
) -> Result<(), String> {
    let mut node = NodeBackup::default();
    let mut pause = PAUSE_MIN;
    loop {
        let (begun, is_last) = (Instant::now(), status.is_stopped());
        let done = node.round(settings, replicas).await;
        let [bytes, requests] = node.traffic();
        status.bytes_sent.store(bytes, Ordering::Relaxed);
        status.requests.store(requests, Ordering::Relaxed);
        let wait = match done {
            Ok(complete_ms) => {
                status.complete(complete_ms);
                pause = PAUSE_MIN;
                settings.interval.saturating_sub(begun.elapsed())
            }
            Err(text) => {
                status.fail(text);
                let wait = pause;
                pause = (pause * 2).min(PAUSE_MAX);
                wait
            }
        };
        if is_last {
            return Ok(());
        }
        if let Some(keep) = settings.keep.as_ref().filter(|_| !status.is_stopped()) {
            node.prune_one(keep).await;
        }
        status.pause(wait).await;
    }
}

impl NodeBackup {
    /// A round of each. Returns from when on all is sent, in milliseconds since the epoch.
    async fn round(&mut self, settings: &BackupSettings, replicas: &dyn Replicas) -> Result<i64, String> {
        // Of a node that leads nothing, nothing is missing.
        let mut complete_ms = milliseconds(SystemTime::now());
        let led = replicas.led();
        // In another epoch the log may go on differently after what was accepted, and another node may have sent rounds meanwhile.
        let is_over = |partition: &u32, one: &mut PartitionBackup| led.get(partition) != Some(&one.epoch);
        for (_, one) in self.partitions.extract_if(.., is_over) {
            self.gone = sum(self.gone, traffic(&one.uploader));
        }
        let mut failure = Ok(());
        for (&partition, &epoch) in &led {
            match self.round_of(settings, replicas, (partition, epoch)).await {
                Ok(time_ms) => complete_ms = complete_ms.min(time_ms),
                Err(text) => failure = Err(format!("partition {partition}: {text}")),
            }
        }
        failure.map(|()| complete_ms)
    }

    async fn round_of(
        &mut self,
        settings: &BackupSettings,
        replicas: &dyn Replicas,
        (partition, epoch): (u32, u32),
    ) -> Result<i64, String> {
        let one = match self.partitions.entry(partition) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let uploader =
                    Uploader::new(settings.of_partition(partition, replicas.partitions()).objects(true)?);
                entry.insert(PartitionBackup { epoch, uploader, complete_ms: 0, pruned: None })
            }
        };
        let (capture, mark) = replicas.capture(partition)?;
        one.uploader.round(&capture, Some(&mark)).await.map_err(|error| error.to_string())?;
        one.complete_ms = capture.time_ms;
        Ok(capture.time_ms)
    }

    /// Removes what is not kept of one of them, so that the rounds of all others need not wait for long.
    async fn prune_one(&mut self, keep: &Keep) {
        let is_due = |one: &&mut PartitionBackup| {
            one.complete_ms > 0 && one.pruned.is_none_or(|at| at.elapsed() >= PRUNE_INTERVAL)
        };
        if let Some(one) = self.partitions.values_mut().find(is_due) {
            one.pruned = Some(Instant::now());
            prune_now(&mut one.uploader, keep).await;
        }
    }

    fn traffic(&self) -> [u64; 2] {
        self.partitions.values().map(|one| traffic(&one.uploader)).fold(self.gone, sum)
    }
}

fn sum(one: [u64; 2], other: [u64; 2]) -> [u64; 2] {
    [one[0] + other[0], one[1] + other[1]]
}

/// Bytes sent and requests made.
fn traffic(uploader: &Uploader) -> [u64; 2] {
    let traffic = &uploader.objects.traffic;
    [&traffic.bytes_sent, &traffic.requests].map(|count| count.load(Ordering::Relaxed))
}

fn block_on<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("cannot start: {error}"))?.block_on(work)
}

/// Whether a mark is of a replica that goes on in a log.
fn is_of(mark: &Mark, log: &str) -> bool {
    mark.log == log || mark.sealed_for.as_deref() == Some(log)
}

/// Whether there is a backup of a partition that goes on in its log.
///
/// # Errors
/// When the place cannot be used, or its server fails or takes long.
pub fn has_backup(settings: &BackupSettings, partition: Partition<'_>) -> Result<bool, String> {
    let objects = settings.of_partition(partition.number, partition.count).objects(false)?;
    let newest = block_on(async {
        let found = tokio::time::timeout(LOOK_PATIENCE, manifest::newest(&objects)).await;
        found.map_err(|_| "its server does not answer".to_string())?.map_err(|error| error.to_string())
    })?;
    Ok(newest.and_then(|newest| newest.mark()).is_some_and(|mark| is_of(&mark, partition.log)))
}

/// Makes the replica of a partition in a directory, which must be empty or not there. It has to go on at the message of offset `first` or a later one.
///
/// # Errors
/// When there is none, or it is too old; when an object is missing or damaged; when the server or the disk fails.
pub fn restore(
    settings: &BackupSettings,
    (partition, first): (Partition<'_>, u64),
    to: &Path,
    progress: &dyn Progress,
) -> Result<(), String> {
    let objects = settings.of_partition(partition.number, partition.count).objects(false)?;
    block_on(async {
        let found = moments::find(&objects, &Moment::Newest).await.map_err(|error| error.to_string())?;
        match found.base.mark() {
            Some(mark) if !is_of(&mark, partition.log) => {
                return Err(format!("it goes on in another log, \"{}\"", mark.log));
            }
            // One that is sealed begins with the next log.
            Some(mark) if mark.log != partition.log && first == 0 => {}
            Some(mark) if mark.log == partition.log && mark.next >= first => {}
            Some(Mark { next, .. }) => {
                return Err(format!(
                    "it goes on at message {next}, and the log has none before {first} any more"
                ));
            }
            None => return Err("it is not that of a cluster's partition".to_string()),
        }
        let wanted =
            Wanted { moment: &Moment::Newest, shards: None, later: None, own: false, is_replica: true };
        let restored = restore::restore(&objects, &found, &wanted, to, progress).await;
        let restored = restored.map_err(|error| error.to_string())?;
        // With a hole in it, it would differ from the others.
        match restored.lost.first() {
            None => Ok(()),
            Some(lost) => Err(lost.to_string()),
        }
    })
}
