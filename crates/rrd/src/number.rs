//! Numbers as RRDtool reads them, bit for bit.
//!
//! RRDtool does not round correctly: it collects the digits in a double, then multiplies or divides by
//! powers of ten, one binary digit of the exponent at a time. The result differs from a correct parser's
//! in the last bits and is in every file, so we round in the same places and order. Independent of the
//! locale; allocates nothing. Pinned by `tests/number_oracle.rs`.

mod decimal;
mod difference;

pub use decimal::{Decimal, decimal};
pub use difference::difference;

use crate::live::UNKNOWN;

/// Exponents (including the decimals) that RRDtool converts: `DBL_MIN_EXP..=DBL_MAX_EXP` of C.
const EXPONENTS: std::ops::RangeInclusive<i32> = -1021..=1024;

/// Why a text is not a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NumberError<'a> {
    /// It does not start with a number, or the exponent is out of range.
    Nothing,
    /// It is a number followed by something else.
    Trailing {
        /// The number.
        value: f64,
        /// What follows it.
        rest: &'a [u8],
    },
}

/// The number that is the complete text.
///
/// Leading blanks are skipped, and so is anything after `nan`, `-nan`, `inf` and `-inf` (in any case).
///
/// # Errors
/// [`NumberError`], distinguished as RRDtool does.
#[inline]
pub fn parse(text: &[u8]) -> Result<f64, NumberError<'_>> {
    if let Some(value) = parse_short(text) {
        return Ok(value);
    }
    match parse_prefix(text) {
        None => Err(NumberError::Nothing),
        Some((value, [])) => Ok(value),
        Some((value, rest)) => Err(NumberError::Trailing { value, rest }),
    }
}

/// The common texts: an optional minus, at most 15 digits, and perhaps a point among them.
///
/// The digits fit in an integer, and an integer below 2^53 is exact in a double, so this gives the same
/// bits.
#[inline]
fn parse_short(text: &[u8]) -> Option<f64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 15 {
        return None;
    }
    let mut number = 0u64;
    let mut index = 0;
    let mut decimals = 0;
    while let Some(&byte) = digits.get(index) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            if byte != b'.' || digits.len() == 1 {
                return None;
            }
            decimals = digits.len() - index - 1;
            for &byte in &digits[index + 1..] {
                let digit = byte.wrapping_sub(b'0');
                if digit > 9 {
                    return None;
                }
                number = number * 10 + u64::from(digit);
            }
            break;
        }
        number = number * 10 + u64::from(digit);
        index += 1;
    }
    let number = if negative { -(number as f64) } else { number as f64 };
    Some(scale(number, -(decimals as i32)))
}

/// The number at the start of the text, and what follows it; `None` when there is none.
pub fn parse_prefix(text: &[u8]) -> Option<(f64, &[u8])> {
    parse_word(text).map(|value| (value, &[][..])).or_else(|| parse_digits(text))
}

/// As [`parse_prefix`], but `nan` and `inf` are no numbers.
pub fn parse_digits(text: &[u8]) -> Option<(f64, &[u8])> {
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
    let mut rest = &text[blanks..];
    let negative = take_sign(&mut rest);
    let mut number = 0.0;
    let mut digits = take_digits(&mut rest, &mut number);
    let mut exponent = 0i32;
    if let [b'.', after @ ..] = rest {
        rest = after;
        let decimals = take_digits(&mut rest, &mut number);
        digits += decimals;
        exponent = exponent.wrapping_sub(decimals as i32);
    }
    if digits == 0 {
        return None;
    }
    if negative {
        number = -number;
    }
    if let [b'e' | b'E', after @ ..] = rest {
        rest = after;
        exponent = exponent.wrapping_add(take_exponent(&mut rest));
    }
    EXPONENTS.contains(&exponent).then(|| (scale(number, exponent), rest))
}

/// The number of a text that starts with `nan` or `inf`, in any case; only a minus may precede, and anything may follow.
pub fn parse_word(text: &[u8]) -> Option<f64> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let start = text.get(..3)?;
    if start.eq_ignore_ascii_case(b"nan") {
        // The NaN of an unknown value has a minus.
        Some(if negative { UNKNOWN } else { -UNKNOWN })
    } else if start.eq_ignore_ascii_case(b"inf") {
        Some(if negative { f64::NEG_INFINITY } else { f64::INFINITY })
    } else {
        None
    }
}

