//! What programs do to placeholders happens to RRDs: a tree of placeholders is moved, copied and removed like a tree of files.
//!
//! Before a request is served, [`Reconciler::catch_up`] asks the kernel whether anything has changed in the tree ([`super::watch`]): one `ioctl` for a
//! batch of requests. If so, it looks at the names in question, decides what has happened ([`plan`]) and changes the store accordingly, before any
//! request is served. Where the watch cannot be sure (while a scan runs, on a network file system, without enough watches), each name is looked
//! at when it is used.
//!
//! Each change passes through three steps, each in the log or on disk before the next, so that a crash at any moment is made good by the
//! next start: the RRD gets a hidden name that says where it goes to; its placeholder gets the new name; the RRD gets it.

mod plan;
mod removal;
mod scan;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::time::Duration;

use rrd::codec::file::FileLayout;
use rrd_file::handle::Handle;
use rrd_file::tree::{Tree, split};

use crate::engine::{StoreError, Trashed};
use crate::lock::lock;
use crate::name::RrdName;
use crate::placeholder::{FileId, Found, PlaceholderError, Placeholders, ToRewrite};
use crate::stripes::adopt::{Originals, original};
use crate::stripes::names::{Arrival, IsWanted, Source};
use crate::stripes::shards::Core;
use crate::stripes::watch::{Changes, Watch};
use plan::{Plan, Seen, plan};
use removal::Removals;

/// Keeps the store in step with the tree of its placeholders.
pub(super) struct Reconciler {
    core: Arc<Core>,
    placeholders: Arc<Placeholders>,
    /// The tree as the adopter has it; `None` when no files are taken in.
    adopted_tree: Option<Arc<Tree>>,
    originals: Arc<Originals>,
    queue: Option<Arc<OwnedFd>>,
    /// Set while changes are being followed.
    is_busy: AtomicBool,
    /// Set while the watch may miss changes.
    is_unsure: AtomicBool,
    /// Directories for which it may not, all the same.
    verified: RwLock<HashSet<Box<[u8]>>>,
    /// How many RRDs are kept although their placeholders are missing.
    missing_count: AtomicU64,
    /// Set when the whole tree has to be looked at.
    wants_scan: AtomicBool,
    state: Mutex<State>,
    /// Notified at the end of the first scan.
    scanned: Condvar,
    /// When this process began, in milliseconds since the epoch.
    started_ms: i64,
}

/// What only one thread at a time changes.
struct State {
    watch: Option<Watch>,
    removals: Removals,
    /// The tree itself is gone; nothing is followed any more.
    is_tree_gone: bool,
    /// Placeholders into which the names of their RRDs could not be written.
    unwritten: HashMap<FileId, RrdName>,
    /// The tree was read from beginning to end since the start.
    is_scanned: bool,
}

/// How long a request waits for the first scan: one that is about a name without a placeholder, and one for all names.
const SCAN_PATIENCE: Duration = Duration::from_secs(10);
/// The most placeholders that are kept open while their RRDs are renamed.
const OPEN_AT_ONCE: usize = 256;
/// Files that an earlier process has taken in, archived with one fsync.
const OLD_AT_ONCE: usize = 64;

/// Why a set of names is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The tree has changed, or a name is used.
    Tree,
    /// Someone asked the store for just this.
    Request,
}

