//! Files that are open: all who have one open see the same bytes, as they were when the first opened it, and what is written
//! since. What was written goes to the store when a writer closes the file.

use std::collections::HashMap;
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::rrdcached::files::{FileStat, Rights};
use rrd_file::FILE_BYTES_MAX;
use rustix::io::Errno;

use crate::attributes::now;
use crate::meaning::{Meaning, is_rrd, last_update, meaning};
use crate::scratch::{BYTES_MAX, Scratch, is_temporary};
use crate::store::{Image, Result, Store};

/// How every file of an RRD begins.
const MAGIC: &[u8] = b"RRD\0";

/// A file that is open, or being made.
#[derive(Debug)]
pub struct OpenFile {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    bytes: Arc<Vec<u8>>,
    /// The RRD as it is in the store; `None` for a file that is being made.
    stored: Option<Image>,
    rights: Option<Rights>,
    modified: (i64, u32),
    /// Something was written that the store does not have.
    dirty: bool,
    /// Something was ever written.
    written: bool,
    /// The bytes are still to be asked for: the kernel had them when the file was opened.
    lacking: bool,
    /// The name is gone.
    removed: bool,
    /// What the store has is known no more: it was made of this file, or changed meanwhile.
    sealed: bool,
    opens: u32,
}

/// What became of a file that was closed.
#[derive(Clone, Debug)]
pub enum Closed {
    /// Others have it open.
    StillOpen,
    /// It was not written to.
    Unchanged(Image),
    /// No program asked for its bytes.
    Unread,
    /// It was written to.
    Changed,
    /// It is a file that no store has.
    Scratch,
}

impl OpenFile {
    /// The file of an RRD.
    pub fn of(image: Image) -> Arc<Self> {
        let (stat, bytes) = (image.stat, Arc::clone(&image.bytes));
        Self::with(bytes, Some(image), stat.rights, stat.modified)
    }

    /// The file of an RRD of this version, all of whose bytes the kernel had a moment ago.
    pub fn of_kernel(stat: FileStat, version: u64) -> Arc<Self> {
        let file = Self::of(Image { stat, version, bytes: Arc::default() });
        file.lock().lacking = true;
        file
    }

    /// A new, empty file.
    pub fn new_empty(mode: u32, (user, group): (u32, u32)) -> Arc<Self> {
        Self::with(Arc::default(), None, Some(Rights { mode, user, group }), now())
    }

