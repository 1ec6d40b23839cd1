//! Placeholders that programs have removed: their RRDs go to the trash, unless they are too many at a stroke.
//!
//! A placeholder that is missing may stand elsewhere, of which the event is still to come, and many that are missing may be a tree that was removed by
//! mistake. So a removal waits until for a second nothing more was removed; a request about such a name, which expects the RRD to be gone, does not
//! wait when they are few.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::mem;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use store::engine::StoreError;
use store::name::RrdName;
use store::placeholder::Found;

use super::moves::Moved;
use super::{NodeTree, Rrds, State, each};
use crate::lock::lock;

/// A stroke ends when nothing was removed for so long.
pub(super) const REST: Duration = Duration::from_secs(1);
/// Removals within this time count together.
const STROKE: Duration = Duration::from_secs(10);
/// So many may always go: a device is deleted.
const COUNT_MIN: usize = 20;
/// Events of one move come one after the other.
const MOVE_TIME: Duration = Duration::from_millis(20);
/// Own removals that are remembered until the kernel tells of them, and names of other files.
const NAMES_MAX: usize = 1 << 16;

/// What is missing, and what went of late.
#[derive(Debug, Default)]
pub(super) struct Removals {
    max_share: f64,
    /// Since when.
    missing: BTreeMap<RrdName, Instant>,
    /// When the last one was noted.
    noted_at: Option<Instant>,
    /// When RRDs were removed of late.
    recent: VecDeque<Instant>,
    /// Placeholders that this process has removed, because their RRDs were gone.
    own: HashSet<RrdName>,
    /// Names at which other files stand: when those go, no placeholder is missing.
    others: HashSet<RrdName>,
}

impl Removals {
    pub(super) fn new(max_share: f64) -> Removals {
        Removals { max_share, ..Removals::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.missing.is_empty()
    }

    pub(super) fn contains(&self, name: &RrdName) -> bool {
        self.missing.contains_key(name)
    }

    /// Notes that this process is about to remove a placeholder.
    pub(super) fn note_own(&mut self, name: &RrdName) {
        remember(&mut self.own, name);
    }

    /// Notes that another file stands at a name.
    pub(super) fn note_other(&mut self, name: &RrdName) {
        self.forget(name);
        remember(&mut self.others, name);
    }

    /// Notes that no file stands at a name at which one was; whether that was another one than a placeholder.
    pub(super) fn note(&mut self, name: &RrdName) -> bool {
        let is_other = self.others.remove(name);
        if !self.own.remove(name) && !is_other {
            let now = Instant::now();
            self.missing.insert(name.clone(), now);
            self.noted_at = Some(now);
        }
        is_other
    }

    /// Notes that something stands at a name.
    pub(super) fn forget(&mut self, name: &RrdName) {
        self.own.remove(name);
        self.others.remove(name);
        self.missing.remove(name);
    }

    /// Forgets what is missing.
    pub(super) fn forget_all(&mut self) {
        self.missing.clear();
    }

    /// Those of the names that are missing, if so few are that they may go at once, and no move is being followed, in whose course RRDs have other names than
    /// their placeholders; `None` while one may just have been moved.
    fn take_few(&mut self, names: &[RrdName], moved: &Moved) -> Option<Vec<RrdName>> {
        let mut few: Vec<RrdName> =
            names.iter().filter(|name| self.missing.contains_key(name)).cloned().collect();
        if !moved.is_empty() || self.missing.len() + self.count_recent() > COUNT_MIN {
            few.clear();
        }
        if few.iter().any(|name| self.missing[name].elapsed() < MOVE_TIME) {
            return None;
        }
        self.missing.retain(|name, _| !few.contains(name));
        Some(few)
    }

    /// All that are missing, once the stroke has ended, and all moves were followed.
    fn take_ended(&mut self, moved: &Moved) -> Vec<RrdName> {
        match self.noted_at.is_some_and(|at| at.elapsed() >= REST) && moved.is_empty() {
            true => mem::take(&mut self.missing).into_keys().collect(),
            false => Vec::new(),
        }
    }

    fn count_recent(&mut self) -> usize {
        while self.recent.front().is_some_and(|at| at.elapsed() > STROKE) {
            self.recent.pop_front();
        }
        self.recent.len()
    }

    /// Whether so many of all RRDs may go now.
    fn may_go(&mut self, count: usize, all: usize) -> bool {
        let count = count + self.count_recent();
        count <= COUNT_MIN || count as f64 <= self.max_share * all as f64
    }
}

fn remember(names: &mut HashSet<RrdName>, name: &RrdName) {
    if names.len() >= NAMES_MAX {
        names.clear();
    }
    names.insert(name.clone());
}

impl NodeTree {
    /// Removes RRDs whose placeholders are gone for good.
    pub(super) fn follow_removals(&self, rrds: &dyn Rrds) {
        let missing = {
            let State { removals, moved, .. } = &mut *lock(&self.state);
            removals.take_ended(moved)
        };
        if missing.is_empty() {
            return;
        }
        let there = Mutex::new(Vec::new());
        each(&missing, &|name| {
            // Of most names that come and go in a tree there never was an RRD.
            if matches!(self.placeholders.look(name), Ok(Found::Nothing)) && rrds.status(name).is_ok() {
                lock(&there).push(name.clone());
            }
        });
        let there = mem::take(&mut *lock(&there));
        let all = lock(&self.names).len();
        if lock(&self.state).removals.may_go(there.len(), all) {
            self.remove_all(rrds, there);
        } else {
            tracing::error!(
                missing = there.len(),
                all,
                "so many placeholders are missing at a stroke that no RRD is removed for it (max_removed), and they are written again: if the RRDs \
                 are meant to go, run `roundel remove`"
            );
            each(&there, &|name| {
                self.settle(rrds, name);
            });
        }
        self.note_busy();
    }

    /// Removes those of a request's names whose placeholders are gone: it expects the RRDs to be gone.
    pub(super) fn remove_few(&self, rrds: &dyn Rrds, names: &[RrdName]) {
        let take = || {
            let State { removals, moved, .. } = &mut *lock(&self.state);
            removals.take_few(names, moved)
        };
        let mut few = take();
        while few.is_none() {
            std::thread::sleep(MOVE_TIME);
            self.take_changes();
            few = take();
        }
        let mut few = few.unwrap_or_default();
        few.retain(|name| matches!(self.placeholders.look(name), Ok(Found::Nothing)));
        self.remove_all(rrds, few);
    }

    /// Puts RRDs in the trash.
    fn remove_all(&self, rrds: &dyn Rrds, names: Vec<RrdName>) {
        // A tree that is gone is no reason to remove anything; the next event says that it is.
        if names.is_empty() || !self.placeholders.tree().is_in_place() {
            return;
        }
        each(&names, &|name| match rrds.remove(name) {
            Ok(()) => lock(&self.state).removals.recent.push_back(Instant::now()),
            Err(StoreError::NoSuchRrd(_)) => {}
            Err(error) => {
                tracing::error!(%error, rrd = %name, "an RRD whose placeholder was removed stays, and gets its placeholder again");
                self.doubt(name);
            }
        });
        tracing::info!(count = names.len(), first = %names[0], "RRDs went to the trash with their placeholders");
        self.note_busy();
    }
}
