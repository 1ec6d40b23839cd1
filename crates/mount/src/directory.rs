//! Listings of directories, in pages: only one page is in memory, however many RRDs there are.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use client::daemon::files::PartRequest;
use protocol::rrdcached::files::{Entry, FileStat};
use rustix::io::Errno;

use crate::extra::{Extra, Found};
use crate::scratch::Scratch;
use crate::store::{Result, Store};

/// Entries that are asked for at once: with size and time, which the kernel asks for by the page of memory, and without.
const PAGE_WITH_STAT: usize = 256;
const PAGE: usize = 8192;
/// Parts in a row in which nothing is to be listed.
const TRIES_MAX: u32 = 100;
/// How old sizes and times may be when the kernel gets them: it takes them for those of now.
const STAT_AGE_MAX: Duration = Duration::from_millis(100);
/// Before the entries: `.` and `..`.
const DOTS: u64 = 2;

/// A directory that is being read.
#[derive(Debug)]
pub struct Listing {
    path: Vec<u8>,
    /// What is not in the store; these come first.
    local: Vec<(Vec<u8>, Item)>,
    local_names: HashSet<Vec<u8>>,
    page: Vec<(Vec<u8>, Item)>,
    /// The offset of the first entry of the page.
    page_at: u64,
    /// The last name before the page, in the store.
    before_page: Option<Vec<u8>>,
    more: bool,
    /// When the sizes and times of the page were read, if they were.
    stat_at: Option<Instant>,
    /// The daemon's list has names that are gone.
    fresh: bool,
}

/// An entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// A directory.
    Directory,
    /// A file, if that was asked for with size and time.
    File(Option<FileStat>),
    /// A socket.
    Socket(FileStat),
}

impl Item {
    /// The entry of what is no RRD.
    pub fn of(found: Found) -> Self {
        match found {
            Found::File(stat) => Item::File(Some(stat)),
            Found::Socket(stat) => Item::Socket(stat),
            Found::Directory => Item::Directory,
        }
    }
}

impl Listing {
    /// A listing of the directory `path`.
    pub fn new(path: Vec<u8>, scratch: &Scratch, extra: Option<&Extra>) -> Self {
        let (files, directories) = scratch.list(&path);
        let mut local: Vec<(Vec<u8>, Item)> = Vec::new();
        local.extend(files.into_iter().map(|(name, file)| (name, Item::File(Some(file.stat())))));
        local.extend(directories.into_iter().map(|name| (name, Item::Directory)));
        for (name, found) in extra.map_or(Vec::new(), |extra| extra.list(&path)) {
            local.push((name, Item::of(found)));
        }
        let mut local_names = HashSet::new();
        local.retain(|(name, _)| local_names.insert(name.clone()));
        Listing {
            path,
            page_at: DOTS + local.len() as u64,
            local,
            local_names,
            page: Vec::new(),
            before_page: None,
            more: true,
            stat_at: None,
            fresh: false,
        }
    }

    /// Whether the entry at an offset is none of the store's: what is said of it was so when the listing began.
    pub fn is_local(&self, offset: u64) -> bool {
        offset - DOTS < self.local.len() as u64
    }

    /// The entry at an offset, which comes after those of `.` and `..`; `None` after the last.
    ///
    /// # Errors
    /// EIO when the daemon does not answer.
    pub fn entry(&mut self, store: &Store, offset: u64, stat: bool) -> Result<Option<(&[u8], Item)>> {
        let local = (offset - DOTS) as usize;
        let found = if local < self.local.len() {
            self.local.get(local)
        } else {
            self.turn_to(store, offset, stat)?;
            self.page.get((offset - self.page_at) as usize)
        };
        Ok(found.map(|(name, item)| (&name[..], *item)))
    }

