//! Placeholders that programs have moved or copied: their RRDs are renamed or copied.
//!
//! A placeholder says for which name it was written. Where it stands at another one, it was moved or copied there, in any number of steps: if one
//! stands at the name that it was written for, it was copied; if not, it was moved.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Mutex;

use store::engine::StoreError;
use store::name::RrdName;
use store::placeholder::{FileId, Found, PlaceholderError, RrdNumber};

use super::{NodeTree, Rrds, State, each};
use crate::lock::lock;

/// What a placeholder says: the name that its RRD had, and which of the RRDs that had this name in turn. The number counts renames, within this process only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Written {
    pub(super) name: RrdName,
    pub(super) number: Option<RrdNumber>,
}

/// What stands elsewhere than at its name.
#[derive(Debug)]
pub(super) struct Moved {
    /// By the name at which it stands, what it says.
    written: BTreeMap<RrdName, Written>,
    /// How many were written for a name.
    origins: BTreeMap<RrdName, usize>,
    /// RRDs that were renamed of late, from and to: a placeholder that was moved on meanwhile still has the former name.
    lately: BTreeMap<Written, Written>,
    /// The numbers of names that RRDs lost or got of late.
    numbers: BTreeMap<RrdName, u32>,
    last_number: u32,
}

/// Renames that are remembered.
const LATELY_MAX: usize = 4096;
/// How often names are looked at, one time after the other, until nothing changes meanwhile.
const LOOKS_MAX: u32 = 50;
/// So many renames of one RRD may follow one another.
const STEPS_MAX: usize = 64;

impl Default for Moved {
    fn default() -> Self {
        // So that no number is one that an earlier process gave, but for very many.
        let seconds = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
        Moved {
            written: BTreeMap::new(),
            origins: BTreeMap::new(),
            lately: BTreeMap::new(),
            numbers: BTreeMap::new(),
            last_number: seconds as u32,
        }
    }
}

impl Moved {
    pub(super) fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    /// Whether an RRD gets or loses this name: perhaps one that has got it meanwhile, while its placeholder was moved on.
    pub(super) fn concerns(&self, name: &RrdName) -> bool {
        let is_lost = || {
            self.numbers.contains_key(name)
                && self.written.values().any(|written| self.later_name(written) == *name)
        };
        self.written.contains_key(name) || self.origins.contains_key(name) || is_lost()
    }

    /// What the placeholder of an RRD of this name is to say.
    pub(super) fn number(&self, name: &RrdName) -> Option<RrdNumber> {
        self.numbers.get(name).map(|&id| RrdNumber { shard: 0, id })
    }

    fn written_for(&self, name: &RrdName) -> Written {
        Written { name: name.clone(), number: self.number(name) }
    }

    /// Notes that an RRD was renamed: both names are another RRD's, or none's, from now on.
    fn note_renamed(&mut self, from: &RrdName, to: &RrdName) {
        if self.lately.len() >= LATELY_MAX {
            self.lately.clear();
            self.numbers.clear();
        }
        let before = self.written_for(from);
        self.renew(from);
        self.renew(to);
        self.lately.insert(before, self.written_for(to));
    }

    /// Notes that another RRD has this name from now on.
    fn renew(&mut self, name: &RrdName) {
        self.last_number = self.last_number.wrapping_add(1);
        self.numbers.insert(name.clone(), self.last_number);
    }

    /// Whether a placeholder that says this belongs at the name.
    pub(super) fn is_home(&self, name: &RrdName, written: &Written) -> bool {
        written.name == *name && self.later_name(written) == *name
    }

    /// The name that an RRD has got since its placeholder said this.
    fn later_name(&self, written: &Written) -> RrdName {
        let steps = std::iter::successors(Some(written), |written| self.lately.get(*written));
        steps.take(STEPS_MAX).last().unwrap_or(written).name.clone()
    }

    pub(super) fn note(&mut self, name: &RrdName, written: Written) {
        self.forget(name);
        *self.origins.entry(written.name.clone()).or_default() += 1;
        self.written.insert(name.clone(), written);
    }

