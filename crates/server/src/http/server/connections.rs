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
    memory: Arc<MemoryBudget>,
    number: u64,
}

#[derive(Debug)]
struct State {
    /// Several requests at once (HTTP/2): each holds its share itself, and none is held for the connection.
    is_multiplexed: bool,
    /// Complete requests whose answers have not begun.
    computing: u32,
    /// Answers that are not made to their end.
    answering: u32,
    /// All answers are made, but not yet written.
    is_unwritten: bool,
    /// Grows with every request, and every piece of an answer that is made.
    progress: u64,
    /// Bytes received since the last complete request.
    received: u64,
    /// What the request holds until it is answered.
    request: Share,
    /// The same while it is incomplete, of [`HttpConnections::parts`].
    part: Share,
    /// What the answer holds until it is written.
    answer: Share,
}

impl State {
    /// Nothing is asked, or not all of a first request has arrived.
    fn is_idle(&self) -> bool {
        self.computing + self.answering == 0 && !self.is_unwritten
    }
}

/// How far a connection has come, to be compared with an earlier time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionProgress {
    /// Nothing is asked.
    pub is_idle: bool,
    /// An answer is made that the client reads as it comes.
    pub is_answering: bool,
    /// Grows with every request and piece of an answer.
    pub count: u64,
}

/// What a request of several at once holds until its answer is made: of the parts of requests, and of all memory.
#[derive(Debug)]
pub struct RequestShare {
    part: Share,
    whole: Share,
}

impl RequestShare {
    /// Holds so many bytes of a request that has not arrived as a whole; false when requests that have arrived in part hold too
    /// much.
    pub fn try_hold(&mut self, bytes: u64) -> bool {
        let bytes = counted(bytes);
        self.part.try_resize(bytes) && self.whole.try_resize(bytes)
    }

