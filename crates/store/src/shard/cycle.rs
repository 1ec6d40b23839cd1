//! The cycle, on the worker's side: when to freeze the open rows, and the checkpoint page by page.
//!
//! A cycle starts when the open arena or the log has grown to its limit. It freezes the arena, and between rounds
//! hands the checkpointer pages of heads: one page a round under load, page after page when idle. The next cycle can
//! start when the checkpointer reports this one ended; if memory fills before that, the worker stops taking commands
//! until it does.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};

use crate::catalogue::RrdId;
use crate::checkpoint::{PAGE_IDS, take_end, take_page};
use crate::engine::{Reply, StoreError};
use crate::log::Position;
use crate::shard::checkpointer::Job;
use crate::shard::state::State;

/// Open rows may take this many bytes per RRD when that is more than the configured minimum: about ten rows of W2, so
/// that a million RRDs are not flushed row by row.
const OPEN_BYTES_PER_RRD: usize = 256;

/// Open rows of few RRDs are flushed from this many bytes per RRD on: about 2,000 rows of W1. A fetch walks the chain
/// of its RRD, at some 5 ns a row: without this bound, the chains of 50 RRDs grew until a fetch took 0.8 ms.
const CHAIN_BYTES_MAX: usize = 32 << 10;
/// But not below this, so that a flush is worth its files.
const FLUSH_BYTES_MIN: usize = 1 << 20;

/// How far the cycle has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing under way.
    Idle,
    /// The checkpointer writes the arena; pages from this id on are still to be taken.
    Pages(RrdId),
    /// The checkpointer has everything.
    Waiting,
}

/// The worker's part of the cycle.
pub struct Cycle {
    jobs: SyncSender<Job>,
    stage: Stage,
    /// A job the checkpointer had no room for yet.
    held: Option<Job>,
    /// Where replay would start now.
    replay_from: Position,
    /// Where replay would start once the cycle under way has ended.
    began_at: Position,
    /// To be answered by the next cycle that starts.
    asked: Vec<Reply<Result<(), StoreError>>>,
    /// To be answered by the cycle under way.
    waiting: Vec<Reply<Result<(), StoreError>>>,
    /// Why a cycle could not be ended: the store is poisoned, or stops on a full disk.
    failure: Option<StoreError>,
    open_bytes_min: usize,
    log_bytes_max: u64,
}

impl Cycle {
    /// Nothing under way; replay would start at `replay_from`.
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
            asked: Vec::new(),
            waiting: Vec::new(),
            failure: None,
            open_bytes_min,
            log_bytes_max,
        }
    }

    /// Bytes of open rows at which a cycle starts.
    pub fn open_bytes_max(&self, state: &State) -> usize {
        let count = state.catalogue.count() as usize;
        let few = (count * CHAIN_BYTES_MAX).max(FLUSH_BYTES_MIN);
        self.open_bytes_min.min(few).max(count * OPEN_BYTES_PER_RRD)
    }

    /// True while the arena is full and the cycle before has not ended.
    pub fn is_overdue(&self, state: &State) -> bool {
        self.failure.is_none()
            && self.stage != Stage::Idle
            && state.open().bytes() >= self.open_bytes_max(state)
    }

    /// True when there is a page to take or a cycle to start, so that an idle worker should not sleep.
    pub fn wants_turn(&self) -> bool {
        self.held.is_none() && matches!(self.stage, Stage::Pages(_))
            || !self.asked.is_empty() && self.stage == Stage::Idle
    }

    /// True while the checkpointer had no room for a job: it takes some milliseconds for those it has.
    pub fn holds_job(&self) -> bool {
        self.held.is_some()
    }

    /// Why no cycle can be ended any more, if so.
    pub fn failure(&self) -> Option<&StoreError> {
        self.failure.as_ref()
    }

    /// Asks for a cycle; answered when it has ended.
    pub fn ask(&mut self, reply: Reply<Result<(), StoreError>>) {
        self.asked.push(reply);
    }

    fn is_due(&self, state: &State, position: Position) -> bool {
        !self.asked.is_empty()
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

    /// Hands a job over; false when the checkpointer has no room and the job is held.
    fn send(&mut self, job: Job) -> bool {
        match self.jobs.try_send(job) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => true,
            Err(TrySendError::Full(job)) => {
                self.held = Some(job);
                false
            }
        }
    }

    /// Refuses the cycles asked for.
    pub fn refuse_asked(&mut self, error: &StoreError) {
        for reply in self.asked.drain(..) {
            reply(Err(error.clone()));
        }
    }

    /// Starts a cycle when one is due, and goes on with the one under way: one page when `is_busy`, else until the
    /// checkpointer has no room or everything is handed over. `position` is the end of the log, which holds all the
    /// state shows; `now` is in seconds since the epoch.
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
            // The checkpointer is late; an idle worker must not spin on it.
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
                Job::End(take_end(state, position))
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
        self.waiting = std::mem::take(&mut self.asked);
        self.stage = Stage::Pages(0);
        self.send(Job::Begin { arena, groups, position });
    }

    /// Notes how the cycle under way ended. A failed one stays as it is: its rows are in memory and in the log.
    pub fn end(&mut self, result: &Result<(), StoreError>) {
        if result.is_ok() {
            self.replay_from = self.began_at;
            self.stage = Stage::Idle;
        }
        self.failure = result.clone().err();
    }

    /// Answers those who asked for the cycle that ended.
    pub fn answer(&mut self, result: &Result<(), StoreError>) {
        for reply in self.waiting.drain(..) {
            reply(result.clone());
        }
    }
}

#[cfg(test)]
mod tests;
