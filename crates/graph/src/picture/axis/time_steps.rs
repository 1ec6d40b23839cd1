//! Steps in local time: the first time of a grid, and the one after another.
//!
//! Compat: a step is taken as if the clocks did not change under it. So once they have, the days, months and years
//! of a grid begin at one o'clock, or at eleven at night, until they change back.

use rrd::when::calendar::{Calendar, Civil};

use crate::picture::options::{Every, TimeUnit};

/// The last time of the grid of `every` that is not after `start`.
///
/// Compat: seconds, minutes, hours, months and years are counted from the start of the next greater unit (years
/// from year 0); days and weeks are not counted at all: the grid begins with the one of `start`.
pub(super) fn first(calendar: &dyn Calendar, start: i64, every: Every, first_weekday: u32) -> i64 {
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

/// Steps that are tried for a time that there is. The clocks of no zone skip more.
const TRIES_MAX: usize = 100;

/// The time of the grid after `time`, which is one of it. Not later when there is none.
///
/// Compat: steps that end where the C library knows no time (it says -1) are taken together with the next.
pub(super) fn next(calendar: &dyn Calendar, time: i64, every: Every) -> i64 {
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
        let week = Every { unit: TimeUnit::Week, count: 1 };
        assert_eq!(first(&Utc, SUNDAY + 5000, week, 0), SUNDAY);
        assert_eq!(first(&Utc, SUNDAY - 5000, week, 0), SUNDAY - 7 * DAY);
        assert_eq!(first(&Utc, SUNDAY + 5000, week, 1), SUNDAY - 6 * DAY);
        assert_eq!(first(&Utc, SUNDAY + DAY, week, 1), SUNDAY + DAY);
        assert_eq!(next(&Utc, SUNDAY, week), SUNDAY + 7 * DAY);
    }
}
