//! Accepts updates: one thread per shard validates and buffers them, and answers when the journal holds them.
//!
//! A round takes what is queued in the mailbox, appends it to the buffers, writes one journal frame and only
//! then answers. If the journal fails, the buffers are restored. Cost per update: one hash, one lookup, two
//! uncontended locks, and copying its bytes twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rrd::reading::parse_argument;
use rrd::time::Timestamp;
use rrd::update::check;

use crate::engine::{Reply, StoreError, UpdateBatch, UpdateFailure, UpdateLine};
use crate::files::buffer::{Buffer, Entry};
use crate::files::journal::{Frame, Record, UPDATES_BYTES_MAX};
use crate::files::read::{Timeout, load_header};
use crate::files::shared::{Shared, lock};
use crate::files::updates::{self, PendingUpdate};
use crate::name::{NameError, RrdName};
use rrd_file::apply::Workspace;

/// Text per round: about a thousand lines, so that the first of them does not wait long.
const ROUND_BYTES: usize = 64 * 1024;
/// The most bytes buffered for one RRD; reached only when its file cannot be written for a long time.
const BUFFER_BYTES_MAX: usize = 16 << 20;
/// How long to wait for buffered updates to be written before accepting more regardless.
const ROOM_WAIT: Duration = Duration::from_secs(10);

/// A batch on its way through the shards.
pub struct UpdateJob {
    batch: UpdateBatch,
    /// Shards that have not finished it yet.
    shards_left: AtomicUsize,
    failures: Mutex<Vec<UpdateFailure>>,
    reply: Mutex<Option<Reply<Vec<UpdateFailure>>>>,
}

impl UpdateJob {
    /// A batch with lines for `shards` shards.
    pub fn new(batch: UpdateBatch, shards: usize, reply: Reply<Vec<UpdateFailure>>) -> Self {
        UpdateJob {
            batch,
            shards_left: AtomicUsize::new(shards),
            failures: Mutex::new(Vec::new()),
            reply: Mutex::new(Some(reply)),
        }
    }

    /// Reports that one shard has finished; the last one answers.
    pub fn finish_part(&self) {
        if self.shards_left.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(reply) = lock(&self.reply).take()
        {
            let mut failures = std::mem::take(&mut *lock(&self.failures));
            failures.sort_by_key(|failure| failure.line);
            reply(failures);
        }
    }

    /// Refuses every line.
    pub fn refuse(self, error: &StoreError) {
        let fail = |line| UpdateFailure { line, accepted: 0, error: error.clone() };
        if let Some(reply) = lock(&self.reply).take() {
            reply((0..self.batch.lines.len() as u32).map(fail).collect());
        }
    }
}

/// A line of a batch: its index, and the hash of its name.
pub type JobLine = (u32, u64);

/// A task for a shard's thread.
pub type Change = Box<dyn FnOnce(&Shared, &mut Workspace) + Send>;

/// A message to a shard's thread.
pub enum Message {
    /// The shard's lines of a batch.
    Update(Arc<UpdateJob>, Vec<JobLine>),
    /// A task that must keep its order relative to updates.
    Change(Change),
}

/// The thread of one shard.
pub struct Acceptor {
    shared: Arc<Shared>,
    shard: usize,
    frame: Frame,
    undo: Vec<Undo>,
    done: Vec<Arc<UpdateJob>>,
    work: Workspace,
}

/// How to undo one accepted line.
struct Undo {
    job: usize,
    line: u32,
    entry: Arc<Entry>,
    epoch: u32,
    bytes: usize,
    count: u32,
    last: Option<Timestamp>,
}

impl Acceptor {
    /// The thread of shard number `shard`.
    pub fn new(shared: Arc<Shared>, shard: usize) -> Self {
        Acceptor {
            shared,
            shard,
            frame: Frame::default(),
            undo: Vec::new(),
            done: Vec::new(),
            work: Workspace::default(),
        }
    }

