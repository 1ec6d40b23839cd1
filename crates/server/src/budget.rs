//! Memory that clients may make the daemon hold: one budget for what they send and what they do not read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most bytes of a share that may come out of the reserve: a connection's while it is served in small parts, of which a
/// line of an EXPORT is the longest.
pub const SMALL_SHARE: u64 = 160 * 1024;

/// A share that was refused beside others that hold less than such a part of the budget would be refused without them, too: nearly all was its
/// own.
const OTHERS_PART: u64 = 16;

/// Bytes, shared by all connections.
#[derive(Debug)]
pub struct MemoryBudget {
    max: u64,
    /// Bytes beyond `max` that only small shares get, so that those who hold much do not shut out the others.
    reserve: u64,
    used: AtomicU64,
    /// Bytes that cannot be refused.
    fixed: AtomicU64,
    /// Bytes that were given back since the start.
    released: AtomicU64,
}

/// Bytes that are taken whether they are free or not: what is left for shares is less. Given back when it is dropped.
#[derive(Debug)]
pub struct Fixed {
    budget: Arc<MemoryBudget>,
    bytes: u64,
}

/// A part of the budget, given back when it is dropped.
#[derive(Debug)]
pub struct Share {
    budget: Arc<MemoryBudget>,
    bytes: u64,
}

impl MemoryBudget {
    /// `max` bytes, all of them free.
    pub fn new(max: u64) -> Arc<Self> {
        Self::with_reserve(max, 0)
    }

    /// `max` bytes and a reserve for shares of up to [`SMALL_SHARE`], all of them free.
    pub fn with_reserve(max: u64, reserve: u64) -> Arc<Self> {
        let [used, fixed, released] = [0; 3].map(AtomicU64::new);
        Arc::new(MemoryBudget { max, reserve, used, fixed, released })
    }

    /// An empty share.
    pub fn share(self: &Arc<Self>) -> Share {
        Share { budget: Arc::clone(self), bytes: 0 }
    }

    /// Takes `bytes` that cannot be refused: what every connection takes.
    pub fn fix(self: &Arc<Self>, bytes: u64) -> Fixed {
        self.fixed.fetch_add(bytes, Ordering::Relaxed);
        Fixed { budget: Arc::clone(self), bytes }
    }

    /// Bytes that were given back since the start.
    pub fn released(&self) -> u64 {
        self.released.load(Ordering::Relaxed)
    }

    /// All bytes, free or in use.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Bytes in use, also those that could not be refused.
    pub fn taken(&self) -> u64 {
        self.used() + self.fixed.load(Ordering::Relaxed)
    }

    /// Bytes in use, without those that could not be refused.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

impl Share {
    /// Changes the share to `bytes`, unless it grows and so much is not free.
    pub fn try_resize(&mut self, bytes: u64) -> bool {
        let used = &self.budget.used;
        if bytes > self.bytes {
            let more = bytes - self.bytes;
            let reserve = if bytes <= SMALL_SHARE { self.budget.reserve } else { 0 };
            let most = (self.budget.max + reserve).saturating_sub(self.budget.fixed.load(Ordering::Relaxed));
            let add = |used: u64| used.checked_add(more).filter(|&used| used <= most);
            if used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_err() {
                return false;
            }
            self.bytes = bytes;
        } else {
            self.resize(bytes);
        }
        true
    }

    /// Makes the share larger by `bytes`, unless so much is not free.
    pub fn try_grow(&mut self, bytes: u64) -> bool {
        self.try_resize(self.bytes.saturating_add(bytes))
    }

    /// Changes the share to `bytes`, even beyond the budget.
    pub fn resize(&mut self, bytes: u64) {
        self.budget.used.fetch_add(bytes.wrapping_sub(self.bytes), Ordering::Relaxed);
        if bytes < self.bytes {
            self.budget.released.fetch_add(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }

    /// True when its budget has so many bytes free.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.budget.taken().saturating_add(bytes) <= self.budget.max
    }

    /// Whether there is ever room for a share of so many bytes: others hold enough that they may give back, and the budget is so large.
    pub fn may_ever_be(&self, bytes: u64) -> bool {
        let MemoryBudget { max, fixed, used, .. } = &*self.budget;
        let others = used.load(Ordering::Relaxed).saturating_sub(self.bytes);
        let is_alone = others < max / OTHERS_PART;
        bytes <= max.saturating_sub(fixed.load(Ordering::Relaxed)) && !is_alone
    }

    /// The bytes of the whole budget.
    pub fn budget_bytes(&self) -> u64 {
        self.budget.max
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.resize(0);
    }
}

impl Drop for Fixed {
    fn drop(&mut self) {
        self.budget.fixed.fetch_sub(self.bytes, Ordering::Relaxed);
        self.budget.released.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_do_not_hold_never_becomes_free() {
        let budget = MemoryBudget::new(160);
        let _fixed = budget.fix(10);
        let (mut one, mut two) = (budget.share(), budget.share());
        assert!(one.try_resize(140) && two.try_resize(9));
        assert!(!one.may_ever_be(150), "two holds nearly nothing");
        two.resize(60);
        assert!(one.may_ever_be(150) && !one.may_ever_be(151));
    }

    #[test]
    fn shares_add_up_to_the_budget_and_come_back() {
        let budget = MemoryBudget::new(100);
        let (mut one, mut two) = (budget.share(), budget.share());
        assert!(one.try_resize(60) && !two.try_resize(50) && two.try_resize(40));
        assert_eq!((budget.used(), one.bytes(), two.bytes()), (100, 60, 40));
        assert!(one.try_resize(10) && two.try_resize(90));
        drop(two);
        assert_eq!(budget.used(), 10);
        one.resize(500);
        assert!(!budget.share().try_resize(1));
        drop(one);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn the_reserve_is_for_small_shares() {
        let budget = MemoryBudget::with_reserve(2 * SMALL_SHARE, 100);
        let (mut large, mut small) = (budget.share(), budget.share());
        assert!(!large.try_resize(2 * SMALL_SHARE + 1) && large.try_resize(2 * SMALL_SHARE));
        assert!(small.try_resize(100) && !small.try_resize(101));
    }

    #[test]
    fn what_cannot_be_refused_leaves_less_for_shares() {
        let budget = MemoryBudget::new(100);
        let (fixed, mut share) = (budget.fix(70), budget.share());
        assert!(!share.try_resize(31) && share.try_resize(30) && !share.has_room(1));
        let more = budget.fix(70);
        assert!(share.try_resize(20) && !share.try_grow(1));
        drop((fixed, more));
        assert!(share.try_grow(80));
        assert_eq!((budget.used(), budget.released()), (100, 150));
    }
}
