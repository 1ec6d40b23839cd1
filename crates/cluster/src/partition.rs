//! A replica of a partition: a store of one shard that is what the messages of the partition say.
//!
//! One thread reads the partition and gives the store what counts ([`life`]). While this replica leads, another one writes the store's log to the
//! partition ([`sender`]), and an answer waits until the first has read it back. When another replica takes over, what it did not read back
//! is cut off: the store is opened again, up to the mark ([`marks`]).

mod check;
mod copy;
mod divide;
mod life;
mod marks;
mod sender;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use store::disk::Disk;
use store::engine::Engine;
use store::identity::Identity;
use store::replication::Position;
use store::stripes::Stripes;

pub use copy::{CopyFile, CopyFileKind, CopyHead, ReplicaCopy, assemble};
pub use divide::Part;

use crate::lock::lock;
use crate::log::{LogError, ReplicatedLog};
use crate::message::{Accepted, WriterId};

/// Where the store of a replica is kept.
pub trait Home: Send + Sync {
    /// Opens the disk it is on.
    ///
    /// # Errors
    /// When it cannot be reached.
    fn open(&self) -> io::Result<Arc<dyn Disk>>;
    /// The directory, when it is one of this system's.
    fn directory(&self) -> Option<PathBuf>;
    /// Puts another store in its place, which is complete in a directory beside it.
    ///
    /// # Errors
    /// When that cannot be done.
    fn replace_by(&self, copy: &Path) -> io::Result<()> {
        Err(io::Error::other(format!("no place for {}", copy.display())))
    }
    /// Puts the store aside, so that the next one begins with nothing; says where it is.
    ///
    /// # Errors
    /// When that cannot be done.
    fn put_aside(&self) -> io::Result<String>;
}

/// Who fetches replicas from other nodes.
pub trait Copier: Send + Sync {
    /// Whether another node has the partition ready.
    fn has_source(&self, partition: u32) -> bool;
    /// Makes a copy of its store in a directory, which may have an earlier attempt in it.
    ///
    /// # Errors
    /// When no node gives one; the system's.
    fn copy(&self, partition: u32, into: &Path) -> io::Result<()>;
}

/// A partition as its backups know it.
#[derive(Clone, Copy, Debug)]
pub struct BackedPartition<'l> {
    /// Its number.
    pub number: u32,
    /// How many there are.
    pub count: u32,
    /// The identity of the replicated log.
    pub log: &'l str,
}

/// Where replicas are backed up to.
pub trait BackupPlace: Send + Sync {
    /// Whether there is a backup of the partition that goes on in the log; not, if that cannot be found out within some seconds.
    fn has_backup(&self, partition: BackedPartition<'_>) -> bool;
    /// Makes a replica of it in a directory that is not there. It is of use only if it goes on at the message of offset `first` or a later one, since
    /// the log has no earlier ones.
    ///
    /// # Errors
    /// When there is none of that kind; the system's.
    fn restore(&self, partition: BackedPartition<'_>, first: u64, into: &Path) -> io::Result<()>;
}

/// Who that is, once it is there.
pub type SharedCopier = Arc<OnceLock<Arc<dyn Copier>>>;

/// What a replica is made of.
pub struct ReplicaOptions {
    /// The partition's number.
    pub partition: u32,
    /// How many there are.
    pub partitions: u32,
    /// Who this node is, in messages.
    pub writer: WriterId,
    /// Which store it is: the same on all nodes.
    pub identity: Identity,
    /// How the store is opened.
    pub store: store::stripes::Options,
    /// Where it is kept.
    pub home: Box<dyn Home>,
    /// How long an answer waits for the replicated log.
    pub patience: Duration,
    /// Who fetches it from another node, when the log does not have all of it.
    pub copier: SharedCopier,
    /// Where it is made of when no other node has it.
    pub backup: Option<Arc<dyn BackupPlace>>,
}

/// What a replica is at some moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaStatus {
    /// It takes changes.
    pub leads: bool,
    /// It has read everything that was there when it was opened.
    pub is_caught_up: bool,
    /// The partition's epoch, as far as it has read.
    pub epoch: u32,
    /// Who leads in it.
    pub leader: WriterId,
    /// The offset of the first message of which its store does not have everything.
    pub next: u64,
    /// Where the log of its store ends, as far as it was accepted.
    pub end: Position,
    /// Where the partition ended when this replica was last opened.
    pub seen_end: u64,
    /// The log in which the partition goes on, once this replica has everything of the present one.
    pub sealed_for: Option<String>,
    /// Why it does not go on, if it does not.
    pub fault: Option<String>,
}

/// What a replica has done since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicaCounts {
    /// Messages read from the replicated log, whether they counted or not.
    pub messages_read: u64,
    /// Their bytes.
    pub bytes_read: u64,
    /// Messages that the replicated log took from this replica, claims among them.
    pub messages_appended: u64,
    /// Their bytes.
    pub bytes_appended: u64,
    /// How often it was copied from another node.
    pub copied: u64,
    /// How often its copy was put aside, because it differed.
    pub put_aside: u64,
}

