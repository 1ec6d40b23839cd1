//! Backups of this node's replicas (`backup::replicas`), and replicas made of them when no other node has a partition any more.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use backup::replicas::{self, Partition, Replicas};
use backup::restore::Progress;
use backup::run::BackupSettings;
use cluster::node::Node;
use cluster::partition::{BackedPartition, BackupPlace};
use store::capture::Capture;

/// The log says how far a restore is whenever so many bytes have come.
const TELL_EVERY: u64 = 1 << 30;

/// The replicas of a node, to be backed up.
pub struct NodeReplicas(pub Arc<Node>);

impl Replicas for NodeReplicas {
    fn partitions(&self) -> u32 {
        self.0.partitions()
    }

    fn led(&self) -> BTreeMap<u32, u32> {
        let all = self.0.replicas().into_iter();
        all.filter_map(|(partition, replica)| Some((partition, replica.engine_and_epoch()?.1))).collect()
    }

    fn capture(&self, partition: u32) -> Result<(Capture, String), String> {
        let replica = self.0.replica(partition).ok_or("this node does not have it any more")?;
        let (capture, mark) = replica.capture().map_err(|error| error.to_string())?;
        Ok((capture, mark.encode()))
    }
}

/// The place of backups.
pub struct ReplicaBackups(pub BackupSettings);

fn in_backup(partition: BackedPartition<'_>) -> Partition<'_> {
    let BackedPartition { number, count, log } = partition;
    Partition { number, count, log }
}

impl BackupPlace for ReplicaBackups {
    fn has_backup(&self, partition: BackedPartition<'_>) -> bool {
        replicas::has_backup(&self.0, in_backup(partition)).unwrap_or_else(|error| {
            tracing::warn!(partition = partition.number, %error, "it is not known whether the partition has a backup");
            false
        })
    }

    fn restore(&self, partition: BackedPartition<'_>, first: u64, into: &Path) -> io::Result<()> {
        tracing::info!(partition = partition.number, from = %self.0.to, "making a replica of its backup");
        let told = Told { partition: partition.number, done: AtomicU64::new(0) };
        replicas::restore(&self.0, (in_backup(partition), first), into, &told).map_err(io::Error::other)
    }
}

/// How far a restore is, in the log.
struct Told {
    partition: u32,
    done: AtomicU64,
}

impl Progress for Told {
    fn total(&self, bytes: u64) {
        tracing::info!(partition = self.partition, megabytes = bytes / 1_000_000, "it is fetched");
    }

    fn done(&self, bytes: u64) {
        let before = self.done.fetch_add(bytes, Ordering::Relaxed);
        if before / TELL_EVERY != (before + bytes) / TELL_EVERY {
            tracing::info!(
                partition = self.partition,
                megabytes = (before + bytes) / 1_000_000,
                "fetching it"
            );
        }
    }
}
