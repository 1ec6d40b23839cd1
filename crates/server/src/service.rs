//! State shared by all connections: the store, names, policies, counters.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use ::access::{Below, Rights, Verb};
use store::engine::Engine;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::access::audit::Event;
use crate::access::guard::Guard;
use crate::access::{Access, Principal};
use crate::agents::seen::SeenAgents;
use crate::budget::MemoryBudget;
use crate::cluster::{ClusterSettings, Node};
use crate::collectors::context::{CollectorContext, ReadingSink};
use crate::collectors::fence::Fence;
use crate::connection::command::Wait;
use crate::connection::command::flush::FlushAll;
use crate::connection_limits::ConnectionLimits;
use crate::ingest::Ingest;
use crate::limits::{
    BLOCKING_CALLS_PER_CORE, BLOCKING_THREADS_SPARE, BUFFERS_KEPT, FRAMES_THREADS_MAX, INLINE_CALLS_MAX,
    READ_BYTES,
};
use crate::marks::Marks;
use crate::metrics::Metrics;
use crate::name_index::NameIndex;
use crate::names::Names;
use crate::scrub::Scrub;
use crate::settings::LimitSettings;

/// Clients whose parts of the store are kept. Each takes some hundred bytes, and a list of its names once they are searched.
const PARTS_MAX: usize = 1000;

/// What CREATE may do.
#[derive(Clone, Debug, Default)]
pub struct CreatePolicy {
    /// Never replace an existing RRD (`-O`).
    pub no_overwrite: bool,
    /// Create missing directories (`-R`).
    pub make_directories: bool,
    /// Allow only what a standard `.rrd` file can hold (the files layout).
    pub file_limits: bool,
}

/// State shared by all connections.
pub struct Service {
    /// The store.
    pub engine: Arc<dyn Engine>,
    /// Who clients are.
    pub access: Arc<Access>,
    /// Whose part of the store this is; `None`: all of it.
    who: Option<Arc<Principal>>,
    /// The parts of the store that clients see.
    parts: Mutex<HashMap<u64, Arc<Service>>>,
    /// The base directory.
    pub names: Names,
    /// All names in order.
    pub name_index: Arc<NameIndex>,
    /// What CREATE may do.
    pub create: CreatePolicy,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Marks of SUSPEND and FORGET.
    pub marks: Arc<Marks>,
    /// Unused read buffers.
    pub buffers: Arc<Buffers>,
    /// Runs blocking calls to the store.
    pub calls: Arc<BlockingCalls>,
    /// The FLUSHALL that has not begun yet.
    pub flush_all: FlushAll,
    /// Memory for what clients send and do not read.
    pub memory: Arc<MemoryBudget>,
    /// How long a client may be silent in the middle of something.
    pub idle: Duration,
    /// Slots for connections.
    pub connection_limits: Arc<ConnectionLimits>,
    /// Verifies the store.
    pub scrub: Arc<Scrub>,
    /// The directory in which snapshots are made; not set: none are.
    pub snapshots: Arc<OnceLock<PathBuf>>,
    /// What this server is of a cluster; not set: it is no node.
    pub node: Arc<OnceLock<Arc<Node>>>,
    /// How it is one.
    pub cluster: Arc<OnceLock<ClusterSettings>>,
    /// Permits for connections with their own thread.
    pub threads: Arc<Semaphore>,
    /// Agents that have been seen.
    pub agents: Arc<SeenAgents>,
    /// What is pushed.
    pub ingest: Arc<Ingest>,
    /// What collectors need.
    pub collecting: Arc<CollectorContext>,
}

impl Service {
    /// What this process's collectors share. Nodes of a cluster have directories of their own for their own numbers.
    pub fn collecting(&self) -> Arc<CollectorContext> {
        let Some(node) = self.node.get() else { return Arc::clone(&self.collecting) };
        Arc::new(CollectorContext {
            sink: ReadingSink::Store(Arc::clone(&self.engine)),
            statistics: self.collecting.statistics.clone(),
            labels: Arc::clone(&self.collecting.labels),
            own_directory: format!("{}/", collect::host::safe_component(node.name())),
        })
    }

    /// In a node of a cluster: what a further poller polls and writes.
    pub fn fence(&self) -> Option<Arc<Fence>> {
        let node = Arc::clone(self.node.get()?);
        Some(Arc::new(Fence::of_node(node, Arc::clone(&self.engine))))
    }

    /// A service for `engine`.
    pub fn new(engine: Arc<dyn Engine>, names: Names, create: CreatePolicy) -> Arc<Self> {
        Self::with_limits(engine, names, create, &LimitSettings::default(), Access::default())
    }