    /// Reads the page with the entry at an offset, or the last one.
    fn turn_to(&mut self, store: &Store, offset: u64, stat: bool) -> Result {
        let first = DOTS + self.local.len() as u64;
        if offset < self.page_at {
            (self.page_at, self.before_page, self.more, self.page) = (first, None, true, Vec::new());
        }
        while offset >= self.page_at + self.page.len() as u64 {
            if !self.more {
                return Ok(());
            }
            let last = self.page.last().map(in_request).or(self.before_page.take());
            self.page_at += self.page.len() as u64;
            self.before_page = last;
            self.read(store, stat)?;
        }
        if stat && self.stat_at.is_none_or(|at| at.elapsed() > STAT_AGE_MAX) {
            self.cut(offset);
            self.read(store, stat)?;
        }
        Ok(())
    }

    /// Lets the page begin at an offset that is in it.
    fn cut(&mut self, offset: u64) {
        let at = (offset - self.page_at) as usize;
        if at > 0 {
            self.before_page = self.page.get(at - 1).map(in_request);
        }
        self.page_at = offset;
    }

    /// Reads the page that follows.
    fn read(&mut self, store: &Store, stat: bool) -> Result {
        let (mut before, mut tries) = (self.before_page.clone(), 0);
        let mut after = before.clone();
        loop {
            let part = store.entries(&PartRequest {
                directory: &self.path,
                after: after.as_deref(),
                count: if stat { PAGE_WITH_STAT } else { PAGE },
                stat,
                fresh: self.fresh,
            })?;
            self.fresh = false;
            (self.more, self.stat_at) = (part.more, stat.then(Instant::now));
            let item = |entry| match entry {
                Entry::Directory => Item::Directory,
                Entry::Unread => Item::File(None),
                Entry::Rrd(stat, _) => Item::File(Some(stat)),
            };
            self.page = part.entries.into_iter().map(|(entry, name)| (name, item(entry))).collect();
            match self.page.last() {
                Some(last) => after = Some(in_request(last)),
                // All names of the page are gone since the daemon made its list.
                None if self.more => self.fresh = true,
                None => {}
            }
            self.before_page.clone_from(&before);
            self.page.retain(|(name, _)| !self.local_names.contains(name));
            // A page may hold nothing but names that are listed already.
            if !self.page.is_empty() || !self.more {
                return Ok(());
            }
            before.clone_from(&after);
            tries += 1;
            if tries > TRIES_MAX {
                return Err(Errno::IO);
            }
        }
    }
}

/// How a request says after which entry a part begins: a directory comes after all names that begin as it does.
fn in_request((name, item): &(Vec<u8>, Item)) -> Vec<u8> {
    match item {
        Item::Directory => [name, &b"/"[..]].concat(),
        Item::File(_) | Item::Socket(_) => name.clone(),
    }
}

/// Whether a directory has no entries at all.
///
/// # Errors
/// EIO when the daemon does not answer.
pub fn is_empty(path: &[u8], store: &Store, scratch: &Scratch, extra: Option<&Extra>) -> Result<bool> {
    let (files, directories) = scratch.list(path);
    if !files.is_empty() || !directories.is_empty() || extra.is_some_and(|extra| !extra.list(path).is_empty())
    {
        return Ok(false);
    }
    match store.stat(path) {
        // A store has no directories without RRDs.
        Ok(entry) => Ok(entry != Entry::Directory),
        Err(Errno::NOENT) => Ok(true),
        Err(error) => Err(error),
    }
}

/// The paths of all RRDs below a directory.
///
/// # Errors
/// EIO when the daemon does not answer.
pub fn all_below(directory: &[u8], store: &Store) -> Result<Vec<Vec<u8>>> {
    let (mut found, mut directories) = (Vec::new(), vec![directory.to_vec()]);
    let nothing = Arc::new(Scratch::default());
    while let Some(path) = directories.pop() {
        let mut listing = Listing::new(path.clone(), &nothing, None);
        listing.fresh = true;
        let mut offset = DOTS;
        while let Some((name, item)) = listing.entry(store, offset, false)? {
            let inside = [&path, &b"/"[..], name].concat();
            match item {
                Item::Directory => directories.push(inside),
                Item::File(_) | Item::Socket(_) => found.push(inside),
            }
            offset += 1;
        }
    }
    Ok(found)
}
