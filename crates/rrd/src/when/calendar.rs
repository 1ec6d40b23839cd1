//! The calendar as an argument: seconds since the epoch to a date and a time of day, and back.
//!
//! The implementation decides about the zone and its rules: [`Utc`] is here, the host's own (`TZ` and the C
//! library) is in the crate `localtime`. Code that needs local time takes a `&dyn Calendar`.

/// Days from 1 March of year 0 to the epoch.
const EPOCH_DAYS: i64 = 719_468;
/// Days in 400 years.
const ERA_DAYS: i64 = 146_097;
/// Year 0 of C's `struct tm`.
const YEAR_BASE: i32 = 1900;
/// Seconds in a day.
const DAY: i64 = 86_400;

/// A date and a time of day. The fields are those of C's `struct tm`, except for the complete year.
///
/// [`Calendar::time`] reads only the first six and accepts values out of range, like `mktime`: the 31st of a month
/// of 30 days is the first of the next, hour -1 is eleven at night of the day before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Civil {
    /// Seconds after the minute, `0..=60`.
    pub second: i32,
    /// Minutes after the hour, `0..60`.
    pub minute: i32,
    /// Hours after midnight, `0..24`.
    pub hour: i32,
    /// Day of the month, from 1.
    pub day: i32,
    /// Months after January, `0..12`.
    pub month: i32,
    /// Year, as in 2026.
    pub year: i32,
    /// Days after Sunday, `0..7`.
    pub weekday: i32,
    /// Days after 1 January, `0..366`.
    pub year_day: i32,
    /// Seconds by which local time is ahead of UTC.
    pub utc_offset_seconds: i32,
    /// Whether summer time is in force.
    pub summer: bool,
}

/// The local time of a place.
pub trait Calendar {
    /// Local time at `time`, in seconds since the epoch. When the year does not fit into C's `struct tm`, day and
    /// month are 0 and the year is truncated.
    fn local(&self, time: i64) -> Civil;

    /// The seconds since the epoch when it is `civil` there: `mktime` with `tm_isdst` -1. Fields out of range are
    /// normalised; -1 when the C library knows no such time.
    fn time(&self, civil: &Civil) -> i64;

    /// As [`Calendar::time`], with summer time known to be in force or not: `mktime` with `tm_isdst` 1 or 0.
    fn time_as(&self, civil: &Civil, summer: bool) -> i64;
}

/// Coordinated universal time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Utc;

impl Calendar for Utc {
    fn local(&self, time: i64) -> Civil {
        let days = time.div_euclid(DAY);
        let seconds = time.rem_euclid(DAY) as i32;
        let (year, month, day) = date_of(days);
        let fits = year_fits(year);
        Civil {
            second: seconds % 60,
            minute: seconds / 60 % 60,
            hour: seconds / 3600,
            day: if fits { day } else { 0 },
            month: if fits { month } else { 0 },
            year: year as i32,
            weekday: (days + 4).rem_euclid(7) as i32,
            year_day: (days - days_of(year, 0, 1)) as i32,
            ..Civil::default()
        }
    }

    fn time(&self, civil: &Civil) -> i64 {
        let year = i64::from(civil.year.wrapping_sub(YEAR_BASE)) + i64::from(YEAR_BASE);
        let days = days_of(year, i64::from(civil.month), i64::from(civil.day));
        let seconds = i64::from(civil.hour) * 3600 + i64::from(civil.minute) * 60 + i64::from(civil.second);
        let time = days * DAY + seconds;
        if year_fits(date_of(time.div_euclid(DAY)).0) { time } else { -1 }
    }

    fn time_as(&self, civil: &Civil, _summer: bool) -> i64 {
        self.time(civil)
    }
}

