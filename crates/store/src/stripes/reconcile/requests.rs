//! What clients and the administrator ask for: the same as programs do to placeholders, with an answer.

use std::sync::atomic::Ordering;

use super::{Cause, Reconciler};
use crate::engine::{StoreError, Trashed};
use crate::lock::lock;
use crate::name::RrdName;
use crate::placeholder::{Found, PlaceholderError, StoreIdentity};

impl Reconciler {
    /// RRDs that are kept although their placeholders are missing.
    pub(in super::super) fn missing(&self) -> Vec<RrdName> {
        lock(&self.state).removals.missing().iter().cloned().collect()
    }

    /// How many these are.
    pub(in super::super) fn missing_count(&self) -> u64 {
        self.missing_count.load(Ordering::Relaxed)
    }

    /// Removes them, or writes their placeholders again; returns how many there were.
    ///
    /// # Errors
    /// When a placeholder cannot be written.
    pub(in super::super) fn settle_missing(&self, remove: bool) -> Result<u64, StoreError> {
        let mut state = lock(&self.state);
        let names = state.removals.missing().clone();
        let count = names.len() as u64;
        if !remove {
            for name in &names {
                self.write_again(name)?;
            }
        }
        self.follow_names(&mut state, names, Cause::Request)?;
        Ok(count)
    }

    /// Makes way for a new RRD: one of this name that was kept although its placeholder is missing goes to the trash.
    ///
    /// # Errors
    /// When it cannot go.
    pub(in super::super) fn make_way(&self, name: &RrdName) -> Result<(), StoreError> {
        if self.missing_count() == 0 {
            return Ok(());
        }
        let mut state = lock(&self.state);
        match state.removals.missing().contains(name) {
            true => self.follow_names(&mut state, [name.clone()].into(), Cause::Request),
            false => Ok(()),
        }
    }

    /// Whether a file stands at a name that an RRD must not replace which is to replace nothing: one of another program, even an empty one. Those that a
    /// loss of power has left are older than this process. `.rrd` files are the adopter's.
    pub(in super::super) fn has_other_file(&self, name: &RrdName) -> bool {
        match self.placeholders.look(name) {
            Ok(Found::Other | Found::Foreign(_)) => true,
            Ok(Found::Unfinished) => !self.is_older_than_start(name),
            Ok(Found::Nothing | Found::Ours { .. } | Found::RrdFile) | Err(_) => false,
        }
    }

    /// The RRD that is meant by a name that none has: the one whose placeholder a link leads to, or that was moved there under a hidden file name.
    ///
    /// # Errors
    /// When the placeholder there is another store's.
    pub(in super::super) fn resolve(&self, name: &RrdName) -> Result<Option<RrdName>, StoreError> {
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
                    self.catch_up(std::iter::once(known.as_bytes()));
                    return Ok(Some(known));
                }
                // It was moved there without an event, or is in the trash.
                self.settle(&mut lock(&self.state), [name.clone()].into());
                Ok(Some(name.clone()))
            }
            Ok(Found::Foreign(store)) => Err(self.foreign(name, store).into()),
            _ => Ok(None),
        }
    }

    /// Renames the placeholder of an RRD, and the RRD with it.
    ///
    /// # Errors
    /// When the file cannot be renamed.
    pub(in super::super) fn rename(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        let mut state = lock(&self.state);
        self.check_replaceable(to)?;
        if !self.is_at_home(from) {
            // Kept although its placeholder is missing.
            self.core.rename(from, to)?;
            self.write_again(to)?;
            return Ok(());
        }
        let failed =
            |error| StoreError::io(format!("cannot rename the placeholder \"{from}\" to \"{to}\""), error);
        self.placeholders.tree().rename(from, to).map_err(failed)?;
        self.follow_names(&mut state, [from.clone(), to.clone()].into(), Cause::Request)
    }

    /// Checks that no file stands at a name but a placeholder of this store: others are not the store's to replace.
    fn check_replaceable(&self, name: &RrdName) -> Result<(), StoreError> {
        let occupied = |rrd_file| PlaceholderError::Occupied { name: name.clone(), rrd_file };
        let found = self.placeholders.look(name);
        let error =
            match found.map_err(|error| StoreError::io(format!("cannot look at \"{name}\""), error))? {
                Found::Nothing | Found::Unfinished | Found::Ours { .. } => return Ok(()),
                Found::Foreign(store) => self.foreign(name, store),
                Found::RrdFile => occupied(true),
                Found::Other => occupied(false),
            };
        Err(error.into())
    }

    fn foreign(&self, name: &RrdName, store: StoreIdentity) -> PlaceholderError {
        PlaceholderError::Foreign { name: name.clone(), store, here: self.placeholders.store() }
    }

    /// Takes an RRD out of the trash and writes its placeholder.
    ///
    /// # Errors
    /// When it is not there, an RRD or another file has the name, or the change cannot be made durable.
    pub(in super::super) fn restore(&self, trashed: &Trashed, to: &RrdName) -> Result<(), StoreError> {
        let _state = lock(&self.state);
        self.check_replaceable(to)?;
        self.core.restore(trashed, to)?;
        self.write_again(to).map(|_| ())
    }

    /// Makes a copy of an RRD and of its placeholder.
    ///
    /// # Errors
    /// When another file stands there, or none can be written.
    pub(in super::super) fn copy(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        let mut state = lock(&self.state);
        let (number, bytes) = self.about(from)?;
        let trashed_before = self.core.last_trashed(to);
        self.placeholders.write(to, Some(number), bytes)?;
        let copied = self.follow_names(&mut state, [to.clone()].into(), Cause::Request);
        if copied.is_err() && !self.core.is_in_store(to) {
            // As before: what has made room comes back.
            match self.core.last_trashed(to).filter(|trashed| trashed_before.as_ref() != Some(trashed)) {
                Some(trashed) => {
                    self.core.restore(&trashed, to)?;
                    self.write_again(to)?;
                }
                None => self.placeholders.remove(to)?,
            }
        }
        copied
    }

    /// Removes the placeholder of an RRD, and the RRD with it.
    ///
    /// # Errors
    /// When another file stands there.
    pub(in super::super) fn remove(&self, name: &RrdName) -> Result<(), StoreError> {
        let mut state = lock(&self.state);
        self.placeholders.remove(name)?;
        self.follow_names(&mut state, [name.clone()].into(), Cause::Request)
    }

    /// Sets when the placeholder of an RRD was modified; of all RRDs soon, without a name.
    ///
    /// # Errors
    /// When the store stops.
    pub(in super::super) fn set_modified(&self, name: Option<&RrdName>) -> Result<(), StoreError> {
        match name {
            // Until all have been looked at, a file may stand there that an earlier process has taken in.
            Some(name) if !self.is_scanned() && !self.is_at_home(name) => Ok(()),
            Some(name) => self.modified.set_one(&self.core, &self.placeholders, &self.originals, name),
            None => {
                self.modified.ask();
                Ok(())
            }
        }
    }
}
