//! Days and hours of times, in UTC.

/// A time as a calendar shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// The year.
    pub year: i64,
    /// The month, from 1 on.
    pub month: i64,
    /// The day of the month, from 1 on.
    pub day: i64,
    /// Days since the first of January, from 1 on.
    pub day_of_year: i64,
    /// 0 is Sunday.
    pub weekday: i64,
    /// The hour.
    pub hour: i64,
    /// The minute.
    pub minute: i64,
    /// The second.
    pub second: i64,
}

impl Civil {
    /// Of so many seconds since the epoch.
    pub fn of(seconds: i64) -> Civil {
        let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        // Years that begin in March have the leap day at their end; 400 of them have 146,097 days.
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_march_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_march_year + 2) / 153;
        let day = day_of_march_year - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let before: i64 = (1..month).map(|month| days_in_month(year, month)).sum();
        Civil {
            year,
            month,
            day,
            day_of_year: before + day,
            weekday: (days + 4).rem_euclid(7),
            hour: second / 3600,
            minute: second % 3600 / 60,
            second: second % 60,
        }
    }
}

/// How many days a month has.
pub fn days_in_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 31,
    }
}

/// A time in milliseconds as RFC 3339 writes it, to the second.
pub fn text(milliseconds: i64) -> String {
    let c = Civil::of(milliseconds.div_euclid(1000));
    format!("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", c.year, c.month, c.day, c.hour, c.minute, c.second)
}

/// Reads a time of RFC 3339, in milliseconds since the epoch.
pub fn parse(text: &str) -> Option<i64> {
    let (date, rest) = text.split_once(['T', 't'])?;
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let zone = rest.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = rest.split_at(zone);
    let mut parts = clock.splitn(3, ':');
    let (hour, minute): (i64, i64) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let second: f64 = parts.next()?.parse().ok()?;
    let in_range = (1..=12).contains(&month)
        && (0..=9999).contains(&year)
        && (1..=days_in_month(year, month)).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0.0..60.0).contains(&second);
    if !in_range {
        return None;
    }
    let offset = match zone.as_bytes() {
        [b'Z' | b'z'] => 0,
        [sign, ..] => {
            let (hours, minutes) = zone.get(1..)?.split_once(':')?;
            let minutes = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
            if *sign == b'-' { -minutes } else { minutes }
        }
        [] => return None,
    };
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + (minute - offset) * 60;
    Some(seconds * 1000 + (second * 1000.0).round() as i64)
}

/// Days from the epoch to a date.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let shifted = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (shifted.div_euclid(400), shifted.rem_euclid(400));
    let march_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_go_both_ways() {
        for (time, want) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
        ] {
            assert_eq!(text(time * 1000), want);
            assert_eq!(parse(want), Some(time * 1000));
        }
        assert_eq!(parse("2000-01-01T01:30:00.25+01:30"), Some(946_684_800_250));
        for bad in ["2000-02-30T00:00:00Z", "2000-01-01", "x", "2000-01-01T00:00:00", "2000-01-01T24:00:00Z"]
        {
            assert_eq!(parse(bad), None, "{bad}");
        }
        let day = Civil::of(951_782_400);
        assert_eq!((day.weekday, day.day_of_year), (2, 60));
    }
}
