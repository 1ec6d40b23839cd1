//! Numbers as RRDtool writes them: C's `%.Ne`, digit for digit.
//!
//! Every digit is exact, as in glibc. Where an exact scaling fits in 128 bits (with 17 digits: all numbers from
//! 10^-10 to 10^17) the digits come from integer arithmetic, mostly one multiplication; otherwise from the
//! standard library. Allocates nothing. Cost: 10 to 15 ns per number, against 40 to 50 with divisions and 150
//! with the library (measured; `benches/format.rs`).

use std::io::Write;

/// Digits after the point in `rrdtool fetch`, `info`, `dump`.
pub const DIGITS_TOOL: usize = 10;
/// Digits after the point in the daemon's FETCH.
pub const DIGITS_FETCH: usize = 17;
/// Most digits after the point that [`push_e`] supports.
const DIGITS_MAX: usize = 17;
/// First digit, point, digits, and a three-digit exponent.
const TEXT_BYTES_MAX: usize = DIGITS_MAX + 7;

/// Appends `value` as C's `%.{digits}e`: an exponent of at least two digits, NaN as `nan` or `-nan`, infinity
/// as `inf` or `-inf`. `digits` is at most 17.
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
    match decimal_by_five(value.abs(), digits) {
        Some((number, exponent)) => push_parts(out, number, exponent, digits),
        None => push_unusual(out, value.abs(), digits),
    }
}

/// Appends a finite `value` as C's `%.{digits}g`: up to `digits` significant digits (1 to 18), no trailing zeros, an exponent
/// only below -4 or from `digits` on.
pub fn push_general(out: &mut Vec<u8>, value: f64, digits: usize) {
    let start = out.len();
    push_e(out, value, digits.clamp(1, DIGITS_MAX + 1) - 1);
    let Some(at) = memchr::memrchr(b'e', &out[start..]) else { return };
    let exponent: i32 =
        std::str::from_utf8(&out[start + at + 1..]).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let tail: Vec<u8> = out[start + at..].to_vec();
    out.truncate(start + at);
    let is_negative = value.is_sign_negative();
    let is_fixed = (-4..digits as i32).contains(&exponent);
    if is_fixed && exponent != 0 {
        let decimals: Vec<u8> = out[start..].iter().copied().filter(u8::is_ascii_digit).collect();
        out.truncate(start);
        if is_negative {
            out.push(b'-');
        }
        if exponent < 0 {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', (-exponent - 1) as usize));
            out.extend_from_slice(&decimals);
        } else {
            let whole = exponent as usize + 1;
            out.extend_from_slice(&decimals[..whole]);
            out.push(b'.');
            out.extend_from_slice(&decimals[whole..]);
        }
    }
    if out[start..].contains(&b'.') {
        while out.last() == Some(&b'0') {
            out.pop();
        }
        if out.last() == Some(&b'.') {
            out.pop();
        }
    }
    if !is_fixed {
        out.extend_from_slice(&tail);
    }
}

/// A number that [`decimal_by_five`] does not handle.
#[inline(never)]
fn push_unusual(out: &mut Vec<u8>, value: f64, digits: usize) {
    match decimal_by_ten(value, digits) {
        Some((number, exponent)) => push_parts(out, number, exponent, digits),
        None => push_by_library(out, value, digits),
    }
}

/// Appends `value` as `info` writes it: [`push_e`] with ten digits, but `NaN` for NaN.
pub fn push_tool(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
    } else {
        push_e(out, value, DIGITS_TOOL);
    }
}

