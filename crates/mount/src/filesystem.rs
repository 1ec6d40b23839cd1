//! The kernel's requests, answered by the rest of this crate.

mod changes;
mod glue;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fuser::{FileAttr, Notifier};
use protocol::rrdcached::files::{Entry, FileStat};
use rustix::io::Errno;

use crate::ahead::ReadAhead;
use crate::attributes::{Owner, now, time};
use crate::directory::Listing;
use crate::extra::{Extra, Found};
use crate::images::Images;
use crate::inodes::{Inodes, Pages};
use crate::latecomers::Latecomers;
use crate::listers::Listers;
use crate::open::{Closed, Handle, OpenFile, OpenFiles};
use crate::options::Options;
use crate::scratch::{Scratch, is_temporary};
use crate::store::{Image, Result, Since, Store};

/// Bytes of a new name.
const NAME_BYTES_MAX: u32 = 255;

/// A mounted store.
#[derive(Debug)]
pub struct Mounted {
    store: Store,
    owner: Owner,
    inodes: Arc<Mutex<Inodes>>,
    open: OpenFiles,
    images: Arc<Images>,
    ahead: ReadAhead,
    latecomers: Latecomers,
    scratch: Scratch,
    extra: Option<Extra>,
    listers: Listers,
    listings: Mutex<HashMap<u64, Arc<Mutex<Listing>>>>,
    last_listing: AtomicU64,
    /// When names were changed here the last time: the time of all directories.
    changed_seconds: AtomicI64,
    /// Tells the kernel what is not so any more.
    notifier: Arc<Mutex<Option<Notifier>>>,
}