    /// A service for `engine` whose clients have these limits.
    pub fn with_limits(
        engine: Arc<dyn Engine>,
        names: Names,
        create: CreatePolicy,
        limits: &LimitSettings,
        access: Access,
    ) -> Arc<Self> {
        let metrics = Arc::new(Metrics::default());
        let sink = ReadingSink::Store(Arc::clone(&engine));
        let collecting = CollectorContext {
            sink,
            statistics: metrics.collectors.clone(),
            labels: Arc::default(),
            own_directory: String::new(),
        };
        // The rest is for connections that come when all of this is held, for answers in the making, for threads, and for
        // what the allocator has not given back.
        let memory = MemoryBudget::with_reserve(limits.memory / 8 * 3, limits.memory / 32);
        metrics.ingest.store_in(&engine);
        Arc::new(Service {
            collecting: Arc::new(collecting),
            name_index: Arc::new(NameIndex::new(Arc::clone(&engine), Arc::clone(&memory))),
            memory,
            idle: limits.idle,
            engine,
            access: Arc::new(access),
            who: None,
            parts: Mutex::default(),
            names,
            create,
            marks: Arc::default(),
            buffers: Arc::default(),
            calls: Arc::default(),
            flush_all: FlushAll::default(),
            snapshots: Arc::default(),
            node: Arc::default(),
            cluster: Arc::default(),
            ingest: Arc::clone(&metrics.ingest),
            metrics,
            connection_limits: Arc::new(ConnectionLimits::with_total(
                limits.connections,
                limits.memory / 4 * 3,
            )),
            scrub: Arc::default(),
            agents: Arc::default(),
            threads: Arc::new(Semaphore::new(FRAMES_THREADS_MAX)),
        })
    }

    /// The store as this client may see it, with everything else that connections share.
    pub fn seen_by(self: &Arc<Self>, who: &Arc<Principal>) -> Arc<Self> {
        // A change of one who may do everything is only recorded if changes are.
        if who.rights.is_all() && !self.access.audit.is_on() {
            return Arc::clone(self);
        }
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = parts.get(&who.id) {
            return Arc::clone(part);
        }
        if parts.len() >= PARTS_MAX {
            parts.clear();
        }
        let part = Arc::new(self.part_of(who));
        parts.insert(who.id, Arc::clone(&part));
        part
    }

    fn part_of(&self, who: &Arc<Principal>) -> Service {
        let guard = Guard::new(Arc::clone(&self.engine), Arc::clone(&self.access), Arc::clone(who));
        let engine: Arc<dyn Engine> = Arc::new(guard);
        // One of a part does not do what one of another part asks for.
        let flush_all = match who.rights.writes_all() {
            true => self.flush_all.clone(),
            false => FlushAll::default(),
        };
        let name_index = match who.rights.reads_all() {
            true => Arc::clone(&self.name_index),
            false => Arc::new(NameIndex::new(Arc::clone(&engine), Arc::clone(&self.memory))),
        };
        Service {
            engine,
            access: Arc::clone(&self.access),
            who: Some(Arc::clone(who)),
            parts: Mutex::default(),
            names: self.names.clone(),
            name_index,
            create: self.create.clone(),
            metrics: Arc::clone(&self.metrics),
            marks: Arc::clone(&self.marks),
            buffers: Arc::clone(&self.buffers),
            calls: Arc::clone(&self.calls),
            flush_all,
            memory: Arc::clone(&self.memory),
            idle: self.idle,
            connection_limits: Arc::clone(&self.connection_limits),
            scrub: Arc::clone(&self.scrub),
            snapshots: Arc::clone(&self.snapshots),
            node: Arc::clone(&self.node),
            cluster: Arc::clone(&self.cluster),
            ingest: Arc::clone(&self.ingest),
            threads: Arc::clone(&self.threads),
            agents: Arc::clone(&self.agents),
            collecting: Arc::clone(&self.collecting),
        }
    }

    /// What the client of this part of the store may do; `None`: everything.
    pub fn rights(&self) -> Option<&Rights> {
        self.who.as_ref().map(|who| &who.rights)
    }

    /// The account of the client of this part of the store.
    pub fn account(&self) -> Option<&str> {
        self.who.as_ref().and_then(|who| who.account())
    }

    /// Whether the client of this part of the store may change the RRD of this name.
    pub fn may_write(&self, name: &[u8]) -> bool {
        self.rights().is_none_or(|rights| rights.may(Verb::Write, name))
    }

    /// Records that the client may not do this to the RRD of this name.
    pub fn refused_write(&self, name: &str, detail: &str) {
        if let Some(who) = &self.who {
            let (who, name) = (&*who.name, Some(name.to_string()));
            self.access.audit.record(&Event { who, what: "refused", name, detail: Some(detail) });
        }
    }

    /// Records what the client has done to the server, or to what is called `name` there.
    pub fn operated(&self, what: &'static str, name: Option<&str>) {
        if let Some(who) = &self.who {
            let name = name.map(str::to_string);
            self.access.audit.record(&Event { who: &who.name, what, name, detail: None });
        }
    }