/// The integer that a text starts with, as C's functions find it: after blanks, whether it is negative, and its digits,
/// which may be none. What follows is ignored.
pub(crate) fn leading_integer(text: &str) -> (bool, &str) {
    let text = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let (negative, rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    (negative, &rest[..rest.bytes().take_while(u8::is_ascii_digit).count()])
}

fn take_sign(rest: &mut &[u8]) -> bool {
    match *rest {
        [b'-', after @ ..] => {
            *rest = after;
            true
        }
        [b'+', after @ ..] => {
            *rest = after;
            false
        }
        _ => false,
    }
}

/// Adds the leading digits to `number`. Returns how many there were.
fn take_digits(rest: &mut &[u8], number: &mut f64) -> usize {
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    for byte in &rest[..count] {
        *number = *number * 10.0 + f64::from(byte - b'0');
    }
    *rest = &rest[count..];
    count
}

/// The exponent after the `e`: no digits give 0, and too many wrap as a C `int` does.
fn take_exponent(rest: &mut &[u8]) -> i32 {
    let negative = take_sign(rest);
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let digits = rest[..count].iter();
    let size = digits.fold(0i32, |size, byte| size.wrapping_mul(10).wrapping_add(i32::from(byte - b'0')));
    *rest = &rest[count..];
    if negative { size.wrapping_neg() } else { size }
}

/// Multiplies by ten to the power of `exponent`: one multiplication or division per set bit, lowest first.
#[inline]
fn scale(mut number: f64, exponent: i32) -> f64 {
    let mut bits = exponent.unsigned_abs();
    let mut power = 10.0;
    while bits != 0 {
        if bits & 1 != 0 {
            if exponent < 0 {
                number /= power;
            } else {
                number *= power;
            }
        }
        bits >>= 1;
        power *= power;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_rrdtool_takes() {
        fn check(text: &str, want: f64) {
            assert_eq!(parse(text.as_bytes()).map(f64::to_bits), Ok(want.to_bits()), "{text}");
        }
        check("1", 1.0);
        check("-1.5", -1.5);
        check("+1", 1.0);
        check(".5", 0.5);
        check("5.", 5.0);
        check("-.0", -0.0);
        check("1e", 1.0);
        check("1e+", 1.0);
        check("1E5", 100_000.0);
        check("1e-5", f64::from_bits(0x3ee4_f8b5_88e3_68f1));
        check("\t\x0b 7", 7.0);
        check("1e309", f64::INFINITY);
        check("1.5e1025", f64::INFINITY);
        check("1e-1021", 0.0);
        check("1e4294967297", 10.0);
        check("12345678901234567890123", 12_345_678_901_234_567_890_123.0);
        check("9223372036854775807", f64::from_bits(0x43e0_0000_0000_0001));
        check("-NaNsense", UNKNOWN);
        check("Infinity", f64::INFINITY);
        check("-inf5", f64::NEG_INFINITY);
    }

    #[test]
    fn refuses_what_rrdtool_refuses() {
        fn check(text: &str, want: NumberError<'_>) {
            assert_eq!(parse(text.as_bytes()), Err(want), "{text}");
        }
        for text in
            ["", "-", "+", ".", "-.", "e5", "$", " ", "- 1", "+nan", " inf", "1e1025", "1e-1022", "0e2000"]
        {
            check(text, NumberError::Nothing);
        }
        check("1x", NumberError::Trailing { value: 1.0, rest: b"x" });
        check("1,5", NumberError::Trailing { value: 1.0, rest: b",5" });
        check("1.2.3", NumberError::Trailing { value: 1.2, rest: b".3" });
        check("1 ", NumberError::Trailing { value: 1.0, rest: b" " });
        check("0x10", NumberError::Trailing { value: 0.0, rest: b"x10" });
    }

    #[test]
    fn the_short_way_gives_the_same_bits_as_the_long_one() {
        let mut state = 1u64;
        for _ in 0..200_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let digits = (state >> 60) % 15 + 1;
            let number = (state >> 8) % 10u64.pow(digits as u32);
            let mut text = number.to_string();
            let point = (state >> 40) as usize % (text.len() + 1);
            if state & 64 != 0 && text.len() < 15 {
                text.insert(point, '.');
            }
            if state & 128 != 0 {
                text.insert(0, '-');
            }
            let long = parse_prefix(text.as_bytes()).map(|(value, _)| value.to_bits());
            assert_eq!(parse_short(text.as_bytes()).map(f64::to_bits), long, "{text}");
        }
    }
}
