//! The tree of placeholders of a node: where programs expect the file of an RRD, one stands that leads them to this node, whichever nodes have the RRD.
//!
//! What is created, renamed or removed through this node has its placeholder, or has none, before that is answered. What other nodes do is followed by a
//! thread: it looks every second whether names have changed anywhere, and every five minutes at all files and all RRDs, whose times of the last update
//! the files get then ([`files`]). What programs do to placeholders while the node runs happens to RRDs ([`changes`], [`moves`], [`removals`]), at the
//! latest with the next request to this node that names them. A file that is missing otherwise, or stands where no RRD is, is put right.

mod changes;
mod files;
mod moves;
mod names;
mod removals;

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, mem};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{FlockOperation, flock};
use store::engine::{RrdStatus, StoreError};
use store::name::RrdName;
use store::placeholder::{Placeholders, StoreIdentity};
use store::tree::{Directory, Tree};
use xxhash_rust::xxh3::xxh3_128;

use self::changes::Watched;
use self::files::Tally;
use self::moves::Moved;
use self::names::NameSet;
use self::removals::Removals;
use crate::lock::lock;

/// How often it is asked whether names have changed.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The same while removals wait.
const SHORT_INTERVAL: Duration = Duration::from_millis(200);
/// How often all files and RRDs are looked at ...
const SWEEP_INTERVAL: Duration = Duration::from_secs(300);
/// ... or so many times the time that it takes: it never takes more than a twentieth of a core.
const SWEEP_REST: u32 = 20;
/// So many names are looked at out of turn; others when all are.
const DOUBTFUL_MAX: usize = 1 << 16;
/// Changes of RRDs that are made side by side: each waits for the log.
const THREADS: usize = 8;

