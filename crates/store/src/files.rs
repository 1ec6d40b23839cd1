//! The files layout: standard `.rrd` files in place, with a write buffer in the daemon's memory.
//!
//! It does what `rrdcached(1)` does, with these differences: an update is validated when it arrives;
//! everything answered is in the journal (written by `write(2)`, so a `kill -9` loses nothing); replay does
//! not open files; queries are answered from the file plus the buffered updates, without writing the file;
//! writes are positioned and coalesced, never through a memory map.
//!
//! `accept` (one thread per shard) validates, buffers and journals updates; `write` (some threads) writes
//! what is due to the files; `upkeep` (one thread) syncs, rotates and retries. The file is authoritative and
//! read again on each visit, under RRDtool's locks, because other programs may use the files at any time. This
//! layout knows no protocol. For memory, see `buffer`. Measured on two busy cores of an AMD EPYC, client in
//! the same process: 640 to 706 thousand values/s accepted and written at 30 values per file, 2.4 to 2.6 us
//! of processor time per value (rrdcached over its socket: 201 thousand, 6.3 us).

mod accept;
mod buffer;
mod errors;
pub mod fuzzing;
pub(crate) mod journal;
mod make;
mod new_files;
mod options;
mod read;
mod replay;
mod shared;
mod streams;
mod temporary;
mod tune;
pub(crate) mod updates;
mod updatev;
mod upkeep;
mod write;

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use disk::DiskFile;
use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::fetch::{FetchRequest, FetchRows};
use rrd_file::apply::Workspace;
use rrd_file::name::RrdName;
use rrd_file::tree::{ListError, Tree, name_bytes};

use crate::engine::{
    Choose, CreateRequest, Engine, Hold, Reply, RrdStatus, Snapshot, Stats, StoreError, StreamPosition,
    UpdateBatch, UpdateFailure, UpdatevOutcome, VersionChange,
};
use crate::memory;
use accept::{Acceptor, JobLine, Message, UpdateJob};
use buffer::name_hash;
pub use journal::Directory;
pub use options::{Options, SyncMode};
use shared::{Shared, lock};

/// Batches that may be queued for a shard before senders block.
const MAILBOX_MESSAGES: usize = 64;
/// How often FLUSH retries a file that another program has locked, and the pause between attempts.
const FLUSH_TRIES: usize = 100;
const FLUSH_PAUSE: Duration = Duration::from_millis(10);

/// The file whose lock keeps other daemons off the journal.
type JournalLock = Arc<dyn DiskFile>;

/// The engine of the files layout.
pub struct FilesEngine {
    shared: Arc<Shared>,
    /// One per shard; emptied by `stop`.
    mailboxes: Mutex<Vec<SyncSender<Message>>>,
    acceptors: Mutex<Vec<JoinHandle<()>>>,
    helpers: Mutex<Vec<JoinHandle<()>>>,
    /// Keeps other daemons off this journal until the engine ends.
    journal_lock: Mutex<Option<JournalLock>>,
}

impl FilesEngine {
    /// Opens a tree: reads the journal into memory and starts the threads. Opens no `.rrd` file.
    ///
    /// # Errors
    /// [`StoreError::Io`] that names the missing directory, or the journal that another daemon uses.
    pub fn open(options: Options) -> Result<Self, StoreError> {
        let tree =
            Tree::open(&options.base).map_err(|error| cannot("open base directory", &options.base, error))?;
        let journal = options
            .journal
            .as_deref()
            .map(|path| Directory::create(path).map_err(|error| cannot("use journal", path, error)));
        let journal = journal.transpose()?;
        Self::open_on(options, tree, journal)
    }

    /// As [`FilesEngine::open`], on any disk; `options` then only provides the paths for messages.
    ///
    /// # Errors
    /// As [`FilesEngine::open`].
    pub fn open_on(options: Options, tree: Tree, journal: Option<Directory>) -> Result<Self, StoreError> {
        let shared = Shared::new(options, tree, journal);
        let mut journal_lock = None;
        if let Some(directory) = shared.journal.clone() {
            let path = directory.path();
            journal_lock =
                Some(upkeep::lock_journal(&directory).map_err(|error| cannot("use journal", path, error))?);
            let replayed =
                replay::replay(&shared, &directory).map_err(|error| cannot("read journal", path, error))?;
            if replayed.updates > 0 {
                tracing::info!("{} updates from the journal wait for their files", replayed.updates);
            }
            shared.set_ends(replayed.ends, replayed.generation + 1);
            shared
                .rotate(replayed.generation + 1)
                .map_err(|error| cannot("start journal in", path, error))?;
        }
        Self::start(shared, journal_lock).map_err(|error| StoreError::io("cannot start a thread", error))
    }

