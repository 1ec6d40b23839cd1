//! What programs do to placeholders happens to RRDs: a tree of placeholders is moved, copied and removed like a tree of files.
//!
//! Before a request is served, [`Reconciler::catch_up`] asks the kernel whether anything has changed in the tree ([`super::watch`]): one `ioctl` for a
//! batch of requests. If so, it looks at the names in question, decides what has happened ([`plan`]) and changes the store accordingly, before any
//! request is served. Where the watch cannot be sure (while a scan runs, on a network file system, without enough watches), each name is looked
//! at when it is used.
//!
//! An RRD on its way first gets a hidden name that says where it goes to; then its placeholder there is written, and it gets its name. Each of these is in
//! the log or on disk before the next, so that the next start completes what a crash has cut short.

mod noted;
mod plan;
mod removal;
mod scan;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rrd::codec::file::FileLayout;
use rrd_file::handle::Handle;
use rrd_file::tree::Tree;

use crate::disk::Disk;
use crate::engine::{StoreError, Trashed};
use crate::lock::lock;
use crate::name::RrdName;
use crate::placeholder::{Found, PlaceholderError, Placeholders, RrdNumber};
use crate::stripes::adopt::{Originals, original};
use crate::stripes::modified::ModifiedTimes;
use crate::stripes::names::{Arrival, IsWanted, Source};
use crate::stripes::shards::Core;
use crate::stripes::watch::{Changes, Watch};
use noted::Noted;
use plan::{Origin, Plan, Seen, Stands, plan};
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
    /// Set while changes are being followed.
    is_busy: AtomicBool,
    /// Set while the watch may miss changes.
    is_unsure: AtomicBool,
    /// How many RRDs are kept although their placeholders are missing.
    missing_count: AtomicU64,
    /// Set when the whole tree has to be looked at.
    wants_scan: AtomicBool,
    state: Mutex<State>,
    modified: ModifiedTimes,
    /// RRDs that were there when this process began.
    at_start: Noted,
    /// Notified at the end of the first scan.
    scanned: Condvar,
}

/// What only one thread at a time changes.
struct State {
    watch: Option<Watch>,
    removals: Removals,
    /// The tree itself is gone; nothing is followed any more.
    is_tree_gone: bool,
    /// The tree was read from beginning to end since the start.
    is_scanned: bool,
    /// RRDs that have had a placeholder.
    noted: Noted,
}

