//! Makes new and removed `.rrd` files durable under a sync interval, together with the journal.
//!
//! CREATE only notes the name, so it costs no sync. A few files are synced one by one; from some number on, one sync of the
//! whole file system is cheaper, although it also writes what other files have waiting. The first sync of a process is one of the
//! whole file system: only a process before it that was killed knew which files were new.

use std::collections::BTreeSet;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use disk::Shortage;
use rrd_file::file::Access;
use rrd_file::name::RrdName;
use rrd_file::system_text;
use rrd_file::tree::Tree;
use rustix::io::Errno;

use crate::engine::StoreError;
use crate::files::shared::{Shared, lock};

/// Up to this many files are synced one by one. Guessed: each takes a commit of the file system's journal, some milliseconds.
const ONE_BY_ONE_MAX: usize = 32;

/// What is not durable yet.
#[derive(Debug, Default)]
pub struct NewFiles {
    /// The names whose files were made or removed since the last sync.
    names: Mutex<BTreeSet<RrdName>>,
    /// What processes before this one left is durable.
    has_synced_all: AtomicBool,
}

impl NewFiles {
    /// Notes a name whose file has been made or removed.
    pub fn note(&self, name: &RrdName) {
        lock(&self.names).insert(name.clone());
    }

    /// Whether a file of this name was made or removed since the last sync.
    pub fn contains(&self, name: &RrdName) -> bool {
        lock(&self.names).contains(name)
    }
}

impl Shared {
    /// Makes durable what was noted. A shortage is waited out; after another failure no more updates are taken, because it is
    /// not known what the disk holds.
    ///
    /// # Errors
    /// When it is not durable; that is logged.
    pub fn sync_new_files(&self) -> Result<(), StoreError> {
        let names = std::mem::take(&mut *lock(&self.new_files.names));
        let is_first = !self.new_files.has_synced_all.load(Ordering::Acquire);
        let synced = match is_first || names.len() > ONE_BY_ONE_MAX {
            true => self.tree.sync_all(),
            false => sync(&self.tree, &names),
        };
        let Err(error) = synced else {
            self.new_files.has_synced_all.store(true, Ordering::Release);
            return Ok(());
        };
        lock(&self.new_files.names).extend(names);
        match Shortage::of(&error) {
            Some(shortage) => tracing::warn!("cannot sync new .rrd files: {shortage}; trying again"),
            None => drop(self.poison(format!("cannot sync new .rrd files: {}", system_text(&error)))),
        }
        Err(StoreError::io("syncing new .rrd files", error))
    }
}

fn sync(tree: &Tree, names: &BTreeSet<RrdName>) -> io::Result<()> {
    let unless_replaced = |result: io::Result<()>| match result {
        Err(error) if is_replaced(&error) => Ok(()),
        other => other,
    };
    for name in names {
        unless_replaced(tree.open_file(name, Access::Read).and_then(|file| file.sync()))?;
        unless_replaced(tree.sync_directories(name))?;
    }
    Ok(())
}

/// Whether the file is gone, or another program has put something else in its place or in that of its directory: then there
/// is nothing of ours to sync.
fn is_replaced(error: &io::Error) -> bool {
    use Errno as E;
    let errno = error.raw_os_error().map(E::from_raw_os_error);
    let others =
        matches!(errno, Some(E::NOTDIR | E::LOOP | E::XDEV | E::ACCESS | E::PERM | E::INVAL | E::NXIO));
    others || error.kind() == io::ErrorKind::NotFound
}