    /// Forgets what stood at a name, unless another one stands there now.
    fn forget_if(&mut self, name: &RrdName, written: &Written) {
        if self.written.get(name) == Some(written) {
            self.forget(name);
        }
    }

    pub(super) fn forget(&mut self, name: &RrdName) {
        if let Some(Written { name: origin, .. }) = self.written.remove(name)
            && let Some(count) = self.origins.get_mut(&origin)
        {
            *count -= 1;
            if *count == 0 {
                self.origins.remove(&origin);
            }
        }
    }
}

/// An RRD that gets another name, or a copy of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    from: RrdName,
    to: RrdName,
    /// What the placeholder at the new name says; `None` where none stands.
    written: Option<Written>,
}

/// Those that have nothing to do with what failed: what could not be moved out of the way is not overwritten.
fn possible(mut changes: Vec<Change>, failed: &Mutex<BTreeSet<RrdName>>) -> Vec<Change> {
    let failed = lock(failed);
    changes.retain(|Change { from, to, .. }| !failed.contains(from) && !failed.contains(to));
    changes
}

/// What is to be done to RRDs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    copies: Vec<Change>,
    /// No two are from or to the same name.
    renames: Vec<Change>,
}

impl Plan {
    /// The renames that come first: RRDs to whose names others come get names of their own, from which they go on.
    fn make_way(&mut self) -> Vec<Change> {
        let targets: BTreeSet<RrdName> =
            self.copies.iter().chain(&self.renames).map(|change| change.to.clone()).collect();
        let mut first = BTreeMap::new();
        for change in &mut self.renames {
            if targets.contains(&change.from)
                && let Ok(between) = RrdName::new(&[change.from.as_bytes(), b".moving"].concat())
            {
                let from = std::mem::replace(&mut change.from, between.clone());
                first.insert(from, between);
            }
        }
        for change in &mut self.copies {
            if let Some(between) = first.get(&change.from) {
                change.from = between.clone();
            }
        }
        first.into_iter().map(|(from, to)| Change { from, to, written: None }).collect()
    }
}

impl NodeTree {
    /// Renames and copies RRDs as their placeholders were moved and copied.
    pub(super) fn follow_moves(&self, rrds: &dyn Rrds) {
        let Some(mut plan) = self.agree(rrds) else { return };
        if plan != Plan::default() {
            tracing::info!(
                renames = plan.renames.len(),
                copies = plan.copies.len(),
                "RRDs are renamed and copied with their placeholders"
            );
        }
        let failed = Mutex::new(BTreeSet::new());
        self.rename_all(rrds, plan.make_way(), &failed);
        // What is copied may be moved as well.
        each(&possible(plan.copies, &failed), &|change| {
            let copied = rrds.copy(&change.from, &change.to);
            if copied.is_ok() {
                lock(&self.state).moved.renew(&change.to);
            }
            self.carry_out(copied, change);
        });
        self.rename_all(rrds, plan.renames, &failed);
        self.note_busy();
    }

    fn rename_all(&self, rrds: &dyn Rrds, renames: Vec<Change>, failed: &Mutex<BTreeSet<RrdName>>) {
        each(&possible(renames, failed), &|change| {
            let Change { from, to, .. } = change;
            let renamed = rrds.rename(from, to);
            if renamed.is_ok() {
                let State { moved, removals, .. } = &mut *lock(&self.state);
                moved.note_renamed(from, to);
                removals.forget(from);
            }
            if !self.carry_out(renamed, change) {
                lock(failed).extend([from.clone(), to.clone()]);
            }
        });
    }

