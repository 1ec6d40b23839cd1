//! Numbers as RRDtool writes them: C's `%.Ne`, digit for digit.
//!
//! Every digit is exact, as glibc's are: where a number is an integer of at most 18 digits (most rates of
//! counters and gauges are, or are short fractions) or an exact scaling fits in 128 bits the digits come from
//! integer arithmetic; for all others from the standard library. Allocates nothing.

use std::io::Write;

/// Digits behind the point of `rrdtool fetch`, `info`, `dump`.
pub const DIGITS_TOOL: usize = 10;
/// Digits behind the point of the daemon's FETCH.
pub const DIGITS_FETCH: usize = 17;
/// Most digits behind the point that [`push_e`] gives.
const DIGITS_MAX: usize = 17;

/// Appends `value` as C's `%.{digits}e`: two digits of exponent at least, NaN as `nan` or `-nan`, infinity as
/// `inf` or `-inf`. `digits` is at most 17.
pub fn push_e(out: &mut Vec<u8>, value: f64, digits: usize) {
    if !value.is_finite() {
        out.extend_from_slice(match (value.is_nan(), value.is_sign_negative()) {
            (true, false) => b"nan",
            (true, true) => b"-nan",
            (false, false) => b"inf",
            (false, true) => b"-inf",
        });
        return;
    }
    let digits = digits.min(DIGITS_MAX);
    if value.is_sign_negative() {
        out.push(b'-');
    }
    match decimal(value.abs(), digits) {
        Some((number, exponent)) => push_parts(out, number, exponent, digits),
        None => push_by_library(out, value.abs(), digits),
    }
}

/// Appends `value` as `info`, `dump` and `xport` write it: [`push_e`] with ten digits, but `NaN` for NaN.
pub fn push_tool(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
    } else {
        push_e(out, value, DIGITS_TOOL);
    }
}

/// [`push_tool`] as a text.
pub fn tool_text(value: f64) -> String {
    let mut out = Vec::with_capacity(24);
    push_tool(&mut out, value);
    String::from_utf8_lossy(&out).into_owned()
}

/// `number` has `digits + 1` decimal digits, the first of which stands for `10^exponent`.
fn push_parts(out: &mut Vec<u8>, number: u64, exponent: i32, digits: usize) {
    let mut text = [b'0'; DIGITS_MAX + 2];
    let (mut rest, mut end) = (number, digits + 2);
    while end > 2 {
        let pair = (rest % 100) as usize * 2;
        text[end - 2..end].copy_from_slice(&PAIRS[pair..pair + 2]);
        rest /= 100;
        end -= 2;
    }
    if end == 2 {
        text[1] = b'0' + (rest % 10) as u8;
    }
    text[0] = text[1];
    if digits == 0 {
        out.push(text[0]);
    } else {
        text[1] = b'.';
        out.extend_from_slice(&text[..digits + 2]);
    }
    push_exponent(out, exponent);
}

fn push_exponent(out: &mut Vec<u8>, exponent: i32) {
    out.push(b'e');
    out.push(if exponent < 0 { b'-' } else { b'+' });
    let size = exponent.unsigned_abs();
    if size >= 100 {
        out.push(b'0' + (size / 100) as u8);
    }
    out.push(b'0' + (size / 10 % 10) as u8);
    out.push(b'0' + (size % 10) as u8);
}

/// The standard library's digits are exact too; only its exponent looks different.
fn push_by_library(out: &mut Vec<u8>, value: f64, digits: usize) {
    let start = out.len();
    if write!(out, "{value:.digits$e}").is_err() {
        unreachable!("writing to a Vec does not fail");
    }
    let mark = out[start..].iter().rposition(|&byte| byte == b'e').map_or(out.len(), |at| start + at);
    let exponent = std::str::from_utf8(&out[mark..]).ok().and_then(|text| text.get(1..)?.parse().ok());
    out.truncate(mark);
    push_exponent(out, exponent.unwrap_or(0));
}

/// `00` to `99`: two digits a division.
const PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut index = 0;
    while index < 100 {
        pairs[index * 2] = b'0' + (index / 10) as u8;
        pairs[index * 2 + 1] = b'0' + (index % 10) as u8;
        index += 1;
    }
    pairs
};

const POWERS: [u64; 20] = {
    let mut powers = [1; 20];
    let mut index = 1;
    while index < 20 {
        powers[index] = powers[index - 1] * 10;
        index += 1;
    }
    powers
};

/// The first `digits + 1` decimal digits, correctly rounded (ties to even, as glibc), and the exponent of
/// the first one; `None` where 128 bits do not do.
///
/// `value = mantissa * 2^power`. For a power from 0 down to -75 it is `mantissa / 2^-power` exactly, and
/// multiplying the mantissa (53 bits) by a power of ten of at most 75 bits (22 digits) stays in 128 bits.
fn decimal(value: f64, digits: usize) -> Option<(u64, i32)> {
    const FRACTION_BITS: u32 = 52;
    let bits = value.to_bits();
    if bits == 0 {
        return Some((0, 0));
    }
    let biased = (bits >> FRACTION_BITS) as i32;
    if biased == 0 {
        return None;
    }
    let mantissa = bits & ((1 << FRACTION_BITS) - 1) | 1 << FRACTION_BITS;
    let power = biased - 1075;
    if !(-127..=10).contains(&power) {
        return None;
    }
    let shift = (-power).max(0) as u32;
    let mantissa = u128::from(mantissa) << power.max(0);
    // A guess of the exponent that is right or one too small.
    let guess = ((biased - 1023) * 1233) >> 12;
    for exponent in [guess, guess + 1] {
        let (number, more) = scaled(mantissa, shift, digits as i32 - exponent)?;
        if number < POWERS[digits] {
            return None;
        }
        if number < POWERS[digits + 1] {
            let number = round(number, more);
            return Some(if number == POWERS[digits + 1] {
                (number / 10, exponent + 1)
            } else {
                (number, exponent)
            });
        }
    }
    None
}

