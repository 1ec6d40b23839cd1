//! Writes files: a queue of RRDs that are due, and the threads that empty it.
//!
//! One visit to a file writes all that is buffered for it: open, lock, read the header, apply, write each
//! archive's new rows in one piece and the live head once, close (which unlocks). The header is read again
//! each time, from the page cache, so that other programs may write under the same locks. RRDs are queued in
//! name order, which is roughly the order in which files were created and lie on the disk.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::StoreError;
use crate::files::buffer::{Buffer, Entry};
use crate::files::errors::{header_error, io_error, is_unusable, open_error};
use crate::files::shared::{Shared, lock};
use crate::files::updates;
use rrd_file::apply::{Loaded, Workspace};
use rrd_file::file::{Access, RrdFile};

/// How often a thread that waits for the queue checks whether the engine is stopping.
const LOOK: Duration = Duration::from_millis(100);

/// RRDs whose files are to be written, first in, first out.
#[derive(Debug, Default)]
pub struct WriteQueue {
    state: Mutex<QueueState>,
    /// Signals a push or the end.
    filled: Condvar,
    /// Signals that the queue is empty or ended.
    emptied: Condvar,
    /// Signals the end.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    waiting: VecDeque<(u64, Arc<Entry>)>,
    /// Numbers of the entries that are being written.
    in_flight: Vec<u64>,
    /// To be retried soon: another program held the lock, or the disk failed.
    again: Vec<Arc<Entry>>,
    pushed: u64,
    /// Writers that are waiting for work.
    idle: usize,
    closed: bool,
}

impl WriteQueue {
    /// Queues an RRD unless it is queued already. `buffer` is its locked buffer.
    pub fn push(&self, entry: &Arc<Entry>, buffer: &mut Buffer) {
        if buffer.queued || buffer.updates.is_empty() {
            return;
        }
        buffer.queued = true;
        let mut state = lock(&self.state);
        state.push(Arc::clone(entry));
        let wake = state.idle > 0;
        drop(state);
        // A wake-up costs a system call even when no thread sleeps.
        if wake {
            self.filled.notify_one();
        }
    }

    /// RRDs that are queued or being written.
    pub fn length(&self) -> usize {
        let state = lock(&self.state);
        state.waiting.len() + state.in_flight.len() + state.again.len()
    }

    /// The queued RRDs in order. A copy, because callers lock the entries, which must not happen under this
    /// lock.
    pub fn waiting(&self) -> Vec<Arc<Entry>> {
        let state = lock(&self.state);
        state.waiting.iter().map(|(_, entry)| entry).chain(&state.again).map(Arc::clone).collect()
    }

    /// Waits until everything pushed so far was tried, or the queue is closed.
    pub fn wait_for_all(&self) {
        let mut state = lock(&self.state);
        let last = state.pushed;
        while !state.closed
            && (state.waiting.front().is_some_and(|(number, _)| *number <= last)
                || state.in_flight.iter().any(|number| *number <= last))
        {
            state = wait(&self.emptied, state, LOOK);
        }
    }

    /// Waits until the queue is closed, at most for `timeout`.
    pub fn pause(&self, timeout: Duration) {
        let state = lock(&self.state);
        if !state.closed {
            drop(wait(&self.ended, state, timeout));
        }
    }

    /// Waits at most `timeout` until `done`, which is polled.
    pub fn wait_until(&self, timeout: Duration, done: impl Fn() -> bool) {
        let begin = Instant::now();
        let mut state = lock(&self.state);
        while !done() && !state.closed && begin.elapsed() < timeout {
            state = wait(&self.emptied, state, LOOK);
        }
    }

    /// Ends the writers; queued RRDs stay buffered.
    pub fn close(&self) {
        lock(&self.state).closed = true;
        self.filled.notify_all();
        self.emptied.notify_all();
        self.ended.notify_all();
    }

    /// Queues again what could not be written.
    pub fn retry(&self) {
        let mut state = lock(&self.state);
        let again = std::mem::take(&mut state.again);
        if again.is_empty() {
            return;
        }
        again.into_iter().for_each(|entry| state.push(entry));
        drop(state);
        self.filled.notify_all();
    }

