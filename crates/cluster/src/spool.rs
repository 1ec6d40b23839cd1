//! The spool of a node: updates that are acknowledged once they are on this node's disk, and drained to the leaders of their partitions in their order.
//!
//! `docs/cluster.md`, "Outages of the log: the spool", says what is promised. The files are those of a shard's log ([`store::records`]), so is their recovery.
//! A thread writes what has gathered, with one fsync, and answers; another one sends it on, one batch per partition at a time, reading from the disk what
//! found no room in memory. How far each partition was drained is noted in the spool itself, at most a second later, and before anything that must come
//! after the drained updates; what is not noted is sent again after a crash, which RRDtool's rule about times makes safe.

mod backlog;
mod drain;
pub mod fuzzing;
mod opening;
mod queues;
mod record;
#[cfg(test)]
mod tests;
mod waits;
mod writer;

pub use self::opening::has_updates;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, UNIX_EPOCH};

use disk::{Disk, DiskFile};
use store::engine::{Reply, StoreError, UpdateBatch, UpdateFailure};

use self::queues::Queues;
use self::waits::Waits;
use crate::lock::lock;

/// Bytes of updates that wait to be written; who brings more waits.
const GATHERED_BYTES_MAX: usize = 64 << 20;
/// How often a stop looks whether everything is drained.
const STOP_POLL: Duration = Duration::from_millis(5);

/// Where a spool is, and how large it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpoolOptions {
    /// Its directory, which is made if there is none.
    pub directory: PathBuf,
    /// Bytes from the oldest update that waits to the newest one; when there are more, updates are refused.
    pub bytes_max: u64,
}

/// What a spool has done since it was opened, and has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpoolFigures {
    /// Bytes from the oldest update that waits to the end.
    pub bytes: u64,
    /// How many there may be.
    pub bytes_max: u64,
    /// Since when the oldest one waits; zero when none does.
    pub age: Duration,
    /// Updates that were acknowledged.
    pub spooled: u64,
    /// Updates that the leaders of their partitions have taken, those among them that an earlier process spooled.
    pub drained: u64,
    /// Updates that a leader refused when they were drained.
    pub refused: u64,
}

/// Has the leader of a partition apply a batch, whatever time that takes; whether it may have been applied already.
pub type Deliver = Box<dyn Fn(u32, UpdateBatch, bool, Reply<Vec<UpdateFailure>>) + Send + Sync>;

/// A batch on its way to the disk.
struct Submission {
    parts: Vec<(u32, UpdateBatch)>,
    reply: Reply<Result<(), StoreError>>,
}

/// What the writer is to do.
#[derive(Default)]
struct Gathered {
    submissions: Vec<Submission>,
    bytes: usize,
    waits: Waits,
    /// The writer has taken something that is not in the queues yet.
    is_writing: bool,
}

impl Gathered {
    /// Whether all that was brought is in the queues.
    fn is_idle(&self) -> bool {
        self.submissions.is_empty() && !self.is_writing
    }
}

#[derive(Default)]
struct Counts {
    spooled: AtomicU64,
    drained: AtomicU64,
    refused: AtomicU64,
}

/// What the threads share.
struct SpoolState {
    options: SpoolOptions,
    partition_count: u32,
    /// What was drained before the cluster was divided.
    earlier: opening::Earlier,
    disk: Arc<dyn Disk>,
    gathered: Mutex<Gathered>,
    is_stopping: AtomicBool,
    /// For the writer: there is something to do.
    work: Condvar,
    /// For those who bring more than there is room for.
    room: Condvar,
    queues: Mutex<Queues>,
    /// For who drains: something can be sent or read.
    ready: Condvar,
    counts: Counts,
    /// When a refused update was last said in the log.
    said: Mutex<Option<Instant>>,
}

/// A spool with its threads.
pub struct Spool {
    shared: Arc<SpoolState>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    _lock: Arc<dyn DiskFile>,
}

