//! Numbers as RRDtool's own printf writes them in an xport.
//!
//! Compat: that printf divides a number by its power of ten, multiplies the fraction by another power of ten and rounds
//! half up, all in doubles. Numbers near a tie and those below 2e-308 therefore differ from C's. Pinned by
//! `crates/graph/tests/xport_oracle.rs`.

use super::{DIGITS, EXPONENT_MIN, power_of_ten as power, usual_exponent};

/// Most digits after the point.
const DIGITS_MAX: usize = 19;

/// Appends a value of an xport, which is not NaN. Allocates nothing.
#[inline]
pub fn push_value(out: &mut Vec<u8>, value: f64) {
    match super::usual(value) {
        Some(text) => out.extend_from_slice(&text),
        None => push_unusual(out, value),
    }
}

#[inline(never)]
pub(super) fn push_unusual(out: &mut Vec<u8>, value: f64) {
    if value < 0.0 {
        out.push(b'-');
    }
    if value.is_infinite() {
        out.extend_from_slice(b"inf");
        return;
    }
    let parts = scientific(value.abs(), DIGITS);
    super::push(out, parts.whole, parts.fraction, parts.exponent);
}

/// `whole.fraction` times ten to the power of `exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scientific {
    /// 0 to 9.
    whole: u64,
    /// As many digits as requested.
    fraction: u64,
    /// The power of ten.
    exponent: i32,
}

/// The parts of a finite number that is not negative, with `digits` digits after the point.
fn scientific(size: f64, digits: usize) -> Scientific {
    let (mut exponent, scaled) = usual_exponent(size).unwrap_or_else(|| {
        let exponent = if size == 0.0 { 0 } else { (size.log10().floor() as i32).max(EXPONENT_MIN) };
        (exponent, size / power(exponent))
    });
    let scale = power(digits.min(DIGITS_MAX) as i32);
    let (mut whole, mut fraction) = cut(scaled, scale);
    if whole >= 10 {
        fraction = (whole % 10) * (scale as u64 / 10) + fraction / 10;
        whole /= 10;
        exponent += 1;
    }
    Scientific { whole, fraction, exponent }
}

/// The mantissa and the exponent of `%.{digits}e` for a finite number that is not negative.
pub fn scientific_text(size: f64, digits: usize) -> (String, i32) {
    let digits = digits.min(DIGITS_MAX);
    let Scientific { whole, fraction, exponent } = scientific(size, digits);
    if digits == 0 {
        return (whole.to_string(), exponent);
    }
    (format!("{whole}.{fraction:0digits$}"), exponent)
}

/// `%.{digits}f` of a finite number that is not negative; `None` if it does not fit into 64 bits: RRDtool's text ends
/// there.
pub fn fixed_text(size: f64, digits: usize) -> Option<String> {
    let digits = digits.min(DIGITS_MAX);
    if size >= u64::MAX as f64 {
        return None;
    }
    let (whole, fraction) = cut(size, power(digits as i32));
    Some(if digits == 0 { whole.to_string() } else { format!("{whole}.{fraction:0digits$}") })
}

/// The whole part and the fraction times `scale`, rounded half up.
fn cut(size: f64, scale: f64) -> (u64, u64) {
    let whole = floor(size);
    let fraction = floor((size - whole) * scale + 0.5);
    if fraction >= scale { (whole as u64 + 1, 0) } else { (whole as u64, fraction as u64) }
}

/// `floor` of a number that is not negative; the library's is a function call.
#[inline]
fn floor(size: f64) -> f64 {
    /// From here on every number is whole.
    const WHOLE: f64 = (1_u64 << 53) as f64;
    if size < WHOLE { size as i64 as f64 } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_as_rrdtool_rounds_them() {
        fn check(value: f64, want: &str) {
            let mut out = Vec::new();
            push_value(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), want, "{value}");
        }
        check(0.0, "0.0000000000e+00");
        check(-0.0, "0.0000000000e+00");
        check(750.1702127564, "7.5017021276e+02");
        check(130.242936665, "1.3024293666e+02");
        check(145.300668405, "1.4530066841e+02");
        check(0.0366005557085, "3.6600555709e-02");
        check(9.99999999999, "1.0000000000e+01");
        check(-999999999995.0, "-1.0000000000e+12");
        check(1.5e123, "1.5000000000e+123");
        check(1e-310, "0.0100000000e-308");
        check(5e-324, "0.0000000000e-308");
        check(f64::INFINITY, "inf");
        check(f64::NEG_INFINITY, "-inf");
    }
}
