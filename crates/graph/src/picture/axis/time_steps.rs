//! Steps through local time: the first time of a grid, and the next one.
//!
//! Compat: a step ignores changes to and from summer time. After a change, the days, months and years of a grid begin
//! at one o'clock or at eleven at night, until the clocks change back.

use rrd::when::calendar::{Calendar, Civil};

use crate::picture::options::{Interval, TimeUnit};

/// The last time of the grid that is not after `start`.
///
/// Compat: seconds, minutes, hours and months are counted from the start of the next greater unit, years from year 0.
/// Days and weeks are not counted: the grid begins with the one of `start`.
pub(super) fn first(calendar: &dyn Calendar, start: i64, every: Interval, first_weekday: u32) -> i64 {
    let mut civil = calendar.local(start);
    let count = every.count;
    let cut = |field: i32| if count == 0 { field } else { field - field.rem_euclid(count) };
    if every.unit == TimeUnit::Second {
        civil.second = cut(civil.second);
    } else {
        civil.second = 0;
    }
    match every.unit {
        TimeUnit::Second => {}
        TimeUnit::Minute => civil.minute = cut(civil.minute),
        TimeUnit::Hour => (civil.minute, civil.hour) = (0, cut(civil.hour)),
        _ => (civil.minute, civil.hour) = (0, 0),
    }
    match every.unit {
        TimeUnit::Week => civil.day -= (civil.weekday - first_weekday as i32).rem_euclid(7),
        TimeUnit::Month => (civil.day, civil.month) = (1, cut(civil.month)),
        TimeUnit::Year => (civil.day, civil.month, civil.year) = (1, 0, cut(civil.year)),
        _ => {}
    }
    calendar.time_as(&civil, civil.summer)
}

/// Most steps that are tried to find an existing time. No zone skips more.
const TRIES_MAX: usize = 100;

/// The time of the grid after `time`; one that is not later if there is none.
///
/// Compat: a step to a local time that does not exist (the C library returns -1) is joined with the next one.
pub(super) fn next(calendar: &dyn Calendar, time: i64, every: Interval) -> i64 {
    let civil = calendar.local(time);
    let summer = civil.summer;
    let steps = std::iter::successors(Some(civil), |civil| Some(add(*civil, every.unit, every.count)));
    let mut times = steps.skip(1).map(|civil| calendar.time_as(&civil, summer));
    times.by_ref().take(TRIES_MAX).find(|time| *time != -1).unwrap_or(-1)
}

fn add(mut civil: Civil, unit: TimeUnit, count: i32) -> Civil {
    let (field, count) = match unit {
        TimeUnit::Second => (&mut civil.second, count),
        TimeUnit::Minute => (&mut civil.minute, count),
        TimeUnit::Hour => (&mut civil.hour, count),
        TimeUnit::Day => (&mut civil.day, count),
        TimeUnit::Week => (&mut civil.day, count.saturating_mul(7)),
        TimeUnit::Month => (&mut civil.month, count),
        TimeUnit::Year => (&mut civil.year, count),
    };
    *field = field.saturating_add(count);
    civil
}

#[cfg(test)]
mod tests {
    use rrd::when::calendar::Utc;

    use super::*;

    const DAY: i64 = 86_400;
    /// A Sunday.
    const SUNDAY: i64 = 1_700_352_000;

    /// What Debian's rrdtool drew in the locales C and `de_DE`.
    #[test]
    fn weeks_begin_on_the_first_day_of_the_locale() {
        let week = Interval { unit: TimeUnit::Week, count: 1 };
        assert_eq!(first(&Utc, SUNDAY + 5000, week, 0), SUNDAY);
        assert_eq!(first(&Utc, SUNDAY - 5000, week, 0), SUNDAY - 7 * DAY);
        assert_eq!(first(&Utc, SUNDAY + 5000, week, 1), SUNDAY - 6 * DAY);
        assert_eq!(first(&Utc, SUNDAY + DAY, week, 1), SUNDAY + DAY);
        assert_eq!(next(&Utc, SUNDAY, week), SUNDAY + 7 * DAY);
    }
}