/// Milliseconds since 1970.
fn now_ms() -> i64 {
    UNIX_EPOCH.elapsed().map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

impl Spool {
    /// Opens the spool of a cluster with so many partitions, and begins to drain what it has.
    ///
    /// # Errors
    /// A text for the operator: when another process has it, or the disk fails.
    pub fn open(options: SpoolOptions, partition_count: u32, deliver: Deliver) -> Result<Spool, String> {
        let (shared, log, lock) = opening::open(options, partition_count)?;
        let shared = Arc::new(shared);
        let spool = Spool { shared: Arc::clone(&shared), threads: Mutex::default(), _lock: lock };
        let drains = Arc::clone(&shared);
        spool.spawn("spool", move || writer::run(&shared, log))?;
        spool.spawn("spool drain", move || drain::run(&drains, &deliver))?;
        Ok(spool)
    }

    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), String> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        lock(&self.threads).push(thread.map_err(|error| format!("no thread for the spool: {error}"))?);
        Ok(())
    }

    /// Keeps the parts of a batch, each of one partition; the reply comes when they are durable. Those of one caller keep their order.
    pub fn put(&self, parts: Vec<(u32, UpdateBatch)>, reply: Reply<Result<(), StoreError>>) {
        let bytes: usize = parts.iter().map(|(_, batch)| batch.text.len()).sum();
        let mut gathered = lock(&self.shared.gathered);
        while gathered.bytes > GATHERED_BYTES_MAX && !self.shared.is_stopping() {
            gathered = self.shared.room.wait(gathered).unwrap_or_else(PoisonError::into_inner);
        }
        if self.shared.is_stopping() {
            drop(gathered);
            return reply(Err(StoreError::Stopping));
        }
        gathered.bytes += bytes;
        gathered.submissions.push(Submission { parts, reply });
        drop(gathered);
        self.shared.work.notify_one();
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        let gathered = lock(&self.shared.gathered);
        gathered.is_idle()
            && (0..self.shared.partition_count)
                .all(|partition| self.shared.queues().target(partition).is_none())
    }

    /// What it has and has done.
    pub fn figures(&self) -> SpoolFigures {
        let shared = &*self.shared;
        let (oldest, time_ms, tip) = shared.extent();
        let age_ms = time_ms.map_or(0, |time_ms| now_ms().saturating_sub(time_ms));
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        SpoolFigures {
            bytes: tip.saturating_sub(oldest),
            bytes_max: shared.options.bytes_max,
            age: Duration::from_millis(u64::try_from(age_ms).unwrap_or(0)),
            spooled: count(&shared.counts.spooled),
            drained: count(&shared.counts.drained),
            refused: count(&shared.counts.refused),
        }
    }

    /// Waits until nothing waits, or so long.
    pub fn finish(&self, patience: Duration) {
        let until = Instant::now() + patience;
        while !self.is_empty() && Instant::now() < until {
            std::thread::sleep(STOP_POLL);
        }
    }

    /// Takes nothing more, writes and answers what it has taken, and ends the threads. What is not drained stays.
    pub fn stop(&self) {
        {
            let _gathered = lock(&self.shared.gathered);
            let _queues = self.shared.queues();
            self.shared.is_stopping.store(true, Ordering::SeqCst);
        }
        for bell in [&self.shared.work, &self.shared.room, &self.shared.ready] {
            bell.notify_all();
        }
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            // A reply may drop the last reference to the spool.
            if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
                tracing::error!(
                    "a bug ended a thread of the spool; what it has is drained after the next start"
                );
            }
        }
        let left = lock(&self.shared.gathered).waits.take_all();
        left.into_iter().for_each(|then| then(false));
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.stop();
    }
}

impl SpoolState {
    fn queues(&self) -> MutexGuard<'_, Queues> {
        lock(&self.queues)
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    /// Where the oldest update that waits begins, when it was spooled, and where the spool ends.
    fn extent(&self) -> (u64, Option<i64>, u64) {
        let queues = self.queues();
        let (oldest, time_ms) = queues.oldest();
        (oldest, time_ms, queues.tip())
    }
}
