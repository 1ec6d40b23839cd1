//! Waiting for what another thread or process does: by looking again and again, with an end.

use std::time::{Duration, Instant};

/// The longest wait for an answer, a start or an end, on a machine that is busy with other tests.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Looks until `found` gives something.
///
/// # Panics
/// After [`DEADLINE`], with what was waited for.
pub fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(start.elapsed() < DEADLINE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Looks until something is so.
///
/// # Panics
/// As [`wait_for`].
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    wait_for(what, || done().then_some(()));
}
