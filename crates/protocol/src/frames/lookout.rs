//! Looking for the other side's next bytes before sleeping for them.

use std::time::{Duration, Instant};

/// How long bytes are looked for. To be woken costs some microseconds, and on a processor that has gone to sleep, of a
/// virtual machine above all, more than all the rest of a short request: on two processors a caller of updates got
/// 14,000 answers a second with both sides sleeping, and 120,000 with both looking.
pub const LOOK: Duration = Duration::from_micros(50);
/// The longest wait after which the next one is expected to be short, with the time it takes to be woken.
pub const SHORT: Duration = Duration::from_micros(100);

/// Whether there is a second processor: else nothing comes while one looks.
pub fn are_several() -> bool {
    std::thread::available_parallelism().is_ok_and(|count| count.get() > 1)
}

/// Decides, for one connection, whether to look: where there is a second processor, and the wait before was short. So
/// whoever waits for a slow side, or on a busy machine, sleeps and leaves the processor to others.
#[derive(Debug)]
pub struct Lookout {
    /// Looking may help at all.
    several: bool,
    /// The next wait is expected to be short.
    soon: bool,
    /// When the wait under way began.
    since: Option<Instant>,
}

impl Default for Lookout {
    fn default() -> Self {
        Lookout { several: are_several(), soon: false, since: None }
    }
}

impl Lookout {
    /// Calls `find` once, and while that is worth it until it finds something; `None` when it is time to sleep.
    pub fn look<T>(&mut self, mut find: impl FnMut() -> Option<T>) -> Option<T> {
        let since = *self.since.get_or_insert_with(Instant::now);
        loop {
            let found = find();
            if found.is_some() {
                self.came();
                return found;
            }
            if !self.several || !self.soon || since.elapsed() > LOOK {
                return None;
            }
            // Whoever makes them may be waiting for this very processor.
            std::thread::yield_now();
        }
    }

    /// What was slept for came.
    pub fn came(&mut self) {
        self.soon = self.since.take().is_some_and(|since| since.elapsed() <= SHORT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often it looks for what never comes.
    fn looks(lookout: &mut Lookout) -> u32 {
        let mut count = 0;
        let found = lookout.look(|| {
            count += 1;
            None::<()>
        });
        assert_eq!(found, None);
        count
    }

    #[test]
    fn who_waited_long_sleeps_at_once() {
        let mut lookout = Lookout { several: true, ..Lookout::default() };
        assert_eq!(looks(&mut lookout), 1);
        lookout.came();
        assert!(looks(&mut lookout) > 1, "a short wait lets expect another");
        std::thread::sleep(2 * SHORT);
        assert_eq!(lookout.look(|| Some(7)), Some(7));
        assert_eq!(looks(&mut lookout), 1, "a long one does not");
        lookout = Lookout { several: false, ..Lookout::default() };
        lookout.look(|| Some(()));
        assert_eq!(looks(&mut lookout), 1, "nobody else can work meanwhile");
    }
}
