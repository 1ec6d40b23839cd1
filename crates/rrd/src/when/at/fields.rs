//! The fields of a time under construction, with C's arithmetic.

use crate::when::calendar::{Calendar, Civil};

/// Year 0 of C's `struct tm`.
const YEAR_BASE: i32 = 1900;

/// What the text sets and offsets change: the fields of `struct tm` that `mktime` reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    second: i32,
    minute: i32,
    pub(super) hour: i32,
    pub(super) day: i32,
    /// Months after January.
    pub(super) month: i32,
    /// Years after 1900.
    pub(super) year: i32,
}

impl Fields {
    pub(super) fn of(civil: &Civil) -> Fields {
        Fields {
            second: civil.second,
            minute: civil.minute,
            hour: civil.hour,
            day: civil.day,
            month: civil.month,
            year: civil.year.wrapping_sub(YEAR_BASE),
        }
    }

    pub(super) fn set_time_of_day(&mut self, hour: i32, minute: i32) {
        (self.hour, self.minute, self.second) = (hour, minute, 0);
    }

    /// These fields, with the days, months and years of `other` added.
    pub(super) fn with_dates_of(mut self, other: &Fields) -> Fields {
        self.day = self.day.wrapping_add(other.day);
        self.month = self.month.wrapping_add(other.month);
        self.year = self.year.wrapping_add(other.year);
        self
    }

    /// As a date and time of day.
    pub(super) fn civil(&self) -> Civil {
        Civil {
            second: self.second,
            minute: self.minute,
            hour: self.hour,
            day: self.day,
            month: self.month,
            year: self.year.wrapping_add(YEAR_BASE),
            ..Civil::default()
        }
    }

    /// Seconds since the epoch; -1 when there is no such time. `summer`: whether summer time is in force, if
    /// known.
    pub(super) fn time(&self, summer: Option<bool>, calendar: &dyn Calendar) -> i64 {
        let civil = self.civil();
        match summer {
            None => calendar.time(&civil),
            Some(summer) => calendar.time_as(&civil, summer),
        }
    }
}
