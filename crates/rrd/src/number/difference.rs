//! The difference of two integers given as texts, for COUNTER and DERIVE.
//!
//! Counters hold more than the 53 bits of a double, so they are subtracted as integers. The result becomes
//! a double the way [`super::parse`] would read its digits.

use crate::live::UNKNOWN;

/// Most digits of either number: RRDtool's buffer. Both then fit in an `i128`.
const DIGITS_MAX: usize = 30;

/// `new - old` for texts of digits with an optional minus.
///
/// NaN when the signs differ, or when either has no digit or more than 30.
#[inline]
pub fn difference(new: &[u8], old: &[u8]) -> f64 {
    if let (Some(new), Some(old)) = (short(new), short(old)) {
        let difference = new.wrapping_sub(old) as i64;
        if difference.unsigned_abs() < 1 << 53 {
            return difference as f64;
        }
    }
    long_difference(new, old)
}

/// The value of at most 18 digits without a sign.
#[inline]
fn short(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    let mut number = 0u64;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + u64::from(digit);
    }
    Some(number)
}

#[cold]
fn long_difference(new: &[u8], old: &[u8]) -> f64 {
    let (Some((new_negative, new)), Some((old_negative, old))) = (integer(new), integer(old)) else {
        return UNKNOWN;
    };
    if new_negative != old_negative {
        return UNKNOWN;
    }
    let size = gather(new.abs_diff(old));
    if (new < old) != new_negative { -size } else { size }
}

/// The first run of digits; negative when a minus precedes it anywhere.
///
/// Compat: the text of a last reading can be anything, because a reading that comes too late is kept
/// unchecked. RRDtool then subtracts the digits it finds.
fn integer(text: &[u8]) -> Option<(bool, u128)> {
    let start = text.iter().position(u8::is_ascii_digit)?;
    let digits = &text[start..];
    let digits = &digits[..digits.iter().take_while(|byte| byte.is_ascii_digit()).count()];
    if digits.len() > DIGITS_MAX {
        return None;
    }
    let number = digits.iter().fold(0u128, |number, byte| number * 10 + u128::from(byte - b'0'));
    Some((text[..start].contains(&b'-'), number))
}

/// Collects the decimal digits of `number` in a double, highest first, rounding at every digit.
fn gather(mut number: u128) -> f64 {
    let mut digits = [0u8; 39];
    let mut count = 0;
    while number != 0 {
        digits[count] = (number % 10) as u8;
        number /= 10;
        count += 1;
    }
    digits[..count].iter().rev().fold(0.0, |sum, &digit| sum * 10.0 + f64::from(digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtracts_integers_of_any_length_rrdtool_takes() {
        fn check(new: &str, old: &str, want: f64) {
            let got = difference(new.as_bytes(), old.as_bytes());
            assert_eq!(got.to_bits(), want.to_bits(), "{new} - {old} = {got}");
        }
        check("9", "5", 4.0);
        check("2", "9", -7.0);
        check("007", "00", 7.0);
        check("-5", "-1", -4.0);
        check("-0", "-007", 7.0);
        check("5", "5", 0.0);
        check("-5", "-5", -0.0);
        check("9223372036854775807", "0", f64::from_bits(0x43e0_0000_0000_0001));
        check("18014398509481987", "9007199254740993", f64::from_bits(0x4340_0000_0000_0001));
        check(&"9".repeat(30), &"9".repeat(29), f64::from_bits(0x4626_b81d_1a43_b204));
        check("5", &"0".repeat(30), 5.0);
        check("10", "1e-300", 9.0);
        check("10", "+7", 3.0);
        check("-10", "x-5-", -5.0);
        check("-10", "--5.5", -5.0);
    }

    #[test]
    fn is_unknown_where_rrdtool_gives_up() {
        fn check(new: &str, old: &str) {
            assert_eq!(
                difference(new.as_bytes(), old.as_bytes()).to_bits(),
                UNKNOWN.to_bits(),
                "{new} {old}"
            );
        }
        check("", "");
        check("5", "");
        check("", "5");
        check("-", "-5");
        check("-", "-");
        check("5", "-5");
        check("0", "-0");
        check("5", &"0".repeat(31));
        check("5", "U");
    }
}
