//! The synchronization of a mailbox and its worker's slot, named in one place: `tests/schedules` compiles the same
//! files with shuttle's types here, which try thousands of schedules.

pub use std::sync::atomic::AtomicBool;
pub use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