/// A time as RFC 3339 text: `2026-11-22T12:09:26.5Z`, with as many digits of a second as it needs. `None` outside the
/// years 0 to 9999.
#[must_use]
pub fn utc_text(seconds: i64, nanoseconds: u32) -> Option<String> {
    let Civil { year, month, day, hour, minute, second, .. } = Utc.local(seconds);
    // A year beyond C's is truncated, and its day is 0.
    if day == 0 || !(0..10_000).contains(&year) {
        return None;
    }
    let fraction = match nanoseconds {
        0 => String::new(),
        _ => format!(".{nanoseconds:09}").trim_end_matches('0').to_owned(),
    };
    Some(format!("{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z", month + 1))
}

/// Whether the year fits into C's `struct tm`, which counts years from 1900 in 32 bits.
fn year_fits(year: i64) -> bool {
    i32::try_from(year - i64::from(YEAR_BASE)).is_ok()
}

/// Days from the epoch to `day` of the month `month` months after January of `year`; all may be out of range.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    // Counted from March, so that the leap day is the last of its year.
    let months = year * 12 + month - 2;
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12));
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5;
    era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year + day - 1 - EPOCH_DAYS
}

/// The date `days` after the epoch: year, months after January, day of the month.
fn date_of(days: i64) -> (i64, i32, i32) {
    let days = days + EPOCH_DAYS;
    let (era, of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let month = (march_month + 2) % 12;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    (year_of_era + era * 400 + i64::from(month < 2), month as i32, day as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn civil(year: i32, month: i32, day: i32, hour: i32, minute: i32, second: i32) -> Civil {
        Civil { year, month, day, hour, minute, second, ..Civil::default() }
    }

    #[test]
    fn utc_goes_there_and_back() {
        fn check(time: i64, date: Civil, weekday: i32, year_day: i32) {
            assert_eq!(Utc.local(time), Civil { weekday, year_day, ..date }, "{time}");
            assert_eq!(Utc.time(&date), time, "{date:?}");
        }
        check(0, civil(1970, 0, 1, 0, 0, 0), 4, 0);
        check(-1, civil(1969, 11, 31, 23, 59, 59), 3, 364);
        check(951_782_400, civil(2000, 1, 29, 0, 0, 0), 2, 59);
        check(1_795_262_966, civil(2026, 10, 21, 12, 9, 26), 6, 324);
        check(4_107_542_400, civil(2100, 2, 1, 0, 0, 0), 1, 59);
        check(-62_135_596_800, civil(1, 0, 1, 0, 0, 0), 1, 0);
        for days in (-800_000..800_000).step_by(97) {
            let time = days * DAY + 12_345;
            assert_eq!(Utc.time(&Utc.local(time)), time);
        }
    }

    #[test]
    fn moments_have_texts() {
        fn check(seconds: i64, nanoseconds: u32, want: &str) {
            assert_eq!(utc_text(seconds, nanoseconds).as_deref(), Some(want));
        }
        check(0, 0, "1970-01-01T00:00:00Z");
        check(-1, 500_000_000, "1969-12-31T23:59:59.5Z");
        check(1_795_349_366, 1, "2026-11-22T12:09:26.000000001Z");
        check(-62_135_596_800, 0, "0001-01-01T00:00:00Z");
        check(253_402_300_799, 0, "9999-12-31T23:59:59Z");
        assert_eq!(utc_text(253_402_300_800, 0), None);
        assert_eq!(utc_text(i64::MIN, 0), None);
    }

    #[test]
    fn fields_out_of_range_are_normalised() {
        fn check(date: Civil, want: Civil) {
            assert_eq!(Utc.time(&date), Utc.time(&want), "{date:?}");
        }
        check(civil(2026, 3, 31, 0, 0, 0), civil(2026, 4, 1, 0, 0, 0));
        check(civil(2026, 13, 1, 0, 0, 0), civil(2027, 1, 1, 0, 0, 0));
        check(civil(2026, -11, 0, 0, 0, 0), civil(2025, 0, 31, 0, 0, 0));
        check(civil(2026, 0, 1, -1, 61, -1), civil(2026, 0, 1, 0, 0, 59));
    }
}
