//! The tree of placeholders of a node: where programs expect the file of an RRD, one stands that leads them to this node, whichever nodes have the RRD.
//!
//! What is created, renamed or removed through this node has its placeholder, or has none, before that is answered. What other nodes do is followed by a
//! thread: it looks every second whether names have changed anywhere, and every five minutes at all files and all RRDs, whose times of the last update
//! the files get then. What programs do to placeholders is not done to RRDs: a file that is missing, or that stands elsewhere, is put right at the next look.

mod names;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, mem};

use rrd::codec::file::FileLayout;
use rrd::definition::Definition;
use store::engine::{RrdStatus, StoreError};
use store::name::RrdName;
use store::placeholder::{Found, PlaceholderError, Placeholders, StoreIdentity};
use store::tree::Tree;
use xxhash_rust::xxh3::xxh3_128;

use crate::lock::lock;
use names::NameSet;

/// How often it is asked whether names have changed.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How often all files and RRDs are looked at ...
const SWEEP_INTERVAL: Duration = Duration::from_secs(300);
/// ... or so many times the time that it takes: it never takes more than a twentieth of a core.
const SWEEP_REST: u32 = 20;
/// So many names are looked at out of turn; others when all are.
const DOUBTFUL_MAX: usize = 1 << 16;

/// The RRDs of a cluster, as the thread asks for them.
pub(crate) trait Rrds: Send + Sync {
    /// A number that changes when an RRD is created, removed or renamed.
    fn name_changes(&self) -> u64;
    /// The names of all RRDs, sorted.
    fn names(&self) -> Result<Vec<Vec<u8>>, StoreError>;
    /// An RRD, as its leader has it.
    fn status(&self, name: &RrdName) -> Result<RrdStatus, StoreError>;
    /// An RRD as a replica of this node has it, perhaps a moment late: that costs no other node anything. `None` when there is none, or no replica.
    fn status_here(&self, name: &RrdName) -> Option<RrdStatus>;
}

/// Finds the RRDs; `None` once they are gone.
pub(crate) type FindRrds = Box<dyn Fn() -> Option<Box<dyn Rrds>> + Send>;

/// The placeholders of a node.
pub struct NodeTree {
    placeholders: Placeholders,
    state: Mutex<State>,
    wake: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct State {
    /// RRDs of which it is not known whether they are there, or that are to get the time of their last update.
    doubtful: BTreeSet<RrdName>,
    is_stopping: bool,
    /// Names where other files stand.
    in_the_way: u64,
}

/// What stands in the identity's place in placeholders: the same on all nodes, and in all logs that the cluster moves to.
pub fn identity(cluster: &str) -> StoreIdentity {
    StoreIdentity(xxh3_128(format!("roundel cluster {cluster}").as_bytes()).to_le_bytes())
}

impl NodeTree {
    /// The tree at `path`, which exists, for the RRDs of the cluster of this name.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path, cluster: &str) -> io::Result<NodeTree> {
        let placeholders = Placeholders::new(Arc::new(Tree::open(path)?), identity(cluster));
        Ok(NodeTree { placeholders, state: Mutex::default(), wake: Condvar::new(), thread: Mutex::default() })
    }

    /// Follows the RRDs until [`NodeTree::stop`], or until they are gone.
    ///
    /// # Errors
    /// The system's, when there can be no more threads.
    pub(crate) fn follow(self: &Arc<Self>, rrds: FindRrds) -> io::Result<()> {
        let tree = Arc::clone(self);
        let thread =
            std::thread::Builder::new().name("placeholders".into()).spawn(move || tree.run(&rrds))?;
        *lock(&self.thread) = Some(thread);
        Ok(())
    }

    /// Ends the thread, once it is answered what it asks. Idempotent.
    pub(crate) fn stop(&self) {
        lock(&self.state).is_stopping = true;
        self.wake.notify_all();
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }

    /// Names where another file stands than the placeholder of their RRD, as of the last look at all.
    pub fn in_the_way(&self) -> u64 {
        lock(&self.state).in_the_way
    }

    /// Writes the placeholder of an RRD that is about to be there.
    ///
    /// # Errors
    /// When no file can have that name, or another one stands there.
    pub(crate) fn place(&self, name: &RrdName, definition: &Definition) -> Result<(), StoreError> {
        name.check_for_files()?;
        Ok(self.write(name, definition)?)
    }

    fn write(&self, name: &RrdName, definition: &Definition) -> Result<(), PlaceholderError> {
        self.placeholders.write(name, None, FileLayout::of(definition).file_bytes)
    }

    /// Removes the placeholder of an RRD that is gone, if there is one.
    fn unplace(&self, name: &RrdName) -> bool {
        match self.placeholders.look(name) {
            Ok(Found::Ours { .. }) => {}
            Ok(_) => return false,
            Err(error) => {
                cannot_look(name, &error);
                return false;
            }
        }
        if let Err(error) = self.placeholders.remove(name) {
            tracing::warn!(%error, rrd = %name, "the placeholder of an RRD that is gone stays");
        }
        true
    }

    /// Has the thread look soon at an RRD that may or may not be there now.
    pub(crate) fn doubt(&self, name: &RrdName) {
        let mut state = lock(&self.state);
        if state.doubtful.len() < DOUBTFUL_MAX {
            state.doubtful.insert(name.clone());
        }
        self.wake.notify_all();
    }