    fn pop(&self) -> Option<(u64, Arc<Entry>)> {
        let mut state = lock(&self.state);
        loop {
            if state.closed {
                return None;
            }
            if let Some((number, entry)) = state.waiting.pop_front() {
                state.in_flight.push(number);
                return Some((number, entry));
            }
            state.idle += 1;
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    fn finish(&self, number: u64, again: Option<Arc<Entry>>) {
        let mut state = lock(&self.state);
        state.in_flight.retain(|other| *other != number);
        state.again.extend(again);
        if state.waiting.is_empty() && state.in_flight.is_empty() {
            self.emptied.notify_all();
        }
    }
}

impl QueueState {
    fn push(&mut self, entry: Arc<Entry>) {
        self.pushed += 1;
        self.waiting.push_back((self.pushed, entry));
    }
}

fn wait<'a>(
    condvar: &Condvar,
    state: MutexGuard<'a, QueueState>,
    timeout: Duration,
) -> MutexGuard<'a, QueueState> {
    condvar.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner).0
}

/// Queues every RRD whose oldest buffered update is of this journal generation or older.
pub fn push_all(shared: &Shared, generation_max: u64) {
    let mut entries: Vec<Arc<Entry>> = shared.shards.iter().flat_map(|shard| shard.table.all()).collect();
    entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    for entry in entries {
        let mut buffer = entry.lock();
        if buffer.generation <= generation_max {
            shared.queue.push(&entry, &mut buffer);
        }
    }
}

/// The loop of a writer thread: writes what is queued until the queue is closed.
pub fn run_writer(shared: &Shared) {
    let mut work = Workspace::default();
    while let Some((number, entry)) = shared.queue.pop() {
        let mut buffer = entry.lock();
        let written = write(shared, &entry, &mut buffer, &mut work);
        let again = written.is_err() && !buffer.updates.is_empty() && buffer.trouble.is_none();
        buffer.queued = again;
        drop(buffer);
        if let Err(error) = written {
            tracing::warn!("cannot write '{}': {error}", entry.name);
        }
        shared.queue.finish(number, again.then_some(entry));
    }
}

/// Writes everything buffered for an RRD to its file. `buffer` is its locked buffer.
///
/// # Errors
/// When the file cannot be written. The updates stay buffered, unless the file does not exist: then they are
/// dropped.
pub fn write(
    shared: &Shared,
    entry: &Arc<Entry>,
    buffer: &mut Buffer,
    work: &mut Workspace,
) -> Result<(), StoreError> {
    if buffer.updates.is_empty() {
        return Ok(());
    }
    match write_file(shared, entry, buffer, work) {
        Ok(()) => {
            buffer.trouble = None;
            Ok(())
        }
        Err(error @ StoreError::NoSuchRrd(_)) => {
            tracing::warn!("'{}' is gone: {} updates for it are dropped", entry.name, buffer.update_count);
            shared.journal_forgotten(entry)?;
            shared.forget(entry, buffer);
            Err(error)
        }
        Err(error) => {
            if is_unusable(&error) {
                buffer.trouble = Some(error.clone());
            }
            Err(error)
        }
    }
}

fn write_file(
    shared: &Shared,
    entry: &Arc<Entry>,
    buffer: &mut Buffer,
    work: &mut Workspace,
) -> Result<(), StoreError> {
    let (tree, name) = (&shared.tree, &entry.name);
    let mut file = RrdFile::open(tree, name, Access::Write).map_err(|error| open_error(tree, name, error))?;
    let header = file
        .header(&shared.geometries, buffer.geometry.as_ref(), &mut work.bytes)
        .map_err(|error| header_error(tree, name, error))?;
    let mut loaded = Loaded::new(header, &file).map_err(|error| io_error(tree, name, error))?;
    let outcome = loaded.apply(updates::pending(&buffer.updates), work);
    if outcome.applied > 0 {
        loaded.write(work, &mut file).map_err(|error| io_error(tree, name, error))?;
    }
    drop(file);
    if let Some((count, why)) = &outcome.refused {
        tracing::warn!("{count} updates of '{name}' were refused by its file; the last: {why}");
        shared.counters.updates_refused.fetch_add(*count, Ordering::Relaxed);
    }
    if outcome.past > 0 {
        tracing::debug!("{} updates of '{name}' were in its file already", outcome.past);
    }
    shared.counters.updates_written.fetch_add(1, Ordering::Relaxed);
    shared.counters.data_sets_written.fetch_add(outcome.applied, Ordering::Relaxed);
    let newest = buffer.last;
    buffer.last = Some(loaded.last_update());
    buffer.geometry = Some(Arc::clone(&loaded.header.geometry));
    buffer.due_seconds = shared.due_after(shared.now_seconds(), entry);
    shared.record_written(entry, newest.unwrap_or(loaded.last_update()));
    shared.clear_buffer(buffer);
    Ok(())
}

/// True when another program holds the file's lock: worth retrying soon.
pub fn is_locked(error: &StoreError) -> bool {
    matches!(error, StoreError::Locked)
}
