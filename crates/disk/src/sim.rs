//! A simulated disk: the same interface in memory, with the faults of real disks, chosen by a seed.
//!
//! The faults it simulates, which the store must survive:
//!
//! - [`SimDisk::crash`] is a loss of power. Of the writes to a file since its last sync there may remain all,
//!   none, a prefix cut at any byte, or any mixture of 512-byte sectors of different moments; the length is
//!   that of any moment since. The page cache writes back in any order.
//! - Of the creations, renames and removals since a directory's last sync there may remain all, none, all up
//!   to some moment, or any subset. A rename is atomic. (Journalling file systems keep their order; POSIX
//!   does not require it.) Directories themselves are durable at once, as [`Disk::create_dir_all`] promises.
//! - [`SimDisk::kill`] is a crash of the process: everything written remains, but unsynced.
//! - [`SimDisk::fail`] makes an operation fail. A failed write leaves a prefix. A failed sync drops what it
//!   should have written, as Linux does: some of it is durable, reads still show all of it, and the next sync
//!   succeeds.
//! - [`SimDisk::set_capacity`] fills the disk: as much of a write as fits is written. A larger capacity makes
//!   room again.
//! - [`SimDisk::set_shortage`] makes every operation fail that a shortage prevents, until it is over.
//! - [`SimDisk::shut_down_after`] is a file system that shuts itself down: from then on all operations fail, or all that
//!   change something; [`SimDisk::crash`] is then what the next mount finds.
//! - [`SimDisk::flip_bit`] is bit rot, and [`SimDisk::replace`] any other damage, both also of files that are open.
//!   [`SimDisk::power_off_after`] ends everything between two operations.
//!
//! It never reads short, never loses synced data, and has no permissions and no links.

mod medium;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Advice, Disk, DiskFile, Mode, Shortage};
use medium::{Medium, NameChange};

/// Operations that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// [`Disk::create`]
    Create,
    /// [`Disk::open`]
    Open,
    /// [`Disk::rename`]
    Rename,
    /// [`Disk::remove`]
    Remove,
    /// [`Disk::length`]
    Length,
    /// [`Disk::list`]
    List,
    /// [`Disk::sync_dir`]
    SyncDir,
    /// [`DiskFile::write_at`]
    Write,
    /// [`DiskFile::read_at`]
    Read,
    /// [`DiskFile::sync`]
    Sync,
    /// [`DiskFile::truncate`]
    Truncate,
    /// [`DiskFile::allocate`]
    Allocate,
}

impl Operation {
    fn verb(self) -> &'static str {
        match self {
            Operation::Create => "create",
            Operation::Open => "open",
            Operation::Rename => "rename",
            Operation::Remove => "remove",
            Operation::Length => "find",
            Operation::List => "list",
            Operation::SyncDir => "sync directory",
            Operation::Write => "write",
            Operation::Read => "read",
            Operation::Sync => "sync",
            Operation::Truncate => "truncate",
            Operation::Allocate => "allocate",
        }
    }

    fn changes_something(self) -> bool {
        !matches!(self, Operation::Open | Operation::Length | Operation::List | Operation::Read)
    }

    /// True when a shortage makes it fail. What only syncs, reads or gives back does not.
    fn needs(self, what: Shortage) -> bool {
        use Operation::{Allocate, Create, List, Open, Remove, Rename, Write};
        match what {
            Shortage::Space | Shortage::Quota => matches!(self, Create | Write | Allocate),
            Shortage::FileSize => matches!(self, Write | Allocate),
            Shortage::Descriptors => matches!(self, Create | Open | List),
            Shortage::Memory => matches!(self, Create | Open | List | Rename | Remove | Write | Allocate),
        }
    }
}

/// What a file system does once it has shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutDown {
    /// Every operation fails, as XFS does it (EIO).
    Everything,
    /// Whatever changes something fails, as ext4 does it (EROFS).
    Changes,
}

