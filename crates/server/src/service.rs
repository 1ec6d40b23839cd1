//! State shared by all connections: the store, names, policies, counters.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use store::engine::Engine;
use tokio::sync::Semaphore;

use crate::budget::MemoryBudget;
use crate::connection_limits::ConnectionLimits;
use crate::limits::{BUFFERS_KEPT, FRAMES_THREADS_MAX, INLINE_CALLS_MAX, READ_BYTES};
use crate::marks::Marks;
use crate::metrics::Metrics;
use crate::names::Names;
use crate::scrub::Scrub;
use crate::settings::LimitSettings;

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
    /// The base directory.
    pub names: Names,
    /// What CREATE may do.
    pub create: CreatePolicy,
    /// Counters.
    pub metrics: Metrics,
    /// Marks of SUSPEND and FORGET.
    pub marks: Marks,
    /// Unused read buffers.
    pub buffers: Buffers,
    /// Runs blocking calls to the store.
    pub calls: BlockingCalls,
    /// Memory for what clients send and do not read.
    pub memory: Arc<MemoryBudget>,
    /// How long a client may be silent in the middle of something.
    pub idle: Duration,
    /// Slots for connections.
    pub connection_limits: ConnectionLimits,
    /// Verifies the store.
    pub scrub: Arc<Scrub>,
    /// Permits for connections with their own thread.
    pub threads: Arc<Semaphore>,
}

impl Service {
    /// A service for `engine`.
    pub fn new(engine: Arc<dyn Engine>, names: Names, create: CreatePolicy) -> Arc<Self> {
        Self::with_limits(engine, names, create, &LimitSettings::default())
    }

    /// A service for `engine` whose clients have these limits.
    pub fn with_limits(
        engine: Arc<dyn Engine>,
        names: Names,
        create: CreatePolicy,
        limits: &LimitSettings,
    ) -> Arc<Self> {
        Arc::new(Service {
            // The rest is for answers in the making and for what the allocator has not given back.
            memory: MemoryBudget::new(limits.memory / 4 * 3),
            idle: limits.idle,
            engine,
            names,
            create,
            metrics: Metrics::default(),
            marks: Marks::default(),
            buffers: Buffers::default(),
            calls: BlockingCalls::default(),
            connection_limits: ConnectionLimits::with_total(limits.connections),
            scrub: Arc::default(),
            threads: Arc::new(Semaphore::new(FRAMES_THREADS_MAX)),
        })
    }

    /// Seconds since the epoch: the `now` of FETCH's relative times and of CREATE without a start.
    pub fn now(&self) -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
    }
}

/// Waits until the daemon is told to stop, or can no longer be told.
pub async fn stopped(stop: &mut tokio::sync::watch::Receiver<bool>) {
    stop.wait_for(|&stop| stop).await.ok();
}

/// Runs blocking calls to the store on a thread that serves connections.
///
/// Moving the connections to another thread costs 12 to 17 us per call (measured: half of a fetch). So the
/// first few short calls just block; other threads steal the tasks that can run.
#[derive(Debug, Default)]
pub struct BlockingCalls(AtomicUsize);

impl BlockingCalls {
    /// Runs `call`; it is `quick` when it waits at most for a shard.
    pub fn run<T>(&self, quick: bool, call: impl FnOnce() -> T) -> T {
        struct Slot<'a>(&'a AtomicUsize);
        impl Drop for Slot<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let inline = self.0.fetch_add(1, Ordering::Relaxed) < INLINE_CALLS_MAX;
        let _slot = Slot(&self.0);
        if quick && inline { call() } else { tokio::task::block_in_place(call) }
    }
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
}
