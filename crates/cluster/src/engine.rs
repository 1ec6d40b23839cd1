//! All partitions as one store: each request goes to the node that leads its partition, and the answers are those of a single server.
//!
//! `docs/cluster.md` says what is promised. What a local store leads does not leave the process. Changes are tried until a leader has
//! confirmed them or the time is over (`errand.rs`; batches of updates in `updates.rs`, or by way of a spool in `spooling.rs`); reads go to the leader, and
//! to a follower as well when that does not answer soon (`reads.rs`); what concerns two partitions is made of several requests (`moves.rs`).

mod checks;
mod copies;
mod errand;
mod gate;
mod moves;
mod placing;
mod reads;
mod spooling;
mod updates;

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::fetch::{FetchRequest, FetchRows};
use rrd::time::Timestamp;
use store::capture::Capture;
use store::engine::{
    CreateRequest, Engine, Hold, Reply, RrdStatus, Snapshot, Stats, StoreError, StreamPosition, Trashed,
    UpdateBatch, UpdateFailure, UpdatevOutcome, VersionChange,
};
use store::memory;
use store::name::RrdName;
use store::tail::{LogTail, Reach};
use store::verify::Watch;

use self::checks::Asking;
use self::gate::Gate;
use crate::chores::Chores;
use crate::handshake::Membership;
use crate::key;
use crate::lock::lock;
use crate::node::Node;
use crate::partition::Copier;
use crate::peer::Peer;
use crate::routes::{NodeAddress, Routes};
use crate::serve::Listener;
use crate::spool::Spool;
use crate::tree::NodeTree;
use crate::wire::{Answer, Request};

/// Threads for retries.
const RETRY_THREADS: usize = 4;
/// Threads that ask partitions side by side.
const READ_THREADS: usize = 8;

const NO_CAPTURE: &str = "a cluster has no moment to copy: back up its nodes, each with its own [backup]";
const NO_TAIL: &str = "a cluster has no log of its own to follow: forward from its nodes";

/// How a [`ClusterEngine`] asks other nodes.
#[derive(Clone)]
pub struct ClusterOptions {
    /// How long a request is tried before it fails. Those for a whole RRD or a whole store get six times as long.
    pub patience: Duration,
    /// How long the leader may take to answer a read before a follower is asked as well.
    pub hedge: Duration,
    /// Bytes of requests in flight to each node; who updates faster waits.
    pub in_flight_bytes_max: usize,
    /// The time that an `N` of an update stands for. It must be the same when an update is sent again.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        let now = || {
            let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
            Timestamp::new(since.as_secs() as i64, since.subsec_micros())
        };
        ClusterOptions {
            patience: Duration::from_secs(10),
            hedge: Duration::from_millis(100),
            in_flight_bytes_max: 64 << 20,
            clock: Arc::new(now),
        }
    }
}

/// What all requests of an engine share.
struct Hub {
    routes: Arc<dyn Routes>,
    membership: Membership,
    options: ClusterOptions,
    peers: Mutex<HashMap<NodeAddress, Arc<Peer>>>,
    /// For each partition, the order of its updates.
    gates: Vec<Gate>,
    /// From which updates are answered, with `ack = "spool"`.
    spool: OnceLock<Arc<Spool>>,
    /// Where files stand for RRDs.
    tree: OnceLock<Arc<NodeTree>>,
    retries: Chores,
    reads: Chores,
    is_stopping: AtomicBool,
}

impl Hub {
    /// The node, as one that can be asked.
    fn peer(&self, node: &NodeAddress) -> io::Result<Arc<Peer>> {
        let mut peers = lock(&self.peers);
        if let Some(known) = peers.get(node) {
            return Ok(Arc::clone(known));
        }
        let peer = Arc::new(Peer::new(node, &self.membership, self.options.in_flight_bytes_max)?);
        peers.insert(node.clone(), Arc::clone(&peer));
        Ok(peer)
    }

