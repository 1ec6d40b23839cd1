//! Appends to the log, and makes it durable from another thread.
//!
//! A commit is one write, and a record lies entirely within one file. Files are dense and in order; the
//! active file is the last. Committed records survive a crash of the process, synced ones also a loss of
//! power. After a failed write or sync nothing more is written, because a second fdatasync may succeed
//! without the bytes of the first. A full disk is different: the tail is cut back to the last commit, and the
//! same commit may be retried.
//!
//! Cost: one `pwrite` per commit; one `fdatasync` per sync, plus a directory sync after a new file was
//! started. Files are preallocated; released ones are renamed and overwritten, so that a sync has no metadata
//! to write.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use disk::Shortage;

use super::Position;
use super::bell::Bell;
use super::envelope::{self, ENVELOPE_BYTES, Kind, Stamp};
use super::{BODY_BYTES_MAX, LogError};
use crate::disk::{Disk, DiskFile, Mode};
use crate::filenames::{self, FileKind};
use crate::lock::lock;

/// Sizes of a log.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Size at which the next file is started. A larger commit gets a larger file.
    pub file_bytes_max: u64,
    /// Released files kept for reuse; more are removed.
    pub spare_files_max: usize,
    /// The tag of the shard, for every record; 0 = not known.
    pub owner: u32,
}

impl Default for Options {
    /// 16 MiB, so that starting a file every second or two costs nothing, and checkpoints release space in
    /// small steps; 4 spare files cover the new files between two releases. Both are guesses.
    fn default() -> Self {
        Options { file_bytes_max: 16 << 20, spare_files_max: 4, owner: 0 }
    }
}

/// Appends records. Each shard has one, owned by the shard's worker.
pub struct LogWriter {
    shared: Arc<Shared>,
    options: Options,
    generation: u32,
    /// Offset of the first byte of `buffer`: everything before it is committed.
    committed: u64,
    /// Records not yet committed.
    buffer: Vec<u8>,
    /// Where in `buffer` the unfinished record starts.
    record_start: Option<usize>,
    /// The file being written; `None` until the first commit.
    active: Option<Active>,
    /// All files of the log, oldest first, the active one last.
    files: VecDeque<LogFile>,
    /// Released files, still with their old names.
    spares: Vec<PathBuf>,
}

struct Active {
    file: Arc<dyn DiskFile>,
    start: u64,
    /// Bytes reserved in the file.
    allocated: u64,
}

struct LogFile {
    start: Position,
    path: PathBuf,
    /// True for a file that this writer started. A file found when the log was opened may contain records of
    /// positions that were cut off and are assigned again (a crash can undo a rename); it is never
    /// overwritten.
    recyclable: bool,
}

/// State shared by the writer and its syncers.
struct Shared {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    generation: u32,
    /// Everything before this offset survives a loss of power.
    durable: AtomicU64,
    /// Offset at which the file being written starts.
    newest_file: AtomicU64,
    unsynced: Mutex<Unsynced>,
    /// Held during a sync: one at a time, so that none relies on the unfinished work of another.
    turn: Mutex<()>,
    poison: OnceLock<String>,
}

struct Unsynced {
    committed: u64,
    /// Files written since they were last synced, oldest first; the active file last.
    files: Vec<Arc<dyn DiskFile>>,
    /// A file was created, renamed or removed since the directory was last synced.
    names: bool,
    /// Who waits for more of the log.
    bells: Vec<(Weak<Bell>, RungBy)>,
}

/// What rings a bell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RungBy {
    /// Every commit.
    Commit,
    /// A sync after which more is durable.
    Sync,
}

impl Unsynced {
    fn ring(&mut self, by: RungBy) {
        self.bells.retain(|(bell, _)| bell.strong_count() > 0);
        self.bells.iter().filter(|(_, rung_by)| *rung_by == by).for_each(|(bell, _)| {
            if let Some(bell) = bell.upgrade() {
                bell.ring();
            }
        });
    }
}

impl Shared {
    fn check(&self) -> Result<(), LogError> {
        match self.poison.get() {
            Some(why) => Err(LogError::Poisoned(why.clone())),
            None => Ok(()),
        }
    }

    fn poison(&self, error: &io::Error) -> LogError {
        LogError::Poisoned(self.poison.get_or_init(|| error.to_string()).clone())
    }
}