/// The RRDs of a cluster.
pub(crate) trait Rrds: Send + Sync {
    /// A number that changes when an RRD is created, removed or renamed.
    fn name_changes(&self) -> u64;
    /// The names of all RRDs, sorted.
    fn names(&self) -> Result<Vec<Vec<u8>>, StoreError>;
    /// An RRD, as its leader has it.
    fn status(&self, name: &RrdName) -> Result<RrdStatus, StoreError>;
    /// An RRD as a replica of this node has it, perhaps a moment late: that costs no other node anything. `None` when there is none, or no replica.
    fn status_here(&self, name: &RrdName) -> Option<RrdStatus>;
    /// Renames an RRD; one that has the new name goes to the trash.
    fn rename(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError>;
    /// Copies an RRD; one that has the new name goes to the trash.
    fn copy(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError>;
    /// Puts an RRD in the trash.
    fn remove(&self, name: &RrdName) -> Result<(), StoreError>;
}

/// Finds the RRDs; `None` once they are gone.
pub(crate) type FindRrds = Box<dyn Fn() -> Option<Box<dyn Rrds>> + Send>;

/// The placeholders of a node.
pub struct NodeTree {
    placeholders: Placeholders,
    watched: Mutex<Option<Watched>>,
    /// The kernel's queue of changes, if there is one.
    queue: Option<Arc<OwnedFd>>,
    /// Whether changes are followed.
    is_watched: AtomicBool,
    /// Set while changes are being read, or wait to be followed.
    is_busy: AtomicBool,
    /// Set when the whole tree has to be looked at.
    wants_sweep: AtomicBool,
    /// The names of all RRDs when they were last listed.
    names: Mutex<Arc<NameSet>>,
    state: Mutex<State>,
    /// Notified when a change of the tree was followed.
    followed: Condvar,
    wake: OwnedFd,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Holds the lock that keeps other nodes from this tree.
    _claim: Directory,
}

#[derive(Default)]
struct State {
    /// RRDs of which it is not known whether they are there, or that are to get the time of their last update.
    doubtful: BTreeSet<RrdName>,
    moved: Moved,
    removals: Removals,
    is_stopping: bool,
}

/// What stands in the identity's place in placeholders: the same on all nodes, and in all logs that the cluster moves to.
pub fn identity(cluster: &str) -> StoreIdentity {
    StoreIdentity(xxh3_128(format!("roundel cluster {cluster}").as_bytes()).to_le_bytes())
}

impl NodeTree {
    /// The tree at `path`, which exists, for the RRDs of the cluster of this name. Of them, so large a share may go with their placeholders at a stroke.
    ///
    /// # Errors
    /// When it cannot be opened, or another node has it.
    pub fn open(path: &Path, cluster: &str, max_removed: f64) -> io::Result<NodeTree> {
        let tree = Arc::new(Tree::open(path)?);
        let claim = tree.open_directory(b"")?;
        // What one node does there, another one would take for what programs do.
        flock(&claim, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            rustix::io::Errno::AGAIN => {
                io::Error::other("another node has this tree: give each its own (base)")
            }
            error => error.into(),
        })?;
        let watched = Watched::start(&tree);
        Ok(NodeTree {
            placeholders: Placeholders::new(tree, identity(cluster)),
            queue: watched.as_ref().map(Watched::queue),
            is_watched: AtomicBool::new(watched.is_some()),
            watched: Mutex::new(watched),
            is_busy: AtomicBool::new(false),
            wants_sweep: AtomicBool::new(true),
            names: Mutex::default(),
            state: Mutex::new(State { removals: Removals::new(max_removed), ..State::default() }),
            followed: Condvar::new(),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            thread: Mutex::default(),
            _claim: claim,
        })
    }

    /// Follows the RRDs, and what programs do to the tree, until [`NodeTree::stop`], or until the RRDs are gone.
    ///
    /// # Errors
    /// The system's, when there can be no more threads.
    pub(crate) fn follow(self: &Arc<Self>, rrds: FindRrds) -> io::Result<()> {
        let tree = Arc::clone(self);
        let thread =
            std::thread::Builder::new().name("placeholders".into()).spawn(move || tree.run(&rrds))?;
        *lock(&self.thread) = Some(thread);
        Ok(())
    }

    /// Ends the thread, once it is answered what it asks. Idempotent.
    pub(crate) fn stop(&self) {
        lock(&self.state).is_stopping = true;
        self.wake();
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }

    /// Has the thread look soon at an RRD that may or may not be there now.
    pub(crate) fn doubt(&self, name: &RrdName) {
        let mut state = lock(&self.state);
        if state.doubtful.len() < DOUBTFUL_MAX {
            state.doubtful.insert(name.clone());
        }
        drop(state);
        self.wake();
    }

    fn wake(&self) {
        // A counter that is full wakes as well.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    fn is_stopping(&self) -> bool {
        lock(&self.state).is_stopping
    }

    fn run(&self, find: &FindRrds) {
        let mut listed = Listed::default();
        while !self.is_stopping() {
            let Some(rrds) = find() else { return };
            let rrds = &*rrds;
            self.take_changes();
            self.follow_moves(rrds);
            self.follow_removals(rrds);
            let doubtful = mem::take(&mut lock(&self.state).doubtful);
            for name in doubtful {
                self.settle(rrds, &name);
            }
            self.look(rrds, &mut listed);
            self.sleep();
        }
    }

    /// The kernel's queue of changes, while they are followed.
    fn watched_queue(&self) -> Option<&OwnedFd> {
        self.queue.as_deref().filter(|_| self.is_watched.load(Ordering::Acquire))
    }

    /// Waits until there is something to do, at most a second.
    fn sleep(&self) {
        let interval = match lock(&self.state).removals.is_empty() {
            true => LOOK_INTERVAL,
            false => SHORT_INTERVAL,
        };
        let timeout = Timespec::try_from(interval).ok();
        let wake = PollFd::new(&self.wake, PollFlags::IN);
        let mut both = vec![wake];
        both.extend(self.watched_queue().map(|queue| PollFd::new(queue, PollFlags::IN)));
        let _ = poll(&mut both, timeout.as_ref());
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
    }

    /// Follows what has changed of names, and everything if that is due.
    fn look(&self, rrds: &dyn Rrds, listed: &mut Listed) {
        let is_due =
            listed.sweep_at.is_none_or(|at| at <= Instant::now()) || self.wants_sweep.load(Ordering::SeqCst);
        if !is_due && listed.at.elapsed() < LOOK_INTERVAL {
            return;
        }
        if !self.placeholders.tree().is_in_place() {
            // Put back, it is another tree for this process.
            return;
        }
        let changes = rrds.name_changes();
        listed.at = Instant::now();
        if listed.changes == Some(changes) && !is_due {
            return;
        }
        let names = match rrds.names() {
            Ok(names) => Arc::new(NameSet::of(&names)),
            // A node that starts, or whose others are gone: it is asked again.
            Err(error) => return tracing::debug!(%error, "the tree of placeholders cannot follow"),
        };
        let before = mem::replace(&mut *lock(&self.names), Arc::clone(&names));
        listed.changes = Some(changes);
        match is_due {
            true => {
                self.wants_sweep.store(false, Ordering::SeqCst);
                let begun = Instant::now();
                self.sweep(rrds, &names);
                self.note_busy();
                listed.sweep_at = Some(Instant::now() + SWEEP_INTERVAL.max(begun.elapsed() * SWEEP_REST));
            }
            false => {
                let mut tally = Tally::default();
                before.differences(&names, &mut |name| {
                    if !self.is_stopping() {
                        tally.note(name, self.settle(rrds, name));
                    }
                });
                tally.report(self.placeholders.tree().path());
            }
        }
    }
}

/// What the thread knows of the list of names.
struct Listed {
    changes: Option<u64>,
    /// When it was last asked whether they have changed.
    at: Instant,
    sweep_at: Option<Instant>,
}

impl Default for Listed {
    fn default() -> Self {
        Listed { changes: None, at: Instant::now(), sweep_at: None }
    }
}

/// Does something with each of several names, side by side.
fn each<T: Sync>(all: &[T], act: &(dyn Fn(&T) + Sync)) {
    let next = AtomicUsize::new(0);
    let take = || {
        while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            act(one);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..THREADS.min(all.len()) {
            scope.spawn(take);
        }
        take();
    });
}

#[cfg(test)]
mod tests;
