//! Numbers as RRDtool's dump writes them.
//!
//! Compat: the dump's own printf calculates in doubles, so in one value of forty the eleventh digit differs from the
//! exact one. The same roundings happen here in the same order (`tests/xml_oracle.rs`).

use super::{EXPONENT_MIN, power_of_ten, usual_exponent};
use crate::format::push_e;

/// Ten to the power of the digits after the point.
const SCALE: f64 = 1e10;

/// Appends a value: NaN is `NaN`.
pub(crate) fn push_value(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
    } else if let Some(text) = super::usual(value) {
        out.extend_from_slice(&text);
    } else {
        push_parameter(out, value);
    }
}

/// Appends a parameter of an archive: NaN as C prints it.
#[inline(never)]
pub(crate) fn push_parameter(out: &mut Vec<u8>, value: f64) {
    if !value.is_finite() {
        return push_e(out, value, super::DIGITS);
    }
    if value < 0.0 {
        out.push(b'-');
    }
    let size = value.abs();
    let (mut exponent, scaled) = usual_exponent(size).unwrap_or_else(|| {
        let exponent = exponent_of(size);
        (exponent, size / power_of_ten(exponent))
    });
    let mut whole = scaled as u64;
    let rest = SCALE * (scaled - whole as f64);
    let mut fraction = rest as u64;
    if rest - fraction as f64 >= 0.5 {
        fraction += 1;
    }
    if fraction as f64 >= SCALE {
        fraction = 0;
        whole += 1;
        if whole == 10 {
            whole = 1;
            exponent += 1;
        }
    }
    if whole >= 10 {
        // The quotient was rounded up to ten, and RRDtool leaves it so.
        out.push(b'0' + (whole / 10) as u8);
        whole %= 10;
    }
    super::push(out, whole, fraction, exponent);
}

fn exponent_of(size: f64) -> i32 {
    let (mut rest, mut exponent) = (size, 0);
    while rest > 0.0 && rest < 1.0 && exponent > EXPONENT_MIN {
        rest *= 10.0;
        exponent -= 1;
    }
    while rest >= 10.0 {
        rest /= 10.0;
        exponent += 1;
    }
    exponent
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Debian's rrdtool dumped these.
    #[test]
    fn numbers_are_rounded_as_the_dump_rounds_them() {
        fn check(value: f64, want: &str) {
            let mut out = Vec::new();
            push_value(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), want);
        }
        check(87.2130907625, "8.7213090762e+01");
        check(-87.2130907625, "-8.7213090762e+01");
        check(0.0, "0.0000000000e+00");
        check(-0.0, "0.0000000000e+00");
        check(99_999.999_999_999_99, "1.0000000000e+05");
        check(1e23, "1.0000000000e+23");
        check(f64::MAX, "1.7976931349e+308");
        check(2.2e-308, "2.2000000000e-308");
        check(1e-310, "0.0100000000e-308");
        check(5e-324, "0.0000000000e-308");
        check(f64::NEG_INFINITY, "-inf");
        check(f64::NAN, "NaN");
    }
}
