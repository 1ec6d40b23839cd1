//! Numbers as RRDtool's own printf writes them, without the C library: in a [`dump`] and in an [`xport`].
//!
//! Powers of ten come from a table with the same doubles as repeated multiplication or division by ten. Allocates
//! nothing; a number costs one division. The two verbs round digits differently, except for [`usual()`] numbers.

pub(crate) mod dump;
mod usual;
pub mod xport;

use crate::format::eight_digits;

pub use usual::usual;

/// The smallest exponent written.
pub const EXPONENT_MIN: i32 = -308;
const EXPONENT_MAX: i32 = 308;
/// Exponents that need no search: far from the ends of the table and from subnormal numbers.
const EXPONENT_USUAL: i32 = 290;
/// Powers of ten up to this one are exact.
const EXPONENT_EXACT: i32 = 22;
/// Closer than this to a power of ten the exponent is not decided here; the error of every method is far smaller.
const MARGIN: f64 = 1e-11;
/// Digits of a fraction that [`push`] writes.
pub const DIGITS: usize = 10;

const POWERS: [f64; (EXPONENT_MAX - EXPONENT_MIN + 1) as usize] = {
    let mut powers = [1.0; (EXPONENT_MAX - EXPONENT_MIN + 1) as usize];
    let one = -EXPONENT_MIN as usize;
    let mut index = one;
    while index > 0 {
        powers[index - 1] = powers[index] / 10.0;
        index -= 1;
    }
    index = one + 1;
    while index < powers.len() {
        powers[index] = powers[index - 1] * 10.0;
        index += 1;
    }
    powers
};

/// Ten to the power of `exponent`, clamped to -308 to 308: 1, multiplied or divided by ten that many times.
#[inline]
pub fn power_of_ten(exponent: i32) -> f64 {
    POWERS[(exponent.clamp(EXPONENT_MIN, EXPONENT_MAX) - EXPONENT_MIN) as usize]
}

/// The exponent of a positive number, and the number divided by that power of ten, where every way to find
/// them agrees. `None` for zero and for very large, very small and almost round numbers.
#[inline]
pub fn usual_exponent(size: f64) -> Option<(i32, f64)> {
    // The binary exponent times log10 2: right, or one too small.
    let guess = (((size.to_bits() >> 52) as i32 - 1023) * 1233) >> 12;
    if !(-EXPONENT_USUAL..EXPONENT_USUAL).contains(&guess) {
        return None;
    }
    let exponent = guess + i32::from(size >= POWERS[(guess + 1 - EXPONENT_MIN) as usize]);
    let scaled = size / POWERS[(exponent - EXPONENT_MIN) as usize];
    let between = scaled > 1.0 + MARGIN && scaled < 10.0 - MARGIN;
    let exact = scaled == 1.0 && (0..=EXPONENT_EXACT).contains(&exponent);
    (between || exact).then_some((exponent, scaled))
}

/// Appends `whole.fraction` with [`DIGITS`] digits of fraction, and the exponent with at least two digits.
/// `whole` is one digit.
#[inline]
pub fn push(out: &mut Vec<u8>, whole: u64, fraction: u64, exponent: i32) {
    let (front, back) = (fraction / 100_000_000, (fraction % 100_000_000) as u32);
    let back = u64::from_le_bytes(eight_digits(back));
    let size = exponent.unsigned_abs();
    // Assembled in registers: copying bytes that were just stored one by one would wait for those stores.
    let low = (u64::from(b'0') + whole) | u64::from(b'.') << 8 | pair(front) << 16 | back << 32;
    let sign = if exponent < 0 { b'-' } else { b'+' };
    let high = back >> 32 | u64::from(b'e') << 32 | u64::from(sign) << 40 | pair(u64::from(size)) << 48;
    let text = (u128::from(high) << 64 | u128::from(low)).to_le_bytes();
    if size < 100 {
        out.extend_from_slice(&text);
    } else {
        out.extend_from_slice(&text[..14]);
        out.extend_from_slice(size.to_string().as_bytes());
    }
}

/// The two digits of a number below 100, in memory order; unspecified for others.
#[inline]
fn pair(number: u64) -> u64 {
    u64::from(PAIRS[(number % 128) as usize])
}

