//! Explores thousands of schedules of the mailbox and of rounds on callers' threads with shuttle, which runs one thread
//! at a time and switches at locks, waits and atomic operations as a seed determines.
//!
//! `src/shard/mailbox.rs` and `src/shard/worker/slot.rs` are compiled here again, unchanged: their `crate::` paths lead to
//! shuttle's types ([`sync`]) or to short stand-ins ([`shard`]). This needs no feature and no second build of the crate.
//! Under shuttle a wait with a timeout never times out, so a lost wakeup is a deadlock, which it reports.
//!
//! A failure prints the schedule; `shuttle::replay(run, "...")` in place of [`explore`] repeats it.
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(dead_code, reason = "the files under test have more than is tried here")]

mod sync {
    pub use shuttle::sync::atomic::AtomicBool;
    pub use shuttle::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
}

#[path = "../../src/lock.rs"]
mod lock;
mod mailbox;
mod shard;
mod slot;

/// Runs `run` under this many schedules: half of them random, the others with few switches at random places, which
/// finds bugs that need one switch at the wrong place.
fn explore(schedules: usize, run: fn()) {
    shuttle::check_random(run, schedules / 2);
    shuttle::check_pct(run, schedules / 2, 3);
}