    /// The store of a partition that this node leads.
    fn led_here(&self, partition: u32) -> Option<Arc<dyn Engine>> {
        self.routes.local(partition).filter(|(_, leads)| *leads).map(|(engine, _)| engine)
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    fn partition_of(&self, name: &RrdName) -> u32 {
        key::partition_of(name.as_bytes(), self.routes.partition_count())
    }
}

/// How a node is named in errors.
fn shown(node: &NodeAddress) -> String {
    format!("\"{}\" ({})", node.name, node.address)
}

/// Whether an error says only that this store, on this node, cannot do it now: another one may.
pub(crate) fn passes(error: &StoreError) -> bool {
    matches!(error, StoreError::NotPrimary(_) | StoreError::NotReplicated(_) | StoreError::Stopping)
}

/// Whether a store that failed so may have made the change.
fn is_outcome_unknown(error: &StoreError) -> bool {
    matches!(error, StoreError::NotReplicated(_) | StoreError::Stopping)
}

/// A cluster, as one store.
pub struct ClusterEngine {
    hub: Arc<Hub>,
    /// What this process is of it, and ends with it.
    own: Option<(Arc<Node>, Listener)>,
}

impl ClusterEngine {
    /// An engine on a node that knows where the partitions are.
    ///
    /// # Errors
    /// The system's, when there can be no more threads.
    pub fn start(
        routes: Arc<dyn Routes>,
        membership: Membership,
        options: ClusterOptions,
    ) -> io::Result<ClusterEngine> {
        let gates = (0..routes.partition_count()).map(|_| Gate::default()).collect();
        let hub = Hub {
            routes,
            gates,
            spool: OnceLock::new(),
            tree: OnceLock::new(),
            membership,
            options,
            peers: Mutex::default(),
            retries: Chores::start("retries", RETRY_THREADS)?,
            reads: Chores::start("partitions", READ_THREADS)?,
            is_stopping: AtomicBool::new(false),
        };
        Ok(ClusterEngine { hub: Arc::new(hub), own: None })
    }

    /// The engine of a process that is a node itself: both are stopped with it.
    #[must_use]
    pub fn with_node(mut self, node: Arc<Node>, listener: Listener) -> ClusterEngine {
        node.set_copier(Arc::clone(&self.hub) as Arc<dyn Copier>);
        node.set_replicas(Arc::new(Asking(Arc::clone(&self.hub))));
        self.own = Some((node, listener));
        self
    }

    fn partitions(&self) -> Range<u32> {
        0..self.hub.routes.partition_count()
    }

    /// A change to the RRD of a name, or what only the leader of its partition knows.
    fn of_name(&self, name: &RrdName, request: Request) -> Result<Answer, StoreError> {
        self.catch_up(std::iter::once(name.as_bytes()));
        self.hub.order(self.hub.partition_of(name), request)
    }

    /// A read of the RRD of a name.
    fn read_of(&self, name: &RrdName, request: Request) -> Result<Answer, StoreError> {
        self.catch_up(std::iter::once(name.as_bytes()));
        self.hub.read(self.hub.partition_of(name), request)
    }
}

/// The answer of a node that answers something else than it was asked.
fn strange<T>(_: Answer) -> Result<T, StoreError> {
    Err(StoreError::Unavailable(
        "a node answers something else than it was asked: upgrade the older ones of the nodes".to_owned(),
    ))
}

fn done(answer: Answer) -> Result<(), StoreError> {
    match answer {
        Answer::Done => Ok(()),
        other => strange(other),
    }
}

impl Engine for ClusterEngine {
    fn update(&self, batch: UpdateBatch, reply: Reply<Vec<UpdateFailure>>) {
        self.catch_up(batch.lines.iter().map(|line| batch.name(line)));
        match self.hub.spool.get() {
            Some(spool) => spooling::update(&self.hub, spool, batch, reply),
            None => updates::update(&self.hub, batch, reply),
        }
    }

    fn updatev(&self, name: &RrdName, values: &[u8]) -> Result<UpdatevOutcome, StoreError> {
        match self.of_name(name, Request::Updatev(name.clone(), values.to_vec()))? {
            Answer::Written(outcome) => Ok(outcome),
            other => strange(other),
        }
    }