    /// The request has arrived as a whole.
    pub fn complete(&mut self) {
        self.part.resize(0);
    }
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
        let state = State {
            is_multiplexed: false,
            computing: 0,
            answering: 0,
            is_unwritten: false,
            progress: 0,
            received: 0,
            request: memory.share(),
            part: self.parts.share(),
            answer: memory.share(),
        };
        let connection = Arc::new(HttpConnection {
            is_reserve,
            state: Mutex::new(state),
            close: Notify::new(),
            _fixed: memory.fix(HTTP_CONNECTION_BYTES),
            all: Arc::clone(self),
            memory: Arc::clone(memory),
            number,
        });
        lock(&self.open).insert(number, Arc::clone(&connection));
        connection
    }

    /// Closes the oldest connection that has no complete request, and returns it.
    pub fn close_oldest_idle(&self) -> Option<Arc<HttpConnection>> {
        let mut open = lock(&self.open);
        let is_idle = |connection: &&Arc<HttpConnection>| lock(&connection.state).is_idle();
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

    /// It has several requests at once, each with its own share of the memory.
    pub fn set_multiplexed(&self) {
        lock(&self.state).is_multiplexed = true;
    }

    /// The share of a request, if it has one of its own.
    pub fn request_share(&self) -> Option<RequestShare> {
        let is_multiplexed = lock(&self.state).is_multiplexed;
        is_multiplexed.then(|| RequestShare { part: self.all.parts.share(), whole: self.memory.share() })
    }

    /// How far it has come.
    pub fn progress(&self) -> ConnectionProgress {
        let state = lock(&self.state);
        ConnectionProgress {
            is_idle: state.is_idle(),
            is_answering: state.answering > 0,
            count: state.progress,
        }
    }

    /// Counts received bytes; false when requests that have arrived in part hold too much.
    pub fn received(&self, bytes: u64) -> bool {
        let mut state = lock(&self.state);
        if state.is_multiplexed {
            return true;
        }
        state.received += bytes;
        if !state.is_idle() {
            // They belong to a later request. hyper reads no more than one buffer of it now.
            return true;
        }
        let bytes = counted(state.received);
        bytes == 0 || (state.part.try_resize(bytes) && state.request.try_resize(bytes))
    }

    /// A request is complete. Its answer is being computed until the result is dropped.
    pub fn begin_computing(self: &Arc<Self>) -> Computing {
        let mut state = lock(&self.state);
        state.computing += 1;
        state.progress += 1;
        if !state.is_multiplexed {
            state.received = 0;
            state.part.resize(0);
        }
        Computing(Arc::clone(self))
    }

    /// Holds an answer of so many bytes until it is written; one that has to be given `anyway` even beyond the budget. Where there are
    /// several, the result holds it.
    ///
    /// # Errors
    /// When the budget does not allow it.
    pub fn hold(&self, bytes: u64, anyway: bool) -> Result<Option<Share>, Failure> {
        let mut state = lock(&self.state);
        let mut own = state.is_multiplexed.then(|| self.memory.share());
        let answer = own.as_mut().unwrap_or(&mut state.answer);
        if anyway {
            answer.resize(counted(bytes));
        } else if !answer.try_resize(counted(bytes)) {
            return Err(Failure::no_memory("this answer", bytes, answer));
        }
        Ok(own)
    }

    /// All of an answer is made.
    fn set_made(&self) {
        let mut state = lock(&self.state);
        state.answering -= 1;
        state.progress += 1;
        state.is_unwritten |= state.computing + state.answering == 0;
    }

    /// What has been made is written.
    pub fn set_written(&self) {
        let mut state = lock(&self.state);
        if state.computing + state.answering == 0 && state.is_unwritten {
            state.is_unwritten = false;
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

/// A request whose answer has not begun.
#[derive(Debug)]
pub struct Computing(Arc<HttpConnection>);

impl Drop for Computing {
    fn drop(&mut self) {
        lock(&self.0.state).computing -= 1;
    }
}

/// What an answer holds until it is made, where there are several: for its request and for itself.
pub type AnswerShares = (Option<RequestShare>, Option<Share>);

/// The body of an answer, which tells its connection when all of it is made.
#[derive(Debug)]
pub struct AnswerBody {
    body: Body,
    connection: Arc<HttpConnection>,
    _shares: AnswerShares,
}

impl AnswerBody {
    /// The body of an answer that `connection` waits for.
    pub fn new(body: Body, connection: Arc<HttpConnection>, shares: AnswerShares) -> Self {
        lock(&connection.state).answering += 1;
        AnswerBody { body, connection, _shares: shares }
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
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if frame.is_ready() {
            lock(&self.connection.state).progress += 1;
        }
        frame
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
        let computing = connection.begin_computing();
        assert_eq!((connections.parts.used(), memory.used()), (0, 100_000));
        connection.hold(300_000, false).unwrap();
        // What was written before the answer is none of it.
        connection.set_written();
        assert_eq!((connections.close_oldest_idle().is_none(), memory.used()), (true, 400_000));
        assert!(connection.received(50_000));
        let answer = AnswerBody::new(Body::empty(), Arc::clone(&connection), (None, None));
        drop(computing);
        connection.set_written();
        assert_eq!((connections.close_oldest_idle().is_none(), memory.used()), (true, 400_000));
        drop(answer);
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
        let _computing = connection.begin_computing();
        connection.hold(100, false).unwrap();
        assert!(connection.hold(10_000, false).is_err());
        connection.hold(10_000, true).unwrap();
    }

    #[test]
    fn each_of_several_requests_holds_its_own() {
        let memory = MemoryBudget::new(1_000_000);
        let connections = HttpConnections::new(&memory);
        let connection = connections.add(&memory, false);
        connection.set_multiplexed();
        assert!(connection.received(100_000_000) && memory.used() == 0);
        let mut requests: Vec<_> = (0..2).map(|_| connection.request_share().unwrap()).collect();
        assert!(requests.iter_mut().all(|share| share.try_hold(100_000)));
        assert_eq!((connections.parts.used(), memory.used()), (200_000, 200_000));
        assert!(!requests[0].try_hold(200_000), "parts of requests hold too much");
        let answer = |mut request: RequestShare| {
            request.complete();
            let computing = connection.begin_computing();
            let share = connection.hold(50_000, false).unwrap();
            let body = AnswerBody::new(Body::empty(), Arc::clone(&connection), (Some(request), share));
            drop(computing);
            body
        };
        let bodies: Vec<_> = requests.into_iter().map(answer).collect();
        assert_eq!((connections.parts.used(), memory.used()), (0, 300_000));
        let before = connection.progress();
        assert!(before.is_answering && !before.is_idle);
        let mut bodies = bodies.into_iter();
        drop(bodies.next());
        assert_eq!(memory.used(), 150_000);
        assert!(connection.progress().count > before.count && connections.close_oldest_idle().is_none());
        drop(bodies.next());
        assert_eq!(memory.used(), 0);
        connection.set_written();
        assert!(connection.progress().is_idle && connections.close_oldest_idle().is_some());
    }
}
