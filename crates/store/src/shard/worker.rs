//! The worker: the one thread that owns a shard's state and its log.
//!
//! A round takes what waits, applies it, writes one log record batch, and only then answers: what was
//! answered is in the log. Questions are answered every few updates. Under `sync = "always"` the
//! answers go on to the syncer, which gives them after its fsync.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rrd::definition::Definition;

use crate::direct::{UpdateReport, WrittenRow};
use crate::engine::{
    CreateRequest, FetchRequest, Listed, Reply, Snapshot, StoreError, UpdateBatch, UpdateFailure, UpdateLine,
};
use crate::log::catalogue as record;
use crate::log::parts::Piece;
use crate::log::{BODY_BYTES_MAX, Kind, LogError, LogWriter, Position, Stamp, UpdatesBody};
use crate::name::RrdName;
use crate::read::{FetchTicket, ReadTicket};
use crate::segments::SegmentSet;
use crate::shard::cycle::Cycle;
use crate::shard::message::{Change, Leftovers, Question, UpdateOutcome, refuse_all};
use crate::shard::state::State;
use crate::shard::syncer::SyncRequest;
use crate::shard::{Clock, Shared, or_end};

/// Changes taken in a round: about half a millisecond of work, so that their senders wait no longer.
const ROUND_BYTES: usize = 64 * 1024;
/// An update record is closed at this size: small enough to be one write, large enough to compress.
const RECORD_BYTES: usize = 256 * 1024;
/// Lines resolved, and their heads called from memory, before the first of them is applied. With a million
/// RRDs every name and head is a cache miss; sixteen at a time they overlap.
const RESOLVED_AHEAD: usize = 16;
/// How long an idle worker sleeps.
const IDLE: Duration = Duration::from_millis(500);
/// How long after a write that found the disk full the next attempt is made.
const FULL_RETRY: Duration = Duration::from_secs(1);

/// What most changes are answered with.
type Done = Result<(), StoreError>;

/// An answer that waits for the log.
struct Answer {
    /// The placeholder of a new RRD: it is written first.
    placeholder: Option<NewPlaceholder>,
    /// Gives it, or the failure that came between the change and the log.
    give: Reply<Done>,
}

struct NewPlaceholder {
    name: RrdName,
    /// Bytes its `.rrd` file would have.
    bytes: u64,
    /// A real `.rrd` file of the name may stay in its place: the RRD was imported from one.
    beside_file: bool,
}

/// The owner of a shard.
pub struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) state: State,
    pub(super) log: LogWriter,
    pub(super) cycle: Cycle,
    pub(super) segments: Arc<SegmentSet>,
    clock: Clock,
    updates: UpdatesBody,
    answers: Vec<Answer>,
    sequence: u64,
    /// Where the log ended when it was opened.
    opened_at: Position,
    /// Set while a commit waits for room on the disk.
    full_since: Option<Instant>,
}

/// The worker between its rounds. Whoever has a question looks there himself instead of waking the
/// worker, which costs two changes of threads and half of a short fetch; who has a small change has it done
/// there ([`Seat::lend`]). While a round is under way, and once the worker has ended, there is nobody to look at.
pub struct Seat(Mutex<Option<Worker>>);

impl Seat {
    /// With a worker that has not begun.
    pub fn new(worker: Worker) -> Self {
        Seat(Mutex::new(Some(worker)))
    }