    fn create(&self, name: RrdName, request: CreateRequest, reply: Reply<Result<(), StoreError>>) {
        self.catch_up(std::iter::once(name.as_bytes()));
        let partition = self.hub.partition_of(&name);
        let tree = self.hub.tree.get().map(|tree| (Arc::clone(tree), name.clone()));
        // Before that: the answer comes on a thread that must not wait for files.
        if let Err(error) = self.place(&name, &request.definition) {
            return reply(Err(error));
        }
        let ended = move |result: Result<Answer, StoreError>| {
            if let (Err(_), Some((tree, name))) = (&result, tree) {
                tree.doubt(&name);
            }
            reply(result.and_then(done));
        };
        self.hub.order_then(partition, Request::Create(name, request), Box::new(ended));
    }

    fn check_filled(&self, definition: &Definition) -> Result<(), StoreError> {
        match self.partitions().find_map(|partition| self.hub.led_here(partition)) {
            Some(engine) => engine.check_filled(definition),
            None => memory::check_whole(definition),
        }
    }

    fn import(&self, name: RrdName, rrd: Rrd, no_overwrite: bool) -> Result<(), StoreError> {
        self.catch_up(std::iter::once(name.as_bytes()));
        self.place(&name, &rrd.definition)?;
        let request = Request::Import(name.clone(), Arc::new(rrd), no_overwrite);
        self.placed(&[&name], self.of_name(&name, request).and_then(done))
    }

    fn tune(&self, name: &RrdName, args: &[String]) -> Result<(), StoreError> {
        self.placed(&[name], self.of_name(name, Request::Tune(name.clone(), args.to_vec())).and_then(done))
    }

    fn change(&self, name: &RrdName, version: u64, change: VersionChange) -> Result<u64, StoreError> {
        let replaces = matches!(change, VersionChange::Replace(_));
        let changed = match self.of_name(name, Request::Change(name.clone(), version, change)) {
            Ok(Answer::Version(version)) => Ok(version),
            Ok(other) => strange(other),
            Err(error) => Err(error),
        };
        if replaces { self.placed(&[name], changed) } else { changed }
    }

    fn delete(&self, name: &RrdName) -> Result<(), StoreError> {
        self.placed(&[name], self.of_name(name, Request::Delete(name.clone())).and_then(done))
    }

    fn rename(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        self.catch_up([from, to].map(RrdName::as_bytes).into_iter());
        self.placed(&[from, to], moves::rename(&self.hub, from, to))
    }

    fn copy(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        self.catch_up([from, to].map(RrdName::as_bytes).into_iter());
        self.placed(&[to], moves::copy(&self.hub, from, to))
    }

    fn trash(&self) -> Result<Vec<Trashed>, StoreError> {
        moves::trash(&self.hub)
    }

    fn restore(&self, trashed: &Trashed, to: &RrdName) -> Result<(), StoreError> {
        self.catch_up(std::iter::once(to.as_bytes()));
        self.placed(&[to], moves::restore(&self.hub, trashed, to))
    }

    fn erase(&self, trashed: &Trashed) -> Result<(), StoreError> {
        self.of_name(&trashed.name, Request::Erase(trashed.clone())).and_then(done)
    }

    fn snapshot(&self, name: &RrdName) -> Result<Snapshot, StoreError> {
        match self.read_of(name, Request::Snapshot(name.clone()))? {
            Answer::Snapshot(snapshot) => Ok(*snapshot),
            other => strange(other),
        }
    }

    fn status(&self, name: &RrdName) -> Result<RrdStatus, StoreError> {
        match self.read_of(name, Request::Status(name.clone()))? {
            Answer::Status(status) => Ok(status),
            other => strange(other),
        }
    }

    fn status_for_change(&self, name: &RrdName) -> Result<RrdStatus, StoreError> {
        match self.of_name(name, Request::StatusForChange(name.clone()))? {
            Answer::Status(status) => Ok(status),
            other => strange(other),
        }
    }

    fn fetch(&self, name: &RrdName, request: FetchRequest) -> Result<FetchRows, StoreError> {
        match self.read_of(name, Request::Fetch(name.clone(), request))? {
            Answer::Fetched(rows) => Ok(rows),
            other => strange(other),
        }
    }

