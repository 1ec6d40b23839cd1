//! Two lists and refaults, as Linux without the multi-generational LRU has them for pages of files.
//!
//! A page enters the inactive list. One that is touched twice there goes to the active list; touches do not count that come
//! through a mapping with advice RANDOM or SEQUENTIAL (`vma_has_recency`). The end of the inactive list is dropped. While the
//! active list is longer than the inactive one, its end becomes inactive. A page that is read again after fewer evictions and
//! activations than there are active pages was dropped too early: it goes to the active list at once (`mm/workingset.c`).
//! Reasons for what it does differently from a real kernel are in `docs/capacity.md`.

use super::Cache;
use super::list::Lists;

const INACTIVE: u32 = 0;
const ACTIVE: u32 = 1;

/// Where a page is, and whether it was touched once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Never read.
    Unknown,
    /// Dropped; the list's memory has the clock of that moment.
    Dropped,
    Inactive,
    /// Inactive and touched.
    Referenced,
    Active,
}

/// Such a cache.
pub(super) struct LinuxCache {
    lists: Lists,
    states: Vec<State>,
    room: u32,
    inactive: u32,
    active: u32,
    /// Evictions and activations so far; it may wrap around, as in the kernel.
    clock: u32,
    random_advice: bool,
}

impl LinuxCache {
    /// An empty cache for files of `pages` pages in all, with room for `room` of them.
    pub(super) fn new(pages: u32, room: u32, random_advice: bool) -> LinuxCache {
        LinuxCache {
            lists: Lists::new(pages, 2),
            states: vec![State::Unknown; pages as usize],
            room,
            inactive: 0,
            active: 0,
            clock: 0,
            random_advice,
        }
    }

    /// A touch that counts.
    #[inline]
    fn reference(&mut self, page: u32) {
        match self.states[page as usize] {
            State::Inactive => self.states[page as usize] = State::Referenced,
            State::Referenced => {
                self.lists.remove(page);
                self.inactive -= 1;
                self.activate(page);
            }
            _ => {}
        }
    }

    fn activate(&mut self, page: u32) {
        self.lists.push(ACTIVE, page);
        self.states[page as usize] = State::Active;
        self.active += 1;
        self.clock = self.clock.wrapping_add(1);
    }

    fn make_room(&mut self) {
        while self.active > self.inactive {
            let Some(page) = self.lists.last(ACTIVE) else { break };
            self.lists.remove(page);
            self.lists.push(INACTIVE, page);
            self.states[page as usize] = State::Inactive;
            self.active -= 1;
            self.inactive += 1;
        }
        if self.active + self.inactive < self.room {
            return;
        }
        if let Some(page) = self.lists.last(INACTIVE) {
            self.lists.remove(page);
            self.inactive -= 1;
            self.states[page as usize] = State::Dropped;
            self.lists.note(page, self.clock);
            self.clock = self.clock.wrapping_add(1);
        }
    }
}

impl Cache for LinuxCache {
    #[inline]
    fn touch(&mut self, page: u32, row: bool) -> bool {
        let hit = !self.bring(page);
        if !(row && self.random_advice) {
            self.reference(page);
        }
        hit
    }

    fn bring(&mut self, page: u32) -> bool {
        let state = self.states[page as usize];
        if !matches!(state, State::Unknown | State::Dropped) {
            return false;
        }
        let distance = self.clock.wrapping_sub(self.lists.noted(page));
        self.make_room();
        if state == State::Dropped && distance <= self.active {
            self.activate(page);
        } else {
            self.lists.push(INACTIVE, page);
            self.states[page as usize] = State::Inactive;
            self.inactive += 1;
        }
        true
    }
}
