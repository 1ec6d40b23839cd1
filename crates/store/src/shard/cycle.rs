//! The cycle, on the worker's side: when to freeze the open rows, and a page at a time of the checkpoint.
//!
//! A cycle starts when the open arena or the log has grown to its limit. The worker freezes the arena,
//! goes on at once, and between rounds hands the keeper a page of heads: one page a round under load,
//! page after page when idle. The next cycle can start when the keeper reports this one ended; if memory
//! fills before that, the worker stops taking changes until it does.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};

use crate::catalogue::RrdId;
use crate::checkpoint::{PAGE_IDS, take_end, take_page};
use crate::engine::{Reply, StoreError};
use crate::log::Position;
use crate::shard::keeper::Job;
use crate::shard::message::Leftovers;
use crate::shard::state::State;
use crate::shard::worker::Worker;

/// Open rows may take this many bytes an RRD, when that is more than the configured least: about ten rows
/// of W2, so that a million RRDs are not flushed a row at a time.
const OPEN_BYTES_PER_RRD: usize = 256;

/// Open rows of few RRDs are flushed from this many bytes an RRD on: about 2,000 rows of W1. A fetch walks the
/// chain of its RRD, at some 5 ns a row: without this bound, the chains of 50 RRDs grew until a fetch took 0.8 ms.
const CHAIN_BYTES_MAX: usize = 32 << 10;
/// But not below this, so that a flush is worth its files.
const FLUSH_BYTES_MIN: usize = 1 << 20;

/// Where the cycle stands.
enum Stage {
    /// Nothing under way.
    Idle,
    /// The keeper writes the arena; pages from this id on are still to be taken.
    Pages(RrdId),
    /// Everything is with the keeper.
    Waiting,
}

/// The worker's part of the cycle.
pub struct Cycle {
    jobs: SyncSender<Job>,
    stage: Stage,
    /// A job the keeper had no room for yet.
    held: Option<Job>,
    /// Where replay would start now.
    kept_from: Position,
    starts_at: Position,
    /// Answered when a cycle that starts after the question has ended.
    asked: Vec<Reply<Result<(), StoreError>>>,
    /// A cycle that could not be ended: the store is poisoned, or stops on a full disk.
    failure: Option<StoreError>,
    answered_by_this: Vec<Reply<Result<(), StoreError>>>,
    open_bytes_min: usize,
    log_bytes_max: u64,
}

impl Cycle {
    /// Nothing under way; replay would start at `kept_from`.
    pub fn new(
        jobs: SyncSender<Job>,
        kept_from: Position,
        open_bytes_min: usize,
        log_bytes_max: u64,
    ) -> Self {
        Cycle {
            jobs,
            stage: Stage::Idle,
            held: None,
            kept_from,
            starts_at: kept_from,
            asked: Vec::new(),
            failure: None,
            answered_by_this: Vec::new(),
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
            && !matches!(self.stage, Stage::Idle)
            && state.open().bytes() >= self.open_bytes_max(state)
    }

    /// True when there is a page to take or a job to hand over, so that an idle worker should not sleep.
    pub fn wants_turn(&self) -> bool {
        self.held.is_none() && matches!(self.stage, Stage::Pages(_))
            || !self.asked.is_empty() && matches!(self.stage, Stage::Idle)
    }

    /// Why no cycle can be ended any more, if so.
    pub fn failure(&self) -> Option<&StoreError> {
        self.failure.as_ref()
    }

    /// Wants a cycle; answered when it has ended.
    pub fn ask(&mut self, reply: Reply<Result<(), StoreError>>) {
        self.asked.push(reply);
    }

    fn is_due(&self, state: &State, position: Position) -> bool {
        !self.asked.is_empty()
            || state.open().bytes() >= self.open_bytes_max(state)
            || self.log_bytes(position) >= self.log_bytes_max
    }

    /// Bytes of log that a replay would read now.
    pub fn log_bytes(&self, position: Position) -> u64 {
        position.offset.saturating_sub(self.kept_from.offset)
    }

    /// Hands a job over; false when the keeper has no room, and the job is held.
    fn send(&mut self, job: Job) -> bool {
        match self.jobs.try_send(job) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => true,
            Err(TrySendError::Full(job)) => {
                self.held = Some(job);
                false
            }
        }
    }
}

impl Worker {
    /// Does what the cycle needs after a round. `busy`: clients are waiting, so one page is enough.
    pub(super) fn turn_cycle(&mut self, busy: bool) {
        if let Some(error) = self.refusal() {
            for reply in self.cycle.asked.drain(..) {
                reply(Err(error.clone()));
            }
            // A page must show nothing that the log does not hold.
            if error != StoreError::DiskFull || self.is_uncommitted() {
                return;
            }
        }
        if let Some(job) = self.cycle.held.take()
            && !self.cycle.send(job)
        {
            // The keeper is behind; an idle worker must not spin on it.
            std::thread::yield_now();
            return;
        }
        if matches!(self.cycle.stage, Stage::Idle) && self.cycle.is_due(&self.state, self.position()) {
            self.start_cycle();
        }
        if self.cycle.held.is_some() {
            return;
        }
        loop {
            let Stage::Pages(first_id) = self.cycle.stage else { return };
            let position = self.position();
            let job = if first_id < self.state.catalogue.next_id() {
                self.cycle.stage = Stage::Pages(first_id.saturating_add(PAGE_IDS));
                Job::Page(take_page(&self.state, first_id, position))
            } else {
                self.cycle.stage = Stage::Waiting;
                Job::End(take_end(&self.state, position))
            };
            if !self.cycle.send(job) || busy || self.shared.mailbox.is_waiting() {
                return;
            }
        }
    }

    fn start_cycle(&mut self) {
        let position = self.position();
        let open_words = self.cycle.open_bytes_max(&self.state) / 8;
        let seconds = self.now_seconds();
        let arena = self.state.freeze(seconds, open_words);
        let groups = self.state.groups().iter().map(|group| Arc::clone(&group.group)).collect();
        self.cycle.starts_at = position;
        self.cycle.answered_by_this = std::mem::take(&mut self.cycle.asked);
        self.cycle.stage = Stage::Pages(0);
        self.cycle.send(Job::Begin { arena, groups, position });
    }

    /// The keeper has ended the cycle. Returns what is needed no longer.
    pub(super) fn end_cycle(&mut self, result: Result<(), StoreError>) -> Leftovers {
        let mut leftovers = Leftovers { rows: None, segments: Arc::clone(&self.segments) };
        if result.is_ok() {
            leftovers = Leftovers { segments: self.renew_segments(), rows: self.state.take_frozen() };
            self.cycle.kept_from = self.cycle.starts_at;
            self.cycle.stage = Stage::Idle;
            if let Err(error) = self.log.release_before(self.cycle.kept_from) {
                tracing::warn!(%error, "cannot remove log that is no longer needed; it goes at the next start");
            }
            self.shared.merger.wake();
        }
        // A failed cycle leaves its stage as it is: its rows are in memory and in the log.
        self.cycle.failure = result.clone().err();
        for reply in self.cycle.answered_by_this.drain(..) {
            reply(result.clone());
        }
        leftovers
    }
}
