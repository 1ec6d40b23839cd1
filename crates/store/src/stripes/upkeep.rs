//! The upkeep of a striped store: one thread that follows the tree of placeholders while nothing is asked, and deletes what was kept
//! long enough.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::error::OpenError;
use crate::lock::lock;
use crate::stripes::adopt::Originals;
use crate::stripes::reconcile::Reconciler;
use crate::stripes::shards::Core;

/// How often the trash is looked through.
const TRASH_INTERVAL: Duration = Duration::from_secs(60);
/// How often the times of placeholders are set.
const MODIFIED_INTERVAL: Duration = Duration::from_secs(45);
/// How long the thread sleeps at most.
const IDLE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// After a change, others are waited for this long: a directory that is copied or removed makes many.
const GATHER: Duration = Duration::from_millis(20);

/// The thread.
pub(super) struct Upkeep {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    core: Arc<Core>,
    reconciler: Option<Arc<Reconciler>>,
    originals: Arc<Originals>,
    is_stopping: AtomicBool,
    wake: OwnedFd,
}

impl Upkeep {
    /// Starts it.
    pub(super) fn start(
        core: Arc<Core>,
        reconciler: Option<Arc<Reconciler>>,
        originals: Arc<Originals>,
    ) -> Result<Self, OpenError> {
        let failed = |error| OpenError::caused("cannot start the thread for upkeep", error);
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| failed(error.into()))?;
        let shared =
            Arc::new(Shared { core, reconciler, originals, is_stopping: AtomicBool::new(false), wake });
        let for_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("upkeep".into())
            .spawn(move || for_thread.run())
            .map_err(failed)?;
        Ok(Upkeep { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Ends it. Idempotent.
    pub(super) fn stop(&self) {
        self.shared.is_stopping.store(true, Ordering::Relaxed);
        // A counter that is full wakes as well.
        let _ = rustix::io::write(&self.shared.wake, &1u64.to_ne_bytes());
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn run(&self) {
        self.work();
        if let Some(reconciler) = &self.reconciler {
            reconciler.note_placeholders();
        }
    }

    fn work(&self) {
        let (mut trash_at, mut modified_at) = (Instant::now(), Instant::now() + MODIFIED_INTERVAL);
        while !self.is_stopping.load(Ordering::Relaxed) {
            if let Some(reconciler) = &self.reconciler {
                reconciler.look_for_tree();
                reconciler.scan_if_due(&self.is_stopping);
                reconciler.catch_up_with_all(&self.is_stopping);
                reconciler.put_away_old(&self.is_stopping);
                reconciler.note_placeholders();
                let is_due = modified_at <= Instant::now();
                reconciler.set_all_modified(is_due, &self.is_stopping);
                if is_due {
                    modified_at = Instant::now() + MODIFIED_INTERVAL;
                }
            }
            if trash_at <= Instant::now() {
                self.core.empty_old_trash();
                self.originals.expire((self.core.clock)().whole);
                trash_at = Instant::now() + TRASH_INTERVAL;
            }
            if self.sleep() {
                std::thread::sleep(GATHER);
            }
        }
    }

    /// Waits until there is something to do, at most a second; whether the tree has changed.
    fn sleep(&self) -> bool {
        let wake = PollFd::new(&self.wake, PollFlags::IN);
        let queue = self.reconciler.as_ref().and_then(|reconciler| reconciler.queue());
        match queue {
            Some(queue) => {
                let mut both = [wake, PollFd::new(queue, PollFlags::IN)];
                poll(&mut both, Some(&IDLE)).is_ok() && !both[1].revents().is_empty()
            }
            None => {
                let _ = poll(&mut [wake], Some(&IDLE));
                false
            }
        }
    }
}
