//! Files of a store that have not come yet: a restore is served while they come.
//!
//! [`AwaitedDisk`] is a disk on which they are there already. A read of a part that has not come has it fetched, and only that
//! read waits; [`Awaited::fill`] fetches the rest meanwhile. Until a file is whole it has another name on the disk below, so
//! that nothing takes it for the file that it will be; a crash costs what had come of it. At last the file RESTORING goes, and
//! the store is one like any other. Where parts come from, a [`PartSource`] knows: nothing here waits for a network by itself.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::disk::{Advice, Disk, DiskFile, Mode};
use crate::error::OpenError;
use crate::filenames;
use crate::lock::lock;

/// The first pause after a failure of the source; it doubles.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest one.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How soon a pause ends when the store stops.
const LOOK: Duration = Duration::from_millis(50);

/// A file that comes later. On the disk it is there under another name ([`filenames::awaited`]), with all of its length and
/// the bytes at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedFile {
    /// Its path in the store.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// So many bytes at its end are there.
    pub end: u64,
}

/// A part as its source has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchedPart {
    /// Its bytes.
    Bytes(Vec<u8>),
    /// It is lost for good: what says so. It leaves a hole, which the store finds like any other damage.
    Lost(String),
}

/// Where parts come from.
pub trait PartSource: Send + Sync {
    /// How long parts are, in bytes; the last one of a file may be shorter.
    fn part_bytes(&self) -> u64;
    /// Fetches a part. Called by several threads at once, which wait for it.
    ///
    /// # Errors
    /// When it cannot be had now, but perhaps later.
    fn fetch(&self, path: &Path, part: u64) -> io::Result<FetchedPart>;
    /// Has all fetches end soon, by failing.
    fn stop(&self) {}
}

/// How far the files have come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coming {
    /// Bytes of all that were awaited when the store was opened.
    pub total: u64,
    /// Bytes that have not come.
    pub left: u64,
    /// What says which parts are lost.
    pub lost: Vec<String>,
    /// Why the last fetch failed; `None` after one that did not.
    pub failure: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartState {
    Absent,
    Fetching,
    There,
}

/// A file that has not come whole.
struct File {
    path: PathBuf,
    bytes: u64,
    /// What is there from the beginning: from here to the end.
    end_from: u64,
    parts: Mutex<Vec<PartState>>,
    changed: Condvar,
    /// Threads that have waited for a part that another one fetches.
    #[cfg(test)]
    waits: AtomicUsize,
    is_whole: AtomicBool,
    /// Open as long as someone reads, under whatever name.
    file: Arc<dyn DiskFile>,
}

/// The files that have not come yet, of one store.
pub struct Awaited {
    disk: Arc<dyn Disk>,
    source: Box<dyn PartSource>,
    total: u64,
    files: Mutex<BTreeMap<PathBuf, Arc<File>>>,
    lost: Mutex<Vec<String>>,
    failure: Mutex<Option<String>>,
    is_stopped: AtomicBool,
}

impl std::fmt::Debug for Awaited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} files to come", lock(&self.files).len())
    }
}

impl Awaited {
    /// The files of `named` that have not come whole; others may have, or were merged meanwhile.
    ///
    /// # Errors
    /// The disk's.
    pub fn new(
        disk: Arc<dyn Disk>,
        named: Vec<AwaitedFile>,
        source: Box<dyn PartSource>,
    ) -> io::Result<Arc<Awaited>> {
        let mut files = BTreeMap::new();
        for AwaitedFile { path, bytes, end } in named {
            let file = match disk.open(&filenames::awaited(&path), Mode::Write) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            let count = bytes.div_ceil(source.part_bytes().max(1));
            let file = File {
                path: path.clone(),
                bytes,
                end_from: bytes.saturating_sub(end),
                parts: Mutex::new(vec![PartState::Absent; count as usize]),
                changed: Condvar::new(),
                #[cfg(test)]
                waits: AtomicUsize::new(0),
                is_whole: AtomicBool::new(false),
                file,
            };
            files.insert(path, Arc::new(file));
        }
        let total = files.values().map(|file| file.bytes).sum();
        let awaited = Awaited {
            disk,
            source,
            total,
            files: Mutex::new(files),
            lost: Mutex::default(),
            failure: Mutex::default(),
            is_stopped: AtomicBool::new(false),
        };
        awaited.end_if_all_there()?;
        Ok(Arc::new(awaited))
    }

    /// How far they have come.
    pub fn coming(&self) -> Coming {
        let files: Vec<_> = lock(&self.files).values().cloned().collect();
        let left = files.iter().map(|file| file.bytes_left(self.source.part_bytes())).sum();
        let (lost, failure) = (lock(&self.lost).clone(), lock(&self.failure).clone());
        Coming { total: self.total, left, lost, failure }
    }

