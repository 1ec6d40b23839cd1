//! Shuttle's types, and a clock.

use std::time::Duration;

use shuttle::rand::{Rng, thread_rng};

pub use shuttle::sync::atomic::{AtomicBool, AtomicU64};
pub use shuttle::sync::{Condvar, Mutex, MutexGuard, PoisonError};
pub use shuttle::thread::yield_now;

/// A moment after which no time or much time has passed.
#[derive(Clone, Copy)]
pub struct Instant;

impl Instant {
    pub fn now() -> Self {
        Instant
    }

    pub fn elapsed(self) -> Duration {
        if thread_rng().gen_bool(0.7) { Duration::ZERO } else { Duration::from_secs(1) }
    }
}
