//! Times in UTC as RFC 3339 writes them.

use rrd::when::calendar::{Calendar, Civil, Utc, utc_text};

/// How many days a month has; months count from 1.
pub fn days_in_month(year: i32, month: i32) -> i32 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 31,
    }
}

/// A time in milliseconds as RFC 3339 writes it, to the second; seconds where the year has more than four digits.
pub fn text(milliseconds: i64) -> String {
    let seconds = milliseconds.div_euclid(1000);
    utc_text(seconds, 0).unwrap_or_else(|| seconds.to_string())
}

/// Reads a time of RFC 3339, in milliseconds since the epoch.
pub fn parse(text: &str) -> Option<i64> {
    let (date, rest) = text.split_once(['T', 't'])?;
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i32>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let zone = rest.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = rest.split_at(zone);
    let mut parts = clock.splitn(3, ':');
    let (hour, minute): (i32, i32) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
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
    let civil = Civil { year, month: month - 1, day, hour, minute, ..Civil::default() };
    let seconds = Utc.time(&civil) - offset * 60;
    Some(seconds * 1000 + (second * 1000.0).round() as i64)
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
    }
}
