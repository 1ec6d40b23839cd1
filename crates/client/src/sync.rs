//! The synchronization of the pooled connections, named in one place: `tests/schedules` compiles `daemon/batch.rs` with
//! shuttle's types and a clock of its own here, which try thousands of schedules.

pub use std::sync::atomic::{AtomicBool, AtomicU64};
pub use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
pub use std::thread::yield_now;
pub use std::time::Instant;
