//! Updates of several threads in one frame, and the connections that they and all other requests use.
//!
//! A thread that finds no other sending sends at once. One that finds another sending adds its update to the batch being
//! gathered and waits; after the answer one of the waiting threads sends all that was gathered meanwhile. So a thread
//! waits for two answers at most, and many threads share the cost of one. Each gets the answer to its own update.
//!
//! While answers come quickly, waiting threads spin before they sleep: to put eight threads to sleep and wake them for
//! every batch took two thirds of the time (two processors: 85,000 updates per second, spinning 210,000).

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;

use protocol::frames::code::ErrorCode;
use protocol::frames::request::{Update, update_bytes};
use protocol::frames::{REQUEST_BYTES_MAX, UPDATES_MAX};

use super::{IDLE_MAX, Result};
use crate::adaptive_spin::{SHORT, SPIN, has_several_processors};
use crate::connection::{Connection, Refusals};
use crate::error::ClientError;
use crate::sync::{AtomicBool, AtomicU64, Condvar, Instant, Mutex, MutexGuard, PoisonError, yield_now};

/// Bytes that are gathered for one frame; a longer update goes alone.
const GATHERED_BYTES_MAX: usize = REQUEST_BYTES_MAX / 4;
/// Bytes before the updates of a frame.
const COUNT_BYTES: usize = 4;

/// The connections to one daemon.
#[derive(Debug)]
pub(super) struct Batches {
    state: Mutex<State>,
    /// Where threads sleep: those of even batches and those of odd ones.
    sleepers: [Condvar; 2],
    /// There is a second processor.
    several: bool,
    /// The last answer came so quickly that spinning for the next one pays.
    quick: AtomicBool,
    /// A thread sends the batch before the one being gathered. Changed only while the state is locked, as `answered`.
    sending: AtomicBool,
    /// How many updates are answered; they are answered in the order in which they were added.
    answered: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<Connection>,
    gathered: Gathered,
    /// Memory for the next one.
    spare: Gathered,
    /// The number of the batch that is being gathered.
    batch: usize,
    /// How many threads sleep, for each of the sleepers: waking costs a system call even when no thread sleeps.
    asleep: [usize; 2],
    /// The batch before had updates of several threads, so more are about to come.
    in_company: bool,
    /// Updates added.
    added: u64,
    /// What went wrong, by the update's number, until its thread has seen it.
    failures: HashMap<u64, ClientError>,
}

/// Updates of one batch: their text and where each stands in it.
#[derive(Debug, Default)]
struct Gathered {
    text: Vec<u8>,
    /// Name and values.
    updates: Vec<(Range<usize>, Range<usize>)>,
}

impl Gathered {
    fn push(&mut self, name: &[u8], values: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(name);
        let middle = self.text.len();
        self.text.extend_from_slice(values);
        self.updates.push((start..middle, middle..self.text.len()));
    }

    fn updates(&self) -> impl ExactSizeIterator<Item = Update<'_>> + Clone {
        self.updates.iter().map(|(name, values)| Update {
            name: &self.text[name.clone()],
            values: &self.text[values.clone()],
        })
    }

    fn has_room(&self, bytes: usize) -> bool {
        let gathered = self.text.len() + self.updates.len() * update_bytes(b"", b"");
        self.updates.is_empty() || gathered + bytes <= GATHERED_BYTES_MAX && self.updates.len() < UPDATES_MAX
    }

    fn clear(&mut self) {
        self.text.clear();
        self.updates.clear();
    }
}

impl Default for Batches {
    fn default() -> Self {
        Batches {
            state: Mutex::default(),
            sleepers: Default::default(),
            several: has_several_processors(),
            quick: AtomicBool::new(false),
            sending: AtomicBool::new(false),
            answered: AtomicU64::new(0),
        }
    }
}

impl Batches {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a connection is idle or a thread sends on one.
    pub fn has_connection(&self) -> bool {
        let state = self.lock();
        self.is_sending() || !state.idle.is_empty()
    }

    /// Takes an idle connection.
    pub fn idle(&self) -> Option<Connection> {
        self.lock().idle.pop()
    }

    /// Keeps a connection for the next request.
    pub fn give_back(&self, connection: Connection) {
        let mut state = self.lock();
        if state.idle.len() < IDLE_MAX {
            state.idle.push(connection);
        }
    }

    /// How many updates wait for the current batch to be answered.
    #[cfg(test)]
    pub fn gathered(&self) -> usize {
        self.lock().gathered.updates.len()
    }

    /// Closes the idle connections.
    pub fn disconnect(&self) {
        self.lock().idle.clear();
    }

