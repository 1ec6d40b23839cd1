//! Locking mutexes, poisoned or not.

use crate::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex` even after a holder panicked. That is sound here: a panic in a thread of a shard ends the
/// process, and no other holder runs foreign code under a lock of this crate.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
