//! Taking a lock whose holders cannot leave what it guards half changed.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes `mutex`, also after a panic of a holder: a thread of a shard that panics ends the process, and no other
/// holder runs foreign code under a lock of this crate.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
