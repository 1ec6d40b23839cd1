//! What programs do to placeholders happens to RRDs: a tree of placeholders is moved, copied and removed like a tree of files.
//!
//! Before a request is served, [`Reconciler::catch_up`] asks the kernel whether anything has changed in the tree ([`super::watch`]): one `ioctl` for a
//! batch of requests. If so, it looks at the names in question, decides what has happened ([`plan`]) and changes the store accordingly, before any
//! request is served. Where the watch cannot be sure (while a scan runs, on a network file system, without enough watches), each name is looked
//! at when it is used.
//!
//! An RRD on its way first gets a hidden name that says where it goes to; then its placeholder there is written, and it gets its name. Each of these is in
//! the log or on disk before the next, so that the next start completes what a crash has cut short.

mod follow;
mod look;
mod noted;
mod plan;
mod queue;
mod removal;
mod requests;
mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rrd_file::tree::Tree;
use rrd_file::watch::{Changes, Watch};

use crate::disk::Disk;
use crate::engine::StoreError;
use crate::lock::lock;
use crate::name::RrdName;
use crate::placeholder::{Found, Placeholders, RrdNumber};
use crate::stripes::Options;
use crate::stripes::adopt::Originals;
use crate::stripes::modified::ModifiedTimes;
use crate::stripes::names::Arrival;
use crate::stripes::shards::Core;
use noted::Noted;
use plan::{Plan, Seen, plan};
use queue::Queue;
use removal::Removals;

/// Keeps the store in step with the tree of its placeholders.
pub(super) struct Reconciler {
    core: Arc<Core>,
    placeholders: Arc<Placeholders>,
    /// The tree as the adopter has it; `None` when no files are taken in.
    adopted_tree: Option<Arc<Tree>>,
    originals: Arc<Originals>,
    disk: Arc<dyn Disk>,
    queue: Option<Arc<OwnedFd>>,
    /// Set while changes are being followed, or wait for it.
    is_busy: AtomicBool,
    /// Set while the watch may miss changes.
    is_unsure: AtomicBool,
    /// How many RRDs are kept although their placeholders are missing.
    missing_count: AtomicU64,
    /// Set when the whole tree has to be looked at.
    wants_scan: AtomicBool,
    state: Mutex<State>,
    modified: ModifiedTimes,
    /// The tree was read from beginning to end since the start. Set while the state is locked.
    is_scanned: AtomicBool,
    /// When this process began to follow the tree, by the clock of files ([`files_now_ns`]).
    started_ns: i128,
    /// Notified at the end of the first scan.
    scanned: Condvar,
}

/// What only one thread at a time changes.
struct State {
    watch: Option<Watch>,
    /// What has changed and is still to be followed.
    queue: Queue,
    removals: Removals,
    /// The tree itself is gone; nothing is followed any more.
    is_tree_gone: bool,
    /// RRDs that have had a placeholder.
    noted: Noted,
}

/// How long a request waits for the first scan: one that is about a name without a placeholder, and one for all names.
const SCAN_PATIENCE: Duration = Duration::from_secs(10);
/// Names that are followed while requests wait: copies of so many RRDs take some 10 ms.
const AT_ONCE: usize = 128;
/// How long requests get a turn between two parts of the queue.
const BETWEEN_PARTS: Duration = Duration::from_micros(200);
/// How often names are looked at, one time after the other, until they stay the same.
const LOOKS_MAX: u32 = 50;

/// The time that a file would get now, in nanoseconds since the epoch. The kernel takes it from its coarse clock, which lags by a tick, and by many on a
/// busy virtual machine.
fn files_now_ns() -> i128 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}

/// Why a set of names is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The tree has changed, or a name is used.
    Tree,
    /// Someone asked the store for just this.
    Request,
}