impl LogWriter {
    /// Opens the log in `dir` to continue at `end`, where replay ended. Anything after `end` is durably cut
    /// off, so that it can never reappear. Earlier files stay until [`LogWriter::release_before`].
    ///
    /// # Errors
    /// When a file cannot be read, cut or synced.
    pub fn open(disk: Arc<dyn Disk>, dir: &Path, end: Position, options: Options) -> Result<Self, LogError> {
        disk.create_dir_all(dir)?;
        let mut files: VecDeque<LogFile> = VecDeque::new();
        for start in log_files(&*disk, dir)? {
            let path = filenames::log(dir, start);
            if start > end {
                disk.remove(&path)?;
            } else {
                files.push_back(LogFile { start, path, recyclable: false });
            }
        }
        let mut active = None;
        for (index, LogFile { start, path, .. }) in files.iter().enumerate() {
            let file = disk.open(path, Mode::Write)?;
            if index + 1 == files.len() && start.generation == end.generation {
                let used = end.offset - start.offset;
                cut(&*file, used)?;
                if used <= options.file_bytes_max {
                    active = Some(Active { file: Arc::clone(&file), start: start.offset, allocated: used });
                }
            }
            // After a crash of the process, what replay read may be in the page cache only.
            file.sync()?;
        }
        disk.sync_dir(dir)?;
        let unsynced = Unsynced {
            committed: end.offset,
            files: active.iter().map(|active| Arc::clone(&active.file)).collect(),
            names: false,
            bells: Vec::new(),
        };
        let shared = Arc::new(Shared {
            disk,
            dir: dir.to_owned(),
            generation: end.generation,
            durable: AtomicU64::new(end.offset),
            newest_file: AtomicU64::new(active.as_ref().map_or(end.offset, |active| active.start)),
            unsynced: Mutex::new(unsynced),
            turn: Mutex::new(()),
            poison: OnceLock::new(),
        });
        Ok(LogWriter {
            shared,
            options,
            generation: end.generation,
            committed: end.offset,
            buffer: Vec::new(),
            record_start: None,
            active,
            files,
            spares: Vec::new(),
        })
    }

    /// Where the next record will start.
    pub fn position(&self) -> Position {
        self.at(self.committed + self.buffer.len() as u64)
    }

    /// Everything before this is written to the file.
    pub fn committed(&self) -> Position {
        self.at(self.committed)
    }

    /// Bytes appended and not yet committed.
    pub fn pending_bytes(&self) -> usize {
        self.buffer.len()
    }

    fn at(&self, offset: u64) -> Position {
        Position { generation: self.generation, offset }
    }

    /// Appends a record to the buffer; [`LogWriter::commit`] writes it. Returns where the record ends.
    ///
    /// # Errors
    /// [`LogError::TooLarge`] and [`LogError::Poisoned`].
    pub fn append(&mut self, kind: Kind, stamp: Stamp, body: &[u8]) -> Result<Position, LogError> {
        self.begin(kind, stamp).extend_from_slice(body);
        self.end()
    }

    /// Starts a record and returns the buffer to which its body must be appended; existing content must stay.
    /// [`LogWriter::end`] completes the record, [`LogWriter::cancel`] or another `begin` drops it.
    pub fn begin(&mut self, kind: Kind, stamp: Stamp) -> &mut Vec<u8> {
        self.cancel();
        let position = self.position();
        self.record_start = Some(self.buffer.len());
        let durable = self.shared.durable.load(Ordering::Acquire);
        envelope::open(&mut self.buffer, self.options.owner, kind, stamp, position, durable);
        &mut self.buffer
    }

    /// Appends a complete record of another server's log, which begins at [`LogWriter::position`].
    pub fn append_copy(&mut self, record: &[u8]) {
        self.cancel();
        let start = self.buffer.len();
        self.buffer.extend_from_slice(record);
        envelope::set_durable(&mut self.buffer[start..], self.shared.durable.load(Ordering::Acquire));
    }

    /// Completes the started record and returns where it ends.
    ///
    /// # Errors
    /// [`LogError::TooLarge`], which drops the record, and [`LogError::Poisoned`].
    pub fn end(&mut self) -> Result<Position, LogError> {
        if let Some(start) = self.record_start.take() {
            let bytes = self.buffer.len() - start - ENVELOPE_BYTES;
            if bytes > BODY_BYTES_MAX {
                self.buffer.truncate(start);
                return Err(LogError::TooLarge { bytes });
            }
            envelope::close(&mut self.buffer[start..]);
        }
        Ok(self.position())
    }

    /// Drops the record that was started but not ended.
    pub fn cancel(&mut self) {
        if let Some(start) = self.record_start.take() {
            self.buffer.truncate(start);
        }
    }

    /// Drops all records not yet committed; their positions will be reused.
    pub fn discard(&mut self) {
        self.record_start = None;
        self.buffer.clear();
    }