/// Operations executed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Operations that modify something, including failed ones.
    pub changes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Syncs of files.
    pub syncs: u64,
}

/// A disk in memory. Clones share its content.
#[derive(Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

struct State {
    medium: Medium,
    capacity: u64,
    planned: Vec<(Operation, u64, io::ErrorKind)>,
    changes_left: u64,
    shortage: Option<Shortage>,
    /// After this many changes it shuts down.
    shuts_down: Option<(u64, ShutDown)>,
    counts: Counts,
}

impl SimDisk {
    /// An empty disk without limits. The same seed and calls give the same faults.
    pub fn new(seed: u64) -> Self {
        SimDisk::of(Medium::new(seed))
    }

    fn of(medium: Medium) -> Self {
        let state = State {
            medium,
            capacity: u64::MAX,
            planned: Vec::new(),
            changes_left: u64::MAX,
            shortage: None,
            shuts_down: None,
            counts: Counts::default(),
        };
        SimDisk { state: Arc::new(Mutex::new(state)) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This disk for use by the store.
    pub fn handle(&self) -> Arc<dyn Disk> {
        Arc::new(self.clone())
    }

    /// Simulates a loss of power and returns the disk as found after the reboot. Every later call on this
    /// disk fails. Capacity and planned failures are not carried over.
    #[must_use]
    pub fn crash(&self) -> SimDisk {
        let mut state = self.lock();
        state.changes_left = 0;
        SimDisk::of(state.medium.after_crash())
    }

    /// Simulates a crash of the process and returns the disk as the next process finds it: everything written
    /// remains. Every later call on this disk fails. Capacity is carried over, planned failures are not.
    #[must_use]
    pub fn kill(&self) -> SimDisk {
        let mut state = self.lock();
        state.changes_left = 0;
        let next = SimDisk::of(state.medium.after_kill());
        next.lock().capacity = state.capacity;
        next
    }

    /// Makes one `operation` fail with `kind`, after `skip` successful ones.
    pub fn fail(&self, operation: Operation, skip: u64, kind: io::ErrorKind) {
        self.lock().planned.push((operation, skip, kind));
    }

    /// Limits the total bytes of all files; `u64::MAX` for no limit.
    pub fn set_capacity(&self, bytes: u64) {
        self.lock().capacity = bytes;
    }

    /// Allows `changes` more modifying operations; after that every operation fails until [`SimDisk::crash`].
    pub fn power_off_after(&self, changes: u64) {
        self.lock().changes_left = changes;
    }

    /// From now on everything is short of this, or of nothing any more.
    pub fn set_shortage(&self, shortage: Option<Shortage>) {
        self.lock().shortage = shortage;
    }

    /// Shuts the file system down after `changes` more modifying operations, until [`SimDisk::crash`].
    pub fn shut_down_after(&self, changes: u64, how: ShutDown) {
        self.lock().shuts_down = Some((changes, how));
    }

    /// Replaces the content of a file, on the disk and for every reader, as damage does.
    ///
    /// # Errors
    /// `NotFound` when there is no such file.
    pub fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.lock().medium.replace(path, bytes).ok_or_else(|| not_found("replace", path))
    }

    /// Flips a bit of a file, on the disk and for every reader. What was written becomes durable.
    ///
    /// # Errors
    /// `NotFound` when there is no such file or bit.
    pub fn flip_bit(&self, path: &Path, bit: u64) -> io::Result<()> {
        self.lock().medium.flip_bit(path, bit).ok_or_else(|| not_found("flip a bit of", path))
    }

    /// Total bytes of all files.
    pub fn used_bytes(&self) -> u64 {
        self.lock().medium.used_bytes()
    }

    /// Operations executed so far.
    pub fn counts(&self) -> Counts {
        self.lock().counts
    }
}

impl State {
    /// Counts an operation; fails when it is due to fail.
    fn enter(&mut self, operation: Operation, path: &Path) -> io::Result<()> {
        let failed = |kind: io::ErrorKind, cause: &str| {
            io::Error::new(kind, format!("cannot {} {}: {cause}", operation.verb(), path.display()))
        };
        if self.changes_left == 0 {
            return Err(failed(io::ErrorKind::Other, "the power is off"));
        }
        if let Some(how) = self.is_down()
            && (how == ShutDown::Everything || operation.changes_something())
        {
            return Err(match how {
                ShutDown::Everything => failed(io::ErrorKind::Other, "the file system has shut down"),
                ShutDown::Changes => failed(io::ErrorKind::ReadOnlyFilesystem, "it is read-only now"),
            });
        }
        if let Some(shortage) = self.shortage.filter(|shortage| operation.needs(*shortage)) {
            return Err(failed(shortage.kind(), &shortage.to_string()));
        }
        if operation.changes_something() {
            if let Some((changes, _)) = &mut self.shuts_down {
                *changes -= 1;
            }
            self.counts.changes += 1;
            if self.changes_left != u64::MAX {
                self.changes_left -= 1;
            }
        }
        let mut fault = None;
        self.planned.retain_mut(|(planned, skip, kind)| {
            if *planned != operation || fault.is_some() {
                return true;
            }
            if *skip == 0 {
                fault = Some(*kind);
                return false;
            }
            *skip -= 1;
            true
        });
        fault.map_or(Ok(()), |kind| Err(failed(kind, "a planned failure")))
    }