/// The two digits of a number below 100; unspecified for others.
#[inline]
pub fn two_digits(number: u32) -> [u8; 2] {
    PAIRS[(number % 128) as usize].to_le_bytes()
}

const PAIRS: [u16; 128] = {
    let mut pairs = [0; 128];
    let mut number = 0;
    while number < 100 {
        pairs[number as usize] = (b'0' as u16 + number / 10) | (b'0' as u16 + number % 10) << 8;
        number += 1;
    }
    pairs
};

/// Appends a whole number.
#[inline]
pub fn push_whole(out: &mut Vec<u8>, number: i64) {
    // Times since 2001 and before 2286 have ten digits.
    if (1_000_000_000..10_000_000_000).contains(&number) {
        let (front, back) = (number as u64 / 100_000_000, (number as u64 % 100_000_000) as u32);
        let text = u128::from(pair(front)) | u128::from(u64::from_le_bytes(eight_digits(back))) << 16;
        out.extend_from_slice(&text.to_le_bytes()[..10]);
    } else {
        out.extend_from_slice(number.to_string().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_reckoned_one_after_the_other() {
        for exponent in EXPONENT_MIN..=EXPONENT_MAX {
            let mut power = 1.0_f64;
            for _ in 0..exponent.unsigned_abs() {
                power = if exponent < 0 { power / 10.0 } else { power * 10.0 };
            }
            assert_eq!(power_of_ten(exponent).to_bits(), power.to_bits(), "{exponent}");
        }
    }

    #[test]
    fn exponents_are_the_librarys_where_they_are_given() {
        let check = |size: f64| {
            if let Some((exponent, scaled)) = usual_exponent(size) {
                assert_eq!(exponent, size.log10().floor() as i32, "{size:e}");
                assert_eq!(scaled.to_bits(), (size / power_of_ten(exponent)).to_bits(), "{size:e}");
            }
        };
        let mut random = 88_172_645_463_325_252_u64;
        for _ in 0..2_000_000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            check(f64::from_bits(random >> 1));
        }
        for exponent in EXPONENT_MIN..=EXPONENT_MAX {
            let power = power_of_ten(exponent);
            for step in 0..200 {
                check(f64::from_bits(power.to_bits() + step));
                check(f64::from_bits(power.to_bits() - step));
            }
        }
        for usual in [1.0, 100.0, 1e22, 0.5, 7.0, 123.456, 1e-9 * 1.5, 9.99999, 1e200 * 3.0] {
            assert!(usual_exponent(usual).is_some(), "{usual:e}");
        }
        for unusual in [0.0, 5e-324, f64::MAX, 0.1, 9.999_999_999_999_999, f64::INFINITY, f64::NAN] {
            assert_eq!(usual_exponent(unusual), None, "{unusual:e}");
        }
    }

    #[test]
    fn usual_numbers_are_those_of_both_printers() {
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
            let Some(text) = usual(size) else { continue };
            for push_unusual in [dump::push_parameter, xport::push_unusual] {
                let mut want = Vec::new();
                push_unusual(&mut want, size);
                assert_eq!(text.escape_ascii().to_string(), want.escape_ascii().to_string(), "{size:e}");
            }
            usual_count += 1;
        }
        assert!(usual_count > 600_000, "{usual_count}");
    }

    #[test]
    fn texts_are_those_of_the_library() {
        let check = |whole: u64, fraction: u64, exponent: i32, want: &str| {
            let mut out = Vec::new();
            push(&mut out, whole, fraction, exponent);
            assert_eq!(String::from_utf8(out).unwrap(), want);
        };
        check(0, 0, 0, "0.0000000000e+00");
        check(9, 9_876_543_210, 99, "9.9876543210e+99");
        check(1, 12, -7, "1.0000000012e-07");
        check(1, 0, 123, "1.0000000000e+123");
        check(1, 0, -308, "1.0000000000e-308");
        for number in
            [0, -1, 999_999_999, 1_000_000_000, 1_700_000_008, 9_999_999_999, 10_000_000_000, i64::MIN]
        {
            let mut out = Vec::new();
            push_whole(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }
}
