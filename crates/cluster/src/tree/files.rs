//! The files of the tree: written, and put right.

use std::io;
use std::path::Path;

use rrd::codec::file::FileLayout;
use rrd::definition::Definition;
use rrd_file::watch::Watch;
use store::engine::{RrdStatus, StoreError};
use store::name::RrdName;
use store::placeholder::{Found, PlaceholderError};

use super::moves::Written;
use super::names::NameSet;
use super::{NodeTree, Rrds};
use crate::lock::lock;

/// What became of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Nothing had to be done, or could be.
    AsItWas,
    Written,
    /// Another file stands there.
    InTheWay,
    /// Its file cannot be written or looked at.
    Failed,
}

/// What became of many names: one message for all of them.
#[derive(Debug, Default)]
pub(super) struct Tally {
    written: u64,
    in_the_way: u64,
    failed: u64,
    /// One of those that are not as they should be.
    example: Option<RrdName>,
}

impl Tally {
    pub(super) fn note(&mut self, name: &RrdName, settled: Settled) {
        match settled {
            Settled::AsItWas => return,
            Settled::Written => return self.written += 1,
            Settled::InTheWay => self.in_the_way += 1,
            Settled::Failed => self.failed += 1,
        }
        self.example.get_or_insert_with(|| name.clone());
    }

    pub(super) fn report(&self, tree: &Path) {
        let Tally { written, in_the_way, failed, example } = self;
        match example {
            Some(example) => tracing::warn!(
                in_the_way, failed, %example, tree = %tree.display(),
                "RRDs have no placeholders: other files stand there, which are to be moved away, or the file system failed"
            ),
            None => tracing::debug!(written, "placeholders follow the cluster"),
        }
    }
}

impl NodeTree {
    /// Writes the placeholder of an RRD that is about to be there.
    ///
    /// # Errors
    /// When no file can have that name, or another one stands there.
    pub(crate) fn place(&self, name: &RrdName, definition: &Definition) -> Result<(), StoreError> {
        name.check_for_files()?;
        Ok(self.write(name, definition)?)
    }

    fn write(&self, name: &RrdName, definition: &Definition) -> Result<(), PlaceholderError> {
        let number = lock(&self.state).moved.number(name);
        self.placeholders.write(name, number, FileLayout::of(definition).file_bytes)
    }

    /// Removes the placeholder at the name of an RRD that is gone, if there is one, and no program has just put it there.
    fn unplace(&self, name: &RrdName) -> bool {
        match self.placeholders.look(name) {
            Ok(Found::Ours { .. }) => {}
            Ok(_) => return false,
            Err(error) => {
                cannot_look(name, &error);
                return false;
            }
        }
        self.take_changes();
        let mut state = lock(&self.state);
        if state.moved.concerns(name) {
            return false;
        }
        state.removals.note_own(name);
        drop(state);
        if let Err(error) = self.placeholders.remove(name) {
            tracing::warn!(%error, rrd = %name, "the placeholder of an RRD that is gone stays");
        }
        true
    }

    /// The names of all files in the tree, sorted. `tree::list` has those only that end in `.rrd`.
    pub(super) fn files(&self) -> io::Result<Vec<Vec<u8>>> {
        let (mut all, mut directories) = (Vec::new(), vec![Vec::new()]);
        while let Some(directory) = directories.pop() {
            let (files, inside) = Watch::list(self.placeholders.tree(), &directory)?;
            all.extend(files.iter().map(|name| name.as_bytes().to_vec()));
            directories.extend(inside);
        }
        all.sort_unstable();
        Ok(all)
    }

    /// Looks at all files and all RRDs.
    pub(super) fn sweep(&self, rrds: &dyn Rrds, names: &NameSet) {
        match self.files() {
            Ok(files) => NameSet::of(&files).differences(names, &mut |name| {
                if !self.is_stopping() {
                    self.settle_stray(rrds, name);
                }
            }),
            Err(error) => tracing::warn!(%error, "cannot read the tree of placeholders"),
        }
        let mut tally = Tally::default();
        for name in names.iter() {
            if self.is_stopping() {
                return;
            }
            let settled = match rrds.status_here(&name) {
                Some(status) => self.settle_as(&name, &status),
                None => self.settle(rrds, &name),
            };
            tally.note(&name, settled);
        }
        tally.report(self.placeholders.tree().path());
    }

    /// Follows what was moved or copied to a name while no one watched, or removes a placeholder of an RRD that is gone. A missing file is written later.
    fn settle_stray(&self, rrds: &dyn Rrds, name: &RrdName) {
        match self.placeholders.look(name) {
            Ok(Found::Ours { name: written, .. }) if written != *name && rrds.status(&written).is_ok() => {
                self.sort(name);
            }
            Ok(Found::Ours { .. }) => {
                self.settle(rrds, name);
            }
            _ => {}
        }
    }

    /// Has the file at a name be what the RRD of the name says, or no placeholder, if there is none.
    pub(crate) fn settle(&self, rrds: &dyn Rrds, name: &RrdName) -> Settled {
        let mut status = rrds.status(name);
        if matches!(status, Err(StoreError::NoSuchRrd(_))) {
            if !self.unplace(name) {
                return Settled::AsItWas;
            }
            // It may have been created meanwhile, with a placeholder that was taken for the old one.
            status = rrds.status(name);
        }
        match status {
            Ok(status) => self.settle_as(name, &status),
            Err(StoreError::NoSuchRrd(_)) => Settled::AsItWas,
            Err(error) => {
                tracing::debug!(%error, rrd = %name, "it is not known whether an RRD is there");
                Settled::AsItWas
            }
        }
    }

    fn settle_as(&self, name: &RrdName, status: &RrdStatus) -> Settled {
        if name.check_for_files().is_err() {
            return Settled::AsItWas;
        }
        let settled = match self.needs_writing(name, &status.definition) {
            Ok(false) => Settled::AsItWas,
            Ok(true) => match self.write(name, &status.definition) {
                Ok(()) => Settled::Written,
                Err(PlaceholderError::Occupied { .. } | PlaceholderError::Foreign { .. }) => {
                    lock(&self.state).removals.note_other(name);
                    return Settled::InTheWay;
                }
                Err(error) => {
                    tracing::debug!(%error, rrd = %name, "an RRD has no placeholder");
                    return Settled::Failed;
                }
            },
            Err(error) => {
                tracing::debug!(%error, rrd = %name, "cannot look at a placeholder");
                return Settled::Failed;
            }
        };
        let at = status.last_update.in_seconds(status.definition.units_per_second);
        if let Err(error) = self.placeholders.tree().set_modified(name, (at.whole, at.micros * 1000)) {
            tracing::trace!(%error, rrd = %name, "cannot set the time of a placeholder");
        }
        settled
    }

    /// Whether the placeholder of an RRD is missing, or says something else, and no program has done that.
    fn needs_writing(&self, name: &RrdName, definition: &Definition) -> io::Result<bool> {
        if let Found::Ours { rrd: number, name: written, .. } = self.placeholders.look(name)? {
            let length = self.placeholders.tree().open_afresh(name)?.length()?;
            let is_home = lock(&self.state).moved.is_home(name, &Written { name: written, number });
            if is_home && length == FileLayout::of(definition).file_bytes {
                return Ok(false);
            }
        }
        self.take_changes();
        let state = lock(&self.state);
        Ok(!state.moved.concerns(name) && !state.removals.contains(name))
    }
}

pub(super) fn cannot_look(name: &RrdName, error: &io::Error) {
    tracing::warn!(%error, file = %name, "cannot look at a file of the tree of placeholders");
}