    fn start(shared: Shared, journal_lock: Option<JournalLock>) -> std::io::Result<Self> {
        let shared = Arc::new(shared);
        let engine = FilesEngine {
            shared: Arc::clone(&shared),
            mailboxes: Mutex::default(),
            acceptors: Mutex::default(),
            helpers: Mutex::default(),
            journal_lock: Mutex::new(journal_lock),
        };
        for number in 0..shared.shards.len() {
            let (sender, mailbox): (_, Receiver<Message>) = sync_channel(MAILBOX_MESSAGES);
            let acceptor = Acceptor::new(Arc::clone(&shared), number);
            lock(&engine.mailboxes).push(sender);
            lock(&engine.acceptors).push(spawn(format!("accept-{number}"), move || acceptor.run(&mailbox))?);
        }
        for number in 0..shared.options.write_threads.max(1) {
            let shared = Arc::clone(&shared);
            lock(&engine.helpers).push(spawn(format!("write-{number}"), move || write::run_writer(&shared))?);
        }
        let for_sweep = Arc::clone(&shared);
        lock(&engine.helpers).push(spawn("upkeep".to_string(), move || upkeep::run(&shared))?);
        lock(&engine.helpers).push(spawn("sweep".to_string(), move || temporary::remove_left(&for_sweep))?);
        Ok(engine)
    }

    /// Runs a change on the thread of the name's shard, after all earlier updates.
    fn change<T: Send + 'static>(
        &self,
        name: &RrdName,
        change: impl FnOnce(&Shared, &mut Workspace) -> Result<T, StoreError> + Send + 'static,
        reply: Reply<Result<T, StoreError>>,
    ) {
        let shard = self.shared.shard_of(name_hash(name.as_bytes()));
        let Some(mailbox) = lock(&self.mailboxes).get(shard).cloned() else {
            return reply(Err(StoreError::Stopping));
        };
        let message = Message::Change(Box::new(move |shared, work| {
            reply(shared.check_sound().and_then(|()| change(shared, work)));
        }));
        // The mailbox outlives its thread's last message; an error drops the reply, which the waiting caller
        // notices.
        mailbox.send(message).ok();
    }

    /// As `change`, and waits for the answer.
    fn change_and_wait<T: Send + 'static>(
        &self,
        name: &RrdName,
        change: impl FnOnce(&Shared, &mut Workspace) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, receiver) = sync_channel(1);
        self.change(name, change, Box::new(move |result| drop(sender.send(result))));
        receiver.recv().unwrap_or(Err(StoreError::Stopping))
    }

    /// Ends all threads; with `finish`, after writing everything that is due at a stop.
    fn end(&self, finish: bool) -> Result<(), StoreError> {
        lock(&self.mailboxes).clear();
        join(&self.acceptors);
        let shared = &self.shared;
        let mut result = Ok(());
        if finish && !shared.stopping.load(Ordering::Acquire) {
            if shared.options.flush_at_stop || shared.journal.is_none() {
                write::push_all(shared, u64::MAX);
                shared.queue.wait_for_all();
            }
            for shard in &shared.shards {
                result = result.and(shared.commit(shard, &mut journal::Frame::default()));
            }
            shared.sync_new_files().ok();
            shared.sync_journals();
            if shared.check_sound().is_ok()
                && let Err(error) = shared.note_stop()
            {
                tracing::warn!("cannot note where the journal ends: {}", rrd_file::system_text(&error));
            }
        }
        shared.stopping.store(true, Ordering::Release);
        shared.queue.close();
        join(&self.helpers);
        drop(lock(&self.journal_lock).take());
        result.and(shared.check_sound())
    }
}

