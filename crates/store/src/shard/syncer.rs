//! The syncer: the thread that makes the log durable, at each interval or, under `always`, for each answer.
//!
//! Requests that arrive during an fsync share the next one (group commit).

use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use crate::engine::{Reply, StoreError};
use crate::lock::lock;
use crate::log::LogSyncer;
use crate::shard::Shared;

/// Answers to give once everything committed so far is durable.
pub struct SyncRequest {
    /// Who waits.
    pub answers: Vec<Reply<Result<(), StoreError>>>,
}

/// The channel to the syncer.
pub struct SyncHandle(Mutex<Option<Sender<SyncRequest>>>);

impl SyncHandle {
    /// A handle around the sending end of the syncer's channel.
    pub fn new(sender: Sender<SyncRequest>) -> Self {
        SyncHandle(Mutex::new(Some(sender)))
    }

    /// Requests a sync of everything committed so far.
    pub fn send(&self, request: SyncRequest) {
        let sender = lock(&self.0);
        let refused = match &*sender {
            Some(sender) => sender.send(request).err().map(|gone| gone.0),
            None => Some(request),
        };
        drop(sender);
        for answer in refused.into_iter().flat_map(|request| request.answers) {
            answer(Err(StoreError::Stopping));
        }
    }

    /// Lets the syncer end after it has answered all requests.
    pub fn close(&self) {
        lock(&self.0).take();
    }
}

/// Runs until every sender is gone. `interval`: the longest time a commit may wait for a sync.
pub fn run(shared: &Shared, log: &LogSyncer, requests: &Receiver<SyncRequest>, interval: Duration) {
    let mut due = Instant::now() + interval;
    loop {
        let mut answers = Vec::new();
        let wait = due.saturating_duration_since(Instant::now());
        let asked = match requests.recv_timeout(wait) {
            Ok(request) => {
                answers.extend(request.answers);
                true
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => return shared.replica_wait.end(),
        };
        answers.extend(requests.try_iter().flat_map(|request| request.answers));
        shared.replica_wait.expire();
        if asked || Instant::now() >= due {
            let result = sync(shared, log);
            for answer in answers {
                answer(result.clone());
            }
            if result.is_ok()
                && let Err(error) = shared.files.note_durable(false)
            {
                tracing::warn!(%error, "cannot record in the manifest how far the log is durable");
            }
            due = Instant::now() + interval;
        }
    }
}

fn sync(shared: &Shared, log: &LogSyncer) -> Result<(), StoreError> {
    if let Some(text) = shared.failure() {
        return Err(StoreError::Poisoned(text));
    }
    match log.sync() {
        Ok(_) => Ok(()),
        Err(error) => {
            let text = format!("cannot sync the log: {error}; no more updates until the store is restarted");
            shared.poison(text.clone());
            shared.stats.sync_failures.fetch_add(1, Ordering::Relaxed);
            Err(StoreError::Poisoned(text))
        }
    }
}
