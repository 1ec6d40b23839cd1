//! `--start` and `--end`.

use std::fmt;

use rrd::when::at::{AtError, PairError, TimeSpec, range};
use rrd::when::calendar::Calendar;

/// Where a range starts when nobody says.
const START_DEFAULT: &str = "end-24h";
/// Where a range ends when nobody says.
const END_DEFAULT: &str = "now";

/// What time it is, and how local days go.
pub trait Clock {
    /// Seconds since the epoch.
    fn now(&self) -> i64;
    /// Local time.
    fn calendar(&self) -> &dyn Calendar;
}

/// Why a range could not be read. `Display` is RRDtool's text.
#[derive(Clone, Debug, PartialEq)]
pub enum RangeError {
    /// One of its ends.
    Time {
        /// `start` or `end`.
        what: &'static str,
        /// Why.
        why: AtError,
    },
    /// The two do not go together.
    Pair(PairError),
}

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RangeError::Time { what, why } => write!(f, "{what} time: {why}"),
            RangeError::Pair(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RangeError {}

/// A start and an end as they are given; either may refer to the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range {
    start: Option<TimeSpec>,
    end: Option<TimeSpec>,
}

impl Range {
    /// Takes the argument of `--start`.
    ///
    /// # Errors
    /// [`RangeError::Time`].
    pub fn start(&mut self, word: &[u8], clock: &dyn Clock) -> Result<(), RangeError> {
        self.start = Some(end_of_range("start", word, clock)?);
        Ok(())
    }

    /// Takes the argument of `--end`.
    ///
    /// # Errors
    /// [`RangeError::Time`].
    pub fn end(&mut self, word: &[u8], clock: &dyn Clock) -> Result<(), RangeError> {
        self.end = Some(end_of_range("end", word, clock)?);
        Ok(())
    }

    /// Start and end in seconds.
    ///
    /// # Errors
    /// [`RangeError`].
    pub fn resolve(&self, clock: &dyn Clock) -> Result<(i64, i64), RangeError> {
        let or = |given: Option<TimeSpec>, what, default: &str| {
            given.map_or_else(|| end_of_range(what, default.as_bytes(), clock), Ok)
        };
        let start = or(self.start, "start", START_DEFAULT)?;
        let end = or(self.end, "end", END_DEFAULT)?;
        range(&start, &end, clock.calendar()).map_err(RangeError::Pair)
    }
}

fn end_of_range(what: &'static str, word: &[u8], clock: &dyn Clock) -> Result<TimeSpec, RangeError> {
    spec(word, clock).map_err(|why| RangeError::Time { what, why })
}

/// One time in AT syntax.
///
/// # Errors
/// [`AtError`].
pub fn spec(word: &[u8], clock: &dyn Clock) -> Result<TimeSpec, AtError> {
    TimeSpec::parse(&String::from_utf8_lossy(word), clock.now(), clock.calendar())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rrd::when::calendar::Utc;

    struct Fixed;

    impl Clock for Fixed {
        fn now(&self) -> i64 {
            1_000_000_000
        }

        fn calendar(&self) -> &dyn Calendar {
            &Utc
        }
    }

    /// `words`: start and end, `-` where not given.
    fn check(words: &str, want: Result<(i64, i64), &str>) {
        let mut range = Range::default();
        let given: Vec<&str> = words.split(' ').collect();
        let taken = match given[0] {
            "-" => Ok(()),
            word => range.start(word.as_bytes(), &Fixed),
        };
        let taken = taken.and_then(|()| match given[1] {
            "-" => Ok(()),
            word => range.end(word.as_bytes(), &Fixed),
        });
        let got = taken.and_then(|()| range.resolve(&Fixed)).map_err(|error| error.to_string());
        assert_eq!(got, want.map_err(str::to_string), "{words}");
    }

    #[test]
    fn either_end_may_be_left_out_or_refer_to_the_other() {
        check("- -", Ok((999_913_600, 1_000_000_000)));
        check("end-1h 999999000", Ok((999_995_400, 999_999_000)));
        check("999990000 start+60", Ok((999_990_000, 999_990_060)));
        check("zz -", Err("start time: unparsable time: zz"));
        check("- zz", Err("end time: unparsable time: zz"));
        check("end-1h start+1h", Err("the start and end times cannot be specified relative to each other"));
    }
}
