//! Numbers as RRDtool writes them where it does without the C library.
//!
//! Compat: xport is written by a printf of RRDtool's own. A number is divided by its power of ten, and the
//! fraction of that, times a power of ten, is rounded half up, all in doubles; so numbers near a tie, and those
//! below 2e-308, come out differently than from C. Pinned by `crates/graph/tests/xport_oracle.rs`.

use rrd::portable::{EXPONENT_MIN, power_of_ten as power, usual_exponent};

/// Digits behind the point that are written at most.
const DIGITS_MAX: usize = 19;

/// `whole.fraction` times ten to the power of `exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scientific {
    /// 0 to 9.
    pub(crate) whole: u64,
    /// So many digits as were asked for.
    pub(crate) fraction: u64,
    /// Of ten.
    pub(crate) exponent: i32,
}

/// The parts of a finite number that is not negative, with `digits` digits behind the point.
pub(crate) fn scientific(size: f64, digits: usize) -> Scientific {
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

/// C's `%.{digits}e` of a finite number that is not negative, without its exponent; and that.
pub(crate) fn scientific_text(size: f64, digits: usize) -> (String, i32) {
    let digits = digits.min(DIGITS_MAX);
    let Scientific { whole, fraction, exponent } = scientific(size, digits);
    if digits == 0 {
        return (whole.to_string(), exponent);
    }
    (format!("{whole}.{fraction:0digits$}"), exponent)
}

/// C's `%.{digits}f` of a finite number that is not negative; `None` when it does not fit into 64 bits, where
/// RRDtool ends the text.
pub(crate) fn fixed_text(size: f64, digits: usize) -> Option<String> {
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

/// `floor` of a number that is not negative. The library's is a call.
#[inline]
fn floor(size: f64) -> f64 {
    /// From here on every number is whole.
    const WHOLE: f64 = (1_u64 << 53) as f64;
    if size < WHOLE { size as i64 as f64 } else { size }
}
