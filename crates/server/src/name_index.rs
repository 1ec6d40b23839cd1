//! All names of the store in order, for pages of directories and for search.
//!
//! The list is made when it is first asked for. It is made again when names have changed since, and in a cluster when a follower had to
//! answer in place of a leader; until the new one is there, the old one answers. Cost of a name: its bytes twice (as it is and in lower
//! case), 2 bytes between names and 4 for its place.

mod list;
mod search;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use store::engine::{Engine, StoreError};
use store::read_age::KeptAge;

use crate::budget::{MemoryBudget, Share};

pub use list::{Child, NameList};

/// Programs may make and remove `.rrd` files unseen, so a list is not used for longer.
const AGE_MAX: Duration = Duration::from_secs(30);
/// A list is used for at least so many times the time that making it took: it never takes more than a tenth of a core.
const REST_FACTOR: u32 = 9;
/// ... and for at least so long.
const AGE_MIN: Duration = Duration::from_millis(500);

/// The names of a store.
pub struct NameIndex {
    engine: Arc<dyn Engine>,
    memory: Arc<MemoryBudget>,
    kept: Mutex<Option<Kept>>,
    /// Held while a list is made.
    making: Mutex<()>,
}

struct Kept {
    list: Arc<NameList>,
    /// The store's count of changes before the list was made.
    changes: u64,
    made: Instant,
    took: Duration,
    /// How old what it was made of could be then.
    age: KeptAge,
}

impl Kept {
    /// Notes how old the list may be by now. One of leaders is of now as long as they say that nothing has changed.
    fn note_age(&self, changes: u64) {
        self.age.note(self.changes == changes);
    }

    /// Returns true if no name has changed, and no follower has answered in place of a leader.
    fn is_current(&self, changes: u64) -> bool {
        self.changes == changes && !self.age.may_exceed(Duration::ZERO)
    }

    fn is_fresh(&self, changes: u64) -> bool {
        let age = self.made.elapsed();
        let is_current = self.is_current(changes) && age < AGE_MAX;
        is_current || age < AGE_MIN || age < self.took * REST_FACTOR
    }
}

impl NameIndex {
    /// The names of `engine`, in memory that counts against `memory`.
    pub fn new(engine: Arc<dyn Engine>, memory: Arc<MemoryBudget>) -> Self {
        NameIndex { engine, memory, kept: Mutex::default(), making: Mutex::default() }
    }

    /// The list, at most half a second older than the store, or ten times the time that making one takes. Blocks while the
    /// first one is made.
    ///
    /// # Errors
    /// When the store cannot list; [`StoreError::TooLarge`] when there is no memory.
    pub fn list(&self) -> Result<Arc<NameList>, StoreError> {
        let changes = self.engine.stats().name_changes;
        let stale = match self.kept(changes) {
            (Some(list), true) => {
                self.note_age(changes);
                return Ok(list);
            }
            (stale, _) => stale,
        };
        let Ok(_making) = self.making.try_lock() else {
            return match stale {
                Some(list) => {
                    self.note_age(changes);
                    Ok(list)
                }
                None => self.wait_for_first(changes),
            };
        };
        match (self.make(changes), stale) {
            // Better than none.
            (Err(StoreError::TooLarge(_)), Some(list)) => {
                self.note_age(changes);
                Ok(list)
            }
            (made, _) => made,
        }
    }

    /// Notes, for the request that is answered by the list that is kept, how old that may be.
    fn note_age(&self, changes: u64) {
        if let Some(kept) = &*self.kept.lock().unwrap_or_else(PoisonError::into_inner) {
            kept.note_age(changes);
        }
    }

    /// The list as the names are now, made again if they have changed.
    ///
    /// # Errors
    /// As [`NameIndex::list`].
    pub fn current(&self) -> Result<Arc<NameList>, StoreError> {
        if let Some(list) = self.current_if_made() {
            return Ok(list);
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        match self.current_if_made() {
            Some(list) => Ok(list),
            None => self.make(self.engine.stats().name_changes),
        }
    }

    /// The list that is made already, if names have not changed since; never one of a store that does not count changes.
    pub fn current_if_made(&self) -> Option<Arc<NameList>> {
        let changes = self.engine.stats().name_changes;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let current = kept.as_ref().filter(|kept| changes > 0 && kept.is_current(changes))?;
        current.note_age(changes);
        Some(Arc::clone(&current.list))
    }

    /// The list, and whether it may still be used.
    fn kept(&self, changes: u64) -> (Option<Arc<NameList>>, bool) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(kept) => (Some(Arc::clone(&kept.list)), kept.is_fresh(changes)),
            None => (None, false),
        }
    }

    fn wait_for_first(&self, changes: u64) -> Result<Arc<NameList>, StoreError> {
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        match self.kept(changes).0 {
            Some(list) => {
                self.note_age(changes);
                Ok(list)
            }
            None => self.make(changes),
        }
    }

    fn make(&self, changes: u64) -> Result<Arc<NameList>, StoreError> {
        let begun = Instant::now();
        let mut share: Share = self.memory.share();
        let mut hold = |bytes| share.try_grow(bytes);
        let (names, age) = KeptAge::of(|| self.engine.list_within(b"", true, &mut hold));
        let names = names?;
        let before = self
            .kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .map(|kept| Arc::clone(&kept.list));
        let list = match before.filter(|before| before.has_these(&names)) {
            // What was made of it stays true, and two lists of a million names would take twice the memory.
            Some(same) => same,
            None => Arc::new(NameList::new(&names, share)),
        };
        let (made, took) = (Instant::now(), begun.elapsed());
        let kept = Kept { list: Arc::clone(&list), changes, made, took, age };
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::read_age::{Age, note};

    #[test]
    fn a_list_of_followers_is_made_again_soon() {
        let memory = MemoryBudget::new(1_000_000);
        let kept = |age, seconds| Kept {
            list: Arc::new(NameList::new(&[], memory.share())),
            changes: 7,
            made: Instant::now() - Duration::from_secs(seconds),
            took: Duration::from_millis(10),
            age: KeptAge::of(|| note(Age::AtMost(Duration::from_secs(age)))).1,
        };
        assert!(kept(0, 0).is_fresh(7) && kept(3, 0).is_fresh(7));
        assert!(kept(0, 20).is_fresh(7) && !kept(3, 20).is_fresh(7));
        assert!(kept(0, 20).is_current(7) && !kept(3, 0).is_current(7) && !kept(0, 0).is_current(8));
        assert!(!kept(0, 20).is_fresh(8) && !kept(0, 31).is_fresh(7));
    }
}
