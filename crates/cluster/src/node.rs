//! A node of a cluster: its replicas, what it knows of the others, and what follows from that.
//!
//! Two threads: one writes the node's beats, the other one reads the last partition of the log and, with each own beat, looks what is to be done: opens
//! and gives up replicas as the plan says, has them claim what none leads, and makes a new plan when nodes have come or gone.

mod ages;
mod govern;
mod moving;
mod verify;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use store::disk::{Disk, RealDisk};
use store::engine::{Engine, StoreError};
use store::identity::Identity;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use self::ages::Ages;
use crate::check::{CheckAnswer, CheckRequest, Placement, Replicas, Verification};
use crate::lock::lock;
use crate::log::{LogError, ReplicatedLog};
use crate::members::{Beat, Known, Members, Note, ReplicaBeat};
use crate::message::WriterId;
use crate::partition::{BackupPlace, Copier, Home, Replica, ReplicaCopy, ReplicaOptions, SharedCopier};
use crate::routes::{NodeAddress, Route, Routes};
use crate::succession;
use crate::wire::VERSION_MAX;

/// How often a node says that it lives.
pub const BEAT: Duration = Duration::from_millis(500);

/// A leader whose beats of so many times the usual time have not come back from the log says that it may be late. Others do not take it for lost before
/// [`crate::members::DEAD_BEATS`].
const HEARD_BEATS: u32 = 4;

/// Copies of a partition that are kept to be looked at: whatever makes them must not fill the disk.
const ASIDE_MAX: u32 = 3;

/// What a node is made of.
#[derive(Clone)]
pub struct NodeOptions {
    /// The cluster's name: part of the identity of each partition's store.
    pub cluster: String,
    /// The node's own name.
    pub name: String,
    /// Its zone.
    pub zone: String,
    /// Where other nodes reach it.
    pub address: String,
    /// Replicas of each partition.
    pub replication: usize,
    /// Where the stores of its replicas are kept.
    pub directory: PathBuf,
    /// How they are opened.
    pub store: store::stripes::Options,
    /// How long an answer waits for the log.
    pub patience: Duration,
    /// How often it says that it lives.
    pub beat: Duration,
    /// Where replicas are made of that no other node has.
    pub backup: Option<Arc<dyn BackupPlace>>,
}

/// Why a node cannot start.
#[derive(Debug)]
pub enum NodeError {
    /// The log does not answer, or is not as it should be.
    Log(LogError),
    /// The log has too few partitions: one is for the nodes themselves.
    TooFewPartitions(u32),
    /// The stores of this node are not of this log: why, and what to do.
    OtherLog(String),
    /// No thread could be started, or the directory cannot be used.
    Io(io::Error),
}

impl std::fmt::Display for NodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NodeError::Log(error) => error.fmt(f),
            NodeError::TooFewPartitions(count) => write!(
                f,
                "the replicated log has {count} partitions, and at least 2 are needed: the last one is for the nodes themselves"
            ),
            NodeError::OtherLog(why) => f.write_str(why),
            NodeError::Io(error) => write!(f, "cannot start the node: {error}"),
        }
    }
}

impl std::error::Error for NodeError {}

impl From<LogError> for NodeError {
    fn from(error: LogError) -> Self {
        NodeError::Log(error)
    }
}

impl From<io::Error> for NodeError {
    fn from(error: io::Error) -> Self {
        NodeError::Io(error)
    }
}

