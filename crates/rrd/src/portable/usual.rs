//! The text of an ordinary number, with one multiplication.
//!
//! RRDtool's own printers all divide a number by its power of ten and round it to ten digits after the point.
//! They differ in how they find the exponent next to a power of ten, in the order of roundings, and for
//! subnormal numbers. Here the quotient has more bits than theirs. Where the digits are so clear that none of
//! their roundings can change them, we return them; elsewhere (one number in about ten thousand, and those near
//! a power of ten) we return nothing. The code is short enough that a processor works on several numbers at
//! once, which a division and its conversions would prevent: 4 to 5 ns per number instead of 25.

use super::{EXPONENT_MIN, POWERS};
use crate::format::eight_digits;

/// Bytes of a text: `d.dddddddddde+dd`.
pub const TEXT_BYTES: usize = 16;

/// Exponents of this size have two digits.
const EXPONENT_MAX: i32 = 99;
const EXPONENT_COUNT: usize = (2 * EXPONENT_MAX + 1) as usize;

const FRACTION_BITS: u32 = 52;
/// Ten to the power of the digits after the point.
const SCALE: u64 = 10_000_000_000;
/// How close to a tie the digits are unclear, in 2^-64 of the last digit. The roundings of the quotient (half
/// of 2^-49, times [`SCALE`]), of its fraction times [`SCALE`], and of the added half sum up to 2^-16.4.
const UNCLEAR: u64 = 1 << (64 - 15);

/// What turns a number into its digits.
#[derive(Clone, Copy)]
struct Factor {
    /// The first 64 bits of [`SCALE`] divided by the power of ten.
    bits: u64,
    /// Bits after the point in the upper half of the product, less the biased exponent of the number.
    point: i32,
}

/// For each exponent its factor.
const FACTORS: [Factor; EXPONENT_COUNT] = {
    let mut factors = [Factor { bits: 0, point: 0 }; EXPONENT_COUNT];
    let mut index = 0;
    while index < EXPONENT_COUNT {
        let power = POWERS[(index as i32 - EXPONENT_MAX - EXPONENT_MIN) as usize].to_bits();
        let mantissa = power & ((1 << FRACTION_BITS) - 1) | 1 << FRACTION_BITS;
        let binary = (power >> FRACTION_BITS) as i32 - 1075;
        // 34 bits shifted up to 128, divided by 53: 75 or 76 remain.
        let quotient = ((SCALE as u128) << 94) / mantissa as u128;
        let excess = 64 - quotient.leading_zeros() as i32;
        // The factor is its bits times two to the power of `excess - 94 - binary`; a number is its mantissa times
        // two to the power of its biased exponent less 1075. The mantissa is shifted up by 11 bits, the product
        // down by 64.
        let point = 94 - excess + binary + 1075 + 11 - 64;
        factors[index] = Factor { bits: (quotient >> excess) as u64, point };
        index += 1;
    }
    factors
};

/// `0.00` to `9.99`, padded to a power of two.
const HEADS: [[u8; 4]; 1024] = {
    let mut heads = [*b"0.00"; 1024];
    let mut number = 0;
    while number < 1000 {
        heads[number][0] += (number / 100) as u8;
        heads[number][2] += (number / 10 % 10) as u8;
        heads[number][3] += (number % 10) as u8;
        number += 1;
    }
    heads
};

/// `e-99` to `e+99`.
const TAILS: [[u8; 4]; EXPONENT_COUNT] = {
    let mut tails = [*b"e+00"; EXPONENT_COUNT];
    let mut index = 0;
    while index < EXPONENT_COUNT {
        let exponent = index as i32 - EXPONENT_MAX;
        if exponent < 0 {
            tails[index][1] = b'-';
        }
        tails[index][2] += (exponent.unsigned_abs() / 10) as u8;
        tails[index][3] += (exponent.unsigned_abs() % 10) as u8;
        index += 1;
    }
    tails
};

