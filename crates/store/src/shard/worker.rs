//! The worker of a shard: its state, its log, and the rounds that change them.
//!
//! A round takes what is queued, applies it, commits it to the log in one write, and only then answers: what
//! was answered is in the log. Queries and events are handled every few updates. Under `sync = "always"` the
//! answers go on to the syncer, which gives them after its fsync.
//!
//! Only one thread at a time runs a round: the shard's own or, for a small command, the caller's
//! ([`WorkerSlot`]).

mod answers;
mod catalogue;
mod replica;
mod slot;
mod updates;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub use replica::{Survey, survey};
pub use slot::WorkerSlot;

use self::answers::Answer;
use disk::Shortage;

use crate::catalogue::RrdId;
use crate::engine::{CreateRequest, Reply, StoreError};
use crate::exclusive::Exclusive;
use crate::log::{Kind, LogWriter, Position, Stamp, UpdatesBody};
use crate::name::RrdName;
use crate::replication::Role;
use crate::segments::SegmentSet;
use crate::shard::cycle::Cycle;
use crate::shard::message::{Command, Event, Priority, Query, Retired};
use crate::shard::recovery::{Chunk, Progress, Recovery};
use crate::shard::state::State;
use crate::shard::syncer::SyncRequest;
use crate::shard::view::View;
use crate::shard::{Clock, Shared};

/// Bytes of commands per round: about half a millisecond of work, which is how long their senders wait.
const ROUND_BYTES: usize = 64 * 1024;
/// How long an idle worker sleeps.
const IDLE: Duration = Duration::from_millis(500);
/// How long it sleeps while the checkpointer's queue is full: less than the checkpointer needs for what is
/// queued.
const HELD_RETRY: Duration = Duration::from_millis(1);

/// The owner of a shard's state and log.
pub struct Worker {
    shared: Arc<Shared>,
    state: State,
    log: LogWriter,
    cycle: Cycle,
    /// Present until the whole log has been replayed.
    recovery: Option<Recovery>,
    /// Queries that wait for the end of the recovery.
    deferred: Exclusive<Vec<Query>>,
    segments: Arc<SegmentSet>,
    clock: Clock,
    updates: UpdatesBody,
    /// Reused memory for the updates of a primary's record.
    replicated: Chunk,
    answers: Exclusive<Vec<Answer>>,
    /// The first RRD of the next check of copies.
    next_check: RrdId,
    /// The RRD that is probably updated next.
    next_id: RrdId,
    sequence: u64,
    /// Where the log ended when it was opened.
    opened_at: Position,
    /// Set while a commit waits out a shortage.
    short_since: Option<(Instant, Shortage)>,
    /// The state's share of what the whole store is known to take in memory.
    memory_counted: u64,
}

impl Worker {
    /// A worker whose state `recovery` still has to bring up to date.
    pub fn new(
        shared: Arc<Shared>,
        state: State,
        log: LogWriter,
        cycle: Cycle,
        recovery: Recovery,
        clock: Clock,
    ) -> Self {
        let segments = shared.files.segments();
        let opened_at = log.committed();
        Worker {
            shared,
            state,
            log,
            cycle,
            recovery: Some(recovery),
            deferred: Exclusive::default(),
            segments,
            clock,
            updates: UpdatesBody::default(),
            replicated: Chunk::default(),
            answers: Exclusive::default(),
            next_check: 0,
            next_id: 0,
            sequence: 0,
            opened_at,
            short_since: None,
            memory_counted: 0,
        }
    }

