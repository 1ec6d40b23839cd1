//! The worker's side of a checkpoint cycle: when to freeze the open rows, and which heads to send next.
//!
//! A cycle starts when the open arena or the log reaches its limit. It freezes the arena, then hands pages of
//! heads to the checkpointer between rounds: one page per round under load, continuously when idle. The next
//! cycle can start once the checkpointer reports the end of this one; if memory fills up before that, the
//! worker stops taking commands until then.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};

use crate::catalogue::RrdId;
use crate::checkpoint::PAGE_IDS;
use crate::engine::{Reply, StoreError};
use crate::exclusive::Exclusive;
use crate::log::Position;
use crate::open_rows::ARENA_BYTES_MAX;
use crate::shard::checkpointer::Job;
use crate::shard::pages::{take_end, take_page};
use crate::shard::state::State;

/// Open rows may take this many bytes per RRD if that is more than the configured minimum: about ten rows of
/// W2, so that a million RRDs are not flushed row by row.
const OPEN_BYTES_PER_RRD: usize = 256;

/// With few RRDs, open rows are flushed from this many bytes per RRD on: about 2,000 rows of W1. A fetch
/// walks the chain of its RRD at about 5 ns per row; without this bound, the chains of 50 RRDs grew until a
/// fetch took 0.8 ms.
const CHAIN_BYTES_MAX: usize = 32 << 10;
/// Lower bound of that limit, so that a flush is worth its files.
const FLUSH_BYTES_MIN: usize = 1 << 20;

/// The stage of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No cycle in progress.
    Idle,
    /// The checkpointer is writing the arena; pages from this id on remain to be taken.
    Pages(RrdId),
    /// The checkpointer has everything.
    Waiting,
}

/// The worker's side of the cycle.
pub struct Cycle {
    jobs: SyncSender<Job>,
    stage: Stage,
    /// A job for which the checkpointer had no room.
    held: Option<Job>,
    /// Where a replay would start now.
    replay_from: Position,
    /// Where a replay will start once the current cycle has ended.
    began_at: Position,
    /// Answered at the end of the next cycle to start.
    requested: Exclusive<Vec<Reply<Result<(), StoreError>>>>,
    /// Answered at the end of the current cycle.
    waiting: Exclusive<Vec<Reply<Result<(), StoreError>>>>,
    /// Why the last cycle failed: the store is poisoned, or stops on a full disk.
    failure: Option<StoreError>,
    open_bytes_min: usize,
    log_bytes_max: u64,
}

impl Cycle {
    /// No cycle in progress; a replay would start at `replay_from`.
    pub fn new(
        jobs: SyncSender<Job>,
        replay_from: Position,
        open_bytes_min: usize,
        log_bytes_max: u64,
    ) -> Self {
        Cycle {
            jobs,
            stage: Stage::Idle,
            held: None,
            replay_from,
            began_at: replay_from,
            requested: Exclusive::default(),
            waiting: Exclusive::default(),
            failure: None,
            open_bytes_min,
            log_bytes_max,
        }
    }

    /// Bytes of open rows at which a cycle starts.
    pub fn open_bytes_max(&self, state: &State) -> usize {
        let count = state.catalogue.count() as usize;
        let few = (count * CHAIN_BYTES_MAX).max(FLUSH_BYTES_MIN);
        self.open_bytes_min.min(few).max(count * OPEN_BYTES_PER_RRD).min(ARENA_BYTES_MAX)
    }

    /// True while the arena is full and the previous cycle has not ended.
    pub fn is_overdue(&self, state: &State) -> bool {
        self.failure.is_none()
            && self.stage != Stage::Idle
            && state.open().bytes() >= self.open_bytes_max(state)
    }

    /// True when there is a page to take or a cycle to start, so an idle worker must not sleep.
    pub fn wants_turn(&mut self) -> bool {
        self.held.is_none() && matches!(self.stage, Stage::Pages(_))
            || self.stage == Stage::Idle && !self.requested.get_mut().is_empty()
    }

