//! The home of a name: the number of the shard that has the RRD of that name, or would get it.
//!
//! The hash of a name determines it. An RRD that is renamed stays in its shard, with its rows, so that its new name may have another home
//! than its hash says; these are listed here. The list follows from the names of all shards and is made at the start.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use hashbrown::HashMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

type Moved = HashMap<Box<[u8]>, u32>;

/// Which shard has which name.
#[derive(Debug)]
pub(super) struct Homes {
    by_hash: ByHash,
    /// Names with another home than their hash says. One stays listed after its RRD has gone: a new RRD of that name goes there.
    moved: RwLock<Moved>,
    any_moved: AtomicBool,
}

/// The home that the hash of a name says.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByHash {
    seed: u64,
    count: u64,
}

impl ByHash {
    /// The shard's number.
    #[inline]
    pub(super) fn of(self, name: &[u8]) -> usize {
        match self.count {
            1 => 0,
            count => (xxh3_64_with_seed(name, self.seed) % count) as usize,
        }
    }
}

/// The home of a name, which does not change as long as this exists.
pub(super) struct Home<'a> {
    /// The shard's number.
    pub(super) shard: usize,
    _moved: Option<RwLockReadGuard<'a, Moved>>,
}

impl Homes {
    /// The homes in `count` shards, for the `seed` of a store.
    pub(super) fn new(seed: u64, count: usize) -> Self {
        Homes {
            by_hash: ByHash { seed, count: count as u64 },
            moved: RwLock::default(),
            any_moved: AtomicBool::new(false),
        }
    }

    fn moved(&self) -> RwLockReadGuard<'_, Moved> {
        // No holder can panic between two changes.
        self.moved.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the hashes of names say.
    #[inline]
    pub(super) fn by_hash(&self) -> ByHash {
        self.by_hash
    }

    /// The home of a name.
    #[inline]
    pub(super) fn of(&self, name: &[u8]) -> usize {
        if self.any_moved.load(Ordering::Acquire)
            && let Some(&shard) = self.moved().get(name)
        {
            return shard as usize;
        }
        self.by_hash.of(name)
    }

    /// The home of a name that an RRD is about to get: no rename moves it meanwhile.
    pub(super) fn hold(&self, name: &[u8]) -> Home<'_> {
        if self.by_hash.count == 1 {
            return Home { shard: 0, _moved: None };
        }
        let moved = self.moved();
        let shard = moved.get(name).map_or_else(|| self.by_hash.of(name), |&shard| shard as usize);
        Home { shard, _moved: Some(moved) }
    }

    /// Forgets which names have another home.
    pub(super) fn forget(&self) {
        self.moved.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Gives a name another home, once no RRD is about to get that name in the old one.
    pub(super) fn set(&self, name: &[u8], shard: usize) {
        let mut moved = self.moved.write().unwrap_or_else(PoisonError::into_inner);
        if self.by_hash.of(name) == shard {
            moved.remove(name);
        } else {
            moved.insert(name.into(), shard as u32);
        }
        self.any_moved.store(!moved.is_empty(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_where_it_was_put() {
        let homes = Homes::new(7, 4);
        let by_hash = homes.of(b"a.rrd");
        let other = (by_hash + 1) % 4;
        homes.set(b"a.rrd", other);
        assert_eq!((homes.of(b"a.rrd"), homes.hold(b"a.rrd").shard), (other, other));
        assert_eq!(homes.by_hash().of(b"a.rrd"), by_hash);
        homes.set(b"a.rrd", by_hash);
        assert_eq!(homes.of(b"a.rrd"), by_hash);
        assert_eq!(Homes::new(7, 1).of(b"a.rrd"), 0);
    }
}
