//! Numbers as Python writes them, because that is what clients of Graphite know.

use std::fmt::Write;

/// Appends a float as Python's `repr`: the shortest text that reads back, with `.0` where there is no fraction, and an exponent from
/// 1e16 on and below 0.0001.
pub fn push_repr(out: &mut String, value: f64) {
    let size = value.abs();
    if !value.is_finite() {
        return out.push_str(if value.is_nan() { "nan" } else { ["-inf", "inf"][usize::from(value > 0.0)] });
    }
    // Of two shortest texts that are equally near, zmij takes the even one, as Python does and the standard library does not.
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(value);
    if let Some((digits, exponent)) = text.split_once('e') {
        return push_exponent(out, digits, exponent.parse().unwrap_or(0));
    }
    if size == 0.0 || size >= 1e-4 {
        return out.push_str(text);
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    push_exponent(out, digits, exponent.parse().unwrap_or(0));
}

fn push_exponent(out: &mut String, digits: &str, exponent: i32) {
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(out, "{digits}e{sign}{:02}", exponent.abs());
}

/// A float as Python's `repr`.
pub fn repr(value: f64) -> String {
    let mut out = String::new();
    push_repr(&mut out, value);
    out
}

/// A float as C's `%g`: six digits, without zeros at the end.
pub fn general(value: f64) -> String {
    if !value.is_finite() {
        return repr(value);
    }
    let text = format!("{value:.5e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..6).contains(&exponent) {
        let mut out = String::new();
        push_exponent(&mut out, without_zeros(digits), exponent);
        return out;
    }
    let decimals = (5 - exponent).max(0) as usize;
    without_zeros(&format!("{value:.decimals$}")).to_owned()
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// Rounds as Python's `round`: to so many decimals (negative: tens, hundreds), halves to the even neighbour.
pub fn round(value: f64, decimals: i64) -> f64 {
    if !value.is_finite() {
        return value;
    }
    match decimals {
        // More decimals than a double has.
        324.. => value,
        0.. => format!("{value:.*}", decimals as usize).parse().unwrap_or(value),
        -308..0 => {
            let unit = 10f64.powi(-decimals as i32);
            (value / unit).round_ties_even() * unit
        }
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_pythons() {
        for (value, want) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (5.0, "5.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e-7, "1.5e-07"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e300, "1e+300"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
            (123456.789, "123456.789"),
            (2_905_006_553_061_005.0 / 4.0, "726251638265251.2"),
        ] {
            assert_eq!(repr(value), want);
        }
    }

    #[test]
    fn short_floats_are_cs() {
        for (value, want) in [
            (0.0, "0"),
            (10.0, "10"),
            (0.5, "0.5"),
            (1234567.0, "1.23457e+06"),
            (100000.0, "100000"),
            (0.0001, "0.0001"),
            (0.00001234, "1.234e-05"),
            (99.99999999, "100"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(general(value), want);
        }
    }

    #[test]
    fn halves_are_rounded_to_the_even_neighbour() {
        for (value, decimals, want) in
            [(2.5, 0, 2.0), (3.5, 0, 4.0), (0.1234567, 6, 0.123457), (1250.0, -2, 1200.0), (7.0, -400, 0.0)]
        {
            assert_eq!(round(value, decimals), want);
        }
    }
}
