//! What programs do to the tree: noticed by inotify, and sorted into what was moved or copied and what is missing.
//!
//! The kernel queues an event before the system call that causes it returns. So a request that finds the queue empty knows the tree as it is;
//! otherwise it sorts the events itself, and waits until those are followed that concern its names.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use rrd_file::watch::{Changes, Watch};
use store::name::RrdName;
use store::placeholder::Found;
use store::tree::Tree;

use super::files::cannot_look;
use super::moves::Written;
use super::{DOUBTFUL_MAX, NodeTree, Rrds, State};
use crate::lock::lock;

/// How long a request waits for changes of its names: what was moved is renamed by way of the log.
const PATIENCE: Duration = Duration::from_secs(10);

/// The watched directories of the tree.
pub(super) struct Watched(Watch);

impl Watched {
    /// Watches the tree; `None`, with a warning, when that cannot be.
    pub(super) fn start(tree: &Arc<Tree>) -> Option<Watched> {
        let start = || -> io::Result<Watched> {
            let mut watched = Watched(Watch::new(Arc::clone(tree))?);
            watched.add_all(Vec::new())?;
            Ok(watched)
        };
        start().inspect_err(warn_unwatched).ok()
    }

    pub(super) fn queue(&self) -> Arc<OwnedFd> {
        self.0.queue()
    }

    /// Watches a directory and all below it; returns the names of the files there.
    fn add_all(&mut self, directory: Vec<u8>) -> io::Result<Vec<RrdName>> {
        let (mut names, mut directories) = (Vec::new(), vec![directory]);
        while let Some(directory) = directories.pop() {
            let (files, inside) = self.0.add(&directory)?;
            names.extend(files);
            directories.extend(inside);
        }
        Ok(names)
    }
}

fn warn_unwatched(error: &io::Error) {
    tracing::warn!(
        %error,
        "cannot watch the tree: what programs do to placeholders does not happen to RRDs, and is put right; a higher fs.inotify.max_user_watches \
         (sysctl), at least the number of directories, and a restart help when there are too many directories"
    );
}

impl NodeTree {
    /// Whether all that was done to the tree before this call was followed. 0.1 us.
    #[inline]
    fn is_quiet(&self) -> bool {
        let Some(queue) = self.watched_queue() else { return true };
        // In this order: a thread that empties the queue has said before that it is busy.
        rustix::io::ioctl_fionread(queue) == Ok(0) && !self.is_busy.load(Ordering::Acquire)
    }