/// The same, while it counts.
#[derive(Default)]
struct Counters {
    messages_read: AtomicU64,
    bytes_read: AtomicU64,
    messages_appended: AtomicU64,
    bytes_appended: AtomicU64,
    copied: AtomicU64,
    put_aside: AtomicU64,
}

impl Counters {
    fn read(&self, message: &[u8]) {
        self.messages_read.fetch_add(1, Ordering::Relaxed);
        self.bytes_read.fetch_add(message.len() as u64, Ordering::Relaxed);
    }

    fn appended(&self, message: &[u8]) {
        self.messages_appended.fetch_add(1, Ordering::Relaxed);
        self.bytes_appended.fetch_add(message.len() as u64, Ordering::Relaxed);
    }
}

/// A replica of a partition on this node.
pub struct Replica {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the threads of a replica share.
struct Shared {
    options: ReplicaOptions,
    log: Arc<dyn ReplicatedLog>,
    /// It is to seal the partition for this log, while it leads.
    seals_for: OnceLock<String>,
    stopping: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
    /// Held while the mark is written.
    marking: Mutex<()>,
    counters: Counters,
}

#[derive(Default)]
struct State {
    engine: Option<Arc<Stripes>>,
    leads: bool,
    is_caught_up: bool,
    /// Counts how often the store was opened: what waits for an earlier one waits in vain.
    life: u64,
    accepted: Accepted,
    next: u64,
    /// The end of the partition when its reader was opened.
    seen_end: u64,
    /// The last moment at which everything accepted was whole, and in the store.
    settled: Settled,
    fault: Option<String>,
    /// The log in which the partition goes on.
    sealed_for: Option<String>,
    /// The mark on the disk says so, too: from there on this replica can be started with that log.
    seal_is_marked: bool,
    /// The store that is open is to be put aside: why.
    aside: Option<String>,
    /// The replica may claim the partition, until an epoch after this one begins.
    wants_lead: Option<u32>,
}

/// Where a replica is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The partition's epoch, as far as it has read.
    pub epoch: u32,
    /// The offset of the first message of which its store does not have everything.
    pub next: u64,
}

/// A moment of a replica to which it can go back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Settled {
    accepted: Accepted,
    next: u64,
}