    fn run(&self, rrds: &FindRrds) {
        let mut followed = Followed::default();
        while let Some(doubtful) = self.wait() {
            let Some(rrds) = rrds() else { return };
            for name in doubtful {
                self.settle(&*rrds, &name);
            }
            self.look(&*rrds, &mut followed);
        }
    }

    /// What is doubtful, as soon as something is, or a second has passed; `None` when it ends.
    fn wait(&self) -> Option<BTreeSet<RrdName>> {
        let state = lock(&self.state);
        let is_idle = |state: &mut State| state.doubtful.is_empty() && !state.is_stopping;
        let waited = self.wake.wait_timeout_while(state, LOOK_INTERVAL, is_idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let doubtful = mem::take(&mut state.doubtful);
        (!state.is_stopping).then_some(doubtful)
    }

    fn is_stopping(&self) -> bool {
        lock(&self.state).is_stopping
    }

    /// Follows what has changed, and everything if that is due.
    fn look(&self, rrds: &dyn Rrds, followed: &mut Followed) {
        let is_due = followed.sweep_at.is_none_or(|at| at <= Instant::now());
        let changes = rrds.name_changes();
        if followed.changes == Some(changes) && !is_due {
            return;
        }
        let names = match rrds.names() {
            Ok(names) => names,
            // A node that starts, or whose others are gone: it is asked again.
            Err(error) => return tracing::debug!(%error, "the tree of placeholders cannot follow"),
        };
        let (now, begun) = (NameSet::of(&names), Instant::now());
        drop(names);
        match is_due {
            true => {
                self.sweep(rrds, &now);
                followed.sweep_at = Some(Instant::now() + SWEEP_INTERVAL.max(begun.elapsed() * SWEEP_REST));
            }
            false => followed.names.differences(&now, &mut |name| {
                if !self.is_stopping() {
                    self.settle(rrds, name);
                }
            }),
        }
        *followed = Followed { names: now, changes: Some(changes), sweep_at: followed.sweep_at };
    }

    /// Looks at all files and all RRDs.
    fn sweep(&self, rrds: &dyn Rrds, names: &NameSet) {
        let begun = Instant::now();
        let mut written = 0;
        match self.placeholders.names() {
            Ok(files) => NameSet::of(&files).differences(names, &mut |name| {
                // Those without a file are written below.
                if !self.is_stopping() && matches!(self.placeholders.look(name), Ok(Found::Ours { .. })) {
                    self.settle(rrds, name);
                }
            }),
            Err(error) => tracing::warn!(%error, "cannot read the tree of placeholders"),
        }
        let (mut in_the_way, mut example) = (0, None);
        for name in names.iter() {
            if self.is_stopping() {
                return;
            }
            let settled = match rrds.status_here(&name) {
                Some(status) => self.settle_as(&name, &status),
                None => self.settle(rrds, &name),
            };
            match settled {
                Settled::Written => written += 1,
                Settled::InTheWay => {
                    in_the_way += 1;
                    example.get_or_insert(name);
                }
                Settled::AsItWas => {}
            }
        }
        if let Some(example) = example.filter(|_| lock(&self.state).in_the_way != in_the_way) {
            tracing::warn!(
                count = in_the_way, %example, tree = %self.placeholders.tree().path().display(),
                "other files stand where placeholders of this cluster's RRDs should: move them away"
            );
        }
        lock(&self.state).in_the_way = in_the_way;
        let milliseconds = begun.elapsed().as_millis() as u64;
        tracing::debug!(written, milliseconds, "looked at the tree of placeholders");
    }

    /// Has the file at a name be what the RRD of the name says, or no placeholder, if there is none.
    pub(crate) fn settle(&self, rrds: &dyn Rrds, name: &RrdName) -> Settled {
        if name.check_for_files().is_err() {
            return Settled::AsItWas;
        }
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
        let settled = match self.needs_writing(name, &status.definition) {
            Ok(false) => Settled::AsItWas,
            Ok(true) => match self.write(name, &status.definition) {
                Ok(()) => Settled::Written,
                Err(PlaceholderError::Occupied { .. } | PlaceholderError::Foreign { .. }) => {
                    return Settled::InTheWay;
                }
                Err(error) => {
                    tracing::warn!(%error, rrd = %name, "an RRD has no placeholder");
                    return Settled::AsItWas;
                }
            },
            Err(error) => {
                cannot_look(name, &error);
                return Settled::AsItWas;
            }
        };
        let at = status.last_update.in_seconds(status.definition.units_per_second);
        if let Err(error) = self.placeholders.tree().set_modified(name, (at.whole, at.micros * 1000)) {
            tracing::trace!(%error, rrd = %name, "cannot set the time of a placeholder");
        }
        settled
    }

    /// Whether the placeholder of an RRD is missing, or says something else.
    fn needs_writing(&self, name: &RrdName, definition: &Definition) -> io::Result<bool> {
        Ok(match self.placeholders.look(name)? {
            Found::Ours { name: written, .. } => {
                let length = self.placeholders.tree().open_afresh(name)?.length()?;
                written != *name || length != FileLayout::of(definition).file_bytes
            }
            _ => true,
        })
    }
}

/// What became of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Nothing had to be done, or could be.
    AsItWas,
    Written,
    /// Another file stands there.
    InTheWay,
}

/// How far the thread has followed.
#[derive(Default)]
struct Followed {
    names: NameSet,
    changes: Option<u64>,
    sweep_at: Option<Instant>,
}

fn cannot_look(name: &RrdName, error: &io::Error) {
    tracing::warn!(%error, file = %name, "cannot look at a file of the tree of placeholders");
}
