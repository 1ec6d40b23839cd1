//! Thousands of schedules of the mailbox and of rounds on callers' threads, by shuttle: it runs one thread at a time
//! and switches at each lock, wait and atomic operation as a seed says.
//!
//! `src/shard/mailbox.rs` and `src/shard/worker/slot.rs` are compiled here a second time, as they are: what they name by
//! `crate::` is shuttle's ([`sync`]) or a stand-in of a few lines ([`shard`]). No feature, no second build of the crate.
//! Under shuttle a wait with a timeout never times out, so a lost wakeup is a deadlock, which it reports.
//!
//! A failure prints the schedule; `shuttle::replay(run, "...")` in place of [`explore`] repeats it.
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(dead_code, reason = "the files under test have more than is tried here")]

mod sync {
    pub use shuttle::sync::atomic::AtomicBool;
    pub use shuttle::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
}

#[path = "../../src/lock.rs"]
mod lock;
mod mailbox;
mod shard;
mod slot;

/// Runs `run` under as many schedules: half of them random, the others with few switches at random places, which find
/// what needs one switch in the wrong place.
fn explore(schedules: usize, run: fn()) {
    shuttle::check_random(run, schedules / 2);
    shuttle::check_pct(run, schedules / 2, 3);
}
