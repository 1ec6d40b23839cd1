//! Times as people write them: RRDtool's AT-style time specification (`rrdfetch(1)`).
//!
//! `noon yesterday`, `end-2h`, `20261121 8am`, seconds since the epoch. What is accepted, and the messages for
//! what is not, were found by running Debian's `rrdtool`, whose manual promises more than the program does;
//! `crates/localtime/tests/at_oracle.rs` compares us with the program. Dates go through a [`Calendar`]: days and
//! longer units follow the clock on the wall, hours and shorter ones do not.

mod error;
mod fields;
mod parser;
mod scanner;

pub use error::{AtError, PairError};

use super::calendar::{Calendar, Civil};
use fields::Fields;

/// What a time specification counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reference {
    /// The calendar.
    Absolute,
    /// The start of the range it belongs to.
    Start,
    /// The end of that range.
    End,
    /// The epoch.
    Epoch,
}

/// A parsed time specification.
#[derive(Clone, Copy, Debug)]
pub struct TimeSpec {
    reference: Reference,
    /// A date and time of day, or what to add to one.
    fields: Fields,
    summer: Option<bool>,
    /// Seconds to add.
    offset: i64,
}

impl TimeSpec {
    /// Reads `text`; `now` is in seconds since the epoch.
    ///
    /// # Errors
    /// All of [`AtError`] but [`AtError::NothingToReferTo`].
    pub fn parse(text: &str, now: i64, calendar: &dyn Calendar) -> Result<TimeSpec, AtError> {
        parser::parse(text, now, calendar)
    }

    /// The time in seconds since the epoch, without a start or end to refer to.
    ///
    /// # Errors
    /// [`AtError::NothingToReferTo`].
    pub fn alone(&self, calendar: &dyn Calendar) -> Result<i64, AtError> {
        match self.reference {
            Reference::Start | Reference::End => Err(AtError::NothingToReferTo),
            Reference::Absolute | Reference::Epoch => Ok(self.time(calendar)),
        }
    }

    /// Compat: `epoch` is what C makes of a date that is all zeroes, the last day of 1899 in local time. The
    /// manual means 1970.
    fn time(&self, calendar: &dyn Calendar) -> i64 {
        self.fields.time(self.summer, calendar).wrapping_add(self.offset)
    }

    /// The time, counted from `base`.
    ///
    /// Compat: uses the clock as it is set at `base`. A day before the first noon of summer time is eleven.
    fn time_from(&self, base: i64, calendar: &dyn Calendar) -> i64 {
        let local = calendar.local(base);
        let fields = Fields::of(&local).with_dates_of(&self.fields);
        fields.time(Some(local.summer), calendar).wrapping_add(self.offset)
    }
}

/// The parts of a time specification, for callers with a structure of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    /// What it counts from: 0 = the calendar, 1 = the start of its range, 2 = the end, 3 = the epoch.
    pub reference: u8,
    /// Seconds to add.
    pub offset: i64,
    /// A date and time of day, or what to add to one (then day, month and year may be 0 or less, and years count
    /// from 1900).
    pub civil: Civil,
    /// Whether summer time is in force, if known.
    pub summer: Option<bool>,
}

impl TimeSpec {
    /// Its parts.
    pub fn parts(&self) -> Parts {
        let reference = match self.reference {
            Reference::Absolute => 0,
            Reference::Start => 1,
            Reference::End => 2,
            Reference::Epoch => 3,
        };
        Parts { reference, offset: self.offset, civil: self.fields.civil(), summer: self.summer }
    }

    /// The specification with these parts; an unknown reference means the calendar.
    pub fn from_parts(parts: &Parts) -> TimeSpec {
        let reference = match parts.reference {
            1 => Reference::Start,
            2 => Reference::End,
            3 => Reference::Epoch,
            _ => Reference::Absolute,
        };
        TimeSpec { reference, fields: Fields::of(&parts.civil), summer: parts.summer, offset: parts.offset }
    }
}

