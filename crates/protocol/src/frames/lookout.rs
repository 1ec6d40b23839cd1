//! Looking for the other side's next bytes before sleeping for them.

use std::time::{Duration, Instant};

/// How long bytes are looked for, where there is a second processor: to be woken costs about as much again as a short
/// request takes, and more on a processor that has gone to sleep.
const LOOK: Duration = Duration::from_micros(20);
/// Waits that are slept at once after one whose bytes did not come while they were looked for: on a busy machine to
/// look for them only takes the processor from whoever makes them.
const SLEPT_AFTER_MISS: u32 = 32;

/// Decides, for one connection, whether to look.
#[derive(Debug)]
pub struct Lookout {
    /// Waits that are not looked for.
    sleeps: u32,
}

impl Default for Lookout {
    fn default() -> Self {
        let several = std::thread::available_parallelism().is_ok_and(|count| count.get() > 1);
        Lookout { sleeps: if several { 0 } else { u32::MAX } }
    }
}

impl Lookout {
    /// The next wait is not worth looking: other threads want the processor.
    pub fn sleep_next(&mut self) {
        self.sleeps = self.sleeps.max(1);
    }

    /// Calls `find` until it finds something, for as long as that is worth; `None` when it is time to sleep.
    pub fn look<T>(&mut self, mut find: impl FnMut() -> Option<T>) -> Option<T> {
        if self.sleeps > 0 {
            self.sleeps -= u32::from(self.sleeps < u32::MAX);
            return None;
        }
        let start = Instant::now();
        loop {
            let found = find();
            if found.is_some() {
                return found;
            }
            if start.elapsed() > LOOK {
                self.sleeps = SLEPT_AFTER_MISS;
                return None;
            }
            // Whoever makes them may be waiting for this very processor.
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_missed_once_sleeps_for_a_while() {
        let mut lookout = Lookout { sleeps: 0 };
        assert_eq!(lookout.look(|| Some(1)), Some(1));
        assert_eq!(lookout.look(|| None::<u8>), None);
        for _ in 0..SLEPT_AFTER_MISS {
            assert_eq!(lookout.look(|| Some(1)), None);
        }
        assert_eq!(lookout.look(|| Some(1)), Some(1));
        lookout.sleep_next();
        assert_eq!((lookout.look(|| Some(1)), lookout.look(|| Some(1))), (None, Some(1)));
        // A single processor never looks.
        lookout.sleeps = u32::MAX;
        assert_eq!((lookout.look(|| Some(1)), lookout.sleeps), (None, u32::MAX));
    }
}
