//! State shared by the threads of the files layout: shards with their tables and journals, counters,
//! failures.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use disk::Shortage;
use rrd::definition::Definition;
use rrd::footprint;
use rrd::time::Timestamp;
use rrd_file::system_text;

use crate::engine::StoreError;
use crate::files::buffer::{Buffer, Entry, Table, name_hash};
use crate::files::journal::{Directory, Ends, Frame, Journal, Record};
use crate::files::new_files::NewFiles;
use crate::files::options::{Options, SyncMode};
use crate::files::temporary::Maker;
use crate::files::write::WriteQueue;
use crate::name::RrdName;
use crate::streams::Streams;
use crate::tree::Tree;
use rrd_file::geometry::Geometries;

/// A part of the names, with its own journal.
#[derive(Debug, Default)]
pub struct Shard {
    /// Its RRDs.
    pub table: Table,
    journal: Mutex<Option<Journal>>,
    /// Generation of its current journal file.
    generation: AtomicU64,
    /// Writes to files that are not in the journal yet.
    written: Mutex<Vec<(Arc<Entry>, Timestamp)>>,
}

/// Counters with the meaning `rrdcached(1)` gives them, and our own.
#[derive(Debug, Default)]
pub struct Counters {
    /// UPDATE commands.
    pub updates_received: AtomicU64,
    /// Files written.
    pub updates_written: AtomicU64,
    /// Updates written to files.
    pub data_sets_written: AtomicU64,
    /// FLUSH commands.
    pub flushes_received: AtomicU64,
    /// Updates refused, on arrival or by their file.
    pub updates_refused: AtomicU64,
    /// Bytes of journal written since the start.
    pub journal_bytes: AtomicU64,
    /// Times the journal was rotated since the start.
    pub journal_rotations: AtomicU64,
    /// Bytes of updates buffered in memory.
    pub waiting_bytes: AtomicU64,
    /// 1 while the journal's disk is full.
    pub disk_full: AtomicBool,
}

/// The shared state.
#[derive(Debug)]
pub struct Shared {
    /// The options it was opened with.
    pub options: Options,
    /// The `.rrd` files.
    pub tree: Tree,
    /// The journal's directory, if there is one.
    pub journal: Option<Directory>,
    /// What the file `JOURNAL` says; `None` before the journal was read.
    ends: Mutex<Option<Ends>>,
    maker: OnceLock<Maker>,
    /// The files' definitions.
    pub geometries: Geometries,
    /// The parts of the names; never empty.
    pub shards: Vec<Shard>,
    /// RRDs whose files are to be written.
    pub queue: WriteQueue,
    /// Files that are not durable yet.
    pub new_files: NewFiles,
    /// How far streams have been applied.
    pub streams: Mutex<Streams>,
    /// What happened so far.
    pub counters: Counters,
    /// The engine is stopping: no new work is started.
    pub stopping: AtomicBool,
    started: Instant,
    poison: Mutex<Option<StoreError>>,
}

impl Shared {
    /// Empty shards over an open tree.
    pub fn new(options: Options, tree: Tree, journal: Option<Directory>) -> Self {
        let shards = (0..options.accept_threads.max(1)).map(|_| Shard::default()).collect();
        Shared {
            options,
            tree,
            journal,
            ends: Mutex::new(None),
            maker: OnceLock::new(),
            geometries: Geometries::default(),
            shards,
            queue: WriteQueue::default(),
            new_files: NewFiles::default(),
            streams: Mutex::default(),
            counters: Counters::default(),
            stopping: AtomicBool::new(false),
            started: Instant::now(),
            poison: Mutex::new(None),
        }
    }

    /// The shard for a name with this hash. The shard's table uses the other bits.
    pub fn shard_of(&self, hash: u64) -> usize {
        ((hash >> 32) % self.shards.len() as u64) as usize
    }

    /// Calls `with` with the entry of a name, which is created if necessary, and its locked buffer.
    pub fn with_entry<T>(&self, name: &RrdName, with: impl FnOnce(&Arc<Entry>, &mut Buffer) -> T) -> T {
        let hash = name_hash(name.as_bytes());
        let table = &self.shards[self.shard_of(hash)].table;
        loop {
            let Some(entry) = table.find(hash, name.as_bytes(), || Some(Entry::new(name.clone()))) else {
                unreachable!("find makes what it does not find");
            };
            let mut buffer = entry.lock();
            // Removed from the table between lookup and lock; the next lookup creates a new one.
            if !buffer.removed {
                return with(&entry, &mut buffer);
            }
        }
    }

    /// The shard of an entry.
    pub fn shard(&self, entry: &Entry) -> &Shard {
        &self.shards[self.shard_of(name_hash(entry.name.as_bytes()))]
    }

    /// Seconds since the engine was opened.
    pub fn now_seconds(&self) -> u32 {
        self.started.elapsed().as_secs() as u32
    }

