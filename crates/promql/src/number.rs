//! Numbers and durations as PromQL writes them.

use std::fmt::Write;

/// A number as Prometheus' answers write it: the shortest digits that read back, without an exponent between 1e-6 and 1e21.
pub fn text(value: f64) -> String {
    let mut out = String::new();
    write(&mut out, value);
    out
}

/// Appends what [`text`] says.
///
/// Digits are zmij's: it takes a fourth of the time of the standard library, and of two shortest texts that are equally near it takes the
/// even one, as Go does (726251638265251.25 ends in `.2`; the standard library says `.3`).
pub fn write(out: &mut String, value: f64) {
    let size = value.abs();
    if !value.is_finite() {
        return out.push_str(if value.is_nan() { "NaN" } else { ["-Inf", "+Inf"][usize::from(value > 0.0)] });
    }
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(value);
    match text.split_once('e') {
        None if size == 0.0 || size >= 1e-6 => out.push_str(text.strip_suffix(".0").unwrap_or(text)),
        // It is whole: no fraction has so many digits.
        Some((digits, exponent)) if (1.0..1e21).contains(&size) => {
            let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
            let zeros = exponent.parse::<usize>().unwrap_or(0).saturating_sub(fraction.len());
            out.extend([whole, fraction]);
            out.extend(std::iter::repeat_n('0', zeros));
        }
        _ if (1e-6..1e21).contains(&size) => {
            // Writing to a text cannot fail.
            let _ = write!(out, "{value}");
        }
        _ => out.push_str(&with_exponent(value)),
    }
}

/// A number with an exponent of at least two digits.
pub(crate) fn with_exponent(value: f64) -> String {
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(value);
    let short = if text.contains('e') { text.to_owned() } else { format!("{value:e}") };
    let (digits, exponent) = short.split_once('e').unwrap_or((&short, "0"));
    let sign = if exponent.starts_with('-') { '-' } else { '+' };
    format!("{digits}e{sign}{:0>2}", exponent.trim_start_matches(['-', '+']))
}

/// A number as OpenMetrics writes bounds and quantiles: one that is whole with `.0`.
pub fn open_metrics(value: f64) -> String {
    let text = text(value);
    if value.is_finite() && !text.contains(['.', 'e']) { text + ".0" } else { text }
}

/// A number as labels have it: never with an exponent.
pub fn plain(value: f64) -> String {
    if value.is_finite() { format!("{value}") } else { text(value) }
}

/// A number as messages have it: with an exponent where it is below 1e-4 or from 1e21 on.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if (1e-6..1e-4).contains(&size) { with_exponent(value) } else { text(value) }
}

/// Reads a number: decimal, `0x` with digits, `0` with octal digits, underscores between digits, `Inf` and `NaN` in any case.
pub fn parse(text: &str) -> Option<f64> {
    let lower = text.to_ascii_lowercase();
    match lower.as_str() {
        "inf" | "+inf" => return Some(f64::INFINITY),
        "-inf" => return Some(f64::NEG_INFINITY),
        "nan" => return Some(f64::NAN),
        _ => {}
    }
    let digits = lower.replace('_', "");
    if let Some(hex) = digits.strip_prefix("0x") {
        return parse_hex(hex);
    }
    let is_octal = digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
    if is_octal && let Ok(value) = i64::from_str_radix(&digits, 8) {
        return Some(value as f64);
    }
    if !digits.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+')) {
        return None;
    }
    digits.parse().ok()
}

/// Hexadecimal digits, perhaps with a point and a binary exponent after `p`.
fn parse_hex(text: &str) -> Option<f64> {
    let (digits, exponent) = match text.split_once('p') {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0;
    for c in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(c.to_digit(16)?);
    }
    Some(value * f64::powi(2.0, exponent - 4 * i32::try_from(fraction.len()).ok()?))
}

