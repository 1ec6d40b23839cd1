//! What stands at names of the tree, and for which RRDs the placeholders there were written.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;

use rrd_file::handle::Handle;
use rustix::fs::SeekFrom;

use super::plan::{Origin, Seen, Stands};
use super::{Reconciler, State, cannot_look};
use crate::engine::StoreError;
use crate::name::RrdName;
use crate::placeholder::{Found, RrdNumber};

impl Reconciler {
    /// Looks at names, and at those that the RRDs have for which the placeholders there were written.
    pub(super) fn see(
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
                    if let Some(number) = number.filter(|&number| written_for(&what) != Some(number)) {
                        // It may have been moved to one of them.
                        next.extend(state.queue.written_for(number).cloned());
                    }
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
    pub(super) fn find(
        &self,
        state: &mut State,
        name: &RrdName,
        number: Option<RrdNumber>,
    ) -> Result<Option<Found>, StoreError> {
        if name.check_for_files().is_err() {
            // From a time when the store kept no placeholders.
            return Ok(None);
        }
        let mut found = match self.placeholders.look(name) {
            Ok(found) => found,
            Err(error) => {
                cannot_look(name, &error);
                return Ok(None);
            }
        };
        if number.is_some() {
            match found {
                // The machine has stopped before the placeholder was on its disk.
                Found::Unfinished if self.is_older_than_start(name) => {
                    found = self.write_again(name).unwrap_or(found);
                }
                Found::Nothing
                    if !self.is_scanned() && number.is_some_and(|number| state.noted.lacks(number)) =>
                {
                    found = self.write_again(name).unwrap_or(found);
                }
                Found::RrdFile if self.is_known_file(name) => return Ok(None),
                _ => {}
            }
        }
        state.removals.note(name, &found);
        Ok(Some(found))
    }

    /// What follows for a name from what was found there. `meant` has the names of RRDs by their numbers.
    pub(super) fn stands(
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
    pub(super) fn origin_by_name(
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

    /// Whether a file was last changed before this process began; a younger one may be in the hands of another program.
    pub(super) fn is_older_than_start(&self, name: &RrdName) -> bool {
        let Ok(Handle::System(file)) = self.placeholders.tree().open_afresh(name) else { return false };
        // A file that is being truncated has its new length before its new time. Looking for holes waits for the lock that is held meanwhile.
        let _ = rustix::fs::seek(&file, SeekFrom::Hole(0));
        let Ok(about) = rustix::fs::fstat(&file) else { return false };
        let changed_ns = i128::from(about.st_ctime) * 1_000_000_000 + i128::from(about.st_ctime_nsec);
        changed_ns < self.started_ns
    }

    /// Whether the `.rrd` file in the place of a placeholder is one that the store has taken in.
    pub(super) fn is_known_file(&self, name: &RrdName) -> bool {
        let Ok(Handle::System(file)) = self.placeholders.tree().open_afresh(name) else { return false };
        let file = File::from(file);
        if self.adopted_tree.is_none() {
            self.originals.keep(name, &file, "adopt = false");
            return true;
        }
        let status = match self.is_scanned() || !self.is_older_than_start(name) {
            true => None,
            false => self.core.ask(name, |view, name| view.status(name)).ok(),
        };
        self.originals.is_known(name, &file, status.map(|status| status.last_update))
    }

    /// Whether the placeholder of a name stands there.
    pub(super) fn is_at_home(&self, name: &RrdName) -> bool {
        matches!(self.placeholders.look(name), Ok(Found::Ours { name: written, .. }) if written == *name)
    }
}

/// The RRD that a placeholder was written for.
fn written_for(found: &Found) -> Option<RrdNumber> {
    match found {
        Found::Ours { rrd, .. } => *rrd,
        _ => None,
    }
}
