//! Reads ahead: a program that opens the files of a directory one after the other (`tar`, `rsync`, `md5sum`) finds the images of the next ones here.
//!
//! Opening a file still asks the daemon whether the image is of the RRD's version, so what was read ahead is never old.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use client::daemon::files::PartRequest;
use protocol::rrdcached::files::Entry;
use rustix::io::Errno;

use crate::images::Images;
use crate::inodes::{Inodes, lock};
use crate::scratch::{directory_of, name_of};
use crate::store::{Since, Store};

/// Files in the order of their names after which the next ones are expected.
const RUN_MIN: u32 = 2;
/// Bytes of images that are read before their files are opened.
const BYTES_AHEAD: usize = 4 << 20;
/// The same, where files are small.
const FILES_AHEAD: usize = 64;
/// Names that are asked for at once.
const NAMES: usize = 64;
/// Opened files of which the thread has not heard yet: it needs only the last.
const QUEUE: usize = 4;

/// Sees which files are opened, and has a thread read the next ones.
#[derive(Debug)]
pub struct ReadAhead {
    run: Mutex<Run>,
    opened: SyncSender<Vec<u8>>,
}

/// Files that were opened in order.
#[derive(Debug, Default)]
struct Run {
    last: Vec<u8>,
    length: u32,
}

impl Run {
    /// Adds a file; true when the ones after it are expected next.
    fn add(&mut self, path: &[u8]) -> bool {
        let follows = directory_of(path) == directory_of(&self.last) && path > &self.last[..];
        self.length = if follows { self.length + 1 } else { 0 };
        self.last = path.to_vec();
        self.length >= RUN_MIN
    }
}

impl ReadAhead {
    /// Starts the thread, which ends with the result. It reads from the store by a connection of its own, and puts into `images`.
    ///
    /// # Errors
    /// When the system has no thread.
    pub fn start(store: Store, images: Arc<Images>, inodes: Arc<Mutex<Inodes>>) -> io::Result<Self> {
        let (opened, queue) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new().name("read-ahead".to_string());
        thread.spawn(move || {
            let names = VecDeque::new();
            Reader { store, images, inodes, names, read: 0, bytes: 0, more: true }.run(&queue)
        })?;
        Ok(ReadAhead { run: Mutex::default(), opened })
    }

    /// A file is opened.
    pub fn opened(&self, path: &[u8]) {
        let goes_on = self.run.lock().unwrap_or_else(PoisonError::into_inner).add(path);
        if goes_on {
            // A thread that is busy hears of a later one.
            self.opened.try_send(path.to_vec()).ok();
        }
    }
}

/// What the thread knows of the directory that is read.
struct Reader {
    store: Store,
    images: Arc<Images>,
    inodes: Arc<Mutex<Inodes>>,
    /// The paths that come next, in their order; of the first `read` there are images.
    names: VecDeque<(Vec<u8>, usize)>,
    read: usize,
    /// Bytes of these images.
    bytes: usize,
    /// The directory has names after these.
    more: bool,
}

impl Reader {
    fn run(mut self, queue: &Receiver<Vec<u8>>) {
        while let Ok(first) = queue.recv() {
            let path = queue.try_iter().last().unwrap_or(first);
            // A daemon that does not answer fails the program's own request, too.
            if self.follow(&path).is_err() {
                self.forget();
            }
        }
    }

    fn forget(&mut self) {
        (self.read, self.bytes, self.more) = (0, 0, true);
        self.names.clear();
    }

    fn follow(&mut self, path: &[u8]) -> crate::store::Result {
        let is_other = |(name, _): &(Vec<u8>, usize)| directory_of(name) != directory_of(path);
        if self.names.front().is_none_or(is_other) {
            self.forget();
        }
        while self.names.front().is_some_and(|(name, _)| &name[..] <= path) {
            let (_, bytes) = self.names.pop_front().unwrap_or_default();
            self.bytes -= bytes;
            self.read = self.read.saturating_sub(1);
        }
        while self.bytes < BYTES_AHEAD && self.read < FILES_AHEAD {
            if self.read == self.names.len() && !self.find_more(path)? {
                break;
            }
            let Some((name, bytes)) = self.names.get_mut(self.read) else { break };
            let of_kernel = lock(&self.inodes).whole_pages_at(name);
            match self.store.image_since(name, of_kernel) {
                // No program will ask for its bytes.
                Ok(Since::Unchanged(_)) => {}
                Ok(Since::Changed(image)) => {
                    *bytes = image.bytes.len();
                    self.bytes += *bytes;
                    self.images.put(name.clone(), image);
                }
                // Removed meanwhile.
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
            self.read += 1;
        }
        Ok(())
    }

    /// Asks for the names that follow; false when there are none.
    fn find_more(&mut self, path: &[u8]) -> crate::store::Result<bool> {
        if !self.more {
            return Ok(false);
        }
        let directory = directory_of(path);
        let last = self.names.back().map_or(path, |(name, _)| name);
        let part = self.store.entries(&PartRequest {
            directory,
            after: Some(name_of(last)),
            count: NAMES,
            stat: false,
            fresh: false,
        })?;
        self.more = part.more;
        let in_directory = |name: Vec<u8>| match directory {
            b"" => name,
            directory => [directory, b"/", &name].concat(),
        };
        let files = part.entries.into_iter().filter(|(entry, _)| *entry != Entry::Directory);
        let before = self.names.len();
        self.names.extend(files.map(|(_, name)| (in_directory(name), 0)));
        Ok(self.names.len() > before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_directory_in_order_are_a_run() {
        let mut run = Run::default();
        let added = ["d/a", "d/b", "d/c", "d/e", "d/d", "d/e", "d/f", "e/g", "g", "h", "i"]
            .map(|path| run.add(path.as_bytes()));
        assert_eq!(added, [false, false, true, true, false, false, true, false, false, false, true]);
    }
}