/// What stands at a path.
#[derive(Debug)]
enum Stands {
    Directory,
    Scratch(Arc<OpenFile>),
    Extra(FileStat),
    Socket(FileStat),
    Rrd(FileStat),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mounted {
    /// The store, mounted by these options.
    ///
    /// # Errors
    /// When the system has no thread for what is read ahead.
    pub fn new(
        store: Store,
        options: &Options,
        notifier: Arc<Mutex<Option<Notifier>>>,
    ) -> std::io::Result<Self> {
        let (images, inodes) = (Arc::<Images>::default(), Arc::<Mutex<Inodes>>::default());
        Ok(Mounted {
            ahead: ReadAhead::start(store.another(), Arc::clone(&images), Arc::clone(&inodes))?,
            latecomers: Latecomers::start(store.another(), Arc::clone(&inodes))?,
            store,
            owner: Owner::of(options),
            inodes,
            open: OpenFiles::default(),
            images,
            scratch: Scratch::default(),
            extra: options.extra.clone().map(Extra::new),
            listers: Listers::default(),
            listings: Mutex::default(),
            last_listing: AtomicU64::new(0),
            changed_seconds: AtomicI64::new(now().0),
            notifier,
        })
    }

    fn path(&self, number: u64) -> Result<Vec<u8>> {
        lock(&self.inodes).path(number).ok_or(Errno::NOENT)
    }

    fn path_in(&self, parent: u64, name: &[u8]) -> Result<Vec<u8>> {
        lock(&self.inodes).path_in(parent, name).ok_or(Errno::NOENT)
    }

    /// The extra directory, if it has the place for a path.
    fn extra_for(&self, path: &[u8]) -> Option<&Extra> {
        self.extra.as_ref().filter(|extra| extra.owns(path))
    }

    /// What stands at a path.
    fn find(&self, path: &[u8]) -> Result<Stands> {
        if self.scratch.is_directory(path) {
            return Ok(Stands::Directory);
        }
        if let Some(file) = self.scratch.file(path) {
            return Ok(Stands::Scratch(file));
        }
        match self.extra.as_ref().and_then(|extra| extra.find(path)) {
            Some(Found::Directory) => return Ok(Stands::Directory),
            Some(Found::File(stat)) if self.extra_for(path).is_some() => return Ok(Stands::Extra(stat)),
            Some(Found::Socket(stat)) if self.extra_for(path).is_some() => return Ok(Stands::Socket(stat)),
            _ => {}
        }
        match self.store.stat(path)? {
            Entry::Directory => Ok(Stands::Directory),
            Entry::Rrd(stat, _) => Ok(Stands::Rrd(stat)),
            Entry::Unread => Err(Errno::IO),
        }
    }

    /// What `stat(2)` says of what stands under a number.
    fn attributes_of(&self, number: u64, stands: &Stands) -> FileAttr {
        match stands {
            Stands::Directory => self.directory_attributes(number),
            Stands::Scratch(file) => self.owner.file(number, &file.stat()),
            Stands::Extra(stat) => self.owner.file(number, stat),
            Stands::Socket(stat) => self.owner.socket(number, stat),
            Stands::Rrd(stat) => {
                // Who has a file open sees the moment at which it was opened.
                let stat = self.open.file(number).map_or(*stat, |file| file.stat());
                self.told(number, &stat);
                self.owner.file(number, &stat)
            }
        }
    }

    fn directory_attributes(&self, number: u64) -> FileAttr {
        let changed = self.changed_seconds.load(Ordering::Relaxed);
        self.owner.directory(number, time((changed, 0)))
    }

    /// Notes what the kernel is told of size and time; true when it knew that.
    fn told(&self, number: u64, stat: &FileStat) -> bool {
        let (seconds, micros) = stat.modified;
        let about = stat.bytes.rotate_left(32) ^ (seconds as u64).rotate_left(20) ^ u64::from(micros);
        lock(&self.inodes).was_told(number, about)
    }

    fn attributes(&self, number: u64) -> Result<FileAttr> {
        if let Some(file) = self.open.file(number) {
            return Ok(self.owner.file(number, &file.stat()));
        }
        // The name has another number by now, or is gone: the kernel looks again.
        let path = self.path(number).map_err(|_| Errno::STALE)?;
        Ok(self.attributes_of(number, &self.find(&path)?))
    }

    /// Opens the file of a number. Returns the handle, and whether the kernel's pages of it may stay.
    ///
    /// # Errors
    /// ESTALE when it is another number's by now: the kernel looks up the name once more.
    fn open_file(&self, number: u64, writes: bool) -> Result<(u64, bool)> {
        let opened = self.open_number(number, writes);
        if !matches!(opened, Err(Errno::STALE)) {
            return opened;
        }
        let mut is_outdated = false;
        self.open.if_outdated(number, || {
            lock(&self.inodes).renumber(number);
            is_outdated = true;
        });
        // Else it was changed while it was opened.
        if is_outdated { opened } else { self.open_number(number, writes) }
    }

    fn open_number(&self, number: u64, writes: bool) -> Result<(u64, bool)> {
        if let Some(handle) = self.open.share(number, writes)? {
            return self.with_bytes(handle, writes).map(|()| (handle, true));
        }
        let path = self.path(number).map_err(|_| Errno::STALE)?;
        if let Some(file) = self.scratch.file(&path) {
            let stat = file.stat();
            let (handle, _) = self.open.open(number, file, writes, || {
                self.prepare_pages(number, None, &stat);
                Ok(())
            })?;
            return Ok((handle, true));
        }
        if let Some(extra) = self.extra_for(&path)
            && matches!(extra.find(&path), Some(Found::File(_)))
        {
            return Ok((self.open.open_extra(extra.open(&path, writes, None)?), false));
        }
        let kept = self.images.take(&path);
        // What the kernel has need not be asked for again. Who writes needs it, to compare.
        let of_kernel = lock(&self.inodes).whole_pages(number).filter(|_| kept.is_none() && !writes);
        let (file, version, stat) = match of_kernel {
            Some(version) => match self.store.image_since(&path, Some(version))? {
                Since::Unchanged(stat) => (OpenFile::of_kernel(stat, version), version, stat),
                Since::Changed(image) => self.of_image(&path, image, writes),
            },
            None => self.of_image(&path, self.store.image(&path, kept)?, writes),
        };
        let mut pages = Pages::Same;
        let prepare = || {
            pages = self.prepare_pages(number, Some(version), &stat);
            // Another program may have written it since the daemon was asked.
            if file.is_lacking() && pages != Pages::Same { Err(Errno::STALE) } else { Ok(()) }
        };
        let (handle, is_first) = self.open.open(number, Arc::clone(&file), writes, prepare)?;
        let is_needed = is_first && file.is_lacking() && !self.latecomers.watch(number, &file);
        self.with_bytes(handle, writes || is_needed)?;
        Ok((handle, pages != Pages::Empty))
    }

    /// Has the kernel drop its pages of a file that is about to be opened and that no program has open, unless they are of this
    /// version. What it had, it has then as this says.
    ///
    /// The answer to `open` is too late for that: a program that opens the file as the second one can have its answer before
    /// the kernel has done what that to the first one says. It would see old pages, and write new ones among the file's.
    fn prepare_pages(&self, number: u64, version: Option<u64>, stat: &FileStat) -> Pages {
        let pages = lock(&self.inodes).gets_pages_of(number, version);
        let was_told = self.told(number, stat);
        // It would else look at the size of before, for a second.
        let from = if pages == Pages::Other { 0 } else { -1 };
        if (pages == Pages::Other || !was_told)
            && let Some(notifier) = &*lock(&self.notifier)
        {
            notifier.inval_inode(fuser::INodeNo(number), from, 0).ok();
        }
        pages
    }

    /// A file whose image was asked for to open it.
    fn of_image(&self, path: &[u8], image: Image, writes: bool) -> (Arc<OpenFile>, u64, FileStat) {
        if !writes {
            self.ahead.opened(path);
        }
        let (version, stat) = (image.version, image.stat);
        (OpenFile::of(image), version, stat)
    }

    /// Asks for the bytes of a file that others have open, if who opens it now needs them; closes it if there are none.
    fn with_bytes(&self, handle: u64, is_needed: bool) -> Result {
        if !is_needed {
            return Ok(());
        }
        let Handle::Shared { number, file, .. } = self.open.get(handle)? else { return Ok(()) };
        let loaded = self.load(number, &file);
        if loaded.is_err() {
            self.open.close(handle);
        }
        loaded
    }

    /// Asks for the bytes of a file that the kernel was to have, and has dropped.
    fn load(&self, number: u64, file: &OpenFile) -> Result {
        if !file.is_lacking() {
            return Ok(());
        }
        let path = self.path(number).map_err(|_| Errno::STALE)?;
        self.ahead.opened(&path);
        file.load(&self.store, &path, self.images.take(&path))
    }

    /// Gives the store what a program has written that closes a file.
    fn flush(&self, handle: u64) -> Result {
        match self.open.get(handle)? {
            Handle::Shared { number, file, writes: true } => self.commit(number, &file),
            Handle::Shared { .. } | Handle::Extra(_) => Ok(()),
        }
    }

    fn commit(&self, number: u64, file: &Arc<OpenFile>) -> Result {
        let path = self.path(number).ok();
        let was_new = file.is_new();
        let done = file.commit(&self.store, path.as_deref());
        if let Some(path) = path.filter(|_| was_new && !file.is_new()) {
            self.scratch.remove_this(&path, file);
            self.names_have_changed();
        }
        done
    }

    fn release(&self, handle: u64) {
        // A failure here reaches no program any more.
        self.flush(handle).ok();
        let Some((number, file, closed)) = self.open.close(handle) else { return };
        match closed {
            Closed::StillOpen | Closed::Unread | Closed::Changed => {}
            Closed::Unchanged(image) => {
                if let Ok(path) = self.path(number) {
                    self.images.put(path, image);
                }
            }
            Closed::Scratch => self.keep_or_drop(number, &file),
        }
    }

    /// A new file that is closed stays if it is empty or has a temporary name; else it is no RRD, as its writer was told.
    fn keep_or_drop(&self, number: u64, file: &Arc<OpenFile>) {
        if let Ok(path) = self.path(number)
            && file.bytes() > 0
            && !is_temporary(&path)
        {
            self.scratch.remove_this(&path, file);
        }
    }

    /// Directories have another time from now on.
    fn names_have_changed(&self) {
        self.changed_seconds.store(now().0, Ordering::Relaxed);
    }

    fn open_directory(&self, number: u64) -> Result<u64> {
        let path = self.path(number)?;
        let listing = Listing::new(path, &self.scratch, self.extra.as_ref());
        let handle = self.last_listing.fetch_add(1, Ordering::Relaxed) + 1;
        lock(&self.listings).insert(handle, Arc::new(Mutex::new(listing)));
        Ok(handle)
    }

    fn listing(&self, handle: u64) -> Result<Arc<Mutex<Listing>>> {
        lock(&self.listings).get(&handle).cloned().ok_or(Errno::BADF)
    }
}