impl Reconciler {
    /// Follows the placeholders of `core` from now on; the first scan is still to be made. `max_removed` is the share of all
    /// RRDs that may go at a stroke. `arrivals` are those that the last process left on their way.
    pub(super) fn new(
        core: Arc<Core>,
        placeholders: Arc<Placeholders>,
        adopted_tree: Option<Arc<Tree>>,
        originals: Arc<Originals>,
        max_removed: f64,
        arrivals: Vec<Arrival>,
    ) -> Self {
        let watch = match Watch::new(Arc::clone(placeholders.tree())) {
            Ok(watch) => Some(watch),
            Err(error) => {
                tracing::warn!(%error, "cannot watch the tree: each name is looked at when it is used, which takes longer");
                None
            }
        };
        let now = (core.clock)();
        let reconciler = Reconciler {
            core,
            placeholders,
            adopted_tree,
            originals,
            queue: watch.as_ref().map(Watch::queue),
            is_busy: AtomicBool::new(false),
            is_unsure: AtomicBool::new(true),
            verified: RwLock::default(),
            missing_count: AtomicU64::new(0),
            wants_scan: AtomicBool::new(true),
            state: Mutex::new(State {
                watch,
                removals: Removals::new(max_removed),
                is_tree_gone: false,
                unwritten: HashMap::new(),
                is_scanned: false,
            }),
            scanned: Condvar::new(),
            started_ms: now.whole * 1000,
        };
        let placeholders = reconciler.open_all(arrivals.iter().map(|arrival| &arrival.name));
        reconciler.finish(&mut lock(&reconciler.state), arrivals, placeholders);
        reconciler
    }

    /// The queue of the kernel's events, if there is one.
    pub(super) fn queue(&self) -> Option<&OwnedFd> {
        self.queue.as_deref()
    }