impl Engine for FilesEngine {
    fn update(&self, batch: UpdateBatch, reply: Reply<Vec<UpdateFailure>>) {
        let mailboxes = lock(&self.mailboxes).clone();
        if mailboxes.is_empty() {
            return UpdateJob::new(batch, 1, reply).refuse(&StoreError::Stopping);
        }
        let mut parts: Vec<Vec<JobLine>> = vec![Vec::new(); mailboxes.len()];
        for (index, line) in batch.lines.iter().enumerate() {
            let hash = name_hash(batch.name(line));
            parts[self.shared.shard_of(hash)].push((index as u32, hash));
        }
        // Only shards that have lines are woken.
        let count = parts.iter().filter(|lines| !lines.is_empty()).count();
        if count == 0 {
            return reply(Vec::new());
        }
        let job = Arc::new(UpdateJob::new(batch, count, reply));
        for (mailbox, lines) in mailboxes.iter().zip(parts).filter(|(_, lines)| !lines.is_empty()) {
            if mailbox.send(Message::Update(Arc::clone(&job), lines)).is_err() {
                job.finish_part();
            }
        }
    }

    fn updatev(&self, name: &RrdName, values: &[u8]) -> Result<UpdatevOutcome, StoreError> {
        let (target, values) = (name.clone(), values.to_vec());
        self.change_and_wait(name, move |shared, work| updatev::update(shared, &target, &values, work))
    }

    fn create(&self, name: RrdName, request: CreateRequest, reply: Reply<Result<(), StoreError>>) {
        let of = name.clone();
        self.change(&of, move |shared, work| make::create(shared, &name, &request, work), reply);
    }

    fn check_filled(&self, definition: &Definition) -> Result<(), StoreError> {
        make::checked_bytes(&self.shared, definition)?;
        memory::check_whole(definition)
    }

    fn import(&self, name: RrdName, rrd: Rrd, no_overwrite: bool) -> Result<(), StoreError> {
        let of = name.clone();
        self.change_and_wait(&of, move |shared, work| make::import(shared, &name, &rrd, no_overwrite, work))
    }

    fn tune(&self, name: &RrdName, args: &[String]) -> Result<(), StoreError> {
        let (target, args) = (name.clone(), args.to_vec());
        self.change_and_wait(name, move |shared, work| tune::tune(shared, &target, &args, work))
    }

    fn change(&self, name: &RrdName, version: u64, change: VersionChange) -> Result<u64, StoreError> {
        let target = name.clone();
        self.change_and_wait(name, move |shared, work| {
            if read::snapshot(shared, &target)?.version() != version {
                return Err(StoreError::Changed(target));
            }
            match change {
                VersionChange::Update(values) => {
                    let outcome = updatev::update(shared, &target, &values, work)?;
                    outcome.refused.map_or(Ok(()), Err)?;
                }
                VersionChange::Replace(rrd) => make::import(shared, &target, &rrd, false, work)?,
            }
            Ok(read::snapshot(shared, &target)?.version())
        })
    }

    fn delete(&self, name: &RrdName) -> Result<(), StoreError> {
        let target = name.clone();
        self.change_and_wait(name, move |shared, work| make::delete(shared, &target, work))
    }

    fn rename(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        read::status(&self.shared, from)?;
        if from == to {
            return Ok(());
        }
        let (from_name, to) = (from.clone(), to.clone());
        self.change_and_wait(from, move |shared, work| make::rename(shared, &from_name, &to, work))
    }

    fn copy(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        let rrd = self.read(from)?;
        if from == to { Ok(()) } else { self.import(to.clone(), rrd, false) }
    }

    fn snapshot(&self, name: &RrdName) -> Result<Snapshot, StoreError> {
        read::snapshot(&self.shared, name)
    }

    fn status(&self, name: &RrdName) -> Result<RrdStatus, StoreError> {
        read::status(&self.shared, name)
    }

    fn fetch(&self, name: &RrdName, request: FetchRequest) -> Result<FetchRows, StoreError> {
        read::fetch(&self.shared, name, request)
    }

    fn read(&self, name: &RrdName) -> Result<Rrd, StoreError> {
        read::read(&self.shared, name)
    }

    fn rows(
        &self,
        name: &RrdName,
        of: &Arc<Definition>,
        rra: usize,
        rows: Range<i64>,
    ) -> Result<Vec<f64>, StoreError> {
        read::rows(&self.shared, name, of, rra, rows)
    }

    fn chosen_rows(&self, name: &RrdName, choose: Choose<'_>) -> Result<Option<Vec<f64>>, StoreError> {
        read::chosen_rows(&self.shared, name, choose)
    }

    fn list_within(
        &self,
        directory: &[u8],
        recursive: bool,
        hold: Hold<'_>,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        rrd_file::tree::list(&self.shared.tree, directory, recursive, hold).map_err(StoreError::from)
    }