    /// When an RRD that is (re)started now is next due; the name determines the delay.
    pub fn due_after(&self, now_seconds: u32, entry: &Entry) -> u32 {
        let spread = self.options.write_jitter.as_secs();
        let jitter = if spread == 0 { 0 } else { name_hash(entry.name.as_bytes()) % spread };
        now_seconds.saturating_add((self.options.write_interval.as_secs() + jitter) as u32)
    }

    /// Checks that updates may be accepted.
    ///
    /// # Errors
    /// Why they may not: a failure of the journal.
    pub fn check_sound(&self) -> Result<(), StoreError> {
        match &*lock(&self.poison) {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Checks that one RRD may take the memory that this one does.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`].
    pub fn check_memory(&self, definition: &Definition) -> Result<(), StoreError> {
        footprint::check(definition, self.options.rrd_bytes_max)
            .map(|_| ())
            .map_err(|error| StoreError::TooLarge(error.to_string()))
    }

    /// Refuses all further updates until the engine is reopened, because the journal may not hold them.
    pub fn poison(&self, what: String) -> StoreError {
        tracing::error!("{what}; no more updates are taken until the daemon is started again");
        let error = StoreError::Poisoned(what);
        lock(&self.poison).get_or_insert(error).clone()
    }

    /// Removes an entry for which nothing is buffered.
    pub fn forget(&self, entry: &Entry, buffer: &mut Buffer) {
        self.clear_buffer(buffer);
        self.shard(entry).table.remove(entry, buffer);
    }

    /// Empties a buffer.
    pub fn clear_buffer(&self, buffer: &mut Buffer) {
        self.counters.waiting_bytes.fetch_sub(buffer.updates.len() as u64, Ordering::Relaxed);
        buffer.updates.clear();
        // Keeps the memory that 30 updates of a few values need, for the next 30.
        buffer.updates.shrink_to(2048);
        buffer.update_count = 0;
        buffer.epoch = buffer.epoch.wrapping_add(1);
    }

    /// Records, with the journal's next append, that all of an entry's updates up to `until` are in its file.
    pub fn record_written(&self, entry: &Arc<Entry>, until: Timestamp) {
        if self.journal.is_some() {
            lock(&self.shard(entry).written).push((Arc::clone(entry), until));
        }
    }

    /// Records in the journal at once that its earlier records of this name are void.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn journal_forgotten(&self, entry: &Entry) -> Result<(), StoreError> {
        let mut frame = Frame::default();
        frame.put(Record::Forgotten { name: entry.name.as_bytes() });
        self.commit(self.shard(entry), &mut frame)
    }

    /// Makes the journal of an entry's shard durable at once.
    ///
    /// # Errors
    /// When the sync fails.
    pub fn sync_journal_of(&self, entry: &Entry) -> Result<(), StoreError> {
        match lock(&self.shard(entry).journal).as_mut() {
            Some(journal) => match journal.sync() {
                Ok(_) => Ok(()),
                Err(error) => Err(self.journal_failed(journal, &error)),
            },
            None => Ok(()),
        }
    }

    /// Appends a frame to a shard's journal, together with the writes recorded meanwhile, and empties the
    /// frame. When it returns, the records survive a crash of the process and, under [`SyncMode::Always`], of
    /// the machine.
    ///
    /// # Errors
    /// When the journal cannot be written or synced.
    pub fn commit(&self, shard: &Shard, frame: &mut Frame) -> Result<(), StoreError> {
        let mut journal = lock(&shard.journal);
        let Some(journal) = journal.as_mut() else {
            frame.clear();
            return Ok(());
        };
        for (entry, until) in lock(&shard.written).drain(..) {
            frame.put(Record::Written { name: entry.name.as_bytes(), until });
        }
        if frame.is_empty() {
            return Ok(());
        }
        let before = journal.bytes();
        let appended = journal.append(frame);
        frame.clear();
        if let Err(error) = appended {
            return Err(self.journal_failed(journal, &error));
        }
        self.counters.journal_bytes.fetch_add(journal.bytes() - before, Ordering::Relaxed);
        if self.options.sync == SyncMode::Always {
            journal.sync().map_err(|error| self.journal_failed(journal, &error))?;
        }
        self.counters.disk_full.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn journal_failed(&self, journal: &Journal, error: &io::Error) -> StoreError {
        if let Some(shortage) = Shortage::of(error) {
            if !self.counters.disk_full.swap(true, Ordering::Relaxed) {
                tracing::error!(
                    "cannot write {}: {shortage}; updates are refused until that has passed",
                    journal.path().display()
                );
            }
            return StoreError::Short(shortage);
        }
        let text = system_text(error);
        self.poison(format!("cannot write journal \"{}\": {text}", journal.path().display()))
    }

    /// Makes everything appended to a shard's journal durable, and waits until it is.
    ///
    /// # Errors
    /// When the sync fails.
    pub fn sync_journal(&self, shard: usize) -> Result<(), StoreError> {
        let mut journal = lock(&self.shards[shard].journal);
        let Some(journal) = journal.as_mut() else { return Ok(()) };
        journal.sync().map(drop).map_err(|error| self.journal_failed(journal, &error))
    }

    /// Makes everything accepted so far durable, and waits until it is.
    ///
    /// # Errors
    /// When the journal or a new file cannot be synced.
    pub fn sync_all_journals(&self) -> Result<(), StoreError> {
        self.check_sound()?;
        self.sync_new_files()?;
        (0..self.shards.len()).try_for_each(|number| self.sync_journal(number))
    }

    /// Makes everything appended durable, without blocking appends.
    pub fn sync_journals(&self) {
        for shard in &self.shards {
            let handle = lock(&shard.journal).as_mut().and_then(Journal::sync_handle);
            let Some(handle) = handle else { continue };
            match handle.file.sync() {
                Ok(()) => drop(lock(&shard.journal).as_mut().map(|journal| journal.note_synced(&handle))),
                Err(error) => {
                    self.poison(format!("cannot sync the journal: {}", system_text(&error)));
                }
            }
        }
    }

    /// Sets what is known of the journal's files.
    ///
    /// `generation` is the first of this start.
    pub fn set_ends(&self, ends: Ends, generation: u64) {
        let [a, b, c, d, e, f, g, h, ..] = ends.id;
        let id = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        self.maker.get_or_init(|| Maker::Journal { id, generation });
        *lock(&self.ends) = Some(ends);
    }

    /// Who makes the temporary files of this engine.
    pub fn maker(&self) -> Maker {
        *self.maker.get_or_init(|| Maker::Process(std::process::id()))
    }

    /// Changes what the file `JOURNAL` says, and writes it.
    ///
    /// # Errors
    /// When it cannot be written; the file then says what it did.
    pub fn note_ends(&self, change: impl FnOnce(&mut Ends)) -> io::Result<()> {
        let mut ends = lock(&self.ends);
        let (Some(directory), Some(ends)) = (&self.journal, ends.as_mut()) else { return Ok(()) };
        change(ends);
        directory.note_ends(ends)
    }

    /// Starts the next generation of every shard's journal, after making the previous one durable.
    ///
    /// # Errors
    /// When a journal cannot be synced or created.
    pub fn rotate(&self, generation: u64) -> io::Result<()> {
        let (Some(directory), Some(id)) = (&self.journal, lock(&self.ends).as_ref().map(|ends| ends.id))
        else {
            return Ok(());
        };
        let mut files = Vec::new();
        for (number, shard) in self.shards.iter().enumerate() {
            let mut fresh = Journal::create(directory, &id, generation, number as u32)?;
            let mut journal = lock(&shard.journal);
            self.repeat_streams(number, &mut fresh)?;
            files.push(((generation, number as u32), fresh.bytes()));
            if let Some(old) = journal.as_mut() {
                old.sync()?;
                files.push(((shard.generation(), number as u32), old.bytes()));
            }
            *journal = Some(fresh);
            shard.generation.store(generation, Ordering::Release);
        }
        self.note_ends(|ends| ends.files.extend(files))
    }

    /// Notes where the journal ends; nothing is appended any more.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn note_stop(&self) -> io::Result<()> {
        let file = |(number, shard): (usize, &Shard)| {
            let bytes = lock(&shard.journal).as_ref().map(Journal::bytes)?;
            Some(((shard.generation(), number as u32), bytes))
        };
        let files: Vec<_> = self.shards.iter().enumerate().filter_map(file).collect();
        self.note_ends(|ends| ends.files.extend(files))
    }

    /// Empties the journals of shards with nothing buffered, once the files are durable.
    pub fn empty_journals(&self) {
        for (number, shard) in self.shards.iter().enumerate() {
            let mut journal = lock(&shard.journal);
            // Under the journal's lock nothing new can be added to it, and a round in progress has not
            // reached it yet.
            let waits = || shard.table.all().iter().any(|entry| entry.may_wait());
            let Some(journal) = journal.as_mut().filter(|_| !waits()) else {
                continue;
            };
            let emptied = self.tree.sync_all().and_then(|()| journal.empty());
            let emptied = emptied.and_then(|()| self.repeat_streams(number, journal));
            match emptied {
                Ok(()) => self.counters.disk_full.store(false, Ordering::Release),
                Err(error) => tracing::warn!("cannot empty {}: {error}", journal.path().display()),
            }
        }
    }

    /// Bytes of the current journal files.
    pub fn journal_bytes_live(&self) -> u64 {
        let bytes = |shard: &Shard| lock(&shard.journal).as_ref().map_or(0, Journal::bytes);
        self.shards.iter().map(bytes).sum()
    }
}

impl Shard {
    /// Generation of the current journal file.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }
}

/// Locks data that is consistent even after a panic of a holder.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