/// A running node.
pub struct Node {
    inner: Arc<Inner>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Inner {
    options: NodeOptions,
    log: Arc<dyn ReplicatedLog>,
    writer: WriterId,
    /// Partitions with RRDs; the next one is for notes.
    partitions: u32,
    members: Mutex<Members>,
    /// Where the notes end that were read.
    heard: AtomicU64,
    ages: Mutex<Ages>,
    replicas: Mutex<BTreeMap<u32, Arc<Replica>>>,
    copier: SharedCopier,
    /// Who asks other nodes when replicas are compared.
    peers: OnceLock<Arc<dyn Replicas>>,
    verification: Mutex<Option<Verification>>,
    is_draining: AtomicBool,
    divisions: moving::Divisions,
    stopping: AtomicBool,
}

/// A number that no other node draws.
fn random_number() -> io::Result<u64> {
    let mut random = [0; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_le_bytes(random))
}

/// The identity of the store of one of so many partitions: those of another number of them are other stores.
fn identity(cluster: &str, partition: u32, partitions: u32) -> Identity {
    let name = format!("{cluster}/{partition}/{partitions}");
    Identity { id: xxh3_128(name.as_bytes()).to_le_bytes(), seed: xxh3_64(name.as_bytes()), shard_count: 1 }
}

/// A directory of this system.
struct Directory(PathBuf);

impl Home for Directory {
    fn open(&self) -> io::Result<Arc<dyn Disk>> {
        Ok(Arc::new(RealDisk::create(&self.0)?))
    }

    fn directory(&self) -> Option<PathBuf> {
        Some(self.0.clone())
    }

    fn replace_by(&self, copy: &Path) -> io::Result<()> {
        // All that it has, the copy has, too.
        match std::fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::rename(copy, &self.0)?;
        std::fs::File::open(self.0.parent().unwrap_or(Path::new(".")))?.sync_all()
    }

    fn put_aside(&self) -> io::Result<String> {
        let name = self.0.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let aside = |count: u32| self.0.with_file_name(format!("{name}.differs-{count}"));
        let free = (1..=ASIDE_MAX).map(aside).find(|path| !path.exists()).ok_or_else(|| {
            io::Error::other(format!("{ASIDE_MAX} copies are kept already: look at them and remove them"))
        })?;
        std::fs::rename(&self.0, &free)?;
        Ok(free.display().to_string())
    }
}

/// The directory of a partition's store.
pub fn partition_directory(root: &Path, partition: u32) -> PathBuf {
    root.join(format!("partition-{partition:04}"))
}

impl Node {
    /// Starts a node: it reads what the others say, and opens the replicas that it should have.
    ///
    /// # Errors
    /// When the log cannot be reached, or a thread cannot be started.
    pub fn start(options: NodeOptions, log: Arc<dyn ReplicatedLog>) -> Result<Node, NodeError> {
        let count = log.partition_count()?;
        if count < 2 {
            return Err(NodeError::TooFewPartitions(count));
        }
        std::fs::create_dir_all(&options.directory)?;
        let owner = moving::Owner { log: log.identity()?, partitions: count - 1 };
        moving::enter(&options.directory, &*log, &owner)?;
        let writer = random_number()?;
        let inner = Arc::new(Inner {
            options,
            log,
            writer,
            partitions: count - 1,
            members: Mutex::new(Members::new(writer)),
            heard: AtomicU64::new(0),
            ages: Mutex::default(),
            replicas: Mutex::default(),
            copier: SharedCopier::default(),
            peers: OnceLock::new(),
            verification: Mutex::default(),
            is_draining: false.into(),
            divisions: moving::Divisions::default(),
            stopping: false.into(),
        });
        inner.open_kept()?;
        let (beats, reads) = (Arc::clone(&inner), Arc::clone(&inner));
        let threads = vec![
            std::thread::Builder::new().name("beats".into()).spawn(move || beats.write_beats())?,
            std::thread::Builder::new().name("members".into()).spawn(move || govern::run(&reads))?,
        ];
        Ok(Node { inner, threads: Mutex::new(threads) })
    }

    /// What this node calls itself.
    pub fn name(&self) -> &str {
        &self.inner.options.name
    }

    /// What it knows of all nodes now.
    pub fn members(&self) -> Members {
        lock(&self.inner.members).clone()
    }

