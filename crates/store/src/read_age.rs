//! How old what a request has read may be, where replicas answer that may be late: the greatest age of all its parts.
//!
//! A store that is the only one notes nothing. Who answers a request says once which [`ReadAge`] is meant, for the thread that works on it
//! ([`ReadAge::during`]), so that nothing between there and the store has to pass it on; a request that goes on in
//! further threads takes it along ([`ReadAge::current`]).

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Nothing was noted.
const NOTHING: u64 = 0;
/// Something was noted whose age is not known.
const UNKNOWN: u64 = u64::MAX;

thread_local! {
    static CURRENT: RefCell<Option<ReadAge>> = const { RefCell::new(None) };
}

/// The greatest age of what was read for a request.
#[derive(Clone, Debug, Default)]
pub struct ReadAge(Arc<AtomicU64>);

/// An age: all that was acknowledged before then is in what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// It is no older; zero is what the leader of a partition answers.
    AtMost(Duration),
    /// A replica has answered of which that is not known.
    Unknown,
}

/// Puts back what was meant before, also after a panic.
struct Restored(Option<ReadAge>);

impl Drop for Restored {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

impl ReadAge {
    /// Runs `work`, and notes how old what it reads on this thread may be.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let _restored = Restored(CURRENT.replace(Some(self.clone())));
        work()
    }

    /// The one that is meant on this thread.
    pub fn current() -> Option<ReadAge> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Runs `work` on another thread for what was meant on the one that has begun it.
    pub fn go_on<T>(begun: Option<&ReadAge>, work: impl FnOnce() -> T) -> T {
        match begun {
            Some(age) => age.during(work),
            None => work(),
        }
    }

    /// Notes one more age.
    pub fn note(&self, age: Age) {
        let noted = match age {
            Age::AtMost(age) => {
                // Rounded up: only what is from the leader is of this moment.
                let micros = u64::try_from(age.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX);
                micros.saturating_add(1).min(UNKNOWN - 1)
            }
            Age::Unknown => UNKNOWN,
        };
        self.0.fetch_max(noted, Ordering::Relaxed);
    }

    /// The greatest one; `None`: nothing was read that has an age.
    pub fn greatest(&self) -> Option<Age> {
        match self.0.load(Ordering::Relaxed) {
            NOTHING => None,
            UNKNOWN => Some(Age::Unknown),
            noted => Some(Age::AtMost(Duration::from_micros(noted - 1))),
        }
    }
}

/// How old something could be when it was read that is kept for later requests.
#[derive(Clone, Copy, Debug)]
pub struct KeptAge {
    age: Option<Age>,
    read: Instant,
}

impl KeptAge {
    /// Reads something that will be kept; its age is noted for the present request, too.
    pub fn of<T>(read: impl FnOnce() -> T) -> (T, KeptAge) {
        let (age, begun) = (ReadAge::default(), Instant::now());
        let value = age.during(read);
        let kept = KeptAge { age: age.greatest(), read: begun };
        kept.note(true);
        (value, kept)
    }

    /// Returns true if it may have been older than this when it was read. An answer of leaders, or of a store that is the only one, never
    /// was.
    pub fn may_exceed(&self, limit: Duration) -> bool {
        match self.age {
            None => false,
            Some(Age::AtMost(age)) => age > limit,
            Some(Age::Unknown) => true,
        }
    }

    /// Notes how old it may be by now for a request that it is used for. What is of leaders is of now while it `is_unchanged`.
    pub fn note(&self, is_unchanged: bool) {
        let Some(age) = self.age else { return };
        note(match age {
            Age::AtMost(age) if age.is_zero() && is_unchanged => Age::AtMost(age),
            Age::AtMost(age) => Age::AtMost(age.saturating_add(self.read.elapsed())),
            Age::Unknown => Age::Unknown,
        });
    }
}

/// Notes an age for the request that this thread works on, if it asks for that.
pub fn note(age: Age) {
    CURRENT.with_borrow(|current| {
        if let Some(current) = current {
            current.note(age);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_age_counts_and_an_unknown_one_is_greater_than_all() {
        let age = ReadAge::default();
        assert_eq!(age.greatest(), None);
        let at_most = |millis| Age::AtMost(Duration::from_millis(millis));
        age.note(at_most(0));
        assert_eq!(age.greatest(), Some(at_most(0)));
        for (millis, greatest) in [(5, 5), (3, 5), (7000, 7000)] {
            age.note(at_most(millis));
            assert_eq!(age.greatest(), Some(at_most(greatest)));
        }
        age.note(Age::AtMost(Duration::MAX));
        assert!(matches!(age.greatest(), Some(Age::AtMost(_))));
        age.note(Age::Unknown);
        age.note(at_most(9));
        assert_eq!(age.greatest(), Some(Age::Unknown));
    }

    #[test]
    fn what_is_kept_becomes_older() {
        let noted = |kept: KeptAge, is_unchanged| {
            let age = ReadAge::default();
            age.during(|| kept.note(is_unchanged));
            age.greatest()
        };
        let kept = |age| KeptAge::of(|| note(Age::AtMost(Duration::from_secs(age)))).1;
        let at_least =
            |seconds| move |age| matches!(age, Some(Age::AtMost(age)) if age > Duration::from_secs(seconds));
        assert_eq!(noted(kept(0), true), Some(Age::AtMost(Duration::ZERO)));
        assert!(at_least(0)(noted(kept(0), false)));
        assert!(at_least(5)(noted(kept(5), true)));
        assert_eq!(noted(KeptAge::of(|| note(Age::Unknown)).1, true), Some(Age::Unknown));
        // Of a store that has no age.
        assert_eq!(noted(KeptAge::of(|| ()).1, false), None);
        let second = Duration::from_secs(1);
        assert!(
            !kept(0).may_exceed(Duration::ZERO) && !kept(1).may_exceed(second) && kept(2).may_exceed(second)
        );
        assert!(KeptAge::of(|| note(Age::Unknown)).1.may_exceed(second));
        assert!(!KeptAge::of(|| ()).1.may_exceed(Duration::ZERO));
        let outer = ReadAge::default();
        outer.during(|| kept(5));
        assert!(at_least(5)(outer.greatest()));
    }

    #[test]
    fn a_thread_notes_for_the_request_that_it_works_on() {
        note(Age::Unknown);
        assert!(ReadAge::current().is_none());
        let (outer, inner) = (ReadAge::default(), ReadAge::default());
        outer.during(|| {
            inner.during(|| note(Age::Unknown));
            note(Age::AtMost(Duration::ZERO));
            let begun = ReadAge::current();
            let later = || ReadAge::go_on(begun.as_ref(), || note(Age::AtMost(Duration::from_secs(1))));
            std::thread::scope(|scope| scope.spawn(later).join().unwrap());
        });
        assert_eq!(inner.greatest(), Some(Age::Unknown));
        assert_eq!(outer.greatest(), Some(Age::AtMost(Duration::from_secs(1))));
        assert!(ReadAge::current().is_none());
        let panicked = std::panic::catch_unwind(|| ReadAge::default().during(|| panic!("a test")));
        assert!(panicked.is_err() && ReadAge::current().is_none());
    }
}
