//! What all connections share: the store, the names, the rules, the counters.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use store::engine::Engine;
use tokio::sync::Semaphore;

use crate::connection::command::whole::Held;
use crate::limits::{BUFFERS_KEPT, FRAMES_THREADS_MAX, INLINE_CALLS_MAX, READ_BYTES};
use crate::marks::Marks;
use crate::metrics::Metrics;
use crate::names::Names;

/// What CREATE may do.
#[derive(Clone, Debug, Default)]
pub struct CreatePolicy {
    /// Never replace an existing RRD (`-O`).
    pub no_overwrite: bool,
    /// Make missing directories (`-R`).
    pub make_directories: bool,
    /// Only what a standard `.rrd` file can hold (the files layout).
    pub file_limits: bool,
}

/// Shared by all connections, immutable but for its counters.
pub struct Service {
    /// The store.
    pub engine: Arc<dyn Engine>,
    /// The base directory.
    pub names: Names,
    /// What CREATE may do.
    pub create: CreatePolicy,
    /// Counters.
    pub metrics: Metrics,
    /// SUSPEND and FORGET.
    pub marks: Marks,
    /// Read buffers at rest.
    pub buffers: Buffers,
    /// Calls that wait for the store.
    pub waits: Waits,
    /// What is held of RRDs that are being imported.
    pub imports: Held,
    /// Places for connections with a thread of their own.
    pub threads: Arc<Semaphore>,
}

impl Service {
    /// A service on `engine`.
    pub fn new(engine: Arc<dyn Engine>, names: Names, create: CreatePolicy) -> Arc<Self> {
        Arc::new(Service {
            engine,
            names,
            create,
            metrics: Metrics::default(),
            marks: Marks::default(),
            buffers: Buffers::default(),
            waits: Waits::default(),
            imports: Held::default(),
            threads: Arc::new(Semaphore::new(FRAMES_THREADS_MAX)),
        })
    }

    /// Seconds since 1970: the `now` of FETCH's relative times and of CREATE without a start.
    pub fn now(&self) -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
    }
}

/// Waits until the daemon is to stop, or nobody is left to say so.
pub async fn stopped(stop: &mut tokio::sync::watch::Receiver<bool>) {
    stop.wait_for(|&stop| stop).await.ok();
}

/// Calls that wait for the store, on a thread that has connections to serve.
///
/// Handing the connections over to another thread costs 12 to 17 us a call (measured: half of a fetch), so
/// the first few short calls keep theirs waiting instead; the other threads steal what is runnable.
#[derive(Debug, Default)]
pub struct Waits(AtomicUsize);

impl Waits {
    /// Runs `call`, which is `quick` when it waits for a shard at most.
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

/// Read buffers, handed round.
#[derive(Debug, Default)]
pub struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// An empty buffer with room for [`READ_BYTES`].
    pub fn take(&self) -> Vec<u8> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(|| Vec::with_capacity(READ_BYTES))
    }

    /// Gives a buffer back; one that has grown, or one too many, is let go.
    pub fn give(&self, mut buffer: Vec<u8>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < BUFFERS_KEPT && buffer.capacity() <= 2 * READ_BYTES {
            buffer.clear();
            kept.push(buffer);
        }
    }
}