/// Appends `number`, which has `digits + 1` decimal digits, the first of which stands for `10^exponent`.
#[inline]
fn push_parts(out: &mut Vec<u8>, number: u64, exponent: i32, digits: usize) {
    // Always make eighteen digits and use the first ones: no loop, and no division depends on another.
    let number = number * POWERS[DIGITS_MAX - digits];
    let (head, low) = (number / 100_000_000, number % 100_000_000);
    let pair = &PAIRS[(head / 100_000_000) as usize * 2..][..2];
    // Write in place: copying bytes that were just stored one by one would wait for those stores.
    let start = out.len();
    out.extend_from_slice(&[b'0'; TEXT_BYTES_MAX]);
    let Some(text) = out[start..].first_chunk_mut::<TEXT_BYTES_MAX>() else { return };
    text[0] = pair[0];
    text[1] = b'.';
    text[2] = pair[1];
    text[3..11].copy_from_slice(&eight_digits((head % 100_000_000) as u32));
    text[11..19].copy_from_slice(&eight_digits(low as u32));
    // Without digits there is no point.
    let mark = if digits == 0 { 1 } else { digits + 2 };
    let size = exponent.unsigned_abs() as usize;
    text[mark] = b'e';
    text[mark + 1] = if exponent < 0 { b'-' } else { b'+' };
    let end = if size >= 100 {
        text[mark + 2] = b'0' + (size / 100) as u8;
        mark + 5
    } else {
        mark + 4
    };
    text[end - 2..end].copy_from_slice(&PAIRS[size % 100 * 2..][..2]);
    out.truncate(start + end);
}

