//! Times as Graphite writes them: `-1h`, `now`, `today`, `noon yesterday`, `04:00_20261126`, `20261126`, `11/26/26`, seconds since
//! the epoch.

use rrd::when::calendar::{Calendar, Civil};

/// A day in seconds.
const DAY: i64 = 86_400;
/// The furthest time from the epoch, in seconds: 10,000 years.
const TIME_MAX: i64 = 400_000_000_000;
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Seconds since the epoch at `text`, when it is `now`.
///
/// # Errors
/// What is wrong with it.
pub fn parse(text: &str, now: i64, calendar: &dyn Calendar) -> Result<i64, String> {
    let plain: String =
        text.to_lowercase().chars().filter(|c| !matches!(c, '_' | ',') && !c.is_whitespace()).collect();
    if !plain.is_empty() && plain.bytes().all(|byte| byte.is_ascii_digit()) && date(&plain).is_none() {
        return plain.parse().ok().filter(|time| *time <= TIME_MAX).ok_or_else(|| too_far(text));
    }
    let offset_at = plain.find(['+', '-']).unwrap_or(plain.len());
    let (reference, offset) = plain.split_at(offset_at);
    let time = reference_time(reference, now, calendar).map_err(|error| format!("{text:?}: {error}"))?;
    let offset = if offset.is_empty() { 0 } else { parse_offset(offset)? };
    Some(time.saturating_add(offset)).filter(|time| time.abs() <= TIME_MAX).ok_or_else(|| too_far(text))
}

fn too_far(text: &str) -> String {
    format!("{text:?} is too far from now")
}

/// Seconds of an offset: `-1h`, `+2d`, `1d12h`.
///
/// # Errors
/// What is wrong with it.
pub fn parse_offset(text: &str) -> Result<i64, String> {
    let error =
        || format!("{text:?} is no span of time: write it as -1h or 30min, with s, min, h, d, w, mon or y");
    let (sign, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        Some(byte) if byte.is_ascii_digit() => (1, text),
        _ => return Err(error()),
    };
    if rest.is_empty() {
        return Err(error());
    }
    let mut seconds = 0i64;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let count: i64 = rest[..digits].parse().map_err(|_| error())?;
        rest = &rest[digits..];
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let unit = unit_seconds(&rest[..letters]).ok_or_else(error)?;
        rest = &rest[letters..];
        seconds = count.checked_mul(unit).and_then(|part| seconds.checked_add(part)).ok_or_else(error)?;
    }
    Some(sign * seconds).filter(|seconds| seconds.abs() <= TIME_MAX).ok_or_else(error)
}

/// The seconds of a unit, which its first letters say.
pub fn unit_seconds(unit: &str) -> Option<i64> {
    let units =
        [("s", 1), ("min", 60), ("h", 3600), ("d", DAY), ("w", 7 * DAY), ("mon", 30 * DAY), ("y", 365 * DAY)];
    units.iter().find(|(prefix, _)| unit.starts_with(prefix)).map(|(_, seconds)| *seconds)
}

/// A time of day and a day.
fn reference_time(text: &str, now: i64, calendar: &dyn Calendar) -> Result<i64, String> {
    if text.is_empty() || text == "now" {
        return Ok(now);
    }
    let (hour, minute, rest) = time_of_day(text)?;
    let today = calendar.local(now);
    let mut civil = Civil { hour, minute, second: 0, ..today };
    match rest {
        "" | "today" => {}
        "yesterday" => civil.day -= 1,
        "tomorrow" => civil.day += 1,
        _ => (civil.year, civil.month, civil.day) = day(rest, &today)?,
    }
    Ok(calendar.time(&civil))
}

