//! Numbers as xport writes them, which is not C's `%e` (see `portable`). Allocates nothing.

use rrd::portable;

use crate::portable::scientific;

/// Appends `value`, which is not NaN.
#[inline]
pub(super) fn push(out: &mut Vec<u8>, value: f64) {
    match portable::usual(value) {
        Some(text) => out.extend_from_slice(&text),
        None => push_unusual(out, value),
    }
}

#[inline(never)]
fn push_unusual(out: &mut Vec<u8>, value: f64) {
    if value < 0.0 {
        out.push(b'-');
    }
    if value.is_infinite() {
        out.extend_from_slice(b"inf");
        return;
    }
    let parts = scientific(value.abs(), portable::DIGITS);
    portable::push(out, parts.whole, parts.fraction, parts.exponent);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_numbers_take_no_other_way_out() {
        let mut random = 88_172_645_463_325_252_u64;
        let mut usual_count = 0;
        for round in 0..1_000_000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // Any numbers, and numbers near ties.
            let size = match round % 2 {
                0 => f64::from_bits(random >> 1),
                _ => (random >> 34) as f64 / 1e11 + 5e-12,
            };
            if let Some(text) = portable::usual(size) {
                let mut want = Vec::new();
                push_unusual(&mut want, size);
                assert_eq!(text.escape_ascii().to_string(), want.escape_ascii().to_string(), "{size:e}");
                usual_count += 1;
            }
        }
        assert!(usual_count > 600_000, "{usual_count}");
    }

    #[test]
    fn numbers_are_rounded_as_rrdtool_rounds_them() {
        fn check(value: f64, want: &str) {
            let mut out = Vec::new();
            push(&mut out, value);
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