/// The text of a positive number with a two-digit exponent and clear digits; `None` for all others.
#[inline(always)]
pub fn usual(size: f64) -> Option<[u8; TEXT_BYTES]> {
    let bits = size.to_bits();
    // A sign bit makes it too large, like NaN.
    let biased = (bits >> FRACTION_BITS) as i32;
    // The binary exponent times log10 2: right, or one too small.
    let guess = ((biased - 1023) * 1233) >> 12;
    if !(-EXPONENT_MAX..EXPONENT_MAX).contains(&guess) {
        return None;
    }
    // Positive numbers compare like their bits.
    let next = POWERS[(guess + 1 - EXPONENT_MIN) as usize].to_bits();
    let index = (guess + i32::from(bits >= next) + EXPONENT_MAX) as usize;
    let Factor { bits: factor, point } = FACTORS[index];
    let mantissa = bits << 11 | 1 << 63;
    let product = ((u128::from(mantissa) * u128::from(factor)) >> 64) as u64;
    let fraction = product << ((64 - point + biased) as u32 & 63);
    let number = (product >> ((point - biased) as u32 & 63)) + (fraction >> 63);
    let clear = fraction.wrapping_sub((1 << 63) - UNCLEAR) >= 2 * UNCLEAR;
    // Next to a power of ten, the ways to find the exponent differ.
    let inside = number > SCALE && number < 10 * SCALE;
    if !(clear && inside) {
        return None;
    }
    let (front, back) = (number / 100_000_000, number % 100_000_000);
    // Assembled in registers: copying bytes that were just stored one by one would wait for those stores.
    let word = |text: [u8; 4]| u128::from(u32::from_le_bytes(text));
    let back = u128::from(u64::from_le_bytes(eight_digits(back as u32)));
    Some((word(HEADS[front as usize % HEADS.len()]) | back << 32 | word(TAILS[index]) << 96).to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text as RRDtool makes it: divisions and roundings of doubles.
    fn want(size: f64) -> String {
        let mut exponent = size.log10().floor() as i32;
        let mut scaled = size / crate::portable::power_of_ten(exponent);
        if scaled >= 10.0 {
            exponent += 1;
            scaled = size / crate::portable::power_of_ten(exponent);
        }
        let whole = scaled.floor();
        let fraction = ((scaled - whole) * SCALE as f64 + 0.5).floor() as u64;
        let number = whole as u64 * SCALE + fraction;
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}.{:010}e{sign}{:02}", number / SCALE, number % SCALE, exponent.abs())
    }

    /// Checks the text of `size`, if there is one. Returns whether there is.
    fn check(size: f64) -> bool {
        let text = usual(size);
        if let Some(text) = text {
            assert_eq!(text.escape_ascii().to_string(), want(size), "{:#x}", size.to_bits());
        }
        text.is_some()
    }

    #[test]
    fn clear_digits_are_rrdtools() {
        let mut random = 88_172_645_463_325_252_u64;
        let mut next = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        for _ in 0..300_000 {
            let number = next();
            check(f64::from_bits(number));
            // Every exponent.
            check(f64::from_bits((number >> 12) | (1023 - 331 + number % 662) << 52));
            assert!(check((number % 1_000_000_000 * 10 + 3) as f64 / 777.0));
        }
    }

    #[test]
    fn next_to_powers_of_ten_and_ties_nothing_is_given() {
        for index in 0..EXPONENT_COUNT {
            let power = POWERS[(index as i32 - EXPONENT_MAX - EXPONENT_MIN) as usize];
            for step in 0..2_000 {
                let (above, below) =
                    (f64::from_bits(power.to_bits() + step), f64::from_bits(power.to_bits() - step));
                assert_eq!((usual(above), usual(below)), (None, None), "{above:e} {below:e}");
            }
            // At the ends the guess may be outside.
            let done = check(power * 1.000_000_001) && check(power * 9.999_999_99);
            assert!(done || [0, EXPONENT_COUNT - 1].contains(&index), "{power:e}");
        }
        for tie in [1.234_567_890_15, 123.456_789_015, 9.000_000_000_05, 4_096.000_000_05] {
            assert_eq!(usual(tie), None, "{tie:e}");
        }
        for none in [0.0, -1.5, 5e-324, f64::MAX, 1.5e-100, 1.5e100, f64::INFINITY, f64::NAN] {
            assert_eq!(usual(none), None, "{none:e}");
        }
        assert!([7.0, 1.5e-98, 9.9e98, 123.456].into_iter().all(check));
    }

    #[test]
    fn digits_around_ties_are_rrdtools() {
        for whole in [1_u64, 2, 5, 9] {
            for offset in -400..400_i64 {
                let size = (whole * SCALE + 123_456_789) as f64 / SCALE as f64 + 5e-11;
                check(f64::from_bits(size.to_bits().wrapping_add_signed(offset)));
            }
        }
    }
}
