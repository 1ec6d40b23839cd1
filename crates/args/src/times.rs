//! `--start` and `--end`.

use std::fmt;

use rrd::when::at::{AtError, PairError, TimeSpec, range};
use rrd::when::calendar::Calendar;

/// The default start of a range.
const START_DEFAULT: &str = "end-24h";
/// The default end of a range.
const END_DEFAULT: &str = "now";

/// The current time and the local calendar.
#[derive(Clone, Copy)]
pub struct Clock<'a> {
    /// Seconds since the epoch.
    pub now: i64,
    /// Local time.
    pub calendar: &'a dyn Calendar,
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
    /// Start and end do not form a range.
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

/// The start and the end from the options; either may refer to the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range {
    start: Option<TimeSpec>,
    end: Option<TimeSpec>,
}

impl Range {
    /// Sets the argument of `--start`.
    ///
    /// # Errors
    /// [`RangeError::Time`].
    pub fn start(&mut self, arg: &[u8], clock: Clock<'_>) -> Result<(), RangeError> {
        self.start = Some(end_of_range("start", arg, clock)?);
        Ok(())
    }

    /// Sets the argument of `--end`.
    ///
    /// # Errors
    /// [`RangeError::Time`].
    pub fn end(&mut self, arg: &[u8], clock: Clock<'_>) -> Result<(), RangeError> {
        self.end = Some(end_of_range("end", arg, clock)?);
        Ok(())
    }

    /// Start and end in seconds.
    ///
    /// # Errors
    /// [`RangeError`].
    pub fn resolve(&self, clock: Clock<'_>) -> Result<(i64, i64), RangeError> {
        let or = |spec: Option<TimeSpec>, what, default: &str| {
            spec.map_or_else(|| end_of_range(what, default.as_bytes(), clock), Ok)
        };
        let start = or(self.start, "start", START_DEFAULT)?;
        let end = or(self.end, "end", END_DEFAULT)?;
        range(&start, &end, clock.calendar).map_err(RangeError::Pair)
    }
}

fn end_of_range(what: &'static str, arg: &[u8], clock: Clock<'_>) -> Result<TimeSpec, RangeError> {
    spec(arg, clock).map_err(|why| RangeError::Time { what, why })
}

/// One time in AT syntax.
///
/// # Errors
/// [`AtError`].
pub fn spec(arg: &[u8], clock: Clock<'_>) -> Result<TimeSpec, AtError> {
    TimeSpec::parse(&String::from_utf8_lossy(arg), clock.now, clock.calendar)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rrd::when::calendar::Utc;

    const FIXED: Clock<'_> = Clock { now: 1_000_000_000, calendar: &Utc };

    /// `args`: start and end, `-` for an option that is absent.
    fn check(args: &str, want: Result<(i64, i64), &str>) {
        let mut range = Range::default();
        let parts: Vec<&str> = args.split(' ').collect();
        let result = match parts[0] {
            "-" => Ok(()),
            arg => range.start(arg.as_bytes(), FIXED),
        };
        let result = result.and_then(|()| match parts[1] {
            "-" => Ok(()),
            arg => range.end(arg.as_bytes(), FIXED),
        });
        let got = result.and_then(|()| range.resolve(FIXED)).map_err(|error| error.to_string());
        assert_eq!(got, want.map_err(str::to_string), "{args}");
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
