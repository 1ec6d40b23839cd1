//! Durations: milliseconds in weeks, days, hours, minutes and seconds.

use super::number::{self, NumberFormat};

/// The format for an empty one.
const DEFAULT: &[u8] = b"%H:%02m:%02s";
/// Greatest width and precision: no duration has more digits.
const DIGITS_MAX: usize = 400;

const SECOND: f64 = 1000.0;
const MINUTE: f64 = 60.0 * SECOND;
const HOUR: f64 = 60.0 * MINUTE;
const DAY: f64 = 24.0 * HOUR;
const WEEK: f64 = 7.0 * DAY;

/// Formats a duration in milliseconds; `point` is the decimal point. `None` if the format is bad.
///
/// The sign of a negative duration precedes the whole text. Numbers are truncated.
pub(crate) fn text(format: &[u8], milliseconds: f64, point: &str) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    if milliseconds < 0.0 {
        text.push(b'-');
    }
    let size = milliseconds.abs();
    let mut rest = if format.is_empty() { DEFAULT } else { format };
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            text.push(byte);
            continue;
        }
        let zeros = rest.first() == Some(&b'0');
        let width = digits(&mut rest)?;
        let precision = match rest.strip_prefix(b".") {
            Some(after) => {
                rest = after;
                digits(&mut rest)?
            }
            None => 0,
        };
        let (&conversion, after) = rest.split_first()?;
        rest = after;
        if conversion == b'%' {
            text.push(b'%');
            continue;
        }
        let number = part(conversion, size)?;
        let power = 10f64.powi(precision as i32);
        let cut = (number * power).floor() / power;
        let cut = if cut.is_finite() { cut } else { number };
        text.extend_from_slice(&NumberFormat::fixed_point(zeros, width, precision).text(cut, b"", point));
    }
    Some(text)
}

/// The part of the duration that a letter stands for.
fn part(letter: u8, size: f64) -> Option<f64> {
    Some(match letter {
        b'W' => size / WEEK,
        b'd' => size % WEEK / DAY,
        b'D' => size / DAY,
        b'h' => size % DAY / HOUR,
        b'H' => size / HOUR,
        b'm' => size % HOUR / MINUTE,
        b'M' => size / MINUTE,
        b's' => size % MINUTE / SECOND,
        b'S' => size / SECOND,
        b'f' => size % SECOND,
        _ => return None,
    })
}

/// Takes digits, 0 if there are none; `None` if the number is too large.
fn digits(rest: &mut &[u8]) -> Option<usize> {
    let number = number::digits(rest)?.unwrap_or(0);
    (number <= DIGITS_MAX).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_is_its_part() {
        fn check(format: &str, milliseconds: f64, want: Option<&str>) {
            let got = text(format.as_bytes(), milliseconds, ".").map(|text| String::from_utf8(text).unwrap());
            assert_eq!(got.as_deref(), want, "{format}");
        }
        let all = "%W %d %D %h %H %m %M %s %S %f";
        check(all, 750.9, Some("0 0 0 0 0 0 0 0 0 750"));
        check(all, 123_456_789.0, Some("0 1 1 10 34 17 2057 36 123456 789"));
        check(all, -123_456_789.0, Some("-0 1 1 10 34 17 2057 36 123456 789"));
        check(
            all,
            1e18,
            Some("1653439153 3 11574074074 1 277777777777 46 16666666666666 40 1000000000000000 0"),
        );
        check("%.2W %.2d %.3H %.1m", 123_456_789.0, Some("0.20 1.42 34.293 17.6"));
        check("%5H|%05H|%05.1H", 123_456_789.0, Some("   34|00034|034.2"));
        check("%5.S%3%|%.15S", 12_345.0, Some("   12%|12.345000000000001"));
        check("", 5000.0, Some("0:00:05"));
        check("x%S y%S", -5000.0, Some("-x5 y5"));
        for bad in ["%", "%x", "%-5H", "%+H", "%.1", "%9999999999H"] {
            check(bad, 1.0, None);
        }
    }
}