    fn flush(&self, name: Option<&RrdName>) -> Result<(), StoreError> {
        let shared = &self.shared;
        if shared.stopping.load(Ordering::Acquire) {
            return Err(StoreError::Stopping);
        }
        shared.counters.flushes_received.fetch_add(1, Ordering::Relaxed);
        let Some(name) = name else {
            write::push_all(shared, u64::MAX);
            shared.queue.wait_for_all();
            return shared.check_sound();
        };
        for _ in 0..FLUSH_TRIES {
            let written = shared.with_entry(name, |entry, buffer| {
                if buffer.geometry.is_none() {
                    read::load_header(shared, entry, buffer, &mut Workspace::default(), read::Timeout::Long)?;
                }
                write::write(shared, entry, buffer, &mut Workspace::default())
            });
            match written {
                Err(error) if write::is_locked(&error) => std::thread::sleep(FLUSH_PAUSE),
                other => return other,
            }
        }
        Err(StoreError::Locked)
    }

    fn pending(&self, name: &RrdName, hold: Hold<'_>) -> Result<Vec<Vec<u8>>, StoreError> {
        let hash = name_hash(name.as_bytes());
        let table = &self.shared.shards[self.shared.shard_of(hash)].table;
        let Some(entry) = table.find(hash, name.as_bytes(), || None) else { return Ok(Vec::new()) };
        let buffer = entry.lock();
        // A time takes fewer than 32 bytes as text.
        let bytes = |update: updates::PendingUpdate<'_>| name_bytes(update.values) + 32;
        if !hold(updates::iter(&buffer.updates).map(bytes).sum()) {
            return Err(ListError::NoMemory.into());
        }
        Ok(updates::iter(&buffer.updates).map(|update| update.text()).collect())
    }

    fn queue(&self, hold: Hold<'_>) -> Result<Vec<(u64, RrdName)>, StoreError> {
        // Beside the names, a list of the entries.
        if !hold(self.shared.queue.length() as u64 * 8) {
            return Err(ListError::NoMemory.into());
        }
        let entries = self.shared.queue.waiting();
        if !hold(entries.iter().map(|entry| name_bytes(entry.name.as_bytes())).sum()) {
            return Err(ListError::NoMemory.into());
        }
        let one = |entry: Arc<buffer::Entry>| (u64::from(entry.lock().update_count), entry.name.clone());
        Ok(entries.into_iter().map(one).collect())
    }

    fn stream_position(&self, name: &[u8]) -> Result<Option<StreamPosition>, StoreError> {
        self.shared.stream_position(name)
    }

    fn sync(&self) -> Result<(), StoreError> {
        if self.shared.journal.is_some() {
            return self.shared.sync_all_journals();
        }
        self.flush(None)?;
        self.shared.tree.sync_all().map_err(|error| StoreError::io("syncing the .rrd files", error))
    }

    fn set_stream_position(&self, name: &[u8], position: StreamPosition) -> Result<(), StoreError> {
        self.shared.set_stream_position(name, position)
    }

    fn stats(&self) -> Stats {
        let counters = &self.shared.counters;
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let poisoned = self.shared.check_sound().is_err();
        Stats {
            updates_received: load(&counters.updates_received),
            updates_written: load(&counters.updates_written),
            data_sets_written: load(&counters.data_sets_written),
            flushes_received: load(&counters.flushes_received),
            queue_length: self.shared.queue.length() as u64,
            rrd_count: self.shared.shards.iter().map(|shard| shard.table.count() as u64).sum(),
            updates_refused: load(&counters.updates_refused),
            log_bytes_written: load(&counters.journal_bytes),
            journal_rotations: load(&counters.journal_rotations),
            log_bytes_live: self.shared.journal_bytes_live(),
            read_only: u64::from(poisoned || counters.disk_full.load(Ordering::Relaxed)),
            ..Stats::default()
        }
    }

    fn stop(&self) -> Result<(), StoreError> {
        self.end(true)
    }
}

impl Drop for FilesEngine {
    /// Ends like a kill: what is not in a file stays in the journal.
    fn drop(&mut self) {
        self.end(false).ok();
    }
}

fn cannot(what: &str, path: &Path, error: std::io::Error) -> StoreError {
    StoreError::io(format!("cannot {what} \"{}\"", path.display()), error)
}

fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name).spawn(run)
}

fn join(threads: &Mutex<Vec<JoinHandle<()>>>) {
    let threads = std::mem::take(&mut *lock(threads));
    for thread in threads {
        // A thread that panicked has already reported it.
        thread.join().ok();
    }
}

#[cfg(test)]
mod tests;