    /// What follows from where placeholders stand, with no change in between: otherwise an RRD might be overwritten whose placeholder was seen neither at
    /// the one name nor at the other. `None` when nothing is to be done.
    fn agree(&self, rrds: &dyn Rrds) -> Option<Plan> {
        for _ in 0..LOOKS_MAX {
            let before = lock(&self.state).moved.written.clone();
            if before.is_empty() {
                return None;
            }
            let plan = self.plan(rrds, before.keys());
            self.take_changes();
            // What went meanwhile was not planned, or is looked at again when it is elsewhere.
            let after = &lock(&self.state).moved.written;
            if after.iter().all(|(name, written)| before.get(name) == Some(written)) {
                return Some(plan);
            }
        }
        // Programs change it faster than it can be looked at.
        None
    }

    /// What follows from where placeholders stand now.
    fn plan<'n>(&self, rrds: &dyn Rrds, names: impl Iterator<Item = &'n RrdName>) -> Plan {
        let mut claims: BTreeMap<RrdName, Vec<(RrdName, Written, FileId)>> = BTreeMap::new();
        for name in names {
            let name = name.clone();
            match self.placeholders.look(&name) {
                Ok(Found::Ours { rrd: number, name: written, file }) => {
                    let written = Written { name: written, number };
                    let moved = &mut lock(&self.state).moved;
                    match moved.is_home(&name, &written) {
                        true => moved.forget(&name),
                        false => {
                            claims.entry(moved.later_name(&written)).or_default().push((name, written, file))
                        }
                    }
                }
                // An event tells what has become of it.
                _ => lock(&self.state).moved.forget(&name),
            }
        }
        let mut plan = Plan::default();
        for (origin, mut claimants) in claims {
            match rrds.status(&origin) {
                Ok(_) => {}
                Err(StoreError::NoSuchRrd(_)) => {
                    tracing::debug!(rrd = %origin, file = %claimants[0].0, "a placeholder stands for an RRD that is gone");
                    claimants.iter().for_each(|(name, ..)| lock(&self.state).moved.forget(name));
                    continue;
                }
                // It is tried again.
                Err(_) => continue,
            }
            let (mut files, mut is_at_home) = (BTreeSet::new(), false);
            if let Ok(Found::Ours { rrd: number, name, file }) = self.placeholders.look(&origin)
                && lock(&self.state).moved.is_home(&origin, &Written { name, number })
            {
                files.insert(file);
                is_at_home = true;
            }
            // Of several names that are links to one file, the first counts.
            claimants.retain(|(name, _, file)| {
                let is_new = files.insert(*file);
                if !is_new {
                    lock(&self.state).moved.forget(name);
                }
                is_new
            });
            let mut changes = claimants.into_iter().map(|(to, written, _)| Change {
                from: origin.clone(),
                to,
                written: Some(written),
            });
            plan.renames.extend(if is_at_home { None } else { changes.next() });
            plan.copies.extend(changes);
        }
        plan
    }

    /// Notes what became of a rename or a copy; whether it was done.
    fn carry_out(&self, result: Result<(), StoreError>, change: &Change) -> bool {
        let Change { from, to, written } = change;
        match &result {
            Err(error) if crate::engine::passes(error) || matches!(error, StoreError::Unavailable(_)) => {
                tracing::warn!(%error, %from, %to, "an RRD does not follow its placeholder yet; it is tried again");
                return false;
            }
            Err(StoreError::NoSuchRrd(_)) | Ok(()) => {}
            Err(error) => {
                tracing::error!(%error, %from, %to, "an RRD does not follow its placeholder");
            }
        }
        if let Some(written) = written {
            lock(&self.state).moved.forget_if(to, written);
            if result.is_ok() {
                self.rewrite(to, written);
            }
        }
        result.is_ok()
    }

    /// Has a placeholder that says this say what is so now, unless it was moved on, or another one has taken its place, of which events tell.
    fn rewrite(&self, name: &RrdName, written: &Written) {
        let Some(number) = lock(&self.state).moved.number(name) else { return };
        let is_it = |number, text: &RrdName| number == written.number && *text == written.name;
        match self.placeholders.rewrite(name, number, is_it) {
            Ok(_) => {}
            Err(PlaceholderError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(%error, "cannot write the new name into a placeholder"),
        }
    }
}