    /// Updates an RRD by words that are escaped as in an UPDATE, separated by single spaces. `open` makes a connection
    /// where none is idle.
    ///
    /// # Errors
    /// The daemon's refusal of this update, or what ended the connection.
    pub fn update(&self, name: &[u8], values: &[u8], open: impl Fn() -> Result<Connection>) -> Result {
        let bytes = update_bytes(name, values);
        if bytes + COUNT_BYTES > REQUEST_BYTES_MAX || name.len() > usize::from(u16::MAX) {
            let text = format!("Line too long ({REQUEST_BYTES_MAX} bytes at most)");
            return Err(ClientError::Refused { code: ErrorCode::Syntax, text: text.into_bytes() });
        }
        let mut state = self.lock();
        while !state.gathered.has_room(bytes) {
            state = self.next(state, &open);
        }
        let ticket = state.added;
        state.added += 1;
        state.gathered.push(name, values);
        let batch = state.batch;
        while self.is_waiting(ticket) {
            if !self.is_sending() {
                state = self.send(state, &open);
                continue;
            }
            drop(state);
            self.spin(ticket);
            state = self.lock();
            if self.is_sending() && self.is_waiting(ticket) {
                state = self.sleep(state, batch);
            }
        }
        state.failures.remove(&ticket).map_or(Ok(()), Err)
    }

    /// Spins until an update is answered or the batch before it ends, as long as that pays.
    fn spin(&self, ticket: u64) {
        let start = Instant::now();
        while self.quick.load(Ordering::Relaxed)
            && self.is_sending()
            && self.is_waiting(ticket)
            && start.elapsed() <= SPIN
        {
            yield_now();
        }
    }

    fn is_sending(&self) -> bool {
        self.sending.load(Ordering::Relaxed)
    }

    /// Whether an update is not answered yet.
    fn is_waiting(&self, ticket: u64) -> bool {
        self.answered.load(Ordering::Relaxed) <= ticket
    }

    /// Waits for the batch being gathered, or sends it.
    fn next<'s>(
        &'s self,
        state: MutexGuard<'s, State>,
        open: &impl Fn() -> Result<Connection>,
    ) -> MutexGuard<'s, State> {
        if self.is_sending() {
            let batch = state.batch;
            self.sleep(state, batch)
        } else {
            self.send(state, open)
        }
    }

    fn sleep<'s>(&'s self, mut state: MutexGuard<'s, State>, batch: usize) -> MutexGuard<'s, State> {
        state.asleep[batch % 2] += 1;
        let mut state = self.sleepers[batch % 2].wait(state).unwrap_or_else(PoisonError::into_inner);
        state.asleep[batch % 2] -= 1;
        state
    }

    /// Sends what is gathered and hands out the answers.
    fn send<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        open: &impl Fn() -> Result<Connection>,
    ) -> MutexGuard<'s, State> {
        self.sending.store(true, Ordering::Relaxed);
        let in_company = state.in_company;
        if in_company {
            // The threads that were just answered are about to come back.
            drop(state);
            yield_now();
            state = self.lock();
        }
        let spare = std::mem::take(&mut state.spare);
        let mut gathered = std::mem::replace(&mut state.gathered, spare);
        let batch = state.batch;
        state.batch += 1;
        let connection = state.idle.pop();
        drop(state);
        let start = Instant::now();
        let exchange = || self.exchange(connection, |connection| connection.update(gathered.updates()), open);
        // A bug must not leave the other threads asleep for ever.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(exchange))
            .unwrap_or(Err(ClientError::Lost));
        self.quick.store(self.several && start.elapsed() <= SHORT, Ordering::Relaxed);
        let mut state = self.lock();
        self.settle(&mut state, gathered.updates.len() as u64, result);
        gathered.clear();
        state.spare = gathered;
        self.sending.store(false, Ordering::Relaxed);
        let (answered, waiting) = (batch % 2, (batch + 1) % 2);
        if state.asleep[answered] > 0 {
            self.sleepers[answered].notify_all();
        }
        if !state.gathered.updates.is_empty() && state.asleep[waiting] > 0 {
            self.sleepers[waiting].notify_one();
        }
        state
    }

    fn settle(&self, state: &mut State, count: u64, result: Result<Refusals>) {
        let first = self.answered.load(Ordering::Relaxed);
        state.in_company = count > 1;
        match result {
            Ok(refusals) => {
                let by_ticket = |(index, error)| (first + u64::from(index), error);
                state.failures.extend(refusals.into_iter().map(by_ticket));
            }
            Err(failure) => {
                state.failures.extend((first..first + count).map(|ticket| (ticket, failure.clone())));
            }
        }
        self.answered.store(first + count, Ordering::Relaxed);
    }

    /// Runs `exchange` on a connection, a new one where none is given or it has ended meanwhile.
    ///
    /// # Errors
    /// There is no connection, or it has ended.
    pub fn exchange<T>(
        &self,
        connection: Option<Connection>,
        exchange: impl Fn(&mut Connection) -> io::Result<T>,
        open: impl Fn() -> Result<Connection>,
    ) -> Result<T> {
        let mut connection = connection.map_or_else(&open, Ok)?;
        let mut result = exchange(&mut connection);
        if result.as_ref().is_err_and(|error| connection.may_be_stale(error)) {
            self.disconnect();
            connection = open()?;
            result = exchange(&mut connection);
        }
        match result {
            Ok(value) => {
                self.give_back(connection);
                Ok(value)
            }
            Err(error) => {
                // The others have most likely ended with it.
                self.disconnect();
                // With TLS, a client's certificate is refused after its first request.
                let is_refusal = error.kind() == io::ErrorKind::ConnectionRefused;
                Err(if is_refusal {
                    ClientError::Connect(std::sync::Arc::new(error))
                } else {
                    ClientError::Lost
                })
            }
        }
    }
}