    /// Follows what was done to the tree before this call, as far as it concerns these names.
    #[inline]
    pub(crate) fn catch_up<'n>(
        &self,
        rrds: impl Fn() -> Box<dyn Rrds>,
        names: impl Iterator<Item = &'n [u8]> + Clone,
    ) {
        if !self.is_quiet() {
            let names: Vec<RrdName> = names.filter_map(|name| RrdName::new(name).ok()).collect();
            self.follow_for(&*rrds(), &names);
        }
    }

    /// Follows what was done to the tree before this call, moves at least, for a list of names.
    pub(crate) fn catch_up_with_moves(&self) {
        if !self.is_quiet() {
            self.take_changes();
            self.wait_while(&|State { moved, .. }| !moved.is_empty());
        }
    }

    /// Waits while something is so, but not for long; whether it is not so any more.
    fn wait_while(&self, is_so: &dyn Fn(&State) -> bool) -> bool {
        let until = Instant::now() + PATIENCE;
        let mut state = lock(&self.state);
        while is_so(&state) && !state.is_stopping {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            self.wake();
            state = self.followed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    #[cold]
    fn follow_for(&self, rrds: &dyn Rrds, names: &[RrdName]) {
        self.take_changes();
        // Which RRD is one whose placeholder is missing, is not sure while others have not got its name, or lost it.
        let waits = |State { moved, removals, .. }: &State| {
            let concerns = |name| moved.concerns(name) || (removals.contains(name) && !moved.is_empty());
            names.iter().any(concerns)
        };
        if self.wait_while(&waits) {
            self.remove_few(rrds, names);
        }
    }

    /// Reads what was done to the tree, and notes what is to be followed.
    pub(super) fn take_changes(&self) {
        let mut held = lock(&self.watched);
        let (Some(watched), Some(queue)) = (&mut *held, self.watched_queue()) else { return };
        if rustix::io::ioctl_fionread(queue) == Ok(0) {
            return;
        }
        self.is_busy.store(true, Ordering::SeqCst);
        let changes = watched.0.take();
        if changes.root_gone {
            tracing::error!(
                tree = %self.placeholders.tree().path().display(),
                "the tree was removed, moved or unmounted: no RRD is removed for that; put it back, and restart"
            );
            self.give_up(&mut held);
        } else {
            match self.names_in(watched, changes) {
                Ok(names) => names.iter().for_each(|name| self.sort(name)),
                Err(error) => {
                    warn_unwatched(&error);
                    self.give_up(&mut held);
                }
            }
        }
        self.say_busy();
    }

    /// Follows nothing any more.
    fn give_up(&self, watched: &mut Option<Watched>) {
        self.is_watched.store(false, Ordering::Release);
        *watched = None;
        lock(&self.state).removals.forget_all();
    }

    /// The names that changes are about. Directories that are new are watched from now on.
    fn names_in(&self, watched: &mut Watched, changes: Changes) -> io::Result<Vec<RrdName>> {
        if changes.lost {
            tracing::warn!(
                "more has changed in the tree than the system tells: what is missing is written again"
            );
            self.wants_sweep.store(true, Ordering::SeqCst);
        }
        if changes.has_directories() {
            self.placeholders.tree().forget_directories();
        }
        let mut names: Vec<RrdName> = changes.files.into_iter().collect();
        changes.gone.iter().for_each(|directory| watched.0.remove(directory));
        for directory in changes.new {
            names.extend(watched.add_all(directory)?);
        }
        if !changes.gone.is_empty() {
            let known = Arc::clone(&lock(&self.names));
            names.extend(known.iter().filter(|name| {
                let name = name.as_bytes();
                let mut above = (0..name.len()).filter(|&at| name[at] == b'/').map(|at| &name[..at]);
                above.any(|directory| changes.gone.contains(directory))
            }));
        }
        Ok(names)
    }

    /// Notes what stands at a name.
    pub(super) fn sort(&self, name: &RrdName) {
        let found = match self.placeholders.look(name) {
            Ok(found) => found,
            Err(error) => return cannot_look(name, &error),
        };
        let State { moved, removals, doubtful, .. } = &mut *lock(&self.state);
        match found {
            Found::Ours { rrd: number, name: written, .. } => {
                let written = Written { name: written, number };
                match moved.is_home(name, &written) {
                    true => moved.forget(name),
                    false => moved.note(name, written),
                }
                removals.forget(name);
            }
            Found::Nothing => {
                moved.forget(name);
                // Where another file stood, there is room for the placeholder now.
                if removals.note(name) && doubtful.len() < DOUBTFUL_MAX {
                    doubtful.insert(name.clone());
                }
            }
            // A program may be copying a placeholder to this name. The kernel sends another event when the program writes or removes the file.
            Found::Unfinished => moved.forget(name),
            // What programs put there is theirs.
            Found::Foreign(_) | Found::RrdFile | Found::Other => {
                moved.forget(name);
                removals.note_other(name);
            }
        }
    }

    /// Says whether something waits to be followed.
    pub(super) fn note_busy(&self) {
        // What was read of the queue is to be sorted first.
        let _held = lock(&self.watched);
        self.say_busy();
    }

    fn say_busy(&self) {
        let state = lock(&self.state);
        self.is_busy.store(!(state.moved.is_empty() && state.removals.is_empty()), Ordering::SeqCst);
        self.followed.notify_all();
    }
}