    /// True while a job is held back because the checkpointer's queue is full, which lasts some milliseconds.
    pub fn holds_job(&self) -> bool {
        self.held.is_some()
    }

    /// Why no cycle can end any more, if so.
    pub fn failure(&self) -> Option<&StoreError> {
        self.failure.as_ref()
    }

    /// Requests a cycle; `reply` is called when it has ended.
    pub fn ask(&mut self, reply: Reply<Result<(), StoreError>>) {
        self.requested.get_mut().push(reply);
    }

    fn is_due(&mut self, state: &State, position: Position) -> bool {
        !self.requested.get_mut().is_empty()
            || state.open().bytes() >= self.open_bytes_max(state)
            || self.log_bytes(position) >= self.log_bytes_max
    }

    /// Where a replay would start now.
    pub fn replay_from(&self) -> Position {
        self.replay_from
    }

    /// Bytes of log that a replay would read now.
    pub fn log_bytes(&self, position: Position) -> u64 {
        position.offset.saturating_sub(self.replay_from.offset)
    }

    /// Sends a job; false when the checkpointer's queue is full and the job is held.
    fn send(&mut self, job: Job) -> bool {
        match self.jobs.try_send(job) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => true,
            Err(TrySendError::Full(job)) => {
                self.held = Some(job);
                false
            }
        }
    }

    /// Fails all requested cycles that have not started.
    pub fn refuse_requested(&mut self, error: &StoreError) {
        for reply in self.requested.get_mut().drain(..) {
            reply(Err(error.clone()));
        }
    }

    /// Starts a cycle when one is due, and continues the current one: by one page when `is_busy`, else until
    /// the checkpointer's queue is full or everything is sent. `position` is the end of the log, which holds
    /// everything in the state; `now` is in seconds since the epoch.
    pub fn turn(
        &mut self,
        state: &mut State,
        position: Position,
        now: &dyn Fn() -> i64,
        is_busy: &dyn Fn() -> bool,
    ) {
        if let Some(job) = self.held.take()
            && !self.send(job)
        {
            // The checkpointer lags; an idle worker must not spin on it.
            std::thread::yield_now();
            return;
        }
        if self.stage == Stage::Idle && self.is_due(state, position) {
            self.start(state, position, now());
        }
        while self.held.is_none()
            && let Stage::Pages(first_id) = self.stage
        {
            let job = if first_id < state.catalogue.next_id() {
                self.stage = Stage::Pages(first_id.saturating_add(PAGE_IDS));
                Job::Page(take_page(state, first_id, position))
            } else {
                self.stage = Stage::Waiting;
                Job::End(take_end(state, position), position)
            };
            if !self.send(job) || is_busy() {
                return;
            }
        }
    }

    fn start(&mut self, state: &mut State, position: Position, seconds: i64) {
        let open_words = self.open_bytes_max(state) / 8;
        let arena = state.freeze(seconds, open_words);
        let groups = state.groups().iter().map(|group| Arc::clone(&group.group)).collect();
        self.began_at = position;
        self.waiting = std::mem::take(&mut self.requested);
        self.stage = Stage::Pages(0);
        self.send(Job::Begin { arena, groups, position });
    }

    /// Records how the current cycle ended. After a failure it stays as it is: its rows are in memory and in
    /// the log.
    pub fn end(&mut self, result: &Result<(), StoreError>) {
        if result.is_ok() {
            self.replay_from = self.began_at;
            self.stage = Stage::Idle;
        }
        self.failure = result.clone().err();
    }

    /// Answers the requests that waited for the cycle that ended.
    pub fn answer(&mut self, result: &Result<(), StoreError>) {
        for reply in self.waiting.get_mut().drain(..) {
            reply(result.clone());
        }
    }
}

#[cfg(test)]
mod tests;