impl Reconciler {
    /// Follows the placeholders of `core` from now on; the first scan is still to be made. `arrivals` are those that the last process left on their way.
    pub(super) fn new(
        core: Arc<Core>,
        placeholders: Arc<Placeholders>,
        adopted_tree: Option<Arc<Tree>>,
        (disk, originals): (Arc<dyn Disk>, Arc<Originals>),
        options: &Options,
        arrivals: Vec<Arrival>,
    ) -> Self {
        let watch = match Watch::new(Arc::clone(placeholders.tree())) {
            _ if !options.watch => None,
            Ok(watch) => Some(watch),
            Err(error) => {
                tracing::warn!(%error, "cannot watch the tree: each name is looked at when it is used, which takes longer");
                None
            }
        };
        let noted = Noted::read(&*disk, placeholders.tree().path());
        let noted = noted.continued(&core.next_ids().unwrap_or_default());
        let reconciler = Reconciler {
            adopted_tree,
            originals,
            queue: watch.as_ref().map(Watch::queue),
            is_busy: AtomicBool::new(false),
            is_unsure: AtomicBool::new(true),
            missing_count: AtomicU64::new(0),
            wants_scan: AtomicBool::new(true),
            state: Mutex::new(State {
                watch,
                queue: Queue::default(),
                removals: Removals::new(options.max_removed),
                is_tree_gone: false,
                noted,
            }),
            disk,
            modified: ModifiedTimes::default(),
            is_scanned: AtomicBool::new(false),
            started_ns: files_now_ns(),
            core,
            scanned: Condvar::new(),
            placeholders,
        };
        if let Err(error) = reconciler.core.arrive(arrivals) {
            tracing::error!(%error, "an RRD that was renamed when the store was stopped does not get its name; that is tried again at the next start");
        }
        reconciler
    }

    /// The queue of the kernel's events, if there is one.
    pub(super) fn queue(&self) -> Option<&OwnedFd> {
        self.queue.as_deref()
    }

