//! What all connections share: the store, the names, the rules, the counters.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use store::engine::Engine;

use crate::limits::{BUFFERS_KEPT, READ_BYTES};
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