    /// Runs until the mailbox is closed and empty.
    pub fn run(mut self, mailbox: &Receiver<Message>) {
        while let Ok(first) = mailbox.recv() {
            let mut bytes = 0;
            let mut next = Some(first);
            while let Some(message) = next {
                match message {
                    Message::Update(job, lines) => {
                        bytes += job.batch.text.len() * lines.len() / job.batch.lines.len().max(1);
                        self.take(job, &lines);
                    }
                    Message::Change(change) => {
                        self.finish_round();
                        change(&self.shared, &mut self.work);
                    }
                }
                next = if bytes < ROUND_BYTES { mailbox.try_recv().ok() } else { None };
            }
            self.finish_round();
            self.wait_for_room();
        }
    }

    /// Validates and buffers the shard's lines of a batch.
    fn take(&mut self, job: Arc<UpdateJob>, lines: &[JobLine]) {
        let now = now();
        let now_seconds = self.shared.now_seconds();
        let mut values = Vec::new();
        let sound = self.shared.check_sound();
        for &(index, hash) in lines {
            let line = &job.batch.lines[index as usize];
            let name = job.batch.name(line);
            self.shared.counters.updates_received.fetch_add(1, Ordering::Relaxed);
            let taken = match &sound {
                Ok(()) => self.line(&job.batch, index, line, (hash, name), now, now_seconds, &mut values),
                Err(error) => Err((0, error.clone())),
            };
            if let Err((accepted, error)) = taken {
                self.shared.counters.updates_refused.fetch_add(1, Ordering::Relaxed);
                lock(&job.failures).push(UpdateFailure { line: index, accepted, error });
            }
        }
        self.done.push(job);
    }

    #[expect(clippy::too_many_arguments, reason = "split off only for the sake of its early returns")]
    fn line<'w>(
        &mut self,
        batch: &'w UpdateBatch,
        index: u32,
        line: &UpdateLine,
        (hash, name): (u64, &[u8]),
        now: Timestamp,
        now_seconds: u32,
        values: &mut Vec<&'w [u8]>,
    ) -> Result<(), (u32, StoreError)> {
        let shared = Arc::clone(&self.shared);
        let shard = &shared.shards[self.shard];
        let entry = self.find(hash, name).map_err(|error| (0, error))?;
        let mut buffer = entry.lock();
        if buffer.removed {
            // Removed between the lookup and the lock; the name is free again.
            drop(buffer);
            return self.line(batch, index, line, (hash, name), now, now_seconds, values);
        }
        prepare(&shared, &entry, &mut buffer, &mut self.work).map_err(|error| (0, error))?;
        let (bytes, count, last) = (buffer.updates.len(), buffer.update_count, buffer.last);
        let result = take_words(batch, line, &mut buffer, now, values);
        if buffer.updates.len() > bytes {
            if bytes == 0 {
                buffer.generation = shard.generation();
            }
            self.frame.put(Record::Update { name, updates: &buffer.updates[bytes..] });
            let added = buffer.updates.len() - bytes;
            shared.counters.waiting_bytes.fetch_add(added as u64, Ordering::Relaxed);
            let epoch = buffer.epoch;
            let job = self.done.len();
            self.undo.push(Undo { job, line: index, entry: Arc::clone(&entry), epoch, bytes, count, last });
            if buffer.due_seconds == 0 {
                buffer.due_seconds = shared.due_after(now_seconds, &entry);
            } else if now_seconds >= buffer.due_seconds {
                shared.queue.push(&entry, &mut buffer);
            }
        }
        result.map_err(|error| (count_since(&buffer, count), error))
    }

    fn find(&self, hash: u64, name: &[u8]) -> Result<Arc<Entry>, StoreError> {
        let mut unsound = None;
        let make = || match RrdName::new(name) {
            Ok(name) => Some(Entry::new(name)),
            Err(error) => {
                unsound = Some(error);
                None
            }
        };
        let found = self.shared.shards[self.shard].table.find(hash, name, make);
        found.ok_or_else(|| StoreError::Name(unsound.unwrap_or(NameError::Empty)))
    }

    /// Writes the journal and answers.
    fn finish_round(&mut self) {
        if self.done.is_empty() {
            return;
        }
        let shared = Arc::clone(&self.shared);
        if let Err(error) = shared.commit(&shared.shards[self.shard], &mut self.frame) {
            self.roll_back(&error);
        }
        self.undo.clear();
        self.done.drain(..).for_each(|job| job.finish_part());
    }

    /// The journal holds nothing of this round, so no buffer may keep it and every client must be told.
    fn roll_back(&mut self, error: &StoreError) {
        for undo in self.undo.drain(..).rev() {
            let mut buffer = undo.entry.lock();
            // If it has reached the file meanwhile, it is safe, yet the client gets the error.
            if buffer.epoch == undo.epoch && !buffer.removed {
                let freed = buffer.updates.len().saturating_sub(undo.bytes);
                self.shared.counters.waiting_bytes.fetch_sub(freed as u64, Ordering::Relaxed);
                buffer.updates.truncate(undo.bytes);
                (buffer.update_count, buffer.last) = (undo.count, undo.last);
            }
            drop(buffer);
            let mut failures = lock(&self.done[undo.job].failures);
            failures.retain(|failure| failure.line != undo.line);
            failures.push(UpdateFailure { line: undo.line, accepted: 0, error: error.clone() });
        }
    }

    /// Back-pressure: when too much is buffered, queues everything for writing and waits.
    fn wait_for_room(&self) {
        let limit = self.shared.options.waiting_bytes_max;
        if self.shared.counters.waiting_bytes.load(Ordering::Relaxed) <= limit {
            return;
        }
        crate::files::write::push_all(&self.shared, u64::MAX);
        let waiting = || self.shared.counters.waiting_bytes.load(Ordering::Relaxed);
        self.shared.queue.wait_until(ROOM_WAIT, || waiting() <= limit / 2);
    }
}

