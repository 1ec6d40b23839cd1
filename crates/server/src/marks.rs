//! What clients were told about single RRDs and may ask about again: SUSPEND and FORGET.
//!
//! Stripes neither cache nor rest, so these are marks only: they change answers, never data.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use store::name::RrdName;

use crate::limits::MARKS_MAX;

/// The marks of all RRDs. Bounded by [`MARKS_MAX`] of either kind.
#[derive(Debug, Default)]
pub struct Marks {
    suspended: Mutex<Suspended>,
    forgotten: Mutex<HashSet<RrdName>>,
    any_forgotten: AtomicBool,
}

#[derive(Debug, Default)]
struct Suspended {
    /// All are, but for the exceptions; else only the exceptions are.
    all: bool,
    exceptions: HashSet<RrdName>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A set is whole between any two steps, so one left behind by a panic may be used.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Marks {
    /// Marks an RRD as suspended or resumed; true if it was not so before, `None` if there are too many.
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

    /// Marks all `count` RRDs; returns how many were not so before.
    pub fn suspend_all(&self, suspend: bool, count: u64) -> u64 {
        let mut suspended = lock(&self.suspended);
        let exceptions = suspended.exceptions.len() as u64;
        let changed = if suspended.all == suspend { exceptions } else { count.saturating_sub(exceptions) };
        *suspended = Suspended { all: suspend, exceptions: HashSet::new() };
        changed
    }

    /// Notes FORGET of an RRD. With too many of them the oldest knowledge is dropped: it is only manners.
    pub fn forget(&self, name: &RrdName) {
        let mut forgotten = lock(&self.forgotten);
        if forgotten.len() >= MARKS_MAX {
            forgotten.clear();
        }
        forgotten.insert(name.clone());
        self.any_forgotten.store(true, Ordering::Release);
    }

    /// True when the RRD was forgotten and not updated since.
    pub fn is_forgotten(&self, name: &RrdName) -> bool {
        self.any_forgotten() && lock(&self.forgotten).contains(name)
    }

    /// False when there is nothing to remember: the usual case, and all that an update pays for.
    #[inline]
    pub fn any_forgotten(&self) -> bool {
        self.any_forgotten.load(Ordering::Acquire)
    }

    /// Notes an update of an RRD.
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
    fn what_is_updated_is_remembered() {
        let marks = Marks::default();
        marks.forget(&name("a"));
        assert!(marks.is_forgotten(&name("a")) && !marks.is_forgotten(&name("b")));
        marks.remember(b"b");
        assert!(marks.any_forgotten());
        marks.remember(b"a");
        assert!(!marks.any_forgotten() && !marks.is_forgotten(&name("a")));
    }
}