    fn with(
        bytes: Arc<Vec<u8>>,
        stored: Option<Image>,
        rights: Option<Rights>,
        modified: (i64, u32),
    ) -> Arc<Self> {
        let state = State {
            bytes,
            stored,
            rights,
            modified,
            dirty: false,
            written: false,
            lacking: false,
            removed: false,
            sealed: false,
            opens: 0,
        };
        Arc::new(OpenFile { state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens it once more.
    ///
    /// # Errors
    /// ESTALE when what it says is not what the store says any more.
    fn open_again(&self) -> Result {
        let mut state = self.lock();
        if state.sealed {
            return Err(Errno::STALE);
        }
        state.opens += 1;
        Ok(())
    }

    /// Whether who opens it now may have to be refused.
    fn is_outdated(&self) -> bool {
        let state = self.lock();
        state.sealed || state.lacking
    }

    /// Whether its bytes are still to be asked for.
    pub fn is_lacking(&self) -> bool {
        self.lock().lacking
    }

    /// Asks for its bytes, if that is still to be done; `kept` may be them.
    ///
    /// # Errors
    /// ESTALE when the RRD was changed since the file was opened: what the kernel has may be of that moment.
    pub fn load(&self, store: &Store, path: &[u8], kept: Option<Image>) -> Result {
        let mut state = self.lock();
        let Some(stored) = state.stored.clone().filter(|_| state.lacking) else { return Ok(()) };
        let image = match kept.filter(|kept| kept.version == stored.version) {
            Some(kept) => kept,
            None => store.image(path, None).map_err(|error| match error {
                Errno::NOENT => Errno::STALE,
                error => error,
            })?,
        };
        if image.version != stored.version {
            return Err(Errno::STALE);
        }
        state.bytes = Arc::clone(&image.bytes);
        state.stored = Some(Image { stat: stored.stat, ..image });
        state.lacking = false;
        Ok(())
    }

    /// The version whose bytes these are, if nothing else was written.
    pub fn version(&self) -> Option<u64> {
        let state = self.lock();
        state.stored.as_ref().filter(|_| !state.written).map(|stored| stored.version)
    }

    /// Its bytes.
    pub fn content(&self) -> Arc<Vec<u8>> {
        Arc::clone(&self.lock().bytes)
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> u64 {
        self.lock().size()
    }

    /// What `stat(2)` says.
    pub fn stat(&self) -> FileStat {
        let state = self.lock();
        FileStat { bytes: state.size(), modified: state.modified, rights: state.rights }
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// EINVAL for what is no RRD, EFBIG and ENOSPC.
    pub fn write(&self, scratch: &Scratch, offset: u64, data: &[u8]) -> Result {
        let compared = data.len().min(MAGIC.len());
        if offset == 0 && data[..compared] != MAGIC[..compared] {
            return Err(Errno::INVAL);
        }
        let end = offset.checked_add(data.len() as u64).ok_or(Errno::FBIG)?;
        self.make_room(scratch, end)?;
        let mut state = self.lock();
        let bytes = Arc::make_mut(&mut state.bytes);
        if bytes.len() < end as usize {
            bytes.resize(end as usize, 0);
        }
        bytes[offset as usize..end as usize].copy_from_slice(data);
        state.changed();
        Ok(())
    }

    /// Cuts it off or extends it by zeros.
    ///
    /// # Errors
    /// EFBIG and ENOSPC.
    pub fn resize(&self, scratch: &Scratch, bytes: u64) -> Result {
        self.make_room(scratch, bytes)?;
        let mut state = self.lock();
        if state.bytes.len() as u64 != bytes {
            Arc::make_mut(&mut state.bytes).resize(bytes as usize, 0);
            state.changed();
        }
        Ok(())
    }

    fn make_room(&self, scratch: &Scratch, bytes: u64) -> Result {
        let has = self.bytes();
        if bytes > FILE_BYTES_MAX {
            return Err(Errno::FBIG);
        }
        // Checked by the megabyte: counting goes through all files.
        if bytes > has && bytes >> 20 > has >> 20 && scratch.bytes() + (bytes - has) > BYTES_MAX {
            return Err(Errno::NOSPC);
        }
        Ok(())
    }

    /// Gives a file that no store has other rights or another time.
    pub fn set_rights(&self, change: impl FnOnce(&mut Rights), modified: Option<(i64, u32)>) {
        let mut state = self.lock();
        if let Some(rights) = &mut state.rights {
            change(rights);
        }
        if let Some(modified) = modified {
            state.modified = modified;
        }
    }

    /// Its name is gone: what is written from now on goes nowhere.
    pub fn removed(&self) {
        self.lock().removed = true;
    }

    /// Whether no store has it.
    pub fn is_new(&self) -> bool {
        let state = self.lock();
        state.stored.is_none() && !state.sealed
    }

    /// Gives the store what was written; `None` = no name leads to it any more.
    ///
    /// # Errors
    /// EINVAL when it is no RRD; ESTALE when the RRD was changed meanwhile: it stays what it is then.
    pub fn commit(&self, store: &Store, path: Option<&[u8]>) -> Result {
        let mut state = self.lock();
        if !state.dirty || state.removed {
            return Ok(());
        }
        let path = path.filter(|_| !state.sealed).ok_or(Errno::STALE)?;
        let Some(stored) = state.stored.clone() else {
            if !state.bytes.is_empty() && !is_temporary(path) {
                state.import(store, path, false)?;
            }
            return Ok(());
        };
        let version = match meaning(&stored.bytes, &state.bytes) {
            Meaning::Same => Ok(stored.version),
            Meaning::Update(reading) => store.update(path, stored.version, &reading),
            Meaning::Whole => store.replace(path, stored.version, &state.bytes),
            Meaning::Nonsense => Err(Errno::INVAL),
        };
        match version {
            Ok(version) => {
                state.modified = last_update(&state.bytes).unwrap_or(state.modified);
                state.stored = Some(Image { version, bytes: Arc::clone(&state.bytes), ..stored });
                state.dirty = false;
                Ok(())
            }
            // The rest may still come.
            Err(Errno::INVAL) => Err(Errno::INVAL),
            Err(error) => {
                state.sealed = true;
                state.dirty = false;
                Err(error)
            }
        }
    }

    /// Has the store take in a file that was made here.
    ///
    /// # Errors
    /// EINVAL when it is no RRD; EEXIST.
    pub fn import(&self, store: &Store, path: &[u8], no_overwrite: bool) -> Result {
        self.lock().import(store, path, no_overwrite)
    }

    /// One has closed it who had opened it.
    pub fn close(&self) -> Closed {
        let mut state = self.lock();
        state.opens = state.opens.saturating_sub(1);
        match (&state.stored, state.opens) {
            (_, 1..) => Closed::StillOpen,
            (Some(_), 0) if state.lacking => Closed::Unread,
            (Some(stored), 0) if !state.written => Closed::Unchanged(stored.clone()),
            (None, 0) if !state.sealed => Closed::Scratch,
            _ => Closed::Changed,
        }
    }
}

impl State {
    fn size(&self) -> u64 {
        match &self.stored {
            Some(stored) if self.lacking => stored.stat.bytes,
            _ => self.bytes.len() as u64,
        }
    }

    fn changed(&mut self) {
        (self.dirty, self.written, self.modified) = (true, true, now());
    }

    fn import(&mut self, store: &Store, path: &[u8], no_overwrite: bool) -> Result {
        if !is_rrd(&self.bytes) {
            return Err(Errno::INVAL);
        }
        store.import(path, &self.bytes, no_overwrite)?;
        (self.sealed, self.dirty) = (true, false);
        Ok(())
    }
}

/// What a program holds open.
#[derive(Clone, Debug)]
pub enum Handle {
    /// A file that is shared with all who have it open.
    Shared {
        /// Its number.
        number: u64,
        /// The file.
        file: Arc<OpenFile>,
        /// It was opened for writing.
        writes: bool,
    },
    /// A file outside of the store.
    Extra(Arc<File>),
}

/// Everything that is open.
#[derive(Debug, Default)]
pub struct OpenFiles {
    state: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    handles: HashMap<u64, Handle>,
    files: HashMap<u64, Arc<OpenFile>>,
    last: u64,
}

impl OpenFiles {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file of a number, if it is open.
    pub fn file(&self, number: u64) -> Option<Arc<OpenFile>> {
        self.lock().files.get(&number).cloned()
    }

    /// Opens the file of a number that is open already; `None` = it is not.
    ///
    /// # Errors
    /// ESTALE when it is not what the store has any more.
    pub fn share(&self, number: u64, writes: bool) -> Result<Option<u64>> {
        self.lock().share(number, writes)
    }

    /// Opens `file` under a number, or the file that another thread has opened under it meanwhile. Returns the handle and
    /// whether it was `file`. Before anyone has `file`, `prepare` is called, while no file is open under that number.
    ///
    /// # Errors
    /// As [`OpenFiles::share`]; that of `prepare`, and then nothing is opened.
    pub fn open(
        &self,
        number: u64,
        file: Arc<OpenFile>,
        writes: bool,
        prepare: impl FnOnce() -> Result,
    ) -> Result<(u64, bool)> {
        // Under one lock: a number has one file, because the kernel has the pages of one.
        let mut table = self.lock();
        if let Some(handle) = table.share(number, writes)? {
            return Ok((handle, false));
        }
        prepare()?;
        file.open_again()?;
        table.files.insert(number, Arc::clone(&file));
        Ok((table.hold(Handle::Shared { number, file, writes }), true))
    }

    /// Calls `then` if a file is open under a number that those who open it now cannot use.
    pub fn if_outdated(&self, number: u64, then: impl FnOnce()) {
        let table = self.lock();
        if table.files.get(&number).is_some_and(|file| file.is_outdated()) {
            then();
        }
    }

    /// Opens a file outside of the store.
    pub fn open_extra(&self, file: File) -> u64 {
        self.lock().hold(Handle::Extra(Arc::new(file)))
    }

    /// What a handle stands for.
    ///
    /// # Errors
    /// EBADF.
    pub fn get(&self, handle: u64) -> Result<Handle> {
        self.lock().handles.get(&handle).cloned().ok_or(Errno::BADF)
    }

    /// Closes a handle; what became of its file, with its number.
    pub fn close(&self, handle: u64) -> Option<(u64, Arc<OpenFile>, Closed)> {
        let mut table = self.lock();
        let Handle::Shared { number, file, .. } = table.handles.remove(&handle)? else { return None };
        let closed = file.close();
        if !matches!(closed, Closed::StillOpen) {
            table.files.remove(&number);
        }
        Some((number, file, closed))
    }
}

impl Table {
    fn share(&mut self, number: u64, writes: bool) -> Result<Option<u64>> {
        let Some(file) = self.files.get(&number).cloned() else { return Ok(None) };
        file.open_again()?;
        Ok(Some(self.hold(Handle::Shared { number, file, writes })))
    }

    fn hold(&mut self, handle: Handle) -> u64 {
        self.last += 1;
        self.handles.insert(self.last, handle);
        self.last
    }
}
