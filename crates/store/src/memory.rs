//! What the RRDs of a store take in memory, and the limits of that.
//!
//! Every RRD that is created, imported or changed passes [`Memory::check`] before anything is allocated for it. What a
//! store already holds when it is opened is counted, and never refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rrd::definition::Definition;
use rrd::footprint::{self, LIVE_BYTES_MAX};

use crate::engine::StoreError;

/// Most values (rows times data sources, over all archives) of an RRD that is read or filled as a whole: 1 GiB of
/// doubles, which is also the largest import. An RRD of a striped store may have more, because what was never written
/// takes no room; its rows are fetched in parts.
pub const WHOLE_VALUES_MAX: u64 = 128 << 20;

/// The limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Bytes that one RRD may take.
    pub rrd_bytes: u64,
    /// Bytes that all RRDs of a striped store may take. The files layout keeps none of theirs.
    pub store_bytes: u64,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        MemoryLimits { rrd_bytes: LIVE_BYTES_MAX, store_bytes: u64::MAX }
    }
}

/// The limits with what is used of them; clones share the count.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    limits: MemoryLimits,
    used: Arc<AtomicU64>,
}

impl Memory {
    /// Nothing is used yet.
    pub fn new(limits: MemoryLimits) -> Self {
        Memory { limits, used: Arc::default() }
    }

    /// The limits.
    pub fn limits(&self) -> MemoryLimits {
        self.limits
    }

    /// Counts a part of the store that took `before` bytes and takes `now`.
    pub fn count(&self, before: u64, now: u64) {
        self.used.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Checks that there may be an RRD of this definition in place of one that takes `replaced` bytes.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`], which names the limit and its key.
    pub fn check(&self, definition: &Definition, replaced: u64) -> Result<(), StoreError> {
        let bytes = footprint::check(definition, self.limits.rrd_bytes)
            .map_err(|error| StoreError::TooLarge(error.to_string()))?;
        let used = self.used.load(Ordering::Relaxed);
        let most = self.limits.store_bytes;
        if bytes > replaced && used.saturating_sub(replaced).saturating_add(bytes) > most {
            return Err(StoreError::TooLarge(format!(
                "the RRDs of this store take {used} bytes of memory, {most} are their limit ([limits] store_memory)"
            )));
        }
        Ok(())
    }

    /// Whether an RRD of this definition would have room if there were fewer others.
    pub fn needs_room(&self, definition: &Definition) -> bool {
        match footprint::check(definition, self.limits.rrd_bytes) {
            Ok(bytes) => bytes <= self.limits.store_bytes && self.check(definition, 0).is_err(),
            Err(_) => false,
        }
    }
}

/// Checks that an RRD is small enough to be held as a whole.
///
/// # Errors
/// [`StoreError::TooLarge`].
pub fn check_whole(definition: &Definition) -> Result<(), StoreError> {
    match footprint::value_count(definition) {
        values if values > WHOLE_VALUES_MAX => Err(StoreError::TooLarge(format!(
            "{values} values are too many to hold at once, {WHOLE_VALUES_MAX} are the limit; fetch them in parts"
        ))),
        _ => Ok(()),
    }
}
