//! The connections of a whole process: what several threads update at once goes in one frame.
//!
//! A thread that finds nobody sending sends at once. One that finds another thread sending puts its update to what
//! is gathered, and waits; when the answer is there, one of those who wait sends all that was gathered meanwhile. So
//! nobody waits longer than for two answers, and many threads share the cost of one. Every caller gets the answer
//! to its own update. Other requests take a connection for themselves.
//!
//! Who waits looks for the end of it before he sleeps, as long as answers come quickly: to put eight threads to sleep
//! and wake them for every batch took two thirds of the time (two processors: 85,000 updates a second, so 210,000).

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use protocol::frames::lookout::{LOOK, SHORT, are_several};
use protocol::frames::request::{Fetch, Update, update_bytes};
use protocol::frames::{REQUEST_BYTES_MAX, UPDATES_MAX};
use protocol::rrdcached::client::Answer;

use super::connection::{Connection, Refusals};
use super::{in_turn, lost, refused, unreachable};
use crate::failure::{Done, Failure};
use crate::known::Known;
use crate::verb::fetch::Rows;

/// Connections at rest that are kept; more threads at once open their own.
const IDLE_MAX: usize = 16;
/// Bytes that are gathered for one frame; a longer update goes alone.
const GATHERED_BYTES_MAX: usize = REQUEST_BYTES_MAX / 4;
/// Bytes in front of the updates of a frame.
const COUNT_BYTES: usize = 4;

/// The groups of a process, by address, and the placeholders that lead to them.
#[derive(Debug, Default)]
pub struct Groups {
    groups: Mutex<Vec<Arc<Group>>>,
    /// Placeholders that were met.
    pub known: Known,
}

impl Groups {
    /// The group of an address.
    pub fn of(&self, address: &[u8]) -> Arc<Group> {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(group) = groups.iter().find(|group| group.address == address) {
            return Arc::clone(group);
        }
        let group = Arc::new(Group::new(address));
        groups.push(Arc::clone(&group));
        group
    }
}

/// The connections to one address.
#[derive(Debug)]
pub struct Group {
    address: Vec<u8>,
    state: Mutex<State>,
    /// Where the threads of a batch sleep: those of the even ones and those of the odd ones.
    sleepers: [Condvar; 2],
    /// There is a second processor.
    several: bool,
    /// The last answer came so quickly that the next is worth looking for.
    quick: AtomicBool,
    /// A thread sends the batch before the one that is gathered. Changed while the state is locked, as the next.
    sending: AtomicBool,
    /// Updates that are answered; in the order in which they were taken in.
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
    /// How many threads sleep, as the sleepers are parted: to wake costs a system call even when nobody sleeps.
    asleep: [usize; 2],
    /// The batch before had updates of several threads, so that there are more to come.
    in_company: bool,
    /// Updates taken in.
    taken: u64,
    /// What went wrong, by the update's number, until its thread has seen it.
    failures: HashMap<u64, Failure>,
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

impl Group {
    fn new(address: &[u8]) -> Self {
        Group {
            address: address.to_vec(),
            state: Mutex::default(),
            sleepers: Default::default(),
            several: are_several(),
            quick: AtomicBool::new(false),
            sending: AtomicBool::new(false),
            answered: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes sure that there is a connection.
    ///
    /// # Errors
    /// What stands in the way of one.
    pub fn connect(&self) -> io::Result<()> {
        let state = self.lock();
        if self.is_sending() || !state.idle.is_empty() {
            return Ok(());
        }
        drop(state);
        let connection = Connection::open(&self.address)?;
        self.lock().idle.push(connection);
        Ok(())
    }

    /// Ends the connections that are at rest.
    pub fn disconnect(&self) {
        self.lock().idle.clear();
    }

    /// Updates an RRD by words that are escaped as in an UPDATE, with single spaces between.
    ///
    /// # Errors
    /// What the daemon says, or that it says nothing.
    pub fn update(&self, name: &[u8], values: &[u8]) -> Done {
        let bytes = update_bytes(name, values);
        if bytes + COUNT_BYTES > REQUEST_BYTES_MAX || name.len() > usize::from(u16::MAX) {
            let text = format!("Line too long ({REQUEST_BYTES_MAX} bytes at most)");
            return Err(refused(&self.address, text.as_bytes()));
        }
        let mut state = self.lock();
        while !state.gathered.has_room(bytes) {
            state = self.next(state);
        }
        let ticket = state.taken;
        state.taken += 1;
        state.gathered.push(name, values);
        let batch = state.batch;
        while self.is_waiting(ticket) {
            if !self.is_sending() {
                state = self.send(state);
                continue;
            }
            drop(state);
            self.look_for(ticket);
            state = self.lock();
            if self.is_sending() && self.is_waiting(ticket) {
                state = self.sleep(state, batch);
            }
        }
        state.failures.remove(&ticket).map_or(Ok(()), Err)
    }

    /// Looks for the answer to an update, or the end of the batch before it, for as long as that is worth.
    fn look_for(&self, ticket: u64) {
        let start = Instant::now();
        while self.quick.load(Ordering::Relaxed)
            && self.is_sending()
            && self.is_waiting(ticket)
            && start.elapsed() <= LOOK
        {
            std::thread::yield_now();
        }
    }

    fn is_sending(&self) -> bool {
        self.sending.load(Ordering::Relaxed)
    }

    /// Whether an update is not answered yet.
    fn is_waiting(&self, ticket: u64) -> bool {
        self.answered.load(Ordering::Relaxed) <= ticket
    }

    /// Waits for the batch that is gathered, or sends it.
    fn next<'s>(&'s self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        if self.is_sending() {
            let batch = state.batch;
            self.sleep(state, batch)
        } else {
            self.send(state)
        }
    }

    fn sleep<'s>(&'s self, mut state: MutexGuard<'s, State>, batch: usize) -> MutexGuard<'s, State> {
        state.asleep[batch % 2] += 1;
        let mut state = self.sleepers[batch % 2].wait(state).unwrap_or_else(PoisonError::into_inner);
        state.asleep[batch % 2] -= 1;
        state
    }

    /// Sends what is gathered and gives everyone the answer.
    fn send<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.sending.store(true, Ordering::Relaxed);
        let in_company = state.in_company;
        if in_company {
            // Those who were just answered are about to come back.
            drop(state);
            std::thread::yield_now();
            state = self.lock();
        }
        let spare = std::mem::take(&mut state.spare);
        let mut gathered = std::mem::replace(&mut state.gathered, spare);
        let batch = state.batch;
        state.batch += 1;
        let connection = state.idle.pop();
        drop(state);
        let start = Instant::now();
        let exchange = || self.exchange(connection, |connection| connection.update(gathered.updates()));
        // A bug must not leave the others asleep for ever.
        let result =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(exchange)).unwrap_or_else(|_| Err(lost()));
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