    /// Looks at the worker. What is seen is in the log, and all that was answered is seen.
    pub fn look<T>(&self, look: impl FnOnce(&Worker) -> T) -> Option<T> {
        let seat = match self.0.try_lock() {
            Ok(seat) => seat,
            // Who only looks can break nothing; a worker that panics takes the process with it.
            Err(TryLockError::Poisoned(seat)) => seat.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        seat.as_ref().map(look)
    }

    /// Has the worker do a small change on the caller's thread while it rests and nothing waits for it: a client that
    /// waits for each answer then waits for no change of threads. Otherwise the change comes back.
    pub fn lend(&self, shared: &Shared, change: Change) -> Option<Change> {
        let Ok(mut seat) = self.0.try_lock() else { return Some(change) };
        let Some(worker) = &mut *seat else { return Some(change) };
        // Looked at under the lock: what the worker took from the mailbox it has done when it is idle.
        if !worker.takes_changes() || !shared.mailbox.is_idle() {
            return Some(change);
        }
        or_end(|| worker.round(&mut vec![change], &mut Vec::new()));
        if worker.patience().is_zero() || !worker.takes_changes() {
            shared.mailbox.nudge();
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, Option<Worker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the worker work until the mailbox is closed and empty.
    pub fn run(&self, shared: &Shared) {
        let (mut changes, mut questions) = (Vec::new(), Vec::new());
        let mut appetite = (0, Duration::ZERO);
        while shared.mailbox.take(&mut changes, &mut questions, appetite.0, appetite.1) {
            let mut seat = self.lock();
            let Some(worker) = &mut *seat else { return };
            worker.round(&mut changes, &mut questions);
            appetite = worker.appetite();
        }
        if let Some(worker) = self.lock().take() {
            worker.end();
        }
    }
}

impl Worker {
    /// A worker over a recovered state.
    pub fn new(shared: Arc<Shared>, state: State, log: LogWriter, cycle: Cycle, clock: Clock) -> Self {
        let segments = shared.files.segments();
        let opened_at = log.committed();
        Worker {
            shared,
            state,
            log,
            cycle,
            segments,
            clock,
            updates: UpdatesBody::default(),
            answers: Vec::new(),
            sequence: 0,
            opened_at,
            full_since: None,
        }
    }

    /// What the next round may take from the mailbox, and how long it waits for it.
    fn appetite(&self) -> (usize, Duration) {
        (if self.takes_changes() { ROUND_BYTES } else { 0 }, self.patience())
    }

    fn round(&mut self, changes: &mut Vec<Change>, questions: &mut Vec<Question>) {
        let busy = !changes.is_empty();
        for question in questions.drain(..) {
            self.answer(question);
        }
        for change in changes.drain(..) {
            self.apply(change);
            self.answer_waiting();
        }
        self.commit();
        self.turn_cycle(busy);
        self.publish();
    }

    fn end(mut self) {
        self.commit();
        // The rest of the work is the syncer's: it makes durable what was answered and then ends.
        self.shared.syncer.send(SyncRequest { answers: Vec::new() });
    }

    /// While memory is full of rows that no segment has yet, changes wait in the mailbox; unless the disk is
    /// full, when they are refused, or the shard stops: then nobody can tell any more that the cycle has ended,
    /// and no more wait than the mailbox holds.
    fn takes_changes(&self) -> bool {
        !self.cycle.is_overdue(&self.state)
            || self.refusal().is_some()
            || self.shared.stopping.load(Ordering::Relaxed)
    }

    fn patience(&self) -> Duration {
        if self.cycle.wants_turn() { Duration::ZERO } else { IDLE }
    }

    fn apply(&mut self, change: Change) {
        if let Some(error) = self.refusal() {
            change.refuse(error);
            return;
        }
        match change {
            Change::Update(batch, reply) => self.update(batch, reply),
            Change::UpdateListed(name, values, reply) => {
                let result = self.update_listed(&name, &values);
                self.answer_later(result, reply);
            }
            Change::Create(name, request, reply) => {
                let result = self.create(&name, request);
                self.answer_new(name, result, false, reply);
            }
            Change::Import(name, rrd, no_overwrite, reply) => {
                let result = self.import(&name, *rrd, no_overwrite);
                self.answer_new(name, result, true, reply);
            }
            Change::Tune(name, words, reply) => {
                let result = self.tune(&name, words);
                self.answer_later(result, reply);
            }
            Change::Delete(name, reply) => {
                let result = self.delete(&name);
                if result.is_ok() {
                    self.shared.remove_placeholder(&name);
                }
                self.answer_later(result, reply);
            }
            Change::Sync(reply) => {
                self.commit();
                self.shared.syncer.send(SyncRequest { answers: vec![reply] });
            }
            Change::Checkpoint(reply) => {
                self.commit();
                self.cycle.ask(reply);
            }
        }
    }

    /// Why no change can be taken now, if so.
    pub(super) fn refusal(&self) -> Option<StoreError> {
        if let Some(text) = self.shared.failure() {
            return Some(StoreError::Poisoned(text));
        }
        if let Some(error) = self.cycle.failure() {
            return Some(error.clone());
        }
        let keeper_full = || self.shared.keeper_full.load(Ordering::Relaxed);
        let no_room = self.full_since.is_some() || (self.cycle.is_overdue(&self.state) && keeper_full());
        no_room.then_some(StoreError::DiskFull)
    }

    fn update(&mut self, batch: UpdateBatch, reply: Reply<UpdateOutcome>) {
        let mut failures = Vec::new();
        let mut accepted_words = 0;
        let now = (self.clock)();
        let mut ids = [None; RESOLVED_AHEAD];
        for (ahead, lines) in batch.lines.chunks(RESOLVED_AHEAD).enumerate() {
            self.answer_waiting();
            for (id, line) in ids.iter_mut().zip(lines) {
                *id = self.state.catalogue.find(batch.name(line));
            }
            ids[..lines.len()].iter().flatten().for_each(|&id| self.state.touch(id));
            for (index, (line, id)) in lines.iter().zip(ids).enumerate() {
                let (accepted, error) = self.update_line(&batch, line, id, now);
                accepted_words += u64::from(accepted);
                if let Some(error) = error {
                    let line = (ahead * RESOLVED_AHEAD + index) as u32;
                    failures.push(UpdateFailure { line, accepted, error });
                }
            }
        }
        let stats = &self.shared.stats;
        stats.updates_received.fetch_add(batch.lines.len() as u64, Ordering::Relaxed);
        stats.updates_written.fetch_add((batch.lines.len() - failures.len()) as u64, Ordering::Relaxed);
        stats.data_sets_written.fetch_add(accepted_words, Ordering::Relaxed);
        stats.updates_refused.fetch_add(failures.len() as u64, Ordering::Relaxed);
        let give: Reply<Done> = Box::new(move |result| match result {
            Ok(()) => reply((batch, failures)),
            Err(error) => reply(refuse_all(batch, &error)),
        });
        self.answers.push(Answer { placeholder: None, give });
    }

    /// Applies words up to the first that is refused, and lists the rows they write.
    fn update_listed(&mut self, name: &RrdName, values: &[u8]) -> Result<Listed, StoreError> {
        let id = self.find(name)?;
        let now = (self.clock)();
        let definition = self.entry(id).definition;
        let definition = Some(Arc::clone(self.state.catalogue.definition(definition)));
        let mut report = UpdateReport { definition, ..UpdateReport::default() };
        let mut refused = None;
        for word in values.split(|&byte| byte == b' ') {
            match self.update_word(id, word, now, Some(&mut report.rows)) {
                Ok(()) => report.applied += 1,
                Err(error) => {
                    refused = Some(StoreError::Update(error));
                    break;
                }
            }
        }
        let stats = &self.shared.stats;
        stats.updates_received.fetch_add(1, Ordering::Relaxed);
        stats.updates_written.fetch_add(u64::from(refused.is_none()), Ordering::Relaxed);
        stats.data_sets_written.fetch_add(report.applied, Ordering::Relaxed);
        stats.updates_refused.fetch_add(u64::from(refused.is_some()), Ordering::Relaxed);
        Ok(Listed { report, refused })
    }

    /// Applies the words of a line up to the first that is refused; how many went in.
    fn update_line(
        &mut self,
        batch: &UpdateBatch,
        line: &UpdateLine,
        id: Option<u32>,
        now: rrd::time::Timestamp,
    ) -> (u32, Option<StoreError>) {
        let Some(id) = id else { return (0, Some(no_such_rrd(batch.name(line)))) };
        let mut accepted = 0;
        for word in batch.values(line).split(|&byte| byte == b' ') {
            match self.update_word(id, word, now, None) {
                Ok(()) => accepted += 1,
                Err(error) => return (accepted, Some(StoreError::Update(error))),
            }
        }
        (accepted, None)
    }

    #[inline]
    fn update_word(
        &mut self,
        id: u32,
        word: &[u8],
        now: rrd::time::Timestamp,
        listed: Option<&mut Vec<WrittenRow>>,
    ) -> Result<(), rrd::update::UpdateError> {
        let (time, values) = self.state.update_listed(id, word, now, listed)?;
        self.updates.push(id, time, values);
        if self.updates.bytes() >= RECORD_BYTES {
            self.close_updates();
        }
        Ok(())
    }

    /// Puts the updates gathered so far into the log's buffer as one record.
    fn close_updates(&mut self) {
        if self.updates.is_empty() {
            return;
        }
        let stamp = self.stamp();
        self.updates.finish(self.log.begin(Kind::Updates, stamp));
        // A record of updates is closed long before it is too large. Were it refused all the same, the state
        // would hold what the log does not: nothing more may be promised on top of it.
        if let Err(error) = self.log.end() {
            self.shared
                .poison(format!("cannot log updates: {error}; no more updates until the store is restarted"));
        }
    }

    /// Seconds since the epoch.
    pub(super) fn now_seconds(&self) -> i64 {
        (self.clock)().whole
    }

    fn now_millis(&self) -> i64 {
        let now = (self.clock)();
        now.whole * 1000 + i64::from(now.micros / 1000)
    }

    fn record(&mut self, kind: Kind, encode: impl FnOnce(&mut Vec<u8>)) -> Result<(), StoreError> {
        self.close_updates();
        let stamp = self.stamp();
        encode(self.log.begin(kind, stamp));
        self.log.end().map(|_| ()).map_err(|error| StoreError::Refused(error.to_string()))
    }

    /// Records of one process are numbered in a row; a replica that sees a number again passes over it.
    fn stamp(&mut self) -> Stamp {
        self.sequence += 1;
        Stamp { producer: 0, epoch: 0, sequence: self.sequence, time_ms: self.now_millis() }
    }

    /// Makes an RRD; returns the bytes its `.rrd` file would have.
    fn create(&mut self, name: &RrdName, request: CreateRequest) -> Result<u64, StoreError> {
        State::check_definition(&request.definition)?;
        self.make_room_for(name, request.no_overwrite)?;
        let id = self.state.catalogue.next_id();
        let CreateRequest { definition, start, .. } = request;
        let bytes = file_bytes(&definition);
        self.record(Kind::Create, |body| {
            record::Create::encode(body, id, name.as_bytes(), &definition, start);
        })?;
        self.state.create(id, name.as_bytes(), definition, start);
        Ok(bytes)
    }

    fn import(
        &mut self,
        name: &RrdName,
        rrd: rrd::content::Rrd,
        no_overwrite: bool,
    ) -> Result<u64, StoreError> {
        State::check_definition(&rrd.definition)?;
        let bytes = file_bytes(&rrd.definition);
        if no_overwrite && self.state.catalogue.find(name.as_bytes()).is_some() {
            return Err(StoreError::Exists(name.clone()));
        }
        let id = self.state.catalogue.next_id();
        // Before anything of that name goes: what cannot be logged is refused.
        let mut body = Vec::new();
        record::Import::encode(&mut body, id, name.as_bytes(), &rrd)
            .map_err(|bytes| too_large(name, bytes))?;
        self.make_room_for(name, no_overwrite)?;
        if body.len() <= BODY_BYTES_MAX {
            self.record(Kind::Import, |out| out.extend_from_slice(&body))?;
        } else {
            for piece in Piece::of(&body) {
                self.record(Kind::Part, |out| piece.encode(out))?;
            }
        }
        self.state.import(id, name.as_bytes(), rrd);
        Ok(bytes)
    }

    fn make_room_for(&mut self, name: &RrdName, no_overwrite: bool) -> Result<(), StoreError> {
        match self.state.catalogue.find(name.as_bytes()) {
            Some(_) if no_overwrite => Err(StoreError::Exists(name.clone())),
            Some(_) => self.delete(name),
            None => Ok(()),
        }
    }

    fn tune(&mut self, name: &RrdName, words: Vec<String>) -> Result<(), StoreError> {
        let texts: Vec<&str> = words.iter().map(String::as_str).collect();
        if rrd::tune::is_structural(&texts) {
            return self.rebuild(name, &texts);
        }
        let id = self.find(name)?;
        self.state.tune(id, &words)?;
        self.record(Kind::Tune, |body| record::Tune::encode(body, id, &words))
    }

    /// A tune that adds or drops sources or archives: the RRD is read whole and taken in again under a new
    /// id. Done here and now, so that no update falls between; it costs the others some milliseconds, and
    /// is rare.
    fn rebuild(&mut self, name: &RrdName, words: &[&str]) -> Result<(), StoreError> {
        let id = self.find(name)?;
        let mut rrd = ReadTicket::take(&self.state, &self.segments, id, &self.entry(id)).complete()?;
        rrd::tune::tune_content(&mut rrd, words).map_err(|error| StoreError::Refused(error.to_string()))?;
        self.import(name, rrd, false).map(|_| ())
    }

    fn delete(&mut self, name: &RrdName) -> Result<(), StoreError> {
        let id = self.find(name)?;
        self.record(Kind::Delete, |body| record::Delete::encode(body, id))?;
        self.state.delete(id);
        Ok(())
    }

    fn find(&self, name: &RrdName) -> Result<u32, StoreError> {
        self.state.catalogue.find(name.as_bytes()).ok_or_else(|| StoreError::NoSuchRrd(name.clone()))
    }

    fn answer_later<T: Send + 'static>(
        &mut self,
        result: Result<T, StoreError>,
        reply: Reply<Result<T, StoreError>>,
    ) {
        let give: Reply<Done> = Box::new(move |logged| reply(logged.and(result)));
        self.answers.push(Answer { placeholder: None, give });
    }

    fn answer_new(
        &mut self,
        name: RrdName,
        result: Result<u64, StoreError>,
        beside_file: bool,
        reply: Reply<Done>,
    ) {
        match result {
            Ok(bytes) => {
                let placeholder = Some(NewPlaceholder { name, bytes, beside_file });
                self.answers.push(Answer { placeholder, give: reply });
            }
            Err(error) => self.answer_later(Err(error), reply),
        }
    }

    /// Writes what was applied to the log, then answers.
    fn commit(&mut self) {
        if let Some(text) = self.shared.failure() {
            return self.refuse_answers(&StoreError::Poisoned(text));
        }
        if self.full_since.is_some_and(|since| since.elapsed() < FULL_RETRY) {
            return self.refuse_answers(&StoreError::DiskFull);
        }
        self.close_updates();
        if let Some(text) = self.shared.failure() {
            return self.refuse_answers(&StoreError::Poisoned(text));
        }
        match self.log.commit() {
            Ok(_) => {
                if self.full_since.take().is_some() {
                    super::keeper::tell_full(&self.shared.log_full, false, "");
                }
                self.give_answers();
            }
            Err(error) => {
                let error = self.commit_failed(&error);
                self.refuse_answers(&error);
            }
        }
    }

    fn commit_failed(&mut self, error: &LogError) -> StoreError {
        if matches!(error, LogError::Full(_)) {
            self.full_since = Some(Instant::now());
            super::keeper::tell_full(&self.shared.log_full, true, &error.to_string());
            return StoreError::DiskFull;
        }
        let text = format!("cannot write the log: {error}; no more updates until the store is restarted");
        self.shared.poison(text.clone());
        StoreError::Poisoned(text)
    }

    fn refuse_answers(&mut self, error: &StoreError) {
        for answer in self.answers.drain(..) {
            (answer.give)(Err(error.clone()));
        }
    }

    fn give_answers(&mut self) {
        let mut given: Vec<(Reply<Done>, Done)> = Vec::new();
        for Answer { placeholder, give } in std::mem::take(&mut self.answers) {
            let result = placeholder.map_or(Ok(()), |placeholder| self.place(&placeholder));
            if self.shared.options.sync_always {
                given.push((give, result));
            } else {
                give(result);
            }
        }
        if !given.is_empty() {
            let answer: Reply<Done> = Box::new(move |synced| {
                for (give, result) in given {
                    give(synced.clone().and(result));
                }
            });
            self.shared.syncer.send(SyncRequest { answers: vec![answer] });
        }
    }

    /// Writes the placeholder of a new RRD. Where it cannot stand the RRD goes again.
    fn place(
        &mut self,
        NewPlaceholder { name, bytes, beside_file }: &NewPlaceholder,
    ) -> Result<(), StoreError> {
        let result = self.shared.write_placeholder(name, *bytes, *beside_file);
        if result.is_err() {
            // Its record is committed with the next round; until then nothing was promised.
            let _ = self.delete(name);
        }
        result
    }

    /// Answers what was asked since the round began. Between any two updates the state is whole.
    #[inline]
    fn answer_waiting(&mut self) {
        if self.shared.mailbox.is_asked() {
            let mut questions = Vec::new();
            self.shared.mailbox.take_questions(&mut questions);
            for question in questions {
                self.answer(question);
            }
        }
    }

    fn answer(&mut self, question: Question) {
        match question {
            Question::Snapshot(name, reply) => reply(self.snapshot(&name)),
            Question::Fetch(name, request, reply) => reply(self.fetch(&name, request)),
            Question::Read(name, reply) => reply(self.read(&name)),
            Question::Names(prefix, reply) => {
                let catalogue = &self.state.catalogue;
                let names = catalogue.ids().map(|id| catalogue.name(id));
                reply(names.filter(|name| name.starts_with(&prefix)).map(<[u8]>::to_vec).collect());
            }
            Question::LastUpdates(first, count, reply) => {
                let last = first.saturating_add(count as u32).min(self.state.catalogue.next_id());
                let one = |id| {
                    let entry = self.state.catalogue.get(id)?;
                    Some((self.state.last_update(entry).whole, entry.group))
                };
                reply((first..last).map(one).collect());
            }
            Question::Groups(reply) => {
                reply(self.state.groups().iter().map(|group| Arc::clone(&group.group)).collect());
            }
            Question::CycleEnded(result, reply) => reply(self.end_cycle(result)),
            Question::SegmentsChanged(reply) => {
                reply(Leftovers { rows: None, segments: self.renew_segments() });
            }
        }
    }

    /// Takes the segments as they are now; returns those it had.
    pub(super) fn renew_segments(&mut self) -> Arc<SegmentSet> {
        std::mem::replace(&mut self.segments, self.shared.files.segments())
    }

    fn entry(&self, id: u32) -> crate::catalogue::Entry {
        match self.state.catalogue.get(id) {
            Some(entry) => *entry,
            None => unreachable!("ids come from the catalogue"),
        }
    }

    /// What memory has of a fetch, and where the rest is.
    pub fn fetch(&self, name: &RrdName, request: FetchRequest) -> Result<FetchTicket, StoreError> {
        let id = self.find(name)?;
        FetchTicket::take(&self.state, &self.segments, id, &self.entry(id), request)
    }

    /// What memory has of everything, and where the rest is.
    pub fn read(&self, name: &RrdName) -> Result<ReadTicket, StoreError> {
        let id = self.find(name)?;
        Ok(ReadTicket::take(&self.state, &self.segments, id, &self.entry(id)))
    }

    /// Definition and head.
    pub fn snapshot(&self, name: &RrdName) -> Result<Snapshot, StoreError> {
        let id = self.find(name)?;
        let entry = self.entry(id);
        let definition = Arc::clone(self.state.catalogue.definition(entry.definition));
        let live = self.state.live(id, &entry);
        let last_update = self.state.last_update(&entry).whole;
        let current_rows = super::current_rows(&definition, &live, last_update);
        Ok(Snapshot { definition, live, current_rows })
    }

    fn publish(&self) {
        let stats = &self.shared.stats;
        self.shared.refuses.store(self.refusal().is_some(), Ordering::Relaxed);
        stats
            .log_bytes_written
            .store(self.log.committed().offset.saturating_sub(self.opened_at.offset), Ordering::Relaxed);
        stats.log_bytes_live.store(self.cycle.log_bytes(self.position()), Ordering::Relaxed);
        stats.rrd_count.store(self.state.catalogue.count(), Ordering::Relaxed);
        let (heads, catalogue, open) = self.state.bytes();
        stats.memory_bytes.store((heads + catalogue + open) as u64, Ordering::Relaxed);
    }

    /// True while something applied waits for room in the log.
    pub(super) fn is_uncommitted(&self) -> bool {
        self.full_since.is_some()
    }

    /// Everything applied so far is below this position of the log.
    pub(super) fn position(&self) -> Position {
        self.log.position()
    }
}

/// Bytes of the `.rrd` file of an RRD, which its placeholder pretends to have.
fn file_bytes(definition: &Definition) -> u64 {
    rrd::codec::file::FileLayout::of(definition).file_bytes
}

/// Why an RRD cannot be taken in whole.
fn too_large(name: &RrdName, bytes: usize) -> StoreError {
    StoreError::Refused(format!(
        "cannot take in '{name}': its rows have {bytes} bytes, {} are the limit of one RRD; shorten its archives \
         first (rrdtool tune FILE RRA#INDEX:=ROWS)",
        record::RRD_BYTES_MAX
    ))
}

fn no_such_rrd(name: &[u8]) -> StoreError {
    match RrdName::new(name) {
        Ok(name) => StoreError::NoSuchRrd(name),
        Err(error) => StoreError::Refused(error.to_string()),
    }
}