/// Units of durations with their milliseconds, the longest first.
const UNITS: [(&str, i64); 7] = [
    ("y", 365 * 24 * 3_600_000),
    ("w", 7 * 24 * 3_600_000),
    ("d", 24 * 3_600_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];

/// Reads a duration such as `1h30m`, in milliseconds: units once each, the longest first.
pub fn parse_duration(text: &str) -> Option<i64> {
    if text == "0" {
        return Some(0);
    }
    let (mut rest, mut next, mut total) = (text, 0, 0i64);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let count: i64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let unit = UNITS.iter().position(|(name, _)| *name == &rest[..letters])?;
        if unit < next {
            return None;
        }
        next = unit + 1;
        total = total.checked_add(count.checked_mul(UNITS[unit].1)?)?;
        rest = &rest[letters..];
    }
    Some(total)
}

/// A duration of so many milliseconds as it is written.
pub fn duration_text(milliseconds: i64) -> String {
    if milliseconds == 0 {
        return "0s".to_owned();
    }
    let (mut rest, mut out) = (milliseconds.unsigned_abs(), String::new());
    if milliseconds < 0 {
        out.push('-');
    }
    for (index, (unit, size)) in UNITS.iter().enumerate() {
        let size = size.unsigned_abs();
        let count = rest / size;
        // Years, weeks and days stand alone: 365d is 1y, but 366d is not 1y1d.
        if count == 0 || (index < 3 && !rest.is_multiple_of(size)) {
            continue;
        }
        out.push_str(&format!("{count}{unit}"));
        rest -= count * size;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_prometheus_writes_them() {
        for (value, want) in [
            (1.0, "1"),
            (-0.5, "-0.5"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e-7, "1.5e-07"),
            (1e-6, "0.000001"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Inf"),
            (1e100, "1e+100"),
        ] {
            assert_eq!(text(value), want);
        }
    }

    #[test]
    fn digits_are_the_shortest_that_read_back() {
        let mut random = testkit::random::Random::new(7);
        for _ in 0..100_000 {
            let value = f64::from_bits(random.below(1 << 52) | (random.between(1023 - 20, 1023 + 68) << 52));
            let short = (value * 100.0).round() / 100.0;
            for value in [value, -value, short, value.trunc()].into_iter().filter(|value| value.abs() >= 1e-6)
            {
                let (ours, standard) = (text(value), format!("{value}"));
                assert_eq!(ours.len(), standard.len(), "{ours} {standard}");
                assert_eq!(ours.parse(), Ok(value));
            }
        }
    }

    #[test]
    fn of_two_shortest_digits_the_even_one_counts() {
        // What Go's strconv.FormatFloat says.
        for (value, want) in [
            (2_905_006_553_061_005.0 / 4.0, "726251638265251.2"),
            (2_905_006_553_061_007.0 / 4.0, "726251638265251.8"),
            (4_503_599_627_370_497.5, "4503599627370498"),
            (1_125_899_906_842_624.125, "1125899906842624"),
            (123_456_789_012_345_680_000.0, "123456789012345680000"),
            (0.000_001_25, "0.00000125"),
        ] {
            assert_eq!(text(value), want);
        }
    }

    #[test]
    fn numbers_are_read_in_every_spelling() {
        for (text, want) in [
            ("0x1F", 31.0),
            ("017", 15.0),
            ("1e3", 1000.0),
            (".5", 0.5),
            ("1_000", 1000.0),
            ("iNf", f64::INFINITY),
        ] {
            assert_eq!(parse(text), Some(want), "{text}");
        }
        assert_eq!((parse("0x"), parse("x"), parse("infinity")), (None, None, None));
    }

    #[test]
    fn durations_go_both_ways() {
        for (text, want) in
            [("1h30m", 5_400_000), ("1y2w3d4h5m6s7ms", 33_019_506_007), ("500ms", 500), ("0", 0)]
        {
            assert_eq!(parse_duration(text), Some(want), "{text}");
        }
        for text in ["", "1", "m", "1m1h", "1h1h", "5x", "99999999999y"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
        assert_eq!((duration_text(5_400_000), duration_text(86_400_000)), ("1h30m".into(), "1d".into()));
        assert_eq!((duration_text(90_000_000), duration_text(-1)), ("25h".into(), "-1ms".into()));
    }
}