    fn settle(&self, state: &mut State, count: u64, result: Done<Refusals>) {
        let first = self.answered.load(Ordering::Relaxed);
        state.in_company = count > 1;
        match result {
            Ok(refusals) => {
                for (index, text) in refusals {
                    state.failures.insert(first + u64::from(index), refused(&self.address, &text));
                }
            }
            Err(failure) => {
                state.failures.extend((first..first + count).map(|ticket| (ticket, failure.clone())));
            }
        }
        self.answered.store(first + count, Ordering::Relaxed);
    }

    /// Sends lines of the text protocol over one connection, up to the first that is refused; the answer to the last.
    ///
    /// # Errors
    /// That the daemon says nothing; an error of its own is an answer.
    pub fn ask(&self, lines: impl Iterator<Item = Vec<u8>> + Clone) -> Done<Answer> {
        let connection = self.lock().idle.pop();
        self.exchange(connection, |connection| in_turn(lines.clone(), |line| connection.ask(line)))
    }

    /// Asks for rows in a frame; `None` where the daemon speaks only text.
    ///
    /// # Errors
    /// What the daemon says, or that it says nothing.
    pub fn fetch(&self, fetch: &Fetch<'_>) -> Done<Option<Rows>> {
        let connection = self.lock().idle.pop();
        let answer = self.exchange(connection, |connection| {
            if connection.speaks_frames() { connection.fetch(fetch, rows).map(Some) } else { Ok(None) }
        })?;
        answer.transpose().map_err(|text| refused(&self.address, &text))
    }

    /// Runs `exchange` on a connection, a new one where there is none or it has ended meanwhile.
    fn exchange<T>(
        &self,
        connection: Option<Connection>,
        exchange: impl Fn(&mut Connection) -> io::Result<T>,
    ) -> Done<T> {
        let open = || Connection::open(&self.address).map_err(|error| unreachable(&error));
        let mut connection = connection.map_or_else(open, Ok)?;
        let mut result = exchange(&mut connection);
        if result.as_ref().is_err_and(|error| connection.may_be_stale(error)) {
            self.disconnect();
            connection = open()?;
            result = exchange(&mut connection);
        }
        match result {
            Ok(value) => {
                let mut state = self.lock();
                if state.idle.len() < IDLE_MAX {
                    state.idle.push(connection);
                }
                Ok(value)
            }
            Err(_) => {
                // The others have most likely ended with it.
                self.disconnect();
                Err(lost())
            }
        }
    }
}

fn rows(rows: &protocol::frames::answer::Rows<'_>) -> Rows {
    Rows {
        start: rows.start,
        end: rows.end,
        step: rows.step,
        units_per_second: rows.units_per_second,
        names: rows.names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect(),
        values: rows.values().collect(),
    }
}
