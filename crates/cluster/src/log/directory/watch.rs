//! Wakes readers when a partition's file has changed: one inotify of the directory and one thread, however many readers there are. Where
//! that is not to be had, readers look again and again.

use std::fmt;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};

use crate::lock::lock;

/// How often a reader looks that nothing wakes.
const UNWATCHED: Duration = Duration::from_millis(5);
/// How often one looks although it would be woken: for file systems whose changes by others the kernel does not see.
const WATCHED: Duration = Duration::from_millis(250);

/// The changes of a log's partitions.
pub(super) struct Watch {
    changes: Arc<Vec<Changes>>,
    /// The thread, and what ends it.
    thread: Option<(OwnedFd, JoinHandle<()>)>,
}

#[derive(Default)]
struct Changes {
    count: Mutex<u64>,
    changed: Condvar,
}

impl Changes {
    fn lock(&self) -> MutexGuard<'_, u64> {
        lock(&self.count)
    }

    fn add(&self) {
        *self.lock() += 1;
        self.changed.notify_all();
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("watched", &self.thread.is_some()).finish_non_exhaustive()
    }
}

impl Watch {
    pub(super) fn start(directory: &Path, partitions: u32) -> Watch {
        let changes: Arc<Vec<Changes>> = Arc::new((0..partitions).map(|_| Changes::default()).collect());
        let thread = start_thread(directory, &changes);
        if let Err(error) = &thread {
            tracing::debug!(
                "no inotify of {}: {error}; readers look every {UNWATCHED:?}",
                directory.display()
            );
        }
        Watch { changes, thread: thread.ok() }
    }

    /// How often a partition has changed.
    pub(super) fn seen(&self, partition: u32) -> u64 {
        *self.changes[partition as usize].lock()
    }

    /// Says that it has.
    pub(super) fn changed(&self, partition: u32) {
        self.changes[partition as usize].add();
    }

    /// Waits until a partition has changed since it was `seen`, or might have.
    pub(super) fn wait(&self, partition: u32, seen: u64, longest: Duration) {
        let changes = &self.changes[partition as usize];
        let longest = longest.min(if self.thread.is_some() { WATCHED } else { UNWATCHED });
        let unchanged = |count: &mut u64| *count == seen;
        drop(changes.changed.wait_timeout_while(changes.lock(), longest, unchanged));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.thread.take() {
            let _ = rustix::io::write(&end, &1u64.to_ne_bytes());
            let _ = thread.join();
        }
    }
}

fn start_thread(directory: &Path, changes: &Arc<Vec<Changes>>) -> std::io::Result<(OwnedFd, JoinHandle<()>)> {
    let events = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    add_watch(&events, directory, WatchFlags::MODIFY)?;
    let end = eventfd(0, EventfdFlags::CLOEXEC)?;
    let ended = end.try_clone()?;
    let changes = Arc::clone(changes);
    let run = move || run(&events, &ended, &changes);
    let thread = std::thread::Builder::new().name("log-watch".to_owned()).spawn(run)?;
    Ok((end, thread))
}

fn run(events: &OwnedFd, ended: &OwnedFd, changes: &[Changes]) {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = Reader::new(events, &mut buffer);
    loop {
        let mut sources = [PollFd::new(events, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
        match poll(&mut sources, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        if sources[1].revents().contains(PollFlags::IN) {
            return;
        }
        while let Ok(event) = reader.next() {
            let name = event.file_name().and_then(|name| name.to_str().ok());
            match name.and_then(partition_of).and_then(|partition| changes.get(partition)) {
                Some(changes) => changes.add(),
                // Another file, or the queue overflowed.
                None => changes.iter().for_each(Changes::add),
            }
        }
    }
}

fn partition_of(name: &str) -> Option<usize> {
    name.strip_prefix("partition-")?.parse().ok()
}