    /// Follows what has changed in the tree before this call, as far as it concerns these names.
    #[inline]
    pub(super) fn catch_up<'n>(&self, names: impl Iterator<Item = &'n [u8]> + Clone) {
        if !self.is_quiet() {
            self.follow(names.clone());
        }
        if self.is_unsure.load(Ordering::Acquire) {
            self.look_at(names);
        }
    }

    /// Follows everything that has changed, in parts between which requests are answered. Ends early when `is_stopping`.
    pub(super) fn catch_up_with_all(&self, is_stopping: &AtomicBool) {
        while !self.is_quiet() && !is_stopping.load(Ordering::Relaxed) {
            let mut state = lock(&self.state);
            self.take_changes(&mut state);
            let next = state.queue.next(AT_ONCE);
            self.settle(&mut state, next);
            if state.queue.is_empty() {
                return;
            }
            drop(state);
            std::thread::sleep(BETWEEN_PARTS);
        }
    }

    /// Whether nothing has changed since the last event was followed. 0.1 us.
    #[inline]
    fn is_quiet(&self) -> bool {
        let Some(queue) = &self.queue else { return true };
        // In this order: a thread that empties the queue has said before that it is busy.
        rustix::io::ioctl_fionread(&**queue) == Ok(0) && !self.is_busy.load(Ordering::Acquire)
    }

    #[cold]
    fn follow<'n>(&self, names: impl Iterator<Item = &'n [u8]>) {
        let mut state = lock(&self.state);
        self.take_changes(&mut state);
        let due = match state.queue.len() <= AT_ONCE {
            true => state.queue.all(),
            false => self.concerned(&state.queue, names),
        };
        self.settle(&mut state, due);
    }

    /// Puts what has changed in the queue, and returns it. To be followed by [`Reconciler::follow_names`], which says when nothing is left.
    fn take_changes(&self, state: &mut State) -> BTreeSet<RrdName> {
        self.is_busy.store(true, Ordering::SeqCst);
        let Some(watch) = &mut state.watch else { return BTreeSet::new() };
        let changes = watch.take();
        let names = self.names_in(state, changes);
        for name in &names {
            match self.placeholders.look(name) {
                Ok(found) => state.queue.add(name.clone(), &found),
                Err(error) => cannot_look(name, &error),
            }
        }
        names
    }

    /// Names in the queue that have to be followed before a request about these names is answered.
    fn concerned<'n>(&self, queue: &Queue, names: impl Iterator<Item = &'n [u8]>) -> BTreeSet<RrdName> {
        let names: Vec<RrdName> = names.filter_map(|name| RrdName::new(name).ok()).collect();
        // Otherwise the store stops.
        let Ok(numbers) = self.core.numbers(&names) else { return BTreeSet::new() };
        let copies = numbers.iter().flatten().flat_map(|&number| queue.written_for(number));
        names.iter().filter(|name| queue.contains(name)).chain(copies).cloned().collect()
    }

    /// The names that changes are about. Directories that are new are watched from now on.
    fn names_in(&self, state: &mut State, changes: Changes) -> BTreeSet<RrdName> {
        if changes.root_gone {
            self.note_tree_gone(state);
        }
        if state.is_tree_gone {
            return BTreeSet::new();
        }
        if changes.lost {
            tracing::warn!(
                "more has changed in the tree than the system tells: it is read again, and meanwhile each name is looked at when it is used"
            );
            self.doubt();
        }
        // Most changes are the store's own: placeholders of new RRDs.
        let mut names: BTreeSet<RrdName> =
            changes.files.iter().filter(|name| !self.placeholders.is_own(name)).cloned().collect();
        if changes.has_directories() {
            self.placeholders.tree().forget_directories();
            if let Some(tree) = &self.adopted_tree {
                tree.forget_directories();
            }
        }
        if let Some(watch) = &mut state.watch {
            changes.gone.iter().for_each(|directory| watch.remove(directory));
        }
        for directory in changes.new {
            match self.watch_all(state, directory) {
                Ok(files) => names.extend(files),
                Err(error) => self.give_up_watching(state, &error),
            }
        }
        if !changes.gone.is_empty() {
            match self.core.names_below(changes.gone) {
                Ok(below) => names.extend(below),
                Err(error) => tracing::debug!(%error, "the store stops"),
            }
        }
        names
    }

    fn note_tree_gone(&self, state: &mut State) {
        if !std::mem::replace(&mut state.is_tree_gone, true) {
            tracing::error!(
                tree = %self.placeholders.tree().path().display(),
                "the tree was removed, moved or unmounted: no RRD is removed for that; put it back, or restart with an empty one"
            );
        }
    }

    /// Follows the tree again once it is back.
    pub(super) fn look_for_tree(&self) {
        let mut state = lock(&self.state);
        if state.is_tree_gone && self.placeholders.tree().is_in_place() {
            state.is_tree_gone = false;
            tracing::info!("the tree is back");
            self.doubt();
        }
    }

    /// Watches a directory and all below it; returns the names of the files there.
    fn watch_all(&self, state: &mut State, directory: Vec<u8>) -> std::io::Result<Vec<RrdName>> {
        let Some(watch) = &mut state.watch else { return Ok(Vec::new()) };
        let (mut names, mut directories) = (Vec::new(), vec![directory]);
        while let Some(directory) = directories.pop() {
            let (files, inside) = watch.add(&directory)?;
            names.extend(files);
            directories.extend(inside);
        }
        Ok(names)
    }

    /// From now on, each name is looked at when it is used, until the tree was scanned.
    fn doubt(&self) {
        self.is_unsure.store(true, Ordering::SeqCst);
        self.wants_scan.store(true, Ordering::SeqCst);
    }

    fn give_up_watching(&self, state: &mut State, error: &std::io::Error) {
        if let Some(watch) = &mut state.watch {
            watch.clear();
        }
        state.watch = None;
        self.doubt();
        tracing::warn!(
            %error,
            "cannot watch the tree: each name is looked at when it is used, which takes longer; a higher fs.inotify.max_user_watches \
             (sysctl), at least the number of directories, and a restart help when there are too many directories"
        );
    }

    /// Looks at names that the watch is not sure of.
    #[cold]
    fn look_at<'n>(&self, names: impl Iterator<Item = &'n [u8]>) {
        let names: Vec<RrdName> = names.filter_map(|name| RrdName::new(name).ok()).collect();
        // Otherwise the store stops.
        let Ok(numbers) = self.core.numbers(&names) else { return };
        let is_odd = |(name, number): &(RrdName, Option<RrdNumber>)| match self.placeholders.look(name) {
            Ok(Found::Ours { rrd, name: written, .. }) => rrd != *number || written != *name,
            Ok(_) => number.is_some(),
            Err(_) => false,
        };
        let odd: BTreeSet<RrdName> =
            names.into_iter().zip(numbers).filter(is_odd).map(|(name, _)| name).collect();
        if odd.is_empty() {
            return;
        }
        if odd.iter().any(|name| matches!(self.placeholders.look(name), Ok(Found::Nothing))) {
            // It may have been moved to a place that is not known yet.
            self.wait_for_scan();
        }
        self.settle(&mut lock(&self.state), odd);
    }

    /// Waits for the end of the first scan, but not for long.
    pub(super) fn wait_for_scan(&self) {
        let state = lock(&self.state);
        let _ = self
            .scanned
            .wait_timeout_while(state, SCAN_PATIENCE, |state| !self.is_scanned() && !state.is_tree_gone);
    }

    /// Has the store follow what has become of names, and reports what fails: no one waits for that.
    fn settle(&self, state: &mut State, names: BTreeSet<RrdName>) {
        match self.follow_names(state, names, Cause::Tree) {
            Ok(()) => {}
            Err(StoreError::Stopping) => {
                tracing::debug!("a change of the tree is followed at the next start")
            }
            Err(error) => tracing::error!(%error, "cannot follow a change of the tree of placeholders"),
        }
    }

    /// Whether everything that stood in the tree at the start has been looked at.
    fn is_scanned(&self) -> bool {
        self.is_scanned.load(Ordering::Acquire)
    }

    /// Finds out what has become of names, and has the store follow.
    fn follow_names(
        &self,
        state: &mut State,
        names: BTreeSet<RrdName>,
        cause: Cause,
    ) -> Result<(), StoreError> {
        let mut followed = Ok(());
        if state.is_tree_gone {
            state.queue = Queue::default();
        } else if !names.is_empty() {
            followed = self.agree(state, &names).and_then(|(plan, seen)| {
                seen.keys().for_each(|name| state.queue.remove(name));
                self.carry_out(state, plan, cause)
            });
            names.iter().for_each(|name| state.queue.remove(name));
        }
        self.missing_count.store(state.removals.missing().len() as u64, Ordering::Relaxed);
        self.is_busy.store(!state.queue.is_empty(), Ordering::SeqCst);
        followed
    }

    /// A plan for what stood at the names and at all others that they lead to, at one moment: what is seen twice with nothing in between.
    fn agree(
        &self,
        state: &mut State,
        names: &BTreeSet<RrdName>,
    ) -> Result<(Plan, BTreeMap<RrdName, Seen>), StoreError> {
        let mut seen = self.see(state, names.clone())?;
        for _ in 0..LOOKS_MAX {
            let plan = plan(&seen);
            if plan.changes_nothing() {
                return Ok((plan, seen));
            }
            let again = self.see(state, names.clone())?;
            let changed = self.take_changes(state);
            if again == seen && !self.concern(&state.queue, &changed, &seen)? {
                return Ok((plan, seen));
            }
            seen = self.see(state, names.clone())?;
        }
        // Programs change it faster than it can be looked at; what is missed now leads to further events.
        Ok((plan(&seen), seen))
    }

    /// Whether changes concern names that were seen: what stands there, or where their placeholders have gone.
    fn concern(
        &self,
        queue: &Queue,
        changed: &BTreeSet<RrdName>,
        seen: &BTreeMap<RrdName, Seen>,
    ) -> Result<bool, StoreError> {
        if changed.iter().any(|name| seen.contains_key(name)) {
            return Ok(true);
        }
        let written_for: Vec<RrdNumber> = changed.iter().filter_map(|name| queue.rrd_at(name)).collect();
        let known = self.core.names_of(&written_for)?;
        Ok(known.values().any(|name| RrdName::new(name).is_ok_and(|name| seen.contains_key(&name))))
    }
}

fn cannot_look(name: &RrdName, error: &std::io::Error) {
    tracing::warn!(%error, file = %name, "cannot look at a file of the tree: what was done to it is not followed");
}