    /// A view of the shard's memory.
    fn view(&self) -> View<'_> {
        View { state: &self.state, segments: &self.segments, log_end: self.log.position() }
    }

    /// Bytes of commands the next round may take.
    fn budget(&self) -> usize {
        if self.takes_commands() { ROUND_BYTES } else { 0 }
    }

    /// How long the next round may wait for work.
    fn timeout(&mut self) -> Duration {
        let recovers = self.recovery.as_ref().is_some_and(Recovery::is_running);
        if recovers || self.cycle.wants_turn() {
            Duration::ZERO
        } else if self.cycle.holds_job() {
            HELD_RETRY
        } else {
            IDLE
        }
    }

    /// While the log is replayed, or memory is full of rows that no segment holds yet, commands wait in the
    /// mailbox. There are two exceptions: when the disk is full, commands are refused; and when the shard
    /// stops, no event would end the cycle any more, while the mailbox is already closed to new commands.
    fn takes_commands(&self) -> bool {
        (self.recovery.is_none() && !self.cycle.is_overdue(&self.state))
            || self.refusal().is_some()
            || self.shared.stopping.load(Ordering::Relaxed)
    }

    fn round(&mut self, commands: &mut Vec<Command>, priority: &mut Vec<Priority>) {
        let busy = !commands.is_empty();
        for message in priority.drain(..) {
            self.handle(message);
        }
        self.recover(busy);
        for command in commands.drain(..) {
            self.apply(command);
            self.take_priority();
        }
        self.commit();
        self.turn_cycle(busy);
        self.publish();
    }

    /// Continues the recovery; to its end when commands are to follow.
    fn recover(&mut self, to_end: bool) {
        while let Some(recovery) = self.recovery.as_mut().filter(|recovery| recovery.is_running()) {
            match recovery.apply_some(&mut self.state) {
                Ok(Progress::More) if to_end => {}
                Ok(Progress::More) => return,
                Ok(Progress::Done { refused }) => self.end_recovery(refused),
                Err(error) => self.shared.poison(format!(
                    "cannot replay the log: {error}; nothing can be read or updated until the store is restarted"
                )),
            }
        }
    }

    fn end_recovery(&mut self, refused: u64) {
        if self.recovery.take().is_some_and(|recovery| recovery.is_damaged()) {
            // From then on the damaged log is not needed, and the next start has nothing to report.
            self.cycle.ask(Box::new(|_| {}));
        }
        self.shared.stats.replay_refused.store(refused, Ordering::Relaxed);
        if refused > 0 {
            tracing::error!(refused, "updates in the log could not be applied");
        }
        for query in std::mem::take(self.deferred.get_mut()) {
            query(&self.view());
        }
    }

    fn end(mut self) {
        self.commit();
        // The syncer makes durable what was answered, then ends.
        self.shared.syncer.send(SyncRequest { answers: Vec::new() });
    }

    fn apply(&mut self, command: Command) {
        let refusal = self.refusal().or_else(|| self.state.open().check_room().err());
        if let Some(error) = refusal.or_else(|| self.refusal_of_role(&command)) {
            command.refuse(error);
            return;
        }
        match command {
            Command::Replicate(from, records, reply) => {
                let result = self.replicate(from, &records);
                self.answer_later(result, reply);
            }
            Command::Update(batch, reply) => self.update(batch, reply),
            Command::Updatev(name, values, reply) => {
                let result = self.updatev(&name, &values);
                self.answer_later(result, reply);
            }
            Command::Create(name, request, beside_file, reply) => {
                let CreateRequest { definition, no_overwrite, .. } = &request;
                let ready = self.replace_placeholder(&name, definition, *no_overwrite, beside_file);
                let result = ready.and_then(|()| self.create(&name, request));
                self.answer_new(name, result, beside_file, reply);
            }
            Command::Import(name, rrd, no_overwrite, reply) => {
                let ready = self.replace_placeholder(&name, &rrd.definition, no_overwrite, true);
                let result = ready.and_then(|()| self.import(&name, *rrd, no_overwrite));
                self.answer_new(name, result, true, reply);
            }
            Command::Tune(name, words, reply) => self.tune(name, words, reply),
            Command::IfUnchanged(name, version, command, reply) => {
                self.apply_if_unchanged(name, version, *command, reply);
            }
            Command::Delete(name, reply) => {
                let result = self.delete(&name);
                if result.is_ok() {
                    self.shared.remove_placeholder(&name);
                }
                self.answer_later(result, reply);
            }
            Command::Rename(rename, reply) => {
                let result = self.rename(rename);
                self.answer_later(result, reply);
            }
            Command::Stream(name, position, reply) => self.advance_stream(&name, position, reply),
            Command::Check(reply) => {
                let result = self.check_copies();
                self.answer_later(result, reply);
            }
            Command::RowCheck(number, ids, reply) => {
                let begun = self.begin_row_check(number, ids);
                self.answer_later(begun, reply);
            }
            Command::Sync(reply) => {
                self.commit();
                let reply = if self.shared.waits_for_replica() { self.after_replica(reply) } else { reply };
                self.shared.syncer.send(SyncRequest { answers: vec![reply] });
            }
            Command::Checkpoint(reply) => {
                self.commit();
                self.cycle.ask(reply);
            }
        }
    }

    /// Applies a command if the RRD is of this version, and tells the one that follows.
    fn apply_if_unchanged(&mut self, name: RrdName, version: u64, command: Command, reply: Reply<u64>) {
        match self.view().version(&name) {
            Ok(now) if now == version => {
                self.apply(command);
                if let Ok(next) = self.view().version(&name) {
                    reply(next);
                }
            }
            Ok(_) => command.refuse(StoreError::Changed(name)),
            Err(error) => command.refuse(error),
        }
    }

    /// Why a store of this role does not take a command, if so.
    #[inline]
    fn refusal_of_role(&self, command: &Command) -> Option<StoreError> {
        let role = self.shared.options.role.get();
        match (role, command) {
            (_, Command::Sync(_) | Command::Checkpoint(_)) | (Role::Follower, Command::Replicate(..)) => None,
            (Role::Primary, Command::Replicate(..)) => {
                Some(StoreError::Replica("this server is a primary, and follows no other one".into()))
            }
            _ => role.refusal().map(StoreError::NotPrimary),
        }
    }

    /// Why no change can be accepted now, if so.
    fn refusal(&self) -> Option<StoreError> {
        if let Some(text) = self.shared.failure() {
            return Some(StoreError::Poisoned(text));
        }
        if let Some(error) = self.cycle.failure() {
            return Some(error.clone());
        }
        let of_log = self.short_since.map(|(_, shortage)| shortage);
        let of_checkpointer = || match self.cycle.is_overdue(&self.state) {
            true => self.shared.checkpointer_waits.shortage(),
            false => None,
        };
        of_log.or_else(of_checkpointer).map(StoreError::Short)
    }

    /// Handles priority messages that have arrived since the round began. Between any two updates the state
    /// is consistent.
    #[inline]
    fn take_priority(&mut self) {
        if self.shared.mailbox.has_priority() {
            let mut priority = Vec::new();
            self.shared.mailbox.take_priority(&mut priority);
            for message in priority {
                self.handle(message);
            }
        }
    }

    fn handle(&mut self, message: Priority) {
        match message {
            Priority::Query { about, look } => self.answer(about.as_ref(), look),
            Priority::Event(Event::CycleEnded(result, reply)) => reply(self.end_cycle(result)),
            Priority::Event(Event::SegmentsChanged(reply)) => {
                reply(Retired { rows: None, segments: self.renew_segments() });
            }
        }
    }

    /// Answers a query. During the recovery, the RRD it is about is first brought up to date.
    fn answer(&mut self, about: Option<&RrdName>, query: Query) {
        let Some(recovery) = &mut self.recovery else { return query(&self.view()) };
        let id = about.and_then(|name| self.state.catalogue.find(name.as_bytes()));
        match id.map_or(Ok(true), |id| recovery.advance(&mut self.state, id)) {
            Ok(true) => query(&self.view()),
            Ok(false) => self.deferred.get_mut().push(query),
            // Dropping a query fails it at its sender: no answer is better than an outdated one.
            Err(error) => self.shared.poison(format!(
                "cannot replay the log: {error}; nothing can be read or updated until the store is restarted"
            )),
        }
    }

    /// Switches to the current segments; returns the previous set.
    fn renew_segments(&mut self) -> Arc<SegmentSet> {
        std::mem::replace(&mut self.segments, self.shared.files.segments())
    }

    /// Advances the checkpoint cycle after a round. `busy`: the round had commands, so more may follow.
    fn turn_cycle(&mut self, busy: bool) {
        if self.recovery.is_some() {
            return;
        }
        if let Some(error) = self.refusal() {
            self.cycle.refuse_requested(&error);
            // A page must not contain anything that the log does not.
            if !matches!(error, StoreError::Short(_)) || self.short_since.is_some() {
                return;
            }
        }
        let position = self.log.position();
        let (mailbox, clock) = (&self.shared.mailbox, &self.clock);
        self.cycle.turn(&mut self.state, position, &|| clock().whole, &|| busy || mailbox.is_waiting());
    }

    /// Completes the cycle that the checkpointer has ended. Returns what is no longer needed.
    fn end_cycle(&mut self, result: Result<(), StoreError>) -> Retired {
        let mut retired = Retired { rows: None, segments: Arc::clone(&self.segments) };
        if result.is_ok() {
            retired = Retired { segments: self.renew_segments(), rows: self.state.take_frozen() };
        }
        self.cycle.end(&result);
        if result.is_ok() {
            if let Err(error) =
                self.log.release_before(self.shared.files.log_kept_from(self.cycle.replay_from()))
            {
                tracing::warn!(%error, "cannot remove log that is no longer needed; it goes at the next start");
            }
            self.shared.compactor.wake();
        }
        self.cycle.answer(&result);
        retired
    }

    /// Appends one record to the log, of any kind but updates.
    fn record(&mut self, kind: Kind, encode: impl FnOnce(&mut Vec<u8>)) -> Result<(), StoreError> {
        self.close_updates();
        let stamp = self.stamp();
        encode(self.log.begin(kind, stamp));
        self.log.end().map(|_| ()).map_err(|error| StoreError::TooLarge(error.to_string()))
    }

    /// Numbers the records of one process consecutively; a replica skips a record whose number it has seen.
    fn stamp(&mut self) -> Stamp {
        self.sequence += 1;
        let now = (self.clock)();
        let time_ms = now.whole * 1000 + i64::from(now.micros / 1000);
        let epoch = self.shared.options.role.epoch();
        Stamp { producer: 0, epoch, sequence: self.sequence, time_ms }
    }

    /// Tells the other shards what the RRDs of this one take in memory.
    fn count_memory(&mut self) {
        let now = self.state.live_bytes();
        if now != self.memory_counted {
            self.shared.options.memory.count(self.memory_counted, now);
            self.memory_counted = now;
        }
    }

    /// Publishes the figures that commands change. Called before a command is answered, so that a client that was answered finds
    /// its change counted.
    fn publish_changes(&self) {
        let stats = &self.shared.stats;
        let log_bytes_written = self.log.committed().offset.saturating_sub(self.opened_at.offset);
        stats.log_bytes_written.store(log_bytes_written, Ordering::Relaxed);
        stats.rrd_count.store(self.state.catalogue.count(), Ordering::Relaxed);
        stats.name_changes.store(self.state.catalogue.name_changes(), Ordering::Relaxed);
    }

    /// Publishes all figures, at the end of a round.
    fn publish(&mut self) {
        self.count_memory();
        self.publish_changes();
        let stats = &self.shared.stats;
        self.shared.refuses.store(self.refusal().is_some(), Ordering::Relaxed);
        stats.log_bytes_live.store(self.cycle.log_bytes(self.log.position()), Ordering::Relaxed);
        let (heads, catalogue, open) = self.state.bytes();
        stats.memory_bytes.store((heads + catalogue + open) as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