/// How long a request waits for the first scan: one that is about a name without a placeholder, and one for all names.
const SCAN_PATIENCE: Duration = Duration::from_secs(10);
/// How often names are looked at, one time after the other, until they stay the same.
const LOOKS_MAX: u32 = 50;
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
        (disk, originals): (Arc<dyn Disk>, Arc<Originals>),
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
                removals: Removals::new(max_removed),
                is_tree_gone: false,
                is_scanned: false,
                noted: Noted::read(&*disk, placeholders.tree().path()),
            }),
            disk,
            modified: ModifiedTimes::default(),
            at_start: Noted::new(core.next_ids().unwrap_or_default()),
            core,
            scanned: Condvar::new(),
            placeholders,
        };
        reconciler.core.arrive(arrivals);
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

    /// Sets when the placeholder of an RRD was modified; of all RRDs soon, without a name.
    ///
    /// # Errors
    /// When the store stops.
    pub(super) fn set_modified(&self, name: Option<&RrdName>) -> Result<(), StoreError> {
        match name {
            Some(name) => self.modified.set_one(&self.core, &self.placeholders, name),
            None => {
                self.modified.ask();
                Ok(())
            }
        }
    }

    /// Sets when placeholders were modified, if that is due or was asked for.
    pub(super) fn set_all_modified(&self, is_due: bool, is_stopping: &AtomicBool) {
        if (self.modified.take_wish() || is_due)
            && let Err(error) = self.modified.sweep(&self.core, &self.placeholders, is_stopping)
        {
            tracing::debug!(%error, "the store stops");
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
    fn follow(&self) {
        let mut state = lock(&self.state);
        self.is_busy.store(true, Ordering::SeqCst);
        if let Some(watch) = &mut state.watch {
            let changes = watch.take();
            let names = self.names_in(&mut state, changes);
            self.settle(&mut state, names, Cause::Tree);
        }
        self.is_busy.store(false, Ordering::SeqCst);
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
        let mut odd = BTreeSet::new();
        for name in names {
            if let Ok(name) = RrdName::new(name)
                && !self.is_at_home(&name)
            {
                odd.insert(name);
            }
        }
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
        let _ = self
            .scanned
            .wait_timeout_while(state, SCAN_PATIENCE, |state| !state.is_scanned && !state.is_tree_gone);
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
        matches!(self.placeholders.look(name), Ok(Found::Ours { name: written, .. }) if written == *name)
    }

    /// The RRD that is meant by a name that none has: the one whose placeholder a link leads to, or that was moved there under a hidden file name.
    ///
    /// # Errors
    /// When the placeholder there is another store's.
    pub(super) fn resolve(&self, name: &RrdName) -> Result<Option<RrdName>, StoreError> {
        match self.placeholders.look(name) {
            Ok(Found::Ours { rrd, name: written, file }) => {
                let known = match rrd {
                    Some(rrd) => self.core.names_of(&[rrd])?.remove(&rrd),
                    None => Some(written.as_bytes().into()),
                };
                let Some(known) = known.filter(|known| known[..] != *name.as_bytes()) else {
                    return Ok(None);
                };
                if let Ok(known) = RrdName::new(&known)
                    && matches!(self.placeholders.look(&known), Ok(Found::Ours { file: other, .. }) if other == file)
                {
                    return Ok(Some(known));
                }
                // It was moved there without an event, or is in the trash.
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
        let failed =
            |error| StoreError::io(format!("cannot rename the placeholder \"{from}\" to \"{to}\""), error);
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
            Ok(Found::Nothing | Found::Unfinished | Found::Ours { .. }) => {}
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
        let (number, bytes) = self.about(from)?;
        self.placeholders.write(to, Some(number), bytes)?;
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
        let followed = self.agree(state, names).and_then(|plan| self.carry_out(state, plan, cause));
        if let Err(error) = followed {
            tracing::debug!(%error, "cannot follow a change of the tree: the store stops");
        }
        self.missing_count.store(state.removals.missing().len() as u64, Ordering::Relaxed);
    }

    /// A plan for what stood at the names and at all others that they lead to, at one moment: what is seen twice with nothing in between.
    fn agree(&self, state: &mut State, mut names: BTreeSet<RrdName>) -> Result<Plan, StoreError> {
        let mut seen = self.see(state, names.clone())?;
        for _ in 0..LOOKS_MAX {
            let plan = plan(&seen);
            if plan.changes_nothing() {
                return Ok(plan);
            }
            let again = self.see(state, names.clone())?;
            let changes = state.watch.as_mut().map(Watch::take).unwrap_or_default();
            let is_quiet = changes == Changes::default();
            if is_quiet && again == seen {
                return Ok(plan);
            }
            seen = again;
            if !is_quiet {
                names.extend(self.names_in(state, changes));
                seen = self.see(state, names.clone())?;
            }
        }
        // Programs change it faster than it can be looked at; what is missed now leads to further events.
        Ok(plan(&seen))
    }

    /// Looks at names, and at those that the RRDs have for which the placeholders there were written.
    fn see(
        &self,
        state: &mut State,
        names: BTreeSet<RrdName>,
    ) -> Result<BTreeMap<RrdName, Seen>, StoreError> {
        let mut seen = BTreeMap::new();
        let mut next = names;
        while !next.is_empty() {
            let names: Vec<RrdName> = std::mem::take(&mut next).into_iter().collect();
            let numbers = self.core.numbers(&names)?;
            let mut found = Vec::new();
            for (name, number) in names.into_iter().zip(numbers) {
                if let Some(what) = self.find(state, &name, number)? {
                    found.push((name, number, what));
                }
            }
            let meant: Vec<RrdNumber> = found.iter().filter_map(|(_, _, found)| written_for(found)).collect();
            let meant = self.core.names_of(&meant)?;
            for (name, number, found) in found {
                let stands = self.stands(&name, number, found, &meant)?;
                if let Stands::Placeholder { origin: Origin::Rrd(of), .. } = &stands
                    && !seen.contains_key(of)
                    && *of != name
                {
                    next.insert(of.clone());
                }
                seen.insert(name, Seen { stands, is_rrd: number.is_some() });
            }
            next.retain(|name| !seen.contains_key(name));
        }
        Ok(seen)
    }

    /// What stands at a name that an RRD of this number has; `None` when nothing is to be done about it.
    fn find(
        &self,
        state: &mut State,
        name: &RrdName,
        number: Option<RrdNumber>,
    ) -> Result<Option<Found>, StoreError> {
        let mut found = match self.placeholders.look(name) {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, file = %name, "cannot look at a file of the tree: what was done to it is not followed");
                return Ok(None);
            }
        };
        if number.is_some() {
            match found {
                // The machine has stopped before the placeholder was on its disk.
                Found::Unfinished if !state.is_scanned => {
                    found = self.write_again(name).unwrap_or(found);
                }
                Found::Nothing
                    if !state.is_scanned
                        && number.is_some_and(|number| self.never_had_one(state, number)) =>
                {
                    found = self.write_again(name).unwrap_or(found);
                }
                Found::RrdFile if self.is_known_file(name, state.is_scanned) => return Ok(None),
                _ => {}
            }
        }
        state.removals.note(name, &found);
        Ok(Some(found))
    }

    /// What follows for a name from what was found there. `meant` has the names of RRDs by their numbers.
    fn stands(
        &self,
        name: &RrdName,
        number: Option<RrdNumber>,
        found: Found,
        meant: &HashMap<RrdNumber, Box<[u8]>>,
    ) -> Result<Stands, StoreError> {
        let (rrd, written, file) = match found {
            Found::Ours { rrd, name, file } => (rrd, name, file),
            Found::Nothing => return Ok(Stands::Nothing),
            Found::Foreign(store) => return Ok(Stands::Foreign(store)),
            Found::RrdFile | Found::Unfinished | Found::Other => return Ok(Stands::Other),
        };
        let is_current = rrd.is_some() && rrd == number && written == *name;
        let origin = match rrd.map(|rrd| meant.get(&rrd)) {
            Some(Some(hidden)) if RrdName::is_hidden(hidden) => {
                self.core.trashed(hidden).map_or(Origin::Unknown, Origin::Trash)
            }
            Some(Some(known)) => RrdName::new(known).map_or(Origin::Unknown, Origin::Rrd),
            // The number of an RRD that was rebuilt, or of a creation that a crash has undone.
            Some(None) if number.is_some() => Origin::Rrd(name.clone()),
            Some(None) => Origin::Unknown,
            None => self.origin_by_name(name, number, &written)?,
        };
        Ok(Stands::Placeholder { origin, file, is_current })
    }

    /// The RRD that a placeholder without a number was written for, as a release did that knew only names.
    fn origin_by_name(
        &self,
        name: &RrdName,
        number: Option<RrdNumber>,
        written: &RrdName,
    ) -> Result<Origin, StoreError> {
        if self.core.numbers(std::slice::from_ref(written))?[0].is_some() {
            return Ok(Origin::Rrd(written.clone()));
        }
        Ok(match (self.core.last_trashed(written), number) {
            (_, Some(_)) => Origin::Rrd(name.clone()),
            (Some(trashed), None) => Origin::Trash(trashed),
            (None, None) => Origin::Unknown,
        })
    }

    /// Whether an RRD was there when this process began, but its placeholder never was.
    fn never_had_one(&self, state: &State, rrd: RrdNumber) -> bool {
        self.at_start.has(rrd) && !state.noted.has(rrd)
    }

    /// Notes, after the first scan, that all RRDs have had placeholders.
    pub(super) fn note_placeholders(&self) {
        let mut state = lock(&self.state);
        if !state.is_scanned || state.is_tree_gone {
            return;
        }
        let Ok(next_ids) = self.core.next_ids() else { return };
        let noted = Noted::new(next_ids);
        if noted == state.noted {
            return;
        }
        // Between two rounds of a shard, all of its RRDs have theirs.
        match noted.write(&*self.disk, self.placeholders.tree().path()) {
            Ok(()) => state.noted = noted,
            Err(error) => tracing::warn!(%error, "cannot note which placeholders were written"),
        }
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
                if let Ok(about) = self.about(&name)
                    && self.originals.is_known(&name, &file, None)
                    && let Ok(content) = original::read(&file)
                    && let Ok(one) = self.originals.take(&name, &file, &content)
                {
                    taken.push((one, about));
                }
            }
            if let Err(error) = self.originals.put_away(tree, taken, (self.core.clock)().whole) {
                tracing::error!(%error, "files that were taken in stay where they are; they are archived after the next start");
                return;
            }
        }
    }

    /// The number of an RRD, and the length of its placeholder.
    fn about(&self, name: &RrdName) -> Result<(RrdNumber, u64), StoreError> {
        let status = self.core.ask(name, |view, name| view.status(name))?;
        Ok((self.core.number(name)?, FileLayout::of(&status.definition).file_bytes))
    }

    /// Writes the placeholder of an RRD and returns what stands there then.
    fn write_again(&self, name: &RrdName) -> Result<Found, StoreError> {
        let (number, bytes) = self.about(name)?;
        self.placeholders.write(name, Some(number), bytes)?;
        self.placeholders.look(name).map_err(|error| StoreError::io("cannot read a placeholder", error))
    }

    fn carry_out(&self, state: &mut State, plan: Plan, cause: Cause) -> Result<(), StoreError> {
        tracing::debug!(?plan, "follows a change of the tree");
        for name in &plan.dangling {
            tracing::debug!(file = %name, "a placeholder stands for an RRD that the store does not have");
        }
        for (name, store) in &plan.foreign {
            tracing::warn!(file = %name, %store, "a placeholder of another store stands in the tree: it is refused");
        }
        if !plan.removed.is_empty() && !self.placeholders.tree().is_in_place() {
            self.note_tree_gone(state);
            return Ok(());
        }
        let _turn = lock(&self.core.renaming);
        let removed = match cause {
            Cause::Request => {
                state.removals.forget(&plan.removed);
                plan.removed
            }
            Cause::Tree => state.removals.allow(&self.core, plan.removed)?,
        };
        let count = removed.len();
        let discarded = self.unless_back(removed.into_iter().chain(plan.replaced).collect())?;
        if !discarded.is_empty() {
            tracing::info!(
                removed = count,
                replaced = discarded.len() - count,
                "RRDs went to the trash with their placeholders"
            );
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
            let sources = sources.into_iter().map(|(source, name)| (source, name, None)).collect();
            let arrivals = self.core.depart(sources);
            // A copy must not be made once more because its placeholder still says what it was copied from.
            for Arrival { name, number, copy_of, .. } in &arrivals {
                self.rewrite(name, *number, *copy_of);
            }
            self.core.arrive(arrivals);
        }
        for (name, number) in plan.outdated.iter().zip(self.core.numbers(&plan.outdated)?) {
            self.rewrite(name, number, None);
        }
        Ok(())
    }

    /// RRDs that are to be removed unless, at that moment, their placeholders are there.
    fn unless_back(&self, names: Vec<RrdName>) -> Result<Vec<(RrdName, IsWanted)>, StoreError> {
        let numbers = self.core.numbers(&names)?;
        let one = |(name, number): (RrdName, Option<RrdNumber>)| {
            let (placeholders, asked) = (Arc::clone(&self.placeholders), name.clone());
            let is_wanted: IsWanted = Some(Box::new(move || match placeholders.look(&asked) {
                Ok(Found::Ours { rrd: Some(rrd), .. }) => Some(rrd) != number,
                Ok(Found::Ours { rrd: None, name, .. }) => name != asked,
                Ok(_) => true,
                Err(_) => false,
            }));
            (name, is_wanted)
        };
        Ok(names.into_iter().zip(numbers).map(one).collect())
    }

    /// Writes an RRD's name and number into its placeholder, in which there may be the number of what it is a copy of.
    fn rewrite(&self, name: &RrdName, number: Option<RrdNumber>, copy_of: Option<RrdNumber>) {
        let Some(number) = number else { return };
        match self.placeholders.rewrite(name, number, &[number, copy_of.unwrap_or(number)]) {
            Ok(()) => {}
            // Moved on or removed, which the next event tells.
            Err(PlaceholderError::Io { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(%error, "cannot write the new name into a placeholder"),
        }
    }
}

/// The RRD that a placeholder was written for.
fn written_for(found: &Found) -> Option<RrdNumber> {
    match found {
        Found::Ours { rrd, .. } => *rrd,
        _ => None,
    }
}