/// What is left behind the whole part of a number: compared with one half.
#[derive(Clone, Copy)]
struct Rest(std::cmp::Ordering);

/// `mantissa * 10^tens / 2^shift`: the whole part and what is left.
fn scaled(mantissa: u128, shift: u32, tens: i32) -> Option<(u64, Rest)> {
    if tens >= 0 {
        let product = mantissa.checked_mul(power_of_ten(tens as usize)?)?;
        if shift == 0 {
            return Some((u64::try_from(product).ok()?, Rest(std::cmp::Ordering::Less)));
        }
        let whole = u64::try_from(product.checked_shr(shift)?).ok()?;
        let rest = product & ((1 << shift) - 1);
        return Some((whole, Rest(rest.cmp(&(1 << (shift - 1))))));
    }
    let divisor = power_of_ten(tens.unsigned_abs() as usize)?.checked_shl(shift)?;
    if divisor >> shift != power_of_ten(tens.unsigned_abs() as usize)? || divisor > u128::MAX / 2 {
        return None;
    }
    let rest = mantissa % divisor;
    Some((u64::try_from(mantissa / divisor).ok()?, Rest((rest * 2).cmp(&divisor))))
}

fn power_of_ten(power: usize) -> Option<u128> {
    match power {
        0..=19 => Some(u128::from(POWERS[power])),
        20..=38 => Some(u128::from(POWERS[19]) * u128::from(POWERS[power - 19])),
        _ => None,
    }
}

fn round(number: u64, rest: Rest) -> u64 {
    match rest.0 {
        std::cmp::Ordering::Less => number,
        std::cmp::Ordering::Equal => number + (number & 1),
        std::cmp::Ordering::Greater => number + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: f64, digits: usize) -> String {
        let mut out = Vec::new();
        push_e(&mut out, value, digits);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_look_as_in_c() {
        fn check(value: f64, digits: usize, want: &str) {
            assert_eq!(text(value, digits), want);
        }
        check(0.0, 10, "0.0000000000e+00");
        check(-0.0, 10, "-0.0000000000e+00");
        check(3.75, 17, "3.75000000000000000e+00");
        check(8.725_274_725_274_726, 17, "8.72527472527472625e+00");
        check(1e10, 10, "1.0000000000e+10");
        check(99999999999.96, 10, "1.0000000000e+11");
        check(0.1, 17, "1.00000000000000006e-01");
        check(f64::MAX, 10, "1.7976931349e+308");
        check(f64::MIN_POSITIVE, 17, "2.22507385850720138e-308");
        check(5e-324, 10, "4.9406564584e-324");
        check(-1.5e-7, 3, "-1.500e-07");
        check(2.5, 0, "2e+00");
        check(3.5, 0, "4e+00");
        check(f64::NAN, 10, "nan");
        check(crate::live::UNKNOWN, 10, "-nan");
        check(f64::NEG_INFINITY, 10, "-inf");
        assert_eq!(tool_text(crate::live::UNKNOWN), "NaN");
        assert_eq!(tool_text(f64::INFINITY), "inf");
    }

    /// Ours against the standard library's, on many kinds of numbers.
    #[test]
    fn every_digit_is_the_standard_librarys() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            state.wrapping_mul(0x2545_f491_4f6c_dd1d)
        };
        let mut fast = 0;
        const COUNT: usize = 400_000;
        for _ in 0..COUNT {
            let word = next();
            let value = match word % 8 {
                0 => f64::from_bits(next()),
                1 => (next() >> 40) as f64,
                2 => (next() >> 40) as f64 / 300.0,
                3 => (next() >> 11) as f64,
                4 => (next() >> 50) as f64 / 8.0,
                5 => (next() >> 44) as f64 * 1e-6,
                6 => (next() >> 12) as f64 / (1u64 << (word >> 8 & 63)) as f64,
                _ => 10f64.powi((word >> 8) as i32 % 30 - 15),
            };
            if !value.is_finite() {
                continue;
            }
            for digits in [DIGITS_TOOL, DIGITS_FETCH] {
                let mut want = Vec::new();
                if value.is_sign_negative() {
                    want.push(b'-');
                }
                push_by_library(&mut want, value.abs(), digits);
                assert_eq!(text(value, digits), String::from_utf8(want).unwrap(), "{:#x}", value.to_bits());
            }
            fast += usize::from(decimal(value.abs(), DIGITS_FETCH).is_some());
        }
        assert!(fast > COUNT / 2, "only {fast} of {COUNT} went the fast way");
    }
}
