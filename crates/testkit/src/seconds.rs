//! Comparing programs that use the time of day: another second may begin before the second one is asked.

use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

/// So often a comparison is repeated at most.
const TRIES: usize = 8;

/// Notes whether another second began while programs were asked.
#[derive(Debug, Default)]
pub struct Seconds(Cell<bool>);

impl Seconds {
    /// Asks programs that are to be compared.
    pub fn ask<T>(&self, ask: impl FnOnce() -> T) -> T {
        let second = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let before = second();
        let answer = ask();
        if second() != before {
            self.0.set(true);
        }
        answer
    }

    /// Whether the programs may have seen different seconds.
    pub fn passed(&self) -> bool {
        self.0.get()
    }
}

/// A difference that remains. One that is found while no second passes does; any other one only if it is found each time: when a
/// program draws random numbers, or the programs are never asked within one second.
pub fn lasting_difference(
    draws_numbers: bool,
    mut compare: impl FnMut(&Seconds) -> Option<String>,
) -> Option<String> {
    let mut found = None;
    for _ in 0..TRIES {
        let seconds = Seconds::default();
        found = Some(compare(&seconds)?);
        if !draws_numbers && !seconds.passed() {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_looked_for_again_only_if_a_second_has_passed_or_numbers_are_drawn() {
        let tries = |draws_numbers, passes, equal_from| {
            let mut tries = 0;
            let found = lasting_difference(draws_numbers, |seconds| {
                tries += 1;
                seconds.0.set(passes);
                (tries < equal_from).then(String::new)
            });
            (tries, found.is_some())
        };
        assert_eq!(tries(false, false, 2), (1, true));
        assert_eq!(tries(false, true, 2), (2, false));
        assert_eq!(tries(true, false, 3), (3, false));
        assert_eq!(tries(true, false, 100), (TRIES, true));
        assert_eq!(tries(false, true, 1), (1, false));
    }
}
