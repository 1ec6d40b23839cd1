//! The connections over HTTP: which are idle, and what each holds.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::budget::Share;
use crate::limits::HTTP_HEADS_BYTES_MAX;

/// All connections, oldest first.
#[derive(Debug, Default)]
pub struct HttpConnections {
    open: Mutex<BTreeMap<u64, Arc<HttpConnection>>>,
    count: AtomicU64,
    /// Bytes received of requests that are not complete.
    heads: AtomicU64,
}

/// One connection.
#[derive(Debug)]
pub struct HttpConnection {
    /// A request is complete, and its answer not yet written.
    busy: AtomicBool,
    close: Notify,
    /// Bytes of the request so far.
    head: AtomicU64,
    /// What its answer takes until it is written.
    answer: Mutex<Share>,
    all: Arc<HttpConnections>,
    number: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HttpConnections {
    /// A new connection, which holds nothing yet.
    pub fn add(self: &Arc<Self>, answer: Share) -> Arc<HttpConnection> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::new(HttpConnection {
            busy: AtomicBool::new(false),
            close: Notify::new(),
            head: AtomicU64::new(0),
            answer: Mutex::new(answer),
            all: Arc::clone(self),
            number,
        });
        lock(&self.open).insert(number, Arc::clone(&connection));
        connection
    }

    /// Closes the oldest connection that has no complete request.
    pub fn close_oldest_idle(&self) {
        let mut open = lock(&self.open);
        let idle = open.values().find(|connection| !connection.busy.load(Ordering::Relaxed)).cloned();
        if let Some(connection) = idle {
            open.remove(&connection.number);
            connection.close.notify_one();
        }
    }
}

impl HttpConnection {
    /// Returns when it is to be closed.
    pub async fn closed(&self) {
        self.close.notified().await;
    }

    /// Its request is complete.
    pub fn set_busy(&self) {
        self.busy.store(true, Ordering::Relaxed);
        self.forget_head();
    }

    /// Holds an answer of so many bytes until it is written, if the budget allows that.
    pub fn hold(&self, bytes: u64) -> bool {
        lock(&self.answer).try_resize(bytes)
    }

    /// Everything is written.
    pub fn set_idle(&self) {
        if self.busy.swap(false, Ordering::Relaxed) {
            lock(&self.answer).resize(0);
        }
    }

    /// Counts bytes of a request; false when all incomplete ones take too much.
    pub fn received(&self, bytes: u64) -> bool {
        if self.busy.load(Ordering::Relaxed) {
            return true;
        }
        self.head.fetch_add(bytes, Ordering::Relaxed);
        self.all.heads.fetch_add(bytes, Ordering::Relaxed) + bytes <= HTTP_HEADS_BYTES_MAX
    }

    fn forget_head(&self) {
        self.all.heads.fetch_sub(self.head.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// It is closed.
    pub fn remove(&self) {
        self.forget_head();
        lock(&self.answer).resize(0);
        lock(&self.all.open).remove(&self.number);
    }
}