    /// Follows what has changed in the tree before this call, as far as it concerns the store or these names.
    #[inline]
    pub(super) fn catch_up<'n>(&self, names: impl Iterator<Item = &'n [u8]>) {
        if !self.is_quiet() {
            self.follow();
        }
        if self.is_unsure.load(Ordering::Acquire) {
            self.look_at(names);
        }
    }

    /// Whether nothing has changed since the last event was followed. 0.1 us.
    #[inline]
    fn is_quiet(&self) -> bool {
        let Some(queue) = &self.queue else { return true };
        // In this order: whoever empties the queue has said before that it is busy.
        rustix::io::ioctl_fionread(&**queue) == Ok(0) && !self.is_busy.load(Ordering::Acquire)
    }

    #[cold]
    fn follow(&self) {
        let mut state = lock(&self.state);
        self.is_busy.store(true, Ordering::SeqCst);
        if let Some(watch) = &mut state.watch {
            let changes = watch.take();
            self.follow_changes(&mut state, changes);
        }
        self.is_busy.store(false, Ordering::SeqCst);
    }

    fn follow_changes(&self, state: &mut State, changes: Changes) {
        if changes.root_gone && !state.is_tree_gone {
            state.is_tree_gone = true;
            tracing::error!(
                tree = %self.placeholders.tree().path().display(),
                "the tree was removed, moved or unmounted: no RRD is removed for that; put it back and restart"
            );
        }
        if state.is_tree_gone {
            return;
        }
        if changes.lost {
            tracing::warn!("more has changed in the tree than the system tells: it is read again, and meanwhile each name is looked at when it is used");
            self.doubt();
        }
        let mut names: BTreeSet<RrdName> = changes.files.iter().cloned().collect();
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
            match self.core.names_below(&changes.gone) {
                Ok(below) => names.extend(below),
                Err(error) => tracing::debug!(%error, "the store stops"),
            }
        }
        self.settle(state, names, Cause::Tree);
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

    /// From now on, no directory is sure.
    fn doubt(&self) {
        self.is_unsure.store(true, Ordering::SeqCst);
        self.verified.write().unwrap_or_else(PoisonError::into_inner).clear();
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
        let verified = self.verified.read().unwrap_or_else(PoisonError::into_inner);
        let mut odd = BTreeSet::new();
        for name in names {
            if verified.contains(split(name).0) {
                continue;
            }
            if let Ok(name) = RrdName::new(name)
                && !self.is_at_home(&name)
            {
                odd.insert(name);
            }
        }
        drop(verified);
        if odd.is_empty() {
            return;
        }
        if odd.iter().any(|name| matches!(self.placeholders.look(name), Ok(Found::Nothing))) {
            // It may have been moved to a place that is not known yet.
            self.wait_for_scan();
        }
        self.settle(&mut lock(&self.state), odd, Cause::Tree);
    }

    /// Waits for the end of the first scan, but not for long.
    pub(super) fn wait_for_scan(&self) {
        let state = lock(&self.state);
        let _ = self.scanned.wait_timeout_while(state, SCAN_PATIENCE, |state| !state.is_scanned && !state.is_tree_gone);
    }

    /// RRDs that are kept although their placeholders are missing.
    pub(super) fn missing(&self) -> Vec<RrdName> {
        lock(&self.state).removals.missing().iter().cloned().collect()
    }

    /// How many these are.
    pub(super) fn missing_count(&self) -> u64 {
        self.missing_count.load(Ordering::Relaxed)
    }

    /// Removes them, or writes their placeholders again; returns how many there were.
    ///
    /// # Errors
    /// When a placeholder cannot be written.
    pub(super) fn settle_missing(&self, remove: bool) -> Result<u64, StoreError> {
        let mut state = lock(&self.state);
        let names = state.removals.missing().clone();
        let count = names.len() as u64;
        if remove {
            self.settle(&mut state, names, Cause::Request);
        } else {
            for name in &names {
                self.write_again(name)?;
            }
            self.settle(&mut state, names, Cause::Tree);
        }
        Ok(count)
    }

    /// Whether the placeholder of a name stands there.
    fn is_at_home(&self, name: &RrdName) -> bool {
        matches!(self.placeholders.look(name), Ok(Found::Ours(origin, _)) if origin == *name)
    }

    /// The RRD that is meant by a name that none has: the one whose placeholder a link leads to, or that was moved there under a hidden file name.
    ///
    /// # Errors
    /// When the placeholder there is another store's.
    pub(super) fn resolve(&self, name: &RrdName) -> Result<Option<RrdName>, StoreError> {
        match self.placeholders.look(name) {
            Ok(Found::Ours(origin, file)) if origin != *name => {
                if matches!(self.placeholders.look(&origin), Ok(Found::Ours(_, other)) if other == file) {
                    return Ok(Some(origin));
                }
                self.settle(&mut lock(&self.state), [name.clone()].into(), Cause::Tree);
                Ok(Some(name.clone()))
            }
            Ok(Found::Foreign(store)) => Err(StoreError::Placeholder(Arc::new(PlaceholderError::Foreign {
                name: name.clone(),
                store,
                here: self.placeholders.store(),
            }))),
            _ => Ok(None),
        }
    }

    /// Renames the placeholder of an RRD, and the RRD with it.
    ///
    /// # Errors
    /// When the file cannot be renamed.
    pub(super) fn rename(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        let mut state = lock(&self.state);
        if !self.is_at_home(from) {
            // Kept although its placeholder is missing.
            self.core.rename(from, to)?;
            self.write_again(to)?;
            return Ok(());
        }
        let failed = |error| StoreError::io(format!("cannot rename the placeholder \"{from}\" to \"{to}\""), error);
        self.placeholders.tree().rename(from, to).map_err(failed)?;
        self.settle(&mut state, [from.clone(), to.clone()].into(), Cause::Request);
        Ok(())
    }

    /// Takes an RRD out of the trash and writes its placeholder.
    ///
    /// # Errors
    /// When it is not there, an RRD or another file has the name, or the change cannot be made durable.
    pub(super) fn restore(&self, trashed: &Trashed, to: &RrdName) -> Result<(), StoreError> {
        let _state = lock(&self.state);
        match self.placeholders.look(to) {
            Ok(Found::Nothing | Found::Unfinished | Found::Ours(..)) => {}
            _ => return Err(StoreError::Exists(to.clone())),
        }
        self.core.restore(trashed, to)?;
        self.write_again(to).map(|_| ())
    }

    /// Makes a copy of an RRD and of its placeholder.
    ///
    /// # Errors
    /// When another file stands there, or none can be written.
    pub(super) fn copy(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        let mut state = lock(&self.state);
        self.placeholders.write_copy(from, to)?;
        self.settle(&mut state, [to.clone()].into(), Cause::Request);
        Ok(())
    }

    /// Removes the placeholder of an RRD, and the RRD with it.
    ///
    /// # Errors
    /// When another file stands there.
    pub(super) fn remove(&self, name: &RrdName) -> Result<(), StoreError> {
        let mut state = lock(&self.state);
        self.placeholders.remove(name)?;
        self.settle(&mut state, [name.clone()].into(), Cause::Request);
        Ok(())
    }

    /// Finds out what has become of names, and has the store follow.
    fn settle(&self, state: &mut State, names: BTreeSet<RrdName>, cause: Cause) {
        if names.is_empty() || state.is_tree_gone {
            return;
        }
        let followed = self.see(state, names).and_then(|seen| {
            let plan = plan(&seen, self.started_ms);
            self.carry_out(state, plan, cause)
        });
        if let Err(error) = followed {
            tracing::debug!(%error, "cannot follow a change of the tree: the store stops");
        }
        self.missing_count.store(state.removals.missing().len() as u64, Ordering::Relaxed);
    }

    /// Looks at names, and at those that the placeholders there were written for.
    fn see(&self, state: &mut State, names: BTreeSet<RrdName>) -> Result<BTreeMap<RrdName, Seen>, StoreError> {
        let mut found = BTreeMap::new();
        let mut next: Vec<RrdName> = names.into_iter().collect();
        while let Some(name) = next.pop() {
            if found.contains_key(&name) {
                continue;
            }
            match self.placeholders.look(&name) {
                Ok(mut what) => {
                    if let Found::Ours(origin, file) = &mut what {
                        if let Some(unwritten) = state.unwritten.get(file) {
                            origin.clone_from(unwritten);
                        }
                        next.push(origin.clone());
                    }
                    found.insert(name, what);
                }
                Err(error) => {
                    tracing::warn!(%error, file = %name, "cannot look at a file of the tree: what was done to it is not followed");
                }
            }
        }
        let names: Vec<RrdName> = found.keys().cloned().collect();
        let are_rrds = self.core.have(&names)?;
        let mut seen = BTreeMap::new();
        for ((name, mut found), is_rrd) in found.into_iter().zip(are_rrds) {
            if is_rrd && found == Found::Unfinished && !state.is_scanned {
                // The machine has stopped before the placeholder was on its disk.
                found = self.write_again(&name).unwrap_or(found);
            }
            if is_rrd && found == Found::RrdFile && self.is_known_file(&name, state.is_scanned) {
                continue;
            }
            state.removals.note(&name, &found);
            let trashed = if is_rrd { None } else { self.core.last_trashed(&name) };
            seen.insert(name, Seen { found, is_rrd, trashed });
        }
        Ok(seen)
    }

    /// Whether the `.rrd` file in the place of a placeholder is one that the store has taken in.
    fn is_known_file(&self, name: &RrdName, is_scanned: bool) -> bool {
        let Ok(Handle::System(file)) = self.placeholders.tree().open_afresh(name) else { return false };
        let file = File::from(file);
        if self.adopted_tree.is_none() {
            self.originals.keep(name, &file, "adopt = false");
            return true;
        }
        let status = match is_scanned {
            true => None,
            false => self.core.ask(name, |view, name| view.status(name)).ok(),
        };
        self.originals.is_known(name, &file, status.map(|status| status.last_update))
    }

    /// Archives files that an earlier process has taken in.
    pub(super) fn put_away_old(&self, is_stopping: &AtomicBool) {
        let tree = self.placeholders.tree();
        while !is_stopping.load(Ordering::Relaxed) {
            let names = self.originals.take_old(OLD_AT_ONCE);
            if names.is_empty() {
                return;
            }
            let mut taken = Vec::new();
            for name in names {
                let Ok(Handle::System(file)) = tree.open_afresh(&name) else { continue };
                let file = File::from(file);
                if let Ok(status) = self.core.ask(&name, |view, name| view.status(name))
                    && self.originals.is_known(&name, &file, None)
                    && let Ok(content) = original::read(&file)
                    && let Ok(one) = self.originals.take(&name, &file, &content)
                {
                    taken.push((one, FileLayout::of(&status.definition).file_bytes));
                }
            }
            if let Err(error) = self.originals.put_away(tree, taken, (self.core.clock)().whole) {
                tracing::error!(%error, "files that were taken in stay where they are; they are archived after the next start");
                return;
            }
        }
    }

    /// Writes the placeholder of an RRD and returns what stands there then.
    fn write_again(&self, name: &RrdName) -> Result<Found, StoreError> {
        let status = self.core.ask(name, |view, name| view.status(name))?;
        self.placeholders.write(name, FileLayout::of(&status.definition).file_bytes)?;
        self.placeholders.look(name).map_err(|error| StoreError::io("cannot read a placeholder", error))
    }

    fn carry_out(&self, state: &mut State, plan: Plan, cause: Cause) -> Result<(), StoreError> {
        for (name, origin) in &plan.dangling {
            tracing::debug!(file = %name, rrd = %origin, "a placeholder stands for an RRD that the store does not have");
        }
        for (name, store) in &plan.foreign {
            tracing::warn!(file = %name, %store, "a placeholder of another store stands in the tree: it is refused");
        }
        let _turn = lock(&self.core.renaming);
        let removed = match cause {
            Cause::Request => {
                state.removals.forget(&plan.removed);
                plan.removed
            }
            Cause::Tree => state.removals.allow(&self.core, plan.removed)?,
        };
        let away = |name: RrdName| {
            let (placeholders, asked) = (Arc::clone(&self.placeholders), name.clone());
            let is_wanted: IsWanted = Some(Box::new(move || {
                !matches!(placeholders.look(&asked), Ok(Found::Ours(origin, _)) if origin == asked)
            }));
            (name, is_wanted)
        };
        let count = removed.len();
        let discarded: Vec<_> = removed.into_iter().chain(plan.replaced).map(away).collect();
        if !discarded.is_empty() {
            tracing::info!(removed = count, replaced = discarded.len() - count, "RRDs went to the trash with their placeholders");
        }
        for result in self.core.discard_all(discarded) {
            match result {
                Ok(Some(trashed)) if cause == Cause::Tree => state.removals.count(trashed),
                Ok(_) | Err(StoreError::NoSuchRrd(_)) => {}
                Err(error) => tracing::error!(%error, "an RRD without a placeholder cannot be removed"),
            }
        }
        let late = plan.late.into_iter().map(|(from, to)| (Source::Copied(from), to));
        for sources in [plan.arrivals, late.collect()] {
            // Before anything changes: they may be moved on meanwhile.
            let placeholders = self.open_all(sources.iter().map(|(_, name)| name));
            let sources = sources.into_iter().map(|(source, name)| (source, name, None)).collect();
            let arrivals = self.core.depart(sources);
            self.finish(state, arrivals, placeholders);
        }
        for name in &plan.outdated {
            self.rewrite(state, name, None);
        }
        Ok(())
    }

    /// Opens the placeholders of a few RRDs.
    fn open_all<'n>(&self, names: impl ExactSizeIterator<Item = &'n RrdName>) -> HashMap<RrdName, ToRewrite> {
        if names.len() > OPEN_AT_ONCE {
            return HashMap::new();
        }
        names.filter_map(|name| Some((name.clone(), self.placeholders.open_to_rewrite(name).ok()?))).collect()
    }

    /// Writes the placeholders of RRDs that are about to get to their names, and gives them those.
    fn finish(&self, state: &mut State, arrivals: Vec<Arrival>, mut opened: HashMap<RrdName, ToRewrite>) {
        for arrival in &arrivals {
            self.rewrite(state, &arrival.name, opened.remove(&arrival.name));
        }
        self.core.arrive(arrivals);
    }

    fn rewrite(&self, state: &mut State, name: &RrdName, opened: Option<ToRewrite>) {
        let opened = opened.map_or_else(|| self.placeholders.open_to_rewrite(name), Ok);
        let written = opened.and_then(|placeholder| {
            let written = placeholder.write(name);
            if let (Err(_), Some(id)) = (&written, placeholder.id()) {
                state.unwritten.insert(id, name.clone());
            }
            written.map_err(|error| PlaceholderError::Io { path: name.to_string(), error })
        });
        match written {
            Ok(()) => {}
            // Removed again, which the next event tells.
            Err(PlaceholderError::Io { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(%error, "cannot write the new name into a placeholder"),
        }
    }
}