    /// Has this node of a cluster give its replicas to others, or take some again.
    pub fn drain(&self, node: &Node, drains: bool) {
        self.operated(if drains { "drain" } else { "fill" }, None);
        node.drain(drains);
    }

    /// Records that the client may not give a command at all.
    pub fn refused_command(&self, command: &str) {
        if let Some(who) = &self.who {
            let event = Event { who: &who.name, what: "refused", name: None, detail: Some(command) };
            self.access.audit.record(&event);
        }
    }

    /// Whether the client of this part of the store may see the RRD of this name.
    pub fn may_read(&self, name: &[u8]) -> bool {
        self.rights().is_none_or(|rights| rights.may(Verb::Read, name))
    }

    /// Whether the client of this part of the store may see directories below this one that have no RRDs in them, so that nothing says
    /// whether they are of those that it may see.
    pub fn sees_all_below(&self, directory: &[u8]) -> bool {
        self.rights().is_none_or(|rights| rights.readable_below(directory) == Below::All)
    }

    /// Seconds since the epoch: the `now` of FETCH's relative times and of CREATE without a start.
    pub fn now(&self) -> i64 {
        self.collecting.now()
    }
}

/// Waits until the daemon is told to stop, or can no longer be told.
pub async fn stopped(stop: &mut tokio::sync::watch::Receiver<bool>) {
    stop.wait_for(|&stop| stop).await.ok();
}

/// Limits how many calls to the store block threads at once.
///
/// Moving the connections of a thread to another one costs 12 to 17 us per call (measured: half of a fetch). So the
/// first few short calls just block; other threads steal the tasks that can run. Each of the others takes a thread, and
/// of those there are only so many.
#[derive(Debug)]
pub struct BlockingCalls {
    inline: Arc<Semaphore>,
    threads: Arc<Semaphore>,
}

/// Permission for one call that may block.
#[derive(Debug)]
pub enum Turn {
    /// On a thread that has nothing else to do.
    Own,
    /// On this thread, because it is short and few are.
    Inline(OwnedSemaphorePermit),
    /// After this thread has left its connections to another one.
    Thread(OwnedSemaphorePermit),
}

impl Turn {
    /// Runs the call.
    pub fn run<T>(self, call: impl FnOnce() -> T) -> T {
        match self {
            Turn::Own | Turn::Inline(_) => call(),
            Turn::Thread(_) => tokio::task::block_in_place(call),
        }
    }
}

impl Default for BlockingCalls {
    fn default() -> Self {
        let threads = BLOCKING_CALLS_PER_CORE * cores();
        BlockingCalls {
            inline: Arc::new(Semaphore::new(INLINE_CALLS_MAX)),
            threads: Arc::new(Semaphore::new(threads)),
        }
    }
}

impl BlockingCalls {
    /// Threads that the runtime needs for calls, beside those that serve connections.
    pub fn threads_max() -> usize {
        (BLOCKING_CALLS_PER_CORE + 1) * cores() + BLOCKING_THREADS_SPARE
    }

    /// A turn, if there is one now.
    pub fn try_turn(&self, wait: Wait) -> Option<Turn> {
        if wait == Wait::Short
            && let Ok(permit) = Arc::clone(&self.inline).try_acquire_owned()
        {
            return Some(Turn::Inline(permit));
        }
        Arc::clone(&self.threads).try_acquire_owned().ok().map(Turn::Thread)
    }

    /// Waits for a turn. They are given in the order of asking.
    pub async fn turn(&self) -> Turn {
        match Arc::clone(&self.threads).acquire_owned().await {
            Ok(permit) => Turn::Thread(permit),
            // The semaphore is never closed.
            Err(_) => Turn::Own,
        }
    }

    /// Runs `call` on a thread that serves connections, without a queue; it is `quick` when it waits at most for a shard.
    pub fn run<T>(&self, quick: bool, call: impl FnOnce() -> T) -> T {
        match Arc::clone(&self.inline).try_acquire_owned() {
            Ok(_permit) if quick => call(),
            _ => tokio::task::block_in_place(call),
        }
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Read buffers, shared by all connections.
#[derive(Debug, Default)]
pub struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// An empty buffer with room for [`READ_BYTES`].
    pub fn take(&self) -> Vec<u8> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(|| Vec::with_capacity(READ_BYTES))
    }

    /// Returns a buffer; one that has grown, or one too many, is freed.
    pub fn give(&self, mut buffer: Vec<u8>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < BUFFERS_KEPT && buffer.capacity() <= 2 * READ_BYTES {
            buffer.clear();
            kept.push(buffer);
        }
    }

    /// Frees all buffers that no connection uses.
    pub fn clear(&self) {
        // Freed after the lock is: connections take a buffer for each read.
        let unused = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        drop(unused);
    }

    /// The number of buffers that no connection uses.
    pub fn unused(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