    /// Has reads of what has not come fail, and [`Awaited::fill`] return.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        self.source.stop();
    }

    /// Fetches all parts, the newest files first, on so many threads, until all have come or it is stopped. Failures are
    /// waited out.
    pub fn fill(&self, threads: usize) {
        // More than once when the disk has failed at the end of a file, which comes again then.
        while !lock(&self.files).is_empty() && !self.is_stopped.load(Ordering::SeqCst) {
            self.fetch_all(threads);
        }
    }

    fn fetch_all(&self, threads: usize) {
        let mut files: Vec<_> = lock(&self.files).values().cloned().collect();
        // Numbers of files grow with time.
        files.sort_by(|one, other| other.path.file_name().cmp(&one.path.file_name()));
        let parts: Vec<(Arc<File>, u64)> = files
            .into_iter()
            .flat_map(|file| {
                let count = lock(&file.parts).len() as u64;
                (0..count).map(move |part| (Arc::clone(&file), part))
            })
            .collect();
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some((file, part)) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if self.is_stopped.load(Ordering::SeqCst) {
                            break;
                        }
                        self.fetch_until_there(file, *part);
                    }
                });
            }
        });
    }

    /// Fetches a part, again after each failure, unless it is no longer needed.
    fn fetch_until_there(&self, file: &Arc<File>, part: u64) {
        let mut pause = PAUSE_MIN;
        while lock(&self.files).contains_key(&file.path) && !self.is_stopped.load(Ordering::SeqCst) {
            match self.bring(file, part) {
                Ok(()) => return,
                Err(error) => tracing::debug!(%error, "a part of a file has not come"),
            }
            let mut waited = Duration::ZERO;
            while waited < pause && !self.is_stopped.load(Ordering::SeqCst) {
                std::thread::sleep(LOOK);
                waited += LOOK;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Sees to it that a part is there. Of several threads one fetches it, and the others wait; when it fails, for all of them.
    fn bring(&self, file: &Arc<File>, part: u64) -> io::Result<()> {
        let index = part as usize;
        let mut parts = lock(&file.parts);
        let mut has_waited = false;
        loop {
            match parts.get(index) {
                Some(PartState::Absent) if has_waited => {
                    let why = lock(&self.failure).clone();
                    return Err(io::Error::other(why.unwrap_or_else(|| "it could not be fetched".into())));
                }
                Some(PartState::Absent) => break,
                Some(PartState::Fetching) => {
                    #[cfg(test)]
                    file.waits.fetch_add(usize::from(!has_waited), Ordering::SeqCst);
                    has_waited = true;
                    parts = file.changed.wait(parts).unwrap_or_else(PoisonError::into_inner);
                }
                Some(PartState::There) | None => return Ok(()),
            }
        }
        parts[index] = PartState::Fetching;
        drop(parts);
        let fetched = self.fetch(file, part);
        *lock(&self.failure) = fetched.as_ref().err().map(ToString::to_string);
        let mut parts = lock(&file.parts);
        parts[index] = if fetched.is_ok() { PartState::There } else { PartState::Absent };
        let is_whole = parts.iter().all(|part| *part == PartState::There);
        drop(parts);
        file.changed.notify_all();
        fetched?;
        if is_whole { self.complete(file).inspect_err(|error| self.fetch_again(file, error)) } else { Ok(()) }
    }

    /// Has all of a file come again: which of its bytes a disk has that failed at its end, is not known.
    fn fetch_again(&self, file: &File, error: &io::Error) {
        tracing::warn!(%error, file = %file.path.display(), "a file that has come could not be completed; it comes again");
        *lock(&self.failure) = Some(error.to_string());
        lock(&file.parts).fill(PartState::Absent);
    }

    fn fetch(&self, file: &File, part: u64) -> io::Result<()> {
        if self.is_stopped.load(Ordering::SeqCst) {
            return Err(io::Error::other("the store stops before this file of its restore has come"));
        }
        match self.source.fetch(&file.path, part)? {
            FetchedPart::Bytes(bytes) => file.file.write_at(&bytes, part * self.source.part_bytes()),
            FetchedPart::Lost(text) => {
                tracing::error!("{text}; it is lost, and with it the rows in it");
                lock(&self.lost).push(text);
                Ok(())
            }
        }
    }

    /// Gives a file that has come its name.
    fn complete(&self, file: &Arc<File>) -> io::Result<()> {
        file.file.sync()?;
        let mut files = lock(&self.files);
        // It may have been removed meanwhile.
        if !files.get(&file.path).is_some_and(|one| Arc::ptr_eq(one, file)) {
            return Ok(());
        }
        let awaited = filenames::awaited(&file.path);
        self.disk.rename(&awaited, &file.path)?;
        if let Err(error) = self.disk.sync_dir(file.path.parent().unwrap_or(Path::new(""))) {
            // If that fails, too, the next start finds out what its name is.
            let _ = self.disk.rename(&file.path, &awaited);
            return Err(error);
        }
        files.remove(&file.path);
        drop(files);
        file.is_whole.store(true, Ordering::Release);
        if let Err(error) = self.end_if_all_there() {
            tracing::warn!(%error, "all of the restore has come; the next start says so in the store");
        }
        Ok(())
    }

    /// With the last file, the restore has ended.
    fn end_if_all_there(&self) -> io::Result<()> {
        let files = lock(&self.files);
        if !files.is_empty() {
            return Ok(());
        }
        let root = Path::new("");
        match self.disk.remove(&filenames::restoring(root)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.and_then(|()| self.disk.sync_dir(root)),
        }
    }

    fn find(&self, path: &Path) -> Option<Arc<File>> {
        lock(&self.files).get(path).cloned()
    }
}

impl File {
    fn bytes_left(&self, part_bytes: u64) -> u64 {
        let parts = lock(&self.parts);
        let absent = parts.iter().zip(0..).filter(|(part, _)| **part != PartState::There);
        absent.map(|(_, part)| part_bytes.min(self.bytes - part * part_bytes)).sum()
    }
}

/// Refuses a store whose files have not all come, to those who would take the others for damage.
///
/// # Errors
/// When it is one; the disk's.
pub fn refuse(disk: &dyn Disk) -> Result<(), OpenError> {
    match disk.exists(&filenames::restoring(Path::new(""))).map_err(OpenError::transparent)? {
        false => Ok(()),
        true => Err(OpenError::new(
            "this store's restore is not complete: `roundel serve` serves it and fetches the rest",
        )),
    }
}

/// A disk on which awaited files are there.
#[derive(Clone)]
pub struct AwaitedDisk(pub Arc<Awaited>);

impl AwaitedDisk {
    fn name(&self, path: &Path) -> PathBuf {
        match self.0.find(path) {
            Some(_) => filenames::awaited(path),
            None => path.to_owned(),
        }
    }
}

impl Disk for AwaitedDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.0.disk.create(path)
    }

    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        match self.0.find(path) {
            Some(file) => Ok(Arc::new(ReadThrough { awaited: Arc::clone(&self.0), file })),
            None => self.0.disk.open(path, mode),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let removed = {
            let mut files = lock(&self.0.files);
            match files.contains_key(path) {
                true => self.0.disk.remove(&filenames::awaited(path)).map(|()| files.remove(path)),
                false => return self.0.disk.remove(path),
            }
        };
        removed?;
        self.0.end_if_all_there()
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        // Under the lock, so that no file gets its name in between.
        let files = lock(&self.0.files);
        let mut names = self.0.disk.list(dir)?;
        names.retain(|name| *name != *filenames::restoring(Path::new("")).as_os_str());
        for name in &mut names {
            if let Some(whole) = filenames::awaited_of(name)
                && files.contains_key(&dir.join(&whole))
            {
                *name = whole;
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.0.disk.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.disk.sync_dir(dir)
    }

    fn sync_all(&self) -> io::Result<()> {
        self.0.disk.sync_all()
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        if path == filenames::restoring(Path::new("")) {
            return Err(io::ErrorKind::NotFound.into());
        }
        match self.0.disk.length(&self.name(path)) {
            // It came meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.0.disk.length(path),
            found => found,
        }
    }

    fn link_out(&self, path: &Path, to: &Path) -> io::Result<()> {
        if let Some(file) = self.0.find(path) {
            let count = lock(&file.parts).len() as u64;
            (0..count).try_for_each(|part| self.0.bring(&file, part))?;
        }
        let files = lock(&self.0.files);
        // All of it is there, but it may not have its name yet.
        match files.contains_key(path) {
            true => self.0.disk.link_out(&filenames::awaited(path), to),
            false => self.0.disk.link_out(path, to),
        }
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.0.disk.free_bytes()
    }
}

/// An awaited file, open for reading.
struct ReadThrough {
    awaited: Arc<Awaited>,
    file: Arc<File>,
}

impl DiskFile for ReadThrough {
    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        if !self.file.is_whole.load(Ordering::Acquire) {
            let part_bytes = self.awaited.source.part_bytes();
            let end = (offset + bytes.len() as u64).min(self.file.end_from);
            if offset < end {
                (offset / part_bytes..end.div_ceil(part_bytes))
                    .try_for_each(|part| self.awaited.bring(&self.file, part))?;
            }
        }
        self.file.file.read_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.file.sync()
    }

    fn length(&self) -> io::Result<u64> {
        self.file.file.length()
    }

    fn truncate(&self, _length: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn allocate(&self, _offset: u64, _length: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn advise(&self, offset: u64, length: u64, advice: Advice) {
        self.file.file.advise(offset, length, advice);
    }

    fn try_lock(&self) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests;