    fn is_down(&self) -> Option<ShutDown> {
        self.shuts_down.filter(|(changes, _)| *changes == 0).map(|(_, how)| how)
    }

    /// How many more bytes files may have.
    fn room(&self) -> u64 {
        self.capacity.saturating_sub(self.medium.used_bytes())
    }
}

fn not_found(verb: &str, path: &Path) -> io::Error {
    let text = format!("cannot {verb} {}: no such file or directory", path.display());
    io::Error::new(io::ErrorKind::NotFound, text)
}

fn storage_full(verb: &str, path: &Path) -> io::Error {
    let text = format!("cannot {verb} {}: no space left on device", path.display());
    io::Error::new(io::ErrorKind::StorageFull, text)
}

impl Disk for SimDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.lock();
        state.enter(Operation::Create, path)?;
        if !state.medium.has_dir(parent(path)) {
            return Err(not_found("create", path));
        }
        if state.medium.find(path).is_some() || state.medium.has_dir(path) {
            let text = format!("cannot create {}: file exists", path.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        let inode = state.medium.create(path);
        Ok(self.file(inode, path, Mode::Write))
    }

    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.lock();
        state.enter(Operation::Open, path)?;
        let inode = state.medium.find(path).ok_or_else(|| not_found("open", path))?;
        Ok(self.file(inode, path, mode))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.enter(Operation::Rename, from)?;
        let inode = state.medium.find(from).filter(|_| state.medium.has_dir(parent(to)));
        let inode = inode.ok_or_else(|| not_found("rename", from))?;
        state.medium.change_name(NameChange::Rename(from.to_owned(), to.to_owned(), inode));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.enter(Operation::Remove, path)?;
        state.medium.find(path).ok_or_else(|| not_found("remove", path))?;
        state.medium.change_name(NameChange::Unlink(path.to_owned()));
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let mut state = self.lock();
        state.enter(Operation::List, dir)?;
        if state.medium.has_dir(dir) { Ok(state.medium.list(dir)) } else { Err(not_found("list", dir)) }
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.enter(Operation::SyncDir, dir)?;
        state.medium.create_dir_all(dir);
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.enter(Operation::SyncDir, dir)?;
        if !state.medium.has_dir(dir) {
            return Err(not_found("sync directory", dir));
        }
        state.medium.sync_dir(dir);
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.enter(Operation::Sync, Path::new(""))?;
        state.medium.sync_all();
        Ok(())
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        let mut state = self.lock();
        state.enter(Operation::Length, path)?;
        match state.medium.find(path) {
            Some(inode) => Ok(state.medium.file(inode).bytes().length()),
            None if state.medium.has_dir(path) => Ok(0),
            None => Err(not_found("find", path)),
        }
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(self.lock().room())
    }
}