    /// Its replica of a partition.
    pub fn replica(&self, partition: u32) -> Option<Arc<Replica>> {
        lock(&self.inner.replicas).get(&partition).cloned()
    }

    /// Who fetches replicas from other nodes from now on.
    pub fn set_copier(&self, copier: Arc<dyn Copier>) {
        let _ = self.inner.copier.set(copier);
    }

    /// Partitions with RRDs.
    pub fn partitions(&self) -> u32 {
        self.inner.partitions
    }

    /// How many replicas of each partition there are to be.
    pub fn replication(&self) -> usize {
        self.inner.options.replication
    }

    /// Its replicas by partition.
    pub fn replicas(&self) -> BTreeMap<u32, Arc<Replica>> {
        lock(&self.inner.replicas).clone()
    }

    /// Has it give all replicas to others, or take some again.
    pub fn drain(&self, drains: bool) {
        self.inner.is_draining.store(drains, Ordering::Release);
    }

    /// Tells the others, and ends: what it was answered for is in the log.
    pub fn stop(&self) {
        if self.inner.stopping.swap(true, Ordering::AcqRel) {
            return;
        }
        self.stop_verifying();
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            if thread.join().is_err() {
                tracing::error!("a bug ended a thread of the node");
            }
        }
        self.inner.divisions.join();
        let replicas = std::mem::take(&mut *lock(&self.inner.replicas));
        std::thread::scope(|scope| {
            for replica in replicas.values() {
                scope.spawn(|| replica.stop());
            }
        });
        // Now nothing of it leads, and the others need not wait for its silence.
        if let Err(error) = self.inner.write_note(&Note::Beat(self.inner.beat(true))) {
            tracing::debug!(%error, "the other nodes are not told that this one stops; they notice");
        }
    }
}

impl Routes for Node {
    fn partition_count(&self) -> u32 {
        self.inner.partitions
    }

    fn local(&self, partition: u32) -> Option<(Arc<dyn Engine>, bool)> {
        self.replica(partition)?.engine_and_lead()
    }

    fn is_current(&self, partition: u32) -> bool {
        self.replica(partition).is_some_and(|replica| replica.is_ready())
    }

    fn age(&self, partition: u32) -> Option<Duration> {
        let replica = self.replica(partition)?;
        self.inner.age(partition, &replica)
    }

    fn lead(&self, partition: u32) -> Option<(Arc<dyn Engine>, u32)> {
        self.replica(partition)?.engine_and_epoch()
    }

    fn is_sealed(&self, partition: u32) -> bool {
        lock(&self.inner.members).is_sealed(partition)
    }

    fn placement(&self, partition: u32) -> Placement {
        self.placement_of(partition)
    }

    fn check(&self, partition: u32, request: CheckRequest) -> Result<CheckAnswer, StoreError> {
        self.check_own(partition, request)
    }

    fn copy(&self, partition: u32) -> Result<ReplicaCopy, StoreError> {
        self.replica(partition).ok_or(StoreError::Stopping)?.copy()
    }

