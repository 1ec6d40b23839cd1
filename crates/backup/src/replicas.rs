//! Backups of what a node of a cluster has: of each partition the node that leads it sends rounds to a place of the partition's own. What all nodes
//! have lost is made of that and of the replicated log, which has everything since.
//!
//! Another node that leads goes on with the same backup: both have the same log, and files with the same content are the same objects.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

use store::capture::Capture;

use crate::manifest;
use crate::moments::{self, Moment};
use crate::restore::{self, Progress, Wanted};
use crate::run::{BackupSettings, BackupStatus, PAUSE_MAX, PAUSE_MIN, PRUNE_INTERVAL, prune_now};
use crate::upload::Uploader;

/// The replicas of a node.
pub trait Replicas: Send + Sync {
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
    /// Those of a partition of a cluster: its place is below that of the cluster.
    pub fn of_partition(&self, partition: u32) -> BackupSettings {
        let to = format!("{}/partition-{partition:04}", self.to.trim_end_matches('/'));
        BackupSettings { to, own: None, ..self.clone() }
    }
}

/// Sends rounds of all that the node leads, one after the other.
pub(crate) async fn rounds(
    settings: &BackupSettings,
    replicas: &dyn Replicas,
    status: &BackupStatus,
) -> Result<(), String> {
    let mut all: BTreeMap<u32, PartitionBackup> = BTreeMap::new();
    let (mut pause, mut gone) = (PAUSE_MIN, [0; 2]);
    loop {
        let begun = Instant::now();
        let is_last = status.is_stopped();
        let led = replicas.led();
        // In another epoch the log may go on differently after what was accepted, and another node may have sent rounds meanwhile.
        let kept = |partition: &u32, one: &mut PartitionBackup| {
            let stays = led.get(partition) == Some(&one.epoch);
            if !stays {
                let [bytes, requests] = traffic(&one.uploader);
                gone = [gone[0] + bytes, gone[1] + requests];
            }
            stays
        };
        all.retain(kept);
        let mut failure = None;
        for (&partition, &epoch) in &led {
            let one = match all.entry(partition) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) => {
                    let uploader = Uploader::new(settings.of_partition(partition).objects(true)?);
                    entry.insert(PartitionBackup { epoch, uploader, complete_ms: 0, pruned: None })
                }
            };
            if let Err(text) = one.round(replicas, partition).await {
                failure = Some(format!("partition {partition}: {text}"));
            }
        }
        let now = all.values().map(|one| traffic(&one.uploader));
        let [bytes, requests] = now.fold(gone, |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
        status.bytes_sent.store(bytes, Ordering::Relaxed);
        status.requests.store(requests, Ordering::Relaxed);
        let wait = match failure {
            None => {
                // Of a node that leads nothing, nothing is missing.
                let now =
                    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
                status.complete(all.values().map(|one| one.complete_ms).min().unwrap_or(now));
                pause = PAUSE_MIN;
                settings.interval.saturating_sub(begun.elapsed())
            }
            Some(text) => {
                status.fail(text);
                pause = (pause * 2).min(PAUSE_MAX);
                pause / 2
            }
        };
        if is_last {
            return Ok(());
        }
        if let Some(keep) = settings.keep.as_ref().filter(|_| !status.is_stopped()) {
            let is_due = |one: &&mut PartitionBackup| {
                one.complete_ms > 0 && one.pruned.is_none_or(|at| at.elapsed() >= PRUNE_INTERVAL)
            };
            // One at a time, so that the rounds of all others need not wait for long.
            if let Some(one) = all.values_mut().find(is_due) {
                one.pruned = Some(Instant::now());
                prune_now(&mut one.uploader, keep).await;
            }
        }
        status.pause(wait).await;
    }
}

/// Bytes sent and requests made.
fn traffic(uploader: &Uploader) -> [u64; 2] {
    let traffic = &uploader.objects.traffic;
    [&traffic.bytes_sent, &traffic.requests].map(|count| count.load(Ordering::Relaxed))
}

impl PartitionBackup {
    async fn round(&mut self, replicas: &dyn Replicas, partition: u32) -> Result<(), String> {
        let (capture, mark) = replicas.capture(partition)?;
        self.uploader.round(&capture, Some(&mark)).await.map_err(|error| error.to_string())?;
        self.complete_ms = capture.time_ms;
        Ok(())
    }
}

fn block_on<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("cannot start: {error}"))?.block_on(work)
}

/// Whether there is a backup of a partition.
///
/// # Errors
/// When the place cannot be used, or its server fails.
pub fn has_backup(settings: &BackupSettings, partition: u32) -> Result<bool, String> {
    let objects = settings.of_partition(partition).objects(false)?;
    block_on(async { manifest::newest(&objects).await.map_err(|error| error.to_string()) })
        .map(|newest| newest.is_some_and(|newest| newest.next_message().is_some()))
}

/// Makes the replica of a partition in a directory, which must be empty or not there. It has to go on at the message of offset `first` or a later one.
///
/// # Errors
/// When there is none, or it is too old; when an object is missing or damaged; when the server or the disk fails.
pub fn restore(
    settings: &BackupSettings,
    (partition, first): (u32, u64),
    to: &Path,
    progress: &dyn Progress,
) -> Result<(), String> {
    let objects = settings.of_partition(partition).objects(false)?;
    block_on(async {
        let found = moments::find(&objects, &Moment::Newest).await.map_err(|error| error.to_string())?;
        match found.base.next_message() {
            Some(next) if next >= first => {}
            Some(next) => {
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