/// The digits of a number below 10^8: halves, quarters and single digits side by side in one register.
///
/// `x * 10486 >> 20` is `x / 100` for x below 10^4, `x * 103 >> 10` is `x / 10` for x below 100: the tests
/// try every number.
#[inline]
pub fn eight_digits(number: u32) -> [u8; 8] {
    let halves = u64::from(number / 10_000) | u64::from(number % 10_000) << 32;
    let hundreds = ((halves * 10_486) >> 20) & 0x7f_0000_007f;
    let pairs = hundreds | (halves - hundreds * 100) << 16;
    let tens = ((pairs * 103) >> 10) & 0x0f_000f_000f_000f;
    let digits = tens | (pairs - tens * 10) << 8;
    (digits | 0x3030_3030_3030_3030).to_le_bytes()
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

/// The standard library's digits are exact too; only its exponent is written differently.
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

/// `00` to `99`: two digits per division.
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

const FRACTION_BITS: u32 = 52;

/// A normal number as `mantissa * 2^power`, and a decimal exponent that is right or one too small.
#[inline]
fn take_apart(value: f64) -> (u64, i32, i32) {
    let bits = value.to_bits();
    let biased = (bits >> FRACTION_BITS) as i32;
    let mantissa = bits & ((1 << FRACTION_BITS) - 1) | 1 << FRACTION_BITS;
    (mantissa, biased - 1075, ((biased - 1023) * 1233) >> 12)
}

/// The powers of five that fit in 64 bits.
const FIVES: [u64; 28] = {
    let mut fives = [1; 28];
    let mut index = 1;
    while index < 28 {
        fives[index] = fives[index - 1] * 5;
        index += 1;
    }
    fives
};

/// Powers of ten from 10^-10, to compare exponents by; exact from 10^0.
const TENS: [f64; 29] = [
    1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8,
    1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
];

/// The first `digits + 1` decimal digits, correctly rounded (ties to even, as glibc), and the exponent of the
/// first one, for the usual case: `10^tens = 5^tens * 2^tens`, mantissa times power of five is one exact
/// multiplication of 53 by 63 bits, and the power of two is one shift to the right. `None` for other numbers.
#[inline]
fn decimal_by_five(value: f64, digits: usize) -> Option<(u64, i32)> {
    let (mantissa, power, guess) = take_apart(value);
    // No branch, which would be mispredicted half the time. A negative power in `TENS` that is slightly too
    // small can make the exponent one too large: that is detected below, and the slow path is taken.
    let exponent = guess + i32::from(value >= *TENS.get((guess + 11) as usize)?);
    let tens = digits as i32 - exponent;
    let shift = -(power + tens);
    if !(0..FIVES.len() as i32).contains(&tens) || !(1..64).contains(&shift) {
        return None;
    }
    let product = u128::from(mantissa) * u128::from(FIVES[tens as usize]);
    let (high, low) = ((product >> 64) as u64, product as u64);
    let whole = high << (64 - shift) | low >> shift;
    if whole < POWERS[digits] || high >> shift != 0 {
        return None;
    }
    // The remainder as a 64-bit fraction: an odd number rounds up from one half, an even one above it.
    let rest = low << (64 - shift);
    let number = whole + u64::from(rest > (1 << 63) - (whole & 1));
    Some(match number == POWERS[digits + 1] {
        true => (number / 10, exponent + 1),
        false => (number, exponent),
    })
}

/// [`decimal_by_five`] for zero and for large and small numbers, as far as 128 bits go.
///
/// For a power from 0 down to -75 the value is `mantissa / 2^-power` exactly, and multiplying the mantissa
/// (53 bits) by a power of ten of at most 75 bits (22 digits) stays in 128 bits.
fn decimal_by_ten(value: f64, digits: usize) -> Option<(u64, i32)> {
    if value == 0.0 {
        return Some((0, 0));
    }
    let (mantissa, power, guess) = take_apart(value);
    if value.is_subnormal() || !(-127..=10).contains(&power) {
        return None;
    }
    let shift = (-power).max(0) as u32;
    let mantissa = u128::from(mantissa) << power.max(0);
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

/// What remains after the whole part of a number, compared with one half.
#[derive(Clone, Copy)]
struct Rest(std::cmp::Ordering);

/// `mantissa * 10^tens / 2^shift`: the whole part and the remainder.
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
    fn general_numbers_are_c_s() {
        let mut state = 7u64;
        let mut cases =
            vec![0.0, -0.0, 1.0, -1.5, 0.1, 1e-4, 9.99999e-5, 123456.0, 999999.5, 1e15, 1e14, 1e300, -1e-300];
        cases.extend((0..300).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / 2f64.powi((state % 90) as i32)
        }));
        for digits in [1, 6, 15] {
            // The shell computes in long doubles, which hold a double's thirty digits exactly.
            let numbers: Vec<String> = cases.iter().map(|value| format!("{value:.30e}")).collect();
            let script = format!("printf '%.{digits}g\\n' {}", numbers.join(" "));
            let mut shell = std::process::Command::new("bash");
            let want = shell.args(["-c", &script]).env("LC_ALL", "C").output().unwrap();
            let got: Vec<u8> = cases.iter().fold(Vec::new(), |mut text, &value| {
                push_general(&mut text, value, digits);
                text.push(b'\n');
                text
            });
            assert_eq!(String::from_utf8_lossy(&got), String::from_utf8_lossy(&want.stdout), "{digits}");
        }
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
        let mut out = Vec::new();
        push_tool(&mut out, crate::live::UNKNOWN);
        push_tool(&mut out, f64::INFINITY);
        push_tool(&mut out, 0.5);
        assert_eq!(out, b"NaNinf5.0000000000e-01");
    }

    #[test]
    fn eight_digits_are_right_for_every_number() {
        // The two halves do not affect each other: test each alone, and both at their ends.
        let check = |number: u32| {
            assert_eq!(eight_digits(number), *format!("{number:08}").as_bytes().first_chunk().unwrap());
        };
        (0..10_000).for_each(|half| {
            check(half);
            check(half * 10_000);
            check(half * 10_000 + 9_999);
            check(99_990_000 + half);
        });
    }

    /// Every power of two and of ten and its neighbours, where exponents change and ties are.
    #[test]
    fn borders_are_the_standard_librarys() {
        let check = |value: f64| {
            for digits in 0..=DIGITS_MAX {
                let mut want = Vec::new();
                push_by_library(&mut want, value, digits);
                assert_eq!(text(value, digits), String::from_utf8(want).unwrap(), "{:#x}", value.to_bits());
            }
        };
        let around = |value: f64| {
            let bits = value.to_bits();
            (bits.saturating_sub(2)..=bits + 2)
                .map(f64::from_bits)
                .filter(|value| value.is_finite())
                .for_each(check);
        };
        (-320..=308).for_each(|power| around(format!("1e{power}").parse().unwrap()));
        (1..2047u64).for_each(|biased| around(f64::from_bits(biased << 52)));
        // Halves: exact ties of every number of digits.
        (0..60_000u64).for_each(|number| check((number * 2 + 1) as f64 / 2048.0));
        (1..2_000u64).for_each(|number| check((number * 1_000_003 + 1) as f64 * 0.5));
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
            fast += usize::from(decimal_by_five(value.abs(), DIGITS_FETCH).is_some());
        }
        assert!(fast > COUNT / 3, "only {fast} of {COUNT} went the fast way");
    }
}