    fn route(&self, partition: u32) -> Route {
        let own = self.name();
        let replica = self.replica(partition);
        let leads_here = replica.as_ref().is_some_and(|replica| replica.leads());
        let read = replica.and_then(|replica| replica.led_by());
        let members = lock(&self.inner.members);
        let address = |known: &Known| NodeAddress {
            name: known.beat.name.clone(),
            address: known.beat.address.clone(),
        };
        let leader =
            members.leader_since(partition, read).filter(|known| known.beat.name != own || leads_here);
        let is_follower = |known: &&Known| {
            known.beat.name != own
                && leader.is_none_or(|leader| leader.beat.name != known.beat.name)
                && known.is_alive()
                && known.replica(partition).is_some_and(|replica| replica.is_ready)
        };
        Route {
            leader: leader.map(address),
            leads_here,
            followers: members.nodes().filter(is_follower).map(address).collect(),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Inner {
    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Opens what this node has from earlier, also before it knows whether it should.
    fn open_kept(&self) -> io::Result<()> {
        for partition in 0..self.partitions {
            if partition_directory(&self.options.directory, partition).join("STORE").exists() {
                self.open_replica(partition)?;
            }
        }
        Ok(())
    }

    fn open_replica(&self, partition: u32) -> io::Result<()> {
        let mut replicas = lock(&self.replicas);
        if replicas.contains_key(&partition) {
            return Ok(());
        }
        let directory = partition_directory(&self.options.directory, partition);
        let options = ReplicaOptions {
            partition,
            partitions: self.partitions,
            writer: self.writer,
            identity: identity(&self.options.cluster, partition, self.partitions),
            store: self.options.store.clone(),
            home: Box::new(Directory(directory)),
            patience: self.options.patience,
            copier: Arc::clone(&self.copier),
            backup: self.options.backup.clone(),
        };
        let replica = Replica::start(options, Arc::clone(&self.log))?;
        replicas.insert(partition, Arc::new(replica));
        Ok(())
    }

    /// Closes a replica that others have, and removes what it kept.
    fn give_up(&self, partition: u32) {
        let Some(replica) = lock(&self.replicas).remove(&partition) else { return };
        replica.stop();
        let directory = partition_directory(&self.options.directory, partition);
        match std::fs::remove_dir_all(&directory) {
            Ok(()) => tracing::info!(
                partition,
                "other nodes have this partition now; the replica of this one is removed"
            ),
            Err(error) => {
                tracing::warn!(partition, %error, "cannot remove the replica that other nodes have now")
            }
        }
    }

    /// How old what a replica of this node answers may be. A leader that does not hear itself any more may have been replaced.
    fn age(&self, partition: u32, replica: &Replica) -> Option<Duration> {
        let leads = replica.leads();
        let place = replica.place();
        let mut ages = lock(&self.ages);
        if !leads {
            return ages.of_follower(partition, place, Instant::now());
        }
        if ages.is_superseded(partition, place.epoch) {
            return None;
        }
        let silent = ages.last_returned()?.elapsed();
        Some(if silent < self.options.beat * HEARD_BEATS { Duration::ZERO } else { silent })
    }

    fn beat(&self, is_leaving: bool) -> Beat {
        // What it says was read was read before anything else that it says was so.
        let heard = Some(self.heard.load(Ordering::Acquire));
        let number = lock(&self.ages).begin(Instant::now());
        let replicas = lock(&self.replicas).clone();
        let succession = lock(&self.members).succession().cloned();
        let replicas = replicas.iter().map(|(partition, replica)| {
            let status = replica.status();
            ReplicaBeat {
                partition: *partition,
                epoch: status.epoch,
                leads: status.leads,
                is_ready: replica.is_ready(),
                next: status.next,
                stage: self.stage(*partition, status.sealed_for.as_deref(), succession.as_ref()),
            }
        });
        Beat {
            name: self.options.name.clone(),
            zone: self.options.zone.clone(),
            address: self.options.address.clone(),
            replicas: replicas.collect(),
            is_draining: self.is_draining.load(Ordering::Acquire),
            is_leaving,
            version: env!("CARGO_PKG_VERSION").to_string(),
            protocol: VERSION_MAX,
            number,
            heard,
            trouble: self.divisions.trouble(),
        }
    }

    fn write_note(&self, note: &Note) -> Result<(), LogError> {
        succession::write_note(&*self.log, self.partitions, self.writer, note)
    }

    fn write_beats(&self) {
        let mut was_written = true;
        while !self.is_stopping() {
            let written = self.write_note(&Note::Beat(self.beat(false)));
            if let Err(error) = &written
                && was_written
            {
                tracing::warn!(%error, "this node cannot tell the others that it lives");
            }
            was_written = written.is_ok();
            std::thread::sleep(self.options.beat);
        }
    }
}
