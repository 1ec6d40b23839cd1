//! The connections over HTTP: which are idle, and what each holds of the memory for clients.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::Notify;

use super::super::failure::Failure;
use crate::budget::{Fixed, MemoryBudget, Share};
use crate::limits::{HELD_FREELY, HTTP_CONNECTION_BYTES, HTTP_PARTS_BYTES_MAX};

/// All connections, oldest first.
#[derive(Debug)]
pub struct HttpConnections {
    open: Mutex<BTreeMap<u64, Arc<HttpConnection>>>,
    count: AtomicU64,
    /// For the requests that have arrived in part.
    parts: Arc<MemoryBudget>,
}

/// One connection.
#[derive(Debug)]
pub struct HttpConnection {
    /// It is answered `/healthz` and `/metrics` only.
    pub is_reserve: bool,
    state: Mutex<State>,
    close: Notify,
    /// What any connection takes of the memory for clients.
    _fixed: Fixed,
    all: Arc<HttpConnections>,
    number: u64,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Bytes received since the last complete request.
    received: u64,
    /// What the request holds until it is answered.
    request: Share,
    /// The same while it is incomplete, of [`HttpConnections::parts`].
    part: Share,
    /// What the answer holds until it is written.
    answer: Share,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The client has sent nothing, or part of a request.
    Receiving,
    /// A request is complete.
    Answering,
    /// All of the answer is made, but not yet written.
    Writing,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The part of `bytes` that needs a share of the memory.
fn counted(bytes: u64) -> u64 {
    if bytes > HELD_FREELY as u64 { bytes } else { 0 }
}

impl HttpConnections {
    /// No connections, of clients that share `memory`.
    pub fn new(memory: &MemoryBudget) -> Arc<Self> {
        let parts = MemoryBudget::new(HTTP_PARTS_BYTES_MAX.min(memory.max() / 4));
        Arc::new(HttpConnections { open: Mutex::default(), count: AtomicU64::new(0), parts })
    }

    /// A new connection, which holds nothing yet of `memory`.
    pub fn add(self: &Arc<Self>, memory: &Arc<MemoryBudget>, is_reserve: bool) -> Arc<HttpConnection> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let (request, part, answer) = (memory.share(), self.parts.share(), memory.share());
        let state = State { phase: Phase::Receiving, received: 0, request, part, answer };
        let connection = Arc::new(HttpConnection {
            is_reserve,
            state: Mutex::new(state),
            close: Notify::new(),
            _fixed: memory.fix(HTTP_CONNECTION_BYTES),
            all: Arc::clone(self),
            number,
        });
        lock(&self.open).insert(number, Arc::clone(&connection));
        connection
    }

    /// Closes the oldest connection that has no complete request, and returns it.
    pub fn close_oldest_idle(&self) -> Option<Arc<HttpConnection>> {
        let mut open = lock(&self.open);
        let is_idle = |connection: &&Arc<HttpConnection>| lock(&connection.state).phase == Phase::Receiving;
        let connection = open.values().find(is_idle).cloned()?;
        open.remove(&connection.number);
        connection.close.notify_one();
        Some(connection)
    }
}

impl HttpConnection {
    /// Returns when it is to be closed.
    pub async fn closed(&self) {
        self.close.notified().await;
    }

    /// Counts received bytes; false when requests that have arrived in part hold too much.
    pub fn received(&self, bytes: u64) -> bool {
        let mut state = lock(&self.state);
        state.received += bytes;
        if state.phase != Phase::Receiving {
            // They belong to a later request. hyper reads no more than one buffer of it now.
            return true;
        }
        let bytes = counted(state.received);
        bytes == 0 || (state.part.try_resize(bytes) && state.request.try_resize(bytes))
    }

    /// Its request is complete.
    pub fn set_busy(&self) {
        let mut state = lock(&self.state);
        state.phase = Phase::Answering;
        state.received = 0;
        state.part.resize(0);
    }

    /// Holds an answer of so many bytes until it is written; one that has to be given `anyway` even beyond the budget.
    ///
    /// # Errors
    /// When the budget does not allow it.
    pub fn hold(&self, bytes: u64, anyway: bool) -> Result<(), Failure> {
        let mut state = lock(&self.state);
        if anyway {
            state.answer.resize(counted(bytes));
        } else if !state.answer.try_resize(counted(bytes)) {
            return Err(Failure::no_memory("this answer", bytes, &state.answer));
        }
        Ok(())
    }

    /// All of the answer is made.
    fn set_made(&self) {
        let mut state = lock(&self.state);
        if state.phase == Phase::Answering {
            state.phase = Phase::Writing;
        }
    }

    /// What has been made is written.
    pub fn set_written(&self) {
        let mut state = lock(&self.state);
        if state.phase == Phase::Writing {
            state.phase = Phase::Receiving;
            state.answer.resize(0);
            let bytes = counted(state.received);
            state.request.resize(bytes);
            state.part.resize(bytes);
        }
    }

    /// It is closed.
    pub fn remove(&self) {
        let mut state = lock(&self.state);
        let State { request, part, answer, .. } = &mut *state;
        for share in [request, part, answer] {
            share.resize(0);
        }
        drop(state);
        lock(&self.all.open).remove(&self.number);
    }
}

/// The body of an answer, which tells its connection when all of it is made.
#[derive(Debug)]
pub struct AnswerBody {
    body: Body,
    connection: Arc<HttpConnection>,
}

impl AnswerBody {
    /// The body of the answer that `connection` waits for.
    pub fn new(body: Body, connection: Arc<HttpConnection>) -> Self {
        AnswerBody { body, connection }
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        self.connection.set_made();
    }
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_and_its_answer_are_held_until_the_answer_is_written() {
        let memory = MemoryBudget::new(1_000_000);
        let connections = HttpConnections::new(&memory);
        let connection = connections.add(&memory, false);
        assert!(connection.received(2000) && memory.used() == 0);
        assert!(connection.received(98_000) && memory.used() == 100_000);
        connection.set_busy();
        assert_eq!((connections.parts.used(), memory.used()), (0, 100_000));
        connection.hold(300_000, false).unwrap();
        // What was written before the answer is none of it.
        connection.set_written();
        assert_eq!((connections.close_oldest_idle().is_none(), memory.used()), (true, 400_000));
        assert!(connection.received(50_000));
        drop(AnswerBody::new(Body::empty(), Arc::clone(&connection)));
        assert_eq!(memory.used(), 400_000);
        connection.set_written();
        assert_eq!((connections.parts.used(), memory.used()), (50_000, 50_000));
        assert!(connections.close_oldest_idle().is_some());
        connection.remove();
        assert_eq!((connections.parts.used(), memory.used()), (0, 0));
    }

    #[test]
    fn parts_of_requests_leave_memory_for_others() {
        let memory = MemoryBudget::new(1_000_000 + 11 * HTTP_CONNECTION_BYTES);
        let connections = HttpConnections::new(&memory);
        let open: Vec<_> = (0..10).map(|_| connections.add(&memory, false)).collect();
        let taken = open.iter().filter(|connection| connection.received(100_000)).count();
        assert_eq!((taken, memory.used()), (2, 200_000));
        // A short request is always taken, and a short answer given.
        let connection = connections.add(&memory, false);
        assert!(connection.received(1000));
        let mut rest = memory.share();
        assert!(rest.try_resize(800_000));
        connection.set_busy();
        connection.hold(100, false).unwrap();
        assert!(connection.hold(10_000, false).is_err());
        connection.hold(10_000, true).unwrap();
    }
}