/// The time of `text` by itself, as for `create --start` and `update AT@value`.
///
/// # Errors
/// [`AtError`]. RRDtool prefixes all but [`AtError::NothingToReferTo`] with "start time: " or "ds time: TEXT: ".
pub fn resolve(text: &str, now: i64, calendar: &dyn Calendar) -> Result<i64, AtError> {
    TimeSpec::parse(text, now, calendar)?.alone(calendar)
}

/// Start and end of a range, in seconds since the epoch; either may refer to the other.
///
/// # Errors
/// [`PairError`].
pub fn resolve_pair(
    start: &str,
    end: &str,
    now: i64,
    calendar: &dyn Calendar,
) -> Result<(i64, i64), PairError> {
    let start = TimeSpec::parse(start, now, calendar).map_err(PairError::Start)?;
    let end = TimeSpec::parse(end, now, calendar).map_err(PairError::End)?;
    range(&start, &end, calendar)
}

/// [`resolve_pair`] for parsed specifications.
///
/// # Errors
/// [`PairError`], except for errors of a single text.
pub fn range(start: &TimeSpec, end: &TimeSpec, calendar: &dyn Calendar) -> Result<(i64, i64), PairError> {
    match (start.reference, end.reference) {
        (Reference::End, Reference::Start) => Err(PairError::ToEachOther),
        (Reference::Start, _) => Err(PairError::StartToItself),
        (_, Reference::End) => Err(PairError::EndToItself),
        (Reference::End, _) => {
            let end = end.time(calendar);
            Ok((start.time_from(end, calendar), end))
        }
        (_, Reference::Start) => {
            let start = start.time(calendar);
            Ok((start, end.time_from(start, calendar)))
        }
        _ => Ok((start.time(calendar), end.time(calendar))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::when::calendar::Utc;

    /// 2026-11-21 18:13:26, a Saturday.
    const NOW: i64 = 1_795_284_806;

    #[test]
    fn times_are_read() {
        fn check(text: &str, want: i64) {
            assert_eq!(resolve(text, NOW, &Utc), Ok(want), "{text:?}");
        }
        check("now", NOW);
        check("-1d", NOW - 86_400);
        check("now-1h30m", NOW - 5_400);
        check("-5m", 1_782_065_606);
        check("-6m", NOW - 360);
        check("noon yesterday", 1_795_176_000);
        check("8am Monday", 1_794_816_000);
        check("00:00 01/31/26", 1_769_817_600);
        check("31.01.2026", 1_769_817_600);
        check("20251121 12:45", 1_763_729_100);
        check("931200300", 931_200_300);
        check("NOON_feb,30 -1mon", 1_769_774_400);
    }

    #[test]
    fn texts_that_are_no_time_are_refused() {
        fn check(text: &str, want: AtError) {
            assert_eq!(resolve(text, NOW, &Utc), Err(want), "{text:?}");
        }
        check("foo 5", AtError::Unparsable("foo 5".to_string()));
        check("noon foo 5", AtError::Trailing("foo 5".to_string()));
        check("end", AtError::OffsetMissing);
        check("end-1d", AtError::NothingToReferTo);
        check("12345", AtError::Month(12_345));
        check("noon jan 5 38", AtError::BeforeEpoch);
    }

    #[test]
    fn ranges() {
        fn check(start: &str, end: &str, want: Result<(i64, i64), PairError>) {
            assert_eq!(resolve_pair(start, end, NOW, &Utc), want, "{start:?} {end:?}");
        }
        check("end-1d", "now", Ok((NOW - 86_400, NOW)));
        check("1000000000", "s+1mon", Ok((1_000_000_000, 1_002_592_000)));
        check("s+1", "e+1", Err(PairError::StartToItself));
        check("0", "e+1", Err(PairError::EndToItself));
        check("e+1", "s+1", Err(PairError::ToEachOther));
        check("x", "y", Err(PairError::Start(AtError::Unparsable("x".to_string()))));
    }
}