/// Hour and minute at the beginning of a text, and the rest of it.
fn time_of_day(text: &str) -> Result<(i32, i32, &str), String> {
    for (word, hour) in [("noon", 12), ("midnight", 0), ("teatime", 16)] {
        if let Some(rest) = text.strip_prefix(word) {
            return Ok((hour, 0, rest));
        }
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let after = &text[digits..];
    if !(1..=2).contains(&digits)
        || !(after.starts_with([':']) || after.starts_with("am") || after.starts_with("pm"))
    {
        return Ok((0, 0, text));
    }
    let mut hour: i32 = text[..digits].parse().unwrap_or(0);
    let (mut minute, mut rest) = (0, after);
    if let Some(clock) = after.strip_prefix(':') {
        let digits = clock.bytes().take(2).take_while(u8::is_ascii_digit).count();
        minute = clock[..digits].parse().map_err(|_| "minutes are missing after the colon".to_owned())?;
        rest = &clock[digits..];
    }
    if let Some(after) = rest.strip_prefix("am") {
        rest = after;
    } else if let Some(after) = rest.strip_prefix("pm") {
        hour = (hour + 12) % 24;
        rest = after;
    }
    if hour > 23 || minute > 59 {
        return Err(format!("{hour}:{minute:02} is no time of day"));
    }
    Ok((hour, minute, rest))
}

/// Year, month (from 0) and day of `YYYYMMDD`.
fn date(text: &str) -> Option<(i32, i32, i32)> {
    if text.len() != 8 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = |range: std::ops::Range<usize>| text[range].parse::<i32>().unwrap_or(0);
    let (year, month, day) = (part(0..4), part(4..6), part(6..8));
    (year > 1900 && month < 13 && day < 32).then_some((year, month - 1, day))
}

fn day(text: &str, today: &Civil) -> Result<(i32, i32, i32), String> {
    let wrong = || format!("{text} is no day: give today, a weekday, 20261126, 11/26/2026 or november26");
    let found = if text.matches('/').count() == 2 {
        let parts: Vec<i32> = text.split('/').map_while(|part| part.parse().ok()).collect();
        let &[month, day, year] = &parts[..] else { return Err(wrong()) };
        let year = if (0..1900).contains(&year) { year + 1900 } else { year };
        (if year < 1970 { year + 100 } else { year }, month - 1, day)
    } else if text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        date(text).ok_or_else(wrong)?
    } else {
        let head = text.get(..3).ok_or_else(wrong)?;
        if let Some(month) = MONTHS.iter().position(|month| *month == head) {
            let digits = text.bytes().rev().take(2).take_while(u8::is_ascii_digit).count();
            let day = text[text.len() - digits..].parse().map_err(|_| wrong())?;
            (today.year, month as i32, day)
        } else {
            let weekday = WEEKDAYS.iter().position(|day| *day == head).ok_or_else(wrong)?;
            (today.year, today.month, today.day - (today.weekday - weekday as i32).rem_euclid(7))
        }
    };
    let is_day = (1..10_000).contains(&found.0) && (0..12).contains(&found.1) && (-6..32).contains(&found.2);
    if is_day { Ok(found) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use rrd::when::calendar::Utc;

    use super::*;

    /// 2026-11-26 (a Thursday) 08:07:39 UTC.
    const NOW: i64 = 1_795_680_459;
    const TODAY: i64 = NOW - 8 * 3600 - 7 * 60 - 39;

    #[test]
    fn times_are_graphites() {
        for (text, want) in [
            ("now", NOW),
            ("", NOW),
            ("-1h", NOW - 3600),
            ("now-1d", NOW - DAY),
            ("now+90s", NOW + 90),
            ("-1d12h", NOW - 36 * 3600),
            ("-2mon", NOW - 60 * DAY),
            ("-5min", NOW - 300),
            ("1700000000", 1_700_000_000),
            ("today", TODAY),
            ("yesterday", TODAY - DAY),
            ("midnight", TODAY),
            ("noon yesterday", TODAY - DAY / 2),
            ("teatime tomorrow", TODAY + DAY + 16 * 3600),
            ("6pm today", TODAY + 18 * 3600),
            ("6:30am", TODAY + 6 * 3600 + 1800),
            ("04:00_20261125", TODAY - DAY + 4 * 3600),
            ("20261126", TODAY),
            ("11/25/26", TODAY - DAY),
            ("11/25/2026-1h", TODAY - DAY - 3600),
            ("november25", TODAY - DAY),
            ("monday", TODAY - 3 * DAY),
            ("friday", TODAY - 6 * DAY),
            ("midnight+1h", TODAY + 3600),
        ] {
            assert_eq!(parse(text, NOW, &Utc), Ok(want), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "-1x",
            "-h",
            "-",
            "tomorrowx",
            "25:00",
            "99999999999999999999",
            "-9999999999y",
            "1/2",
            "novx",
            "12:x",
        ] {
            assert!(parse(text, NOW, &Utc).is_err(), "{text}");
        }
        assert!(parse_offset("").is_err() && parse_offset("1é").is_err());
        assert_eq!(parse_offset("1h30min"), Ok(5400));
    }
}
