//! Marks that clients set on RRDs and can query: SUSPEND and FORGET.
//!
//! They only affect answers, never data, because stripes have no cache to suspend.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use store::name::RrdName;

use crate::limits::MARKS_MAX;

/// The marks of all RRDs, at most [`MARKS_MAX`] of each kind.
#[derive(Debug, Default)]
pub struct Marks {
    suspended: Mutex<Suspended>,
    forgotten: Mutex<HashSet<RrdName>>,
    any_forgotten: AtomicBool,
}

#[derive(Debug, Default)]
struct Suspended {
    /// All RRDs are suspended except these; otherwise only these are.
    all: bool,
    exceptions: HashSet<RrdName>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A set is consistent between any two steps, so it can be used after a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Marks {
    /// Suspends or resumes an RRD; true if that changed its state, `None` if there are too many marks.
    pub fn suspend(&self, name: &RrdName, suspend: bool) -> Option<bool> {
        let mut suspended = lock(&self.suspended);
        let is = suspended.all != suspended.exceptions.contains(name);
        if is == suspend {
            return Some(false);
        }
        if suspended.all == suspend {
            suspended.exceptions.remove(name);
        } else {
            if suspended.exceptions.len() >= MARKS_MAX {
                return None;
            }
            suspended.exceptions.insert(name.clone());
        }
        Some(true)
    }

    /// Suspends or resumes all `count` RRDs; returns how many changed their state.
    pub fn suspend_all(&self, suspend: bool, count: u64) -> u64 {
        let mut suspended = lock(&self.suspended);
        let exceptions = suspended.exceptions.len() as u64;
        let changed = if suspended.all == suspend { exceptions } else { count.saturating_sub(exceptions) };
        *suspended = Suspended { all: suspend, exceptions: HashSet::new() };
        changed
    }

    /// Records FORGET of an RRD. When there are too many, all earlier marks are dropped: they only affect
    /// answers.
    pub fn forget(&self, name: &RrdName) {
        let mut forgotten = lock(&self.forgotten);
        if forgotten.len() >= MARKS_MAX {
            forgotten.clear();
        }
        forgotten.insert(name.clone());
        self.any_forgotten.store(true, Ordering::Release);
    }

    /// True when the RRD was forgotten and has not been updated since.
    pub fn is_forgotten(&self, name: &RrdName) -> bool {
        self.any_forgotten() && lock(&self.forgotten).contains(name)
    }

    /// False when there are no marks, which is the usual case and the only cost for an update.
    #[inline]
    pub fn any_forgotten(&self) -> bool {
        self.any_forgotten.load(Ordering::Acquire)
    }

    /// Records an update of an RRD, which removes its mark.
    pub fn remember(&self, name: &[u8]) {
        let Ok(name) = RrdName::new(name) else { return };
        let mut forgotten = lock(&self.forgotten);
        forgotten.remove(&name);
        self.any_forgotten.store(!forgotten.is_empty(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> RrdName {
        RrdName::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn suspending_counts_what_changed() {
        let marks = Marks::default();
        assert_eq!(marks.suspend(&name("a"), true), Some(true));
        assert_eq!(marks.suspend(&name("a"), true), Some(false));
        assert_eq!(marks.suspend_all(true, 4), 3);
        assert_eq!(marks.suspend_all(true, 4), 0);
        assert_eq!(marks.suspend(&name("b"), true), Some(false));
        assert_eq!(marks.suspend(&name("b"), false), Some(true));
        assert_eq!(marks.suspend_all(false, 4), 3);
        assert_eq!(marks.suspend(&name("a"), false), Some(false));
    }

    #[test]
    fn marks_are_bounded() {
        let marks = Marks::default();
        for index in 0..MARKS_MAX {
            assert_eq!(marks.suspend(&name(&index.to_string()), true), Some(true));
        }
        assert_eq!(marks.suspend(&name("one more"), true), None);
    }

    #[test]
    fn an_update_removes_the_mark() {
        let marks = Marks::default();
        marks.forget(&name("a"));
        assert!(marks.is_forgotten(&name("a")) && !marks.is_forgotten(&name("b")));
        marks.remember(b"b");
        assert!(marks.any_forgotten());
        marks.remember(b"a");
        assert!(!marks.any_forgotten() && !marks.is_forgotten(&name("a")));
    }
}