impl SimDisk {
    fn file(&self, inode: u64, path: &Path, mode: Mode) -> Arc<dyn DiskFile> {
        Arc::new(SimFile {
            disk: self.clone(),
            inode,
            path: path.to_owned(),
            mode,
            locked: Mutex::new(false),
        })
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// An open file; it stays usable when it is renamed or removed.
struct SimFile {
    disk: SimDisk,
    inode: u64,
    path: PathBuf,
    mode: Mode,
    /// True while this open file holds the lock.
    locked: Mutex<bool>,
}

impl SimFile {
    fn enter(&self, operation: Operation) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.disk.lock();
        state.enter(operation, &self.path)?;
        if self.mode == Mode::Read && matches!(operation, Operation::Write | Operation::Truncate) {
            let text = format!("cannot {} {}: opened to read", operation.verb(), self.path.display());
            return Err(io::Error::other(text));
        }
        Ok(state)
    }
}

impl DiskFile for SimFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = match self.enter(Operation::Write) {
            Ok(state) => state,
            Err(error) => {
                let mut state = self.disk.lock();
                if state.changes_left > 0 && state.is_down().is_none() && self.mode == Mode::Write {
                    let count = state.medium.below(bytes.len() as u64 + 1) as usize;
                    state.medium.write(self.inode, offset, &bytes[..count]);
                }
                return Err(error);
            }
        };
        state.counts.writes += 1;
        let length = state.medium.file(self.inode).bytes().length();
        let may_reach = length.saturating_add(state.room());
        let fits = (may_reach.max(length).saturating_sub(offset)).min(bytes.len() as u64);
        state.counts.bytes_written += fits;
        state.medium.write(self.inode, offset, &bytes[..fits as usize]);
        if fits < bytes.len() as u64 { Err(storage_full("write", &self.path)) } else { Ok(()) }
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.enter(Operation::Read)?;
        Ok(state.medium.file(self.inode).bytes().read(bytes, offset))
    }

    fn sync(&self) -> io::Result<()> {
        match self.enter(Operation::Sync) {
            Ok(mut state) => {
                state.counts.syncs += 1;
                state.medium.sync(self.inode);
                Ok(())
            }
            Err(error) => {
                let mut state = self.disk.lock();
                if state.changes_left > 0 && state.is_down().is_none() {
                    state.medium.fail_to_sync(self.inode);
                }
                Err(error)
            }
        }
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.enter(Operation::Read)?.medium.file(self.inode).bytes().length())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let mut state = self.enter(Operation::Truncate)?;
        let now = state.medium.file(self.inode).bytes().length();
        if length.saturating_sub(now) > state.room() {
            return Err(storage_full("truncate", &self.path));
        }
        state.medium.set_length(self.inode, length);
        Ok(())
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        let mut state = self.enter(Operation::Allocate)?;
        let now = state.medium.file(self.inode).bytes().length();
        let end = offset.saturating_add(length);
        if end.saturating_sub(now) > state.room() {
            return Err(storage_full("allocate", &self.path));
        }
        if end > now {
            state.medium.set_length(self.inode, end);
        }
        Ok(())
    }

    fn advise(&self, _offset: u64, _length: u64, _advice: Advice) {}

    fn try_lock(&self) -> io::Result<bool> {
        let mut state = self.enter(Operation::Read)?;
        let mut mine = self.locked.lock().unwrap_or_else(PoisonError::into_inner);
        *mine = *mine || state.medium.lock(self.inode);
        Ok(*mine)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        if *self.locked.lock().unwrap_or_else(PoisonError::into_inner) {
            self.disk.lock().medium.unlock(self.inode);
        }
    }
}

#[cfg(test)]
mod tests;