    /// Writes everything appended in one write and returns the new end of the log. From then on it survives a
    /// crash of the process.
    ///
    /// # Errors
    /// After [`LogError::Full`], nothing is written and everything appended is still buffered: retry, or
    /// [`LogWriter::discard`]. Any other error poisons the log.
    pub fn commit(&mut self) -> Result<Position, LogError> {
        self.cancel();
        self.shared.check()?;
        if self.buffer.is_empty() {
            return Ok(self.committed());
        }
        let length = self.buffer.len() as u64;
        let fits = self.active.as_ref().is_some_and(|active| {
            let used = self.committed - active.start;
            used == 0 || used + length <= self.options.file_bytes_max
        });
        if !fits {
            self.roll()?;
        }
        let Some(active) = &mut self.active else { unreachable!("a roll leaves an active file") };
        let used = self.committed - active.start;
        let written = reserve(active, used + length, self.options.file_bytes_max)
            .and_then(|()| active.file.write_at(&self.buffer, used));
        if let Err(error) = written {
            return Err(self.cut_back(error));
        }
        self.committed += length;
        self.buffer.clear();
        let mut unsynced = lock(&self.shared.unsynced);
        unsynced.committed = self.committed;
        if !unsynced.bells.is_empty() {
            unsynced.ring(RungBy::Commit);
        }
        drop(unsynced);
        Ok(self.committed())
    }

    /// After a failed write: undoes the part that was written, if the disk was only full. It does so durably,
    /// so that a loss of power cannot bring back what the caller was told is not there.
    fn cut_back(&mut self, error: io::Error) -> LogError {
        if Shortage::of(&error).is_none() {
            return self.shared.poison(&error);
        }
        let Some(active) = &mut self.active else { return LogError::Full(error) };
        active.allocated = self.committed - active.start;
        match cut(&*active.file, active.allocated).and_then(|()| active.file.sync()) {
            Ok(()) => LogError::Full(error),
            Err(error) => self.shared.poison(&error),
        }
    }

    /// Starts the next file at the end of what is committed.
    fn roll(&mut self) -> Result<(), LogError> {
        let start = self.committed();
        let path = filenames::log(&self.shared.dir, start);
        let (file, allocated) = match self.next_file(&path) {
            Ok(made) => made,
            Err(error) if Shortage::of(&error).is_some() => return Err(LogError::Full(error)),
            Err(error) => return Err(self.shared.poison(&error)),
        };
        self.files.push_back(LogFile { start, path, recyclable: true });
        self.active = Some(Active { file: Arc::clone(&file), start: start.offset, allocated });
        self.shared.newest_file.store(start.offset, Ordering::Release);
        let mut unsynced = lock(&self.shared.unsynced);
        unsynced.files.push(file);
        unsynced.names = true;
        Ok(())
    }

    /// A file of this name, a spare or a new one, with the bytes already reserved in it.
    fn next_file(&mut self, path: &Path) -> io::Result<(Arc<dyn DiskFile>, u64)> {
        let disk = &*self.shared.disk;
        if let Some(spare) = self.spares.last() {
            disk.rename(spare, path)?;
            let file = match disk.open(path, Mode::Write) {
                Ok(file) => file,
                Err(error) => {
                    // It may be tried again, so nothing may stand under that name.
                    disk.rename(path, spare)?;
                    return Err(error);
                }
            };
            self.spares.pop();
            return Ok((file, self.options.file_bytes_max));
        }
        Ok((disk.create(path)?, 0))
    }

    /// Releases the files that hold nothing from `kept` on: some are kept for reuse, the rest removed. The
    /// position at which replay will start must already be durably at or after `kept`.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub fn release_before(&mut self, kept: Position) -> Result<(), LogError> {
        self.shared.check()?;
        while self.files.get(1).is_some_and(|next| next.start <= kept) {
            let Some(LogFile { path, recyclable, .. }) = self.files.pop_front() else { break };
            let fits = recyclable && self.spares.len() < self.options.spare_files_max;
            if fits && self.shared.disk.length(&path)? == self.options.file_bytes_max {
                self.spares.push(path);
            } else {
                self.shared.disk.remove(&path)?;
                lock(&self.shared.unsynced).names = true;
            }
        }
        Ok(())
    }

    /// Bytes of log between `kept` and its end.
    pub fn bytes_since(&self, kept: Position) -> u64 {
        match kept.generation == self.generation {
            true => self.position().offset.saturating_sub(kept.offset),
            false => self.position().offset,
        }
    }

    /// A handle for any thread to make the log durable.
    pub fn syncer(&self) -> LogSyncer {
        LogSyncer { shared: Arc::clone(&self.shared) }
    }
}