    fn read(&self, name: &RrdName) -> Result<Rrd, StoreError> {
        match self.read_of(name, Request::Read(name.clone()))? {
            Answer::Whole(rrd) => Ok(*rrd),
            other => strange(other),
        }
    }

    fn rows(
        &self,
        name: &RrdName,
        of: &Arc<Definition>,
        rra: usize,
        rows: Range<i64>,
    ) -> Result<Vec<f64>, StoreError> {
        let request = Request::Rows(name.clone(), Arc::clone(of), rra, rows);
        match self.read_of(name, request)? {
            Answer::Values(values) => Ok(values),
            other => strange(other),
        }
    }

    fn list_within(
        &self,
        directory: &[u8],
        recursive: bool,
        hold: Hold<'_>,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        self.catch_up_with_moves();
        self.hub.list(directory, recursive, hold)
    }

    fn has_directory(&self, directory: &[u8]) -> Result<bool, StoreError> {
        self.hub.has_directory(directory)
    }

    fn flush(&self, name: Option<&RrdName>) -> Result<(), StoreError> {
        match name {
            Some(name) => {
                self.of_name(name, Request::Flush(Some(name.clone()))).and_then(done)?;
                // Its file soon says when it was updated, as a file that was written would.
                self.tree().inspect(|tree| tree.doubt(name));
                Ok(())
            }
            None => self.hub.order_all(&Request::Flush(None)),
        }
    }

    fn flush_those(&self, names: &[RrdName]) -> Result<(), StoreError> {
        let mut partitions: Vec<u32> = names.iter().map(|name| self.hub.partition_of(name)).collect();
        partitions.sort_unstable();
        partitions.dedup();
        self.hub.order_each(partitions, &Request::Flush(None))
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.hub.order_all(&Request::Sync)
    }

    fn stream_position(&self, name: &[u8]) -> Result<Option<StreamPosition>, StoreError> {
        let partition = key::of_directory(name, self.hub.routes.partition_count());
        match self.hub.order(partition, Request::StreamPosition(name.to_vec()))? {
            Answer::Position(position) => Ok(position),
            other => strange(other),
        }
    }

    fn set_stream_position(&self, name: &[u8], position: StreamPosition) -> Result<(), StoreError> {
        // What the stream brought is in any partition.
        self.sync()?;
        let partition = key::of_directory(name, self.hub.routes.partition_count());
        self.hub.order(partition, Request::SetStreamPosition(name.to_vec(), position)).and_then(done)
    }

    fn stats(&self) -> Stats {
        self.hub.stats()
    }

    /// Of the partitions that this node has; each node verifies its own.
    fn verify(&self, watch: &mut dyn Watch) -> Result<(), StoreError> {
        let local = self.partitions().filter_map(|partition| self.hub.routes.local(partition));
        local.map(|(engine, _)| engine).try_for_each(|engine| engine.verify(watch))
    }

    fn capture(&self) -> Result<Capture, StoreError> {
        Err(StoreError::Unsupported(NO_CAPTURE))
    }

    fn tail(&self, _reach: Reach, _bytes_max: u64) -> Result<LogTail, StoreError> {
        Err(StoreError::Unsupported(NO_TAIL))
    }

    /// Ends the connections to other nodes, and its own node.
    fn stop(&self) -> Result<(), StoreError> {
        if !self.hub.is_stopping() {
            self.hub.finish_spool();
        }
        // First the node: what it has answered for is to be in the log, and others are to lead.
        if let Some((node, listener)) = &self.own {
            node.stop();
            listener.stop();
        }
        self.hub.is_stopping.store(true, Ordering::SeqCst);
        if let Some(spool) = self.hub.spool.get() {
            spool.stop();
        }
        self.hub.retries.stop();
        self.hub.reads.stop();
        let peers = std::mem::take(&mut *lock(&self.hub.peers));
        peers.into_values().for_each(|peer| peer.stop());
        self.tree().inspect(|tree| tree.stop());
        Ok(())
    }
}

impl Drop for ClusterEngine {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}
