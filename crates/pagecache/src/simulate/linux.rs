//! Two lists and refaults, as Linux without the multi-generational LRU has them for pages of files.
//!
//! A page enters the inactive list. One that is touched twice there goes to the active list; touches do not count that come
//! through a mapping with advice RANDOM or SEQUENTIAL (`vma_has_recency`). A page that is read again after fewer evictions and
//! activations than there are active pages was dropped too early: it goes to the active list at once (`mm/workingset.c`).
//! When there is no room, the end of the inactive list is dropped, unless it is not yet written: then it goes to the active list
//! (`mm/vmscan.c`). If the active list is the longer one, or pages went there that had been dropped too early, its end becomes
//! inactive until both are of a length.
//! Reasons for what it does differently from a real kernel are in `docs/capacity.md`.

use super::Cache;
use super::list::Lists;

const INACTIVE: u32 = 0;
const ACTIVE: u32 = 1;

/// Pages that are dropped at a time: `SWAP_CLUSTER_MAX`.
const CLUSTER: u32 = 32;

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
    /// Active and touched: what becomes inactive keeps that.
    ActiveReferenced,
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
    /// Whether a page was activated because it had been dropped too early, since pages were dropped the last time.
    refaulted: bool,
    /// For each page, the time of its last touch, and the time now: a page that was not touched since the last tick is written.
    touched: Vec<u8>,
    time: u8,
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
            refaulted: false,
            touched: vec![0; pages as usize],
            time: 1,
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
            State::Active => self.states[page as usize] = State::ActiveReferenced,
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
        if self.active + self.inactive < self.room {
            return;
        }
        let deactivates = self.refaulted || self.active > self.inactive;
        self.refaulted = false;
        let (mut wanted, mut tries) = (CLUSTER.min(self.room / 8).max(1), self.room);
        while wanted > 0 {
            while (deactivates && self.active > self.inactive || self.inactive == 0) && self.deactivate() {}
            // If nothing is written, the kernel waits until it is.
            if tries > 0 && self.keep_unwritten() {
                tries -= 1;
                continue;
            }
            self.drop_one();
            wanted -= 1;
        }
    }

    /// Moves the end of the inactive list to the active one if it is not yet written.
    fn keep_unwritten(&mut self) -> bool {
        let unwritten = |page: &u32| self.touched[*page as usize] == self.time;
        let Some(page) = self.lists.last(INACTIVE).filter(unwritten) else { return false };
        self.lists.remove(page);
        self.inactive -= 1;
        self.activate(page);
        true
    }

    /// Moves the end of the active list; false if it is empty.
    fn deactivate(&mut self) -> bool {
        let Some(page) = self.lists.last(ACTIVE) else { return false };
        self.lists.remove(page);
        self.lists.push(INACTIVE, page);
        let referenced = self.states[page as usize] == State::ActiveReferenced;
        self.states[page as usize] = if referenced { State::Referenced } else { State::Inactive };
        self.active -= 1;
        self.inactive += 1;
        true
    }

    fn drop_one(&mut self) {
        let Some(page) = self.lists.last(INACTIVE) else { return };
        self.lists.remove(page);
        self.inactive -= 1;
        self.states[page as usize] = State::Dropped;
        self.lists.note(page, self.clock);
        self.clock = self.clock.wrapping_add(1);
    }
}

impl Cache for LinuxCache {
    #[inline]
    fn touch(&mut self, page: u32, row: bool) -> bool {
        let hit = !self.bring(page);
        self.touched[page as usize] = self.time;
        if !(row && self.random_advice) {
            self.reference(page);
        }
        hit
    }

    fn tick(&mut self) {
        self.time = self.time.wrapping_add(1);
    }

    fn bring(&mut self, page: u32) -> bool {
        let state = self.states[page as usize];
        if !matches!(state, State::Unknown | State::Dropped) {
            return false;
        }
        let distance = self.clock.wrapping_sub(self.lists.noted(page));
        self.make_room();
        if state == State::Dropped && distance <= self.active {
            self.refaulted = true;
            self.activate(page);
        } else {
            self.lists.push(INACTIVE, page);
            self.states[page as usize] = State::Inactive;
            self.inactive += 1;
        }
        true
    }
}