impl ReplicaOptions {
    /// The partition of a log, for its backups.
    fn backed<'l>(&self, log: &'l str) -> BackedPartition<'l> {
        BackedPartition { number: self.partition, count: self.partitions, log }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The store that is open in a life: no other one in the cluster has the number.
    fn copy_number(&self, life: u64) -> u64 {
        self.options.writer.wrapping_add(life)
    }

    /// Writes a message to the partition.
    fn append(&self, message: &[u8]) -> Result<(), LogError> {
        self.log.append(self.options.partition, message)?;
        self.counters.appended(message);
        Ok(())
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Waits until something has changed, or for `patience`.
    fn wait<'s>(&self, state: MutexGuard<'s, State>, patience: Duration) -> MutexGuard<'s, State> {
        self.changed.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Replica {
    /// Opens the replica, or makes it, in a thread of its own.
    ///
    /// # Errors
    /// When there can be no more threads.
    pub fn start(options: ReplicaOptions, log: Arc<dyn ReplicatedLog>) -> io::Result<Replica> {
        let name = format!("partition-{}", options.partition);
        let shared = Arc::new(Shared {
            options,
            log,
            seals_for: OnceLock::new(),
            stopping: false.into(),
            state: Mutex::default(),
            changed: Condvar::new(),
            marking: Mutex::default(),
            counters: Counters::default(),
        });
        let lives = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name(name).spawn(move || life::run(&lives))?;
        Ok(Replica { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Its store, while that is open.
    pub fn engine(&self) -> Option<Arc<dyn Engine>> {
        self.shared.state().engine.clone().map(|engine| engine as Arc<dyn Engine>)
    }

    /// Whether it takes changes.
    pub fn leads(&self) -> bool {
        self.shared.state().leads
    }

    /// Whether it has read all that was there when it was opened, and goes on.
    pub fn is_ready(&self) -> bool {
        let state = self.shared.state();
        state.is_caught_up && state.fault.is_none()
    }

    /// Its store, and whether that takes changes.
    pub fn engine_and_lead(&self) -> Option<(Arc<dyn Engine>, bool)> {
        let state = self.shared.state();
        state.engine.clone().map(|engine| (engine as Arc<dyn Engine>, state.leads))
    }

    /// Its store, and the epoch in which it takes changes; `None` when another replica has begun an epoch, as far as this one has read.
    pub fn engine_and_epoch(&self) -> Option<(Arc<dyn Engine>, u32)> {
        let state = self.shared.state();
        let leads = state.leads && state.accepted.leader == self.shared.options.writer;
        let engine = state.engine.clone().filter(|_| leads)?;
        Some((engine as Arc<dyn Engine>, state.accepted.epoch))
    }

    /// Lets the replica claim the partition while it does not lead, or forbids that (`None`). `known` is the newest epoch on which the
    /// caller's decision is based: the replica claims nothing after it has read a later epoch.
    pub fn want_lead(&self, known: Option<u32>) {
        self.shared.state().wants_lead = known;
    }

    /// Has it end the partition in this log whenever it leads: the partition goes on in the log of identity `next`.
    pub fn seal(&self, next: &str) {
        let _ = self.shared.seals_for.set(next.to_owned());
    }

    /// The epoch up to which it has read, and who leads in it, which may be none; `None` when none does any more in this log.
    pub fn led_by(&self) -> Option<(u32, WriterId)> {
        let accepted = self.shared.state().accepted;
        (!accepted.is_sealed).then_some((accepted.epoch, accepted.leader))
    }

    /// Where it is now.
    pub fn place(&self) -> Place {
        let state = self.shared.state();
        Place { epoch: state.accepted.epoch, next: state.settled.next }
    }

    /// What it is now.
    pub fn status(&self) -> ReplicaStatus {
        let state = self.shared.state();
        ReplicaStatus {
            leads: state.leads,
            is_caught_up: state.is_caught_up,
            epoch: state.accepted.epoch,
            leader: state.accepted.leader,
            next: state.settled.next,
            end: state.settled.accepted.whole,
            seen_end: state.seen_end,
            sealed_for: state.sealed_for.clone().filter(|_| state.seal_is_marked),
            fault: state.fault.clone(),
        }
    }

    /// What it has done since it was started.
    pub fn counts(&self) -> ReplicaCounts {
        let counters = &self.shared.counters;
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ReplicaCounts {
            messages_read: value(&counters.messages_read),
            bytes_read: value(&counters.bytes_read),
            messages_appended: value(&counters.messages_appended),
            bytes_appended: value(&counters.bytes_appended),
            copied: value(&counters.copied),
            put_aside: value(&counters.put_aside),
        }
    }

    /// Ends it: what it was answered for is in the replicated log, and it begins next time where it is now.
    pub fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.changed.notify_all();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!(partition = self.shared.options.partition, "a bug ended this replica's thread");
        }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.stop();
    }
}