/// Cuts a file to `length`, including any space reserved after it. The file may be shorter if a checkpoint
/// outlived the log; then there is nothing to cut.
fn cut(file: &dyn DiskFile, length: u64) -> io::Result<()> {
    if file.length()? >= length { file.truncate(length) } else { Ok(()) }
}

/// Cuts off durably what a log that is not open has after `end`.
///
/// # Errors
/// When the disk fails.
pub fn cut_after(disk: &dyn Disk, dir: &Path, end: Position) -> io::Result<()> {
    for start in log_files(disk, dir)? {
        let path = filenames::log(dir, start);
        if start > end {
            disk.remove(&path)?;
        } else if start.generation == end.generation {
            let file = disk.open(&path, Mode::Write)?;
            cut(&*file, end.offset - start.offset)?;
            file.sync()?;
        }
    }
    disk.sync_dir(dir)
}

/// Reserves space for `needed` bytes in the active file, or for a whole file if that is more.
fn reserve(active: &mut Active, needed: u64, file_bytes: u64) -> io::Result<()> {
    if needed > active.allocated {
        let length = needed.max(file_bytes);
        active.file.allocate(active.allocated, length - active.allocated)?;
        active.allocated = length;
    }
    Ok(())
}

/// Where several logs end at one moment, between any two commits. So when one of them holds a record that was begun after
/// others had been committed elsewhere, these are before the ends, too.
pub fn ends_at_once<'l>(logs: impl Iterator<Item = &'l LogSyncer>) -> Vec<Position> {
    let held: Vec<_> = logs.map(|log| (log.shared.generation, lock(&log.shared.unsynced))).collect();
    held.iter().map(|(generation, log)| Position { generation: *generation, offset: log.committed }).collect()
}

/// Positions of the log files in a directory, in order.
///
/// # Errors
/// When the directory cannot be listed.
pub fn log_files(disk: &dyn Disk, dir: &Path) -> io::Result<Vec<Position>> {
    let mut starts: Vec<Position> = disk
        .list(dir)?
        .iter()
        .filter_map(|name| match filenames::kind_of(name) {
            Some(FileKind::Log(start)) => Some(start),
            _ => None,
        })
        .collect();
    starts.sort_unstable();
    Ok(starts)
}

/// Makes a log durable, from any thread. Cheap to clone.
#[derive(Clone)]
pub struct LogSyncer {
    shared: Arc<Shared>,
}

impl LogSyncer {
    /// Makes everything durable that was committed before the call, and returns up to where.
    ///
    /// # Errors
    /// When an fsync fails, which poisons the log, or one has failed before.
    pub fn sync(&self) -> Result<Position, LogError> {
        let shared = &*self.shared;
        let _turn = lock(&shared.turn);
        shared.check()?;
        let (target, files, names) = {
            let mut unsynced = lock(&shared.unsynced);
            (unsynced.committed, unsynced.files.clone(), std::mem::take(&mut unsynced.names))
        };
        if target == shared.durable.load(Ordering::Relaxed) && !names {
            return Ok(self.durable());
        }
        for file in &files {
            file.sync().map_err(|error| shared.poison(&error))?;
        }
        if names {
            shared.disk.sync_dir(&shared.dir).map_err(|error| shared.poison(&error))?;
        }
        // The last one is, or was, the active file: anything written to it meanwhile is not synced yet.
        let mut unsynced = lock(&shared.unsynced);
        unsynced.files.drain(..files.len().saturating_sub(1));
        shared.durable.store(target, Ordering::Release);
        unsynced.ring(RungBy::Sync);
        drop(unsynced);
        Ok(self.durable())
    }

    /// Has a bell rung from now on, until it is dropped.
    pub fn watch(&self, bell: &Arc<Bell>, by: RungBy) {
        lock(&self.shared.unsynced).bells.push((Arc::downgrade(bell), by));
    }

    /// Everything before this is durable.
    pub fn durable(&self) -> Position {
        let offset = self.shared.durable.load(Ordering::Acquire);
        Position { generation: self.shared.generation, offset }
    }

    /// Where the newest file of the log starts.
    pub fn newest_file(&self) -> Position {
        let offset = self.shared.newest_file.load(Ordering::Acquire);
        Position { generation: self.shared.generation, offset }
    }

    /// Everything before this is written to the file.
    pub fn committed(&self) -> Position {
        Position { generation: self.shared.generation, offset: lock(&self.shared.unsynced).committed }
    }
}
