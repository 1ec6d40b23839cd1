//! What the store does because of what stands in the tree, and what it writes there.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rrd::codec::file::FileLayout;
use rrd_file::handle::Handle;

use super::plan::Plan;
use super::{Cause, Reconciler, State};
use crate::engine::StoreError;
use crate::lock::lock;
use crate::name::RrdName;
use crate::placeholder::{Found, PlaceholderError, RrdNumber};
use crate::stripes::adopt::original;
use crate::stripes::names::{IsWanted, Source};

/// Files that an earlier process has taken in, archived with one fsync.
const OLD_AT_ONCE: usize = 64;

impl Reconciler {
    /// Carries a plan out, as far as that is possible.
    ///
    /// # Errors
    /// The first failure.
    pub(super) fn carry_out(&self, state: &mut State, plan: Plan, cause: Cause) -> Result<(), StoreError> {
        tracing::debug!(?plan, "follows a change of the tree");
        if !plan.changes_nothing() {
            self.placeholders.forget_own();
        }
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
        let mut outcome = Ok(());
        for result in self.core.discard_all(discarded) {
            match result {
                Ok(Some(trashed)) if cause == Cause::Tree => state.removals.count(trashed),
                Ok(_) | Err(StoreError::NoSuchRrd(_)) => {}
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        let late = plan.late.into_iter().map(|(from, to)| (Source::Copied(from), to));
        for sources in [plan.arrivals, late.collect()] {
            let (arrivals, departed) = self.core.depart(sources);
            // A copy must not be made once more because its placeholder still says what it was copied from. One whose placeholder has gone on is made
            // where that is now.
            let (arrivals, superfluous): (Vec<_>, Vec<_>) = arrivals
                .into_iter()
                .partition(|one| self.rewrite(&one.name, one.number, one.copy_of) || one.copy_of.is_none());
            self.core.abandon(superfluous);
            outcome = outcome.and(departed).and(self.core.arrive(arrivals));
        }
        for (name, number) in plan.outdated.iter().zip(self.core.numbers(&plan.outdated)?) {
            self.rewrite(name, number, None);
        }
        outcome
    }

    /// RRDs that are to be removed unless, at that moment, their placeholders are there.
    pub(super) fn unless_back(&self, names: Vec<RrdName>) -> Result<Vec<(RrdName, IsWanted)>, StoreError> {
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

    /// Writes an RRD's name and number into its placeholder, in which there may be the number of what it is a copy of. False when it is not there any more.
    pub(super) fn rewrite(
        &self,
        name: &RrdName,
        number: Option<RrdNumber>,
        copy_of: Option<RrdNumber>,
    ) -> bool {
        let Some(number) = number else { return true };
        let is_its = |found: RrdNumber| found == number || Some(found) == copy_of;
        match self.placeholders.rewrite(name, number, |found, _| found.is_none_or(is_its)) {
            Ok(is_there) => is_there,
            // Moved on or removed, which the next event tells.
            Err(PlaceholderError::Io { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => false,
            Err(error) => {
                tracing::warn!(%error, "cannot write the new name into a placeholder");
                true
            }
        }
    }

    /// The number of an RRD, and the length of its placeholder.
    pub(super) fn about(&self, name: &RrdName) -> Result<(RrdNumber, u64), StoreError> {
        let status = self.core.ask(name, |view, name| view.status(name))?;
        Ok((self.core.number(name)?, FileLayout::of(&status.definition).file_bytes))
    }

    /// Writes the placeholder of an RRD and returns what stands there then.
    pub(super) fn write_again(&self, name: &RrdName) -> Result<Found, StoreError> {
        let (number, bytes) = self.about(name)?;
        self.placeholders.write(name, Some(number), bytes)?;
        self.placeholders.look(name).map_err(|error| StoreError::io("cannot read a placeholder", error))
    }

    /// Archives files that an earlier process has taken in.
    pub(in super::super) fn put_away_old(&self, is_stopping: &AtomicBool) {
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

    /// Notes, after the first scan, that all RRDs have had placeholders.
    pub(in super::super) fn note_placeholders(&self) {
        let mut state = lock(&self.state);
        let Ok(next_ids) = self.core.next_ids() else { return };
        let mut noted = state.noted.clone();
        noted.extend(&next_ids);
        if self.is_scanned() && !state.is_tree_gone {
            noted.complete();
        }
        if noted == state.noted {
            return;
        }
        // Between two rounds of a shard, all of its RRDs have theirs.
        match noted.write(&*self.disk, self.placeholders.tree().path()) {
            Ok(()) => state.noted = noted,
            Err(error) => tracing::warn!(%error, "cannot note which placeholders were written"),
        }
    }

    /// Sets when placeholders were modified, if that is due or was asked for.
    pub(in super::super) fn set_all_modified(&self, is_due: bool, is_stopping: &AtomicBool) {
        // Until all have been looked at, files may stand there that an earlier process has taken in.
        if self.is_scanned()
            && (self.modified.take_wish() || is_due)
            && let Err(error) =
                self.modified.sweep(&self.core, &self.placeholders, &self.originals, is_stopping)
        {
            tracing::debug!(%error, "the store stops");
        }
    }
}