/// Reads the header of an RRD's file when it is new to the engine, and refuses one that cannot be written.
fn prepare(
    shared: &Shared,
    entry: &Entry,
    buffer: &mut MutexGuard<'_, Buffer>,
    work: &mut Workspace,
) -> Result<(), StoreError> {
    if buffer.geometry.is_none() {
        load_header(shared, entry, buffer, work, Timeout::Short)?;
    }
    if let Some(trouble) = &buffer.trouble {
        return Err(trouble.clone());
    }
    if buffer.updates.len() > BUFFER_BYTES_MAX {
        return Err(StoreError::Backlog(format!(
            "{} bytes of updates already wait for '{}'; see the log for why it cannot be written",
            buffer.updates.len(),
            entry.name
        )));
    }
    Ok(())
}

/// Appends the arguments of a line up to the first that is refused.
fn take_words<'w>(
    batch: &'w UpdateBatch,
    line: &UpdateLine,
    buffer: &mut Buffer,
    now: Timestamp,
    values: &mut Vec<&'w [u8]>,
) -> Result<(), StoreError> {
    let Some(geometry) = buffer.geometry.clone() else { unreachable!("prepared above") };
    let definition = &geometry.definition;
    let text = batch.values(line);
    if text.len() + updates::HEAD_BYTES * (text.len() / 2 + 1) > UPDATES_BYTES_MAX {
        return Err(StoreError::TooLarge(format!("a line of {} bytes is too long", text.len())));
    }
    let no_at_time = |_: &[u8]| Err("only absolute times are taken here".to_string());
    for word in text.split(|&byte| byte == b' ') {
        let reading =
            parse_argument(word, now, definition, None, &no_at_time, values).map_err(StoreError::Update)?;
        let last = buffer.last.unwrap_or(Timestamp::whole(i64::MIN));
        let time = check(definition, last, &reading).map_err(StoreError::Update)?;
        // The values follow the time's separator; there are as many as the definition demands.
        let length = reading.values.iter().map(|value| value.len() + 1).sum::<usize>();
        let values = &word[word.len() + 1 - length.max(1)..];
        updates::push(&mut buffer.updates, PendingUpdate { time, values });
        buffer.update_count += 1;
        buffer.last = Some(time);
    }
    Ok(())
}

fn count_since(buffer: &Buffer, count: u32) -> u32 {
    buffer.update_count.saturating_sub(count)
}

/// The wall clock, for `N`.
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::new(since.as_secs() as i64, since.subsec_micros())
}
