//! Decimal numbers of any length, for the arithmetic between targets: the difference of two 64-bit counters is exact, and a
//! quotient has 40 digits, as in MRTG.

use std::cmp::Ordering;
use std::fmt;

/// Digits of a quotient.
const QUOTIENT_DIGITS: usize = 40;

/// Most digits of a number, and most zeros before or after them. Values come from devices and programs: without a limit,
/// `1e999999999 + 1` would fill the memory. MRTG's largest product of three 64-bit counters has 58.
const DIGITS_MAX: usize = 1_000;

/// A number: `digits` as an integer, times ten to `exponent`. Zero has no digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decimal {
    is_negative: bool,
    /// Most significant first; neither the first nor the last is 0.
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    /// Nought.
    pub const ZERO: Decimal = Decimal { is_negative: false, digits: Vec::new(), exponent: 0 };

    /// An integer.
    pub fn of_integer(integer: i128) -> Self {
        let digits = integer.unsigned_abs().to_string().bytes().map(|byte| byte - b'0').collect();
        Decimal { is_negative: integer < 0, digits, exponent: 0 }.trimmed()
    }

    /// Reads a number as Perl's `Math::BigFloat` does: sign, digits that `_` may separate, fraction, exponent; `0x` and `0b`.
    /// `None` where that says NaN, and beyond 1,000 digits.
    pub fn parse(text: &str) -> Option<Self> {
        let (is_negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        for (prefix, radix) in [("0x", 16), ("0X", 16), ("0b", 2), ("0B", 2)] {
            if let Some(digits) = rest.strip_prefix(prefix) {
                let magnitude = i128::from_str_radix(digits, radix).ok().filter(|number| *number >= 0)?;
                return Some(Decimal { is_negative, ..Decimal::of_integer(magnitude) }.trimmed());
            }
        }
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let separated = |part: &str| part.starts_with('_') || part.ends_with('_') || part.contains("__");
        if whole.is_empty() && fraction.is_empty() || separated(whole) || separated(fraction) {
            return None;
        }
        let mut digits = Vec::with_capacity(mantissa.len());
        for byte in whole.bytes().chain(fraction.bytes()).filter(|&byte| byte != b'_') {
            digits.push(byte.is_ascii_digit().then(|| byte - b'0')?);
        }
        let places = fraction.bytes().filter(|&byte| byte != b'_').count() as i64;
        Decimal { is_negative, digits, exponent: exponent.checked_sub(places)? }.trimmed().bounded()
    }

    /// A float, with the 15 digits that Perl shows; `None` when it is not finite.
    pub fn of_float(number: f64) -> Option<Self> {
        let mut text = Vec::new();
        rrd::format::push_general(&mut text, number, 15);
        std::str::from_utf8(&text).ok().and_then(Decimal::parse)
    }

    /// The nearest float.
    pub fn to_float(&self) -> f64 {
        self.to_string().parse().unwrap_or(f64::NAN)
    }

    /// True for nought.
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Without zeros at both ends.
    fn trimmed(mut self) -> Self {
        let leading = self.digits.iter().take_while(|&&digit| digit == 0).count();
        self.digits.drain(..leading);
        while self.digits.last() == Some(&0) {
            self.digits.pop();
            // One this large is out of bounds anyway.
            self.exponent = self.exponent.saturating_add(1);
        }
        if self.digits.is_empty() { Decimal::ZERO } else { self }
    }

    fn bounded(self) -> Option<Self> {
        let fits = self.digits.len() <= DIGITS_MAX && self.exponent.unsigned_abs() <= DIGITS_MAX as u64;
        fits.then_some(self)
    }

    /// The digits of both with the same exponent, the smaller one.
    fn aligned(&self, other: &Decimal) -> (Vec<u8>, Vec<u8>, i64) {
        let exponent = self.exponent.min(other.exponent);
        let widen = |number: &Decimal| {
            let mut digits = number.digits.clone();
            if !digits.is_empty() {
                digits.resize(digits.len() + (number.exponent - exponent) as usize, 0);
            }
            digits
        };
        (widen(self), widen(other), exponent)
    }

    /// The sum; `None` beyond 1,000 digits, as with all operations here.
    pub fn add(&self, other: &Decimal) -> Option<Decimal> {
        if self.is_zero() || other.is_zero() {
            return Some(if self.is_zero() { other.clone() } else { self.clone() });
        }
        let (a, b, exponent) = self.aligned(other);
        let (is_negative, digits) = if self.is_negative == other.is_negative {
            (self.is_negative, add_digits(&a, &b))
        } else if compare_digits(&a, &b) == Ordering::Less {
            (other.is_negative, subtract_digits(&b, &a))
        } else {
            (self.is_negative, subtract_digits(&a, &b))
        };
        Decimal { is_negative, digits, exponent }.trimmed().bounded()
    }

    /// The difference.
    pub fn subtract(&self, other: &Decimal) -> Option<Decimal> {
        self.add(&other.negated())
    }

    /// With the other sign.
    pub fn negated(&self) -> Decimal {
        Decimal { is_negative: !self.is_negative && !self.is_zero(), ..self.clone() }
    }

    /// Without sign.
    pub fn absolute(&self) -> Decimal {
        Decimal { is_negative: false, ..self.clone() }
    }

    /// The product.
    pub fn multiply(&self, other: &Decimal) -> Option<Decimal> {
        let mut cells = vec![0u32; self.digits.len() + other.digits.len()];
        for (i, &a) in self.digits.iter().rev().enumerate() {
            for (j, &b) in other.digits.iter().rev().enumerate() {
                cells[i + j] += u32::from(a) * u32::from(b);
            }
        }
        let mut carry = 0;
        for cell in &mut cells {
            let sum = *cell + carry;
            (*cell, carry) = (sum % 10, sum / 10);
        }
        let digits = cells.iter().rev().map(|&cell| cell as u8).collect();
        let is_negative = self.is_negative != other.is_negative;
        Decimal { is_negative, digits, exponent: self.exponent + other.exponent }.trimmed().bounded()
    }

    /// The quotient with 40 digits, half to even; `None` when `other` is nought.
    pub fn divide(&self, other: &Decimal) -> Option<Decimal> {
        if other.is_zero() {
            return None;
        }
        let mut quotient = Vec::new();
        let mut remainder: Vec<u8> = Vec::new();
        let mut exponent = self.exponent - other.exponent;
        let mut coming = self.digits.iter();
        let mut started = false;
        while quotient.len() <= QUOTIENT_DIGITS {
            match coming.next() {
                Some(&digit) => remainder.push(digit),
                None if remainder.is_empty() => break,
                None => {
                    remainder.push(0);
                    exponent -= 1;
                }
            }
            strip_zeros(&mut remainder);
            let mut digit = 0;
            while compare_digits(&remainder, &other.digits) != Ordering::Less {
                remainder = subtract_digits(&remainder, &other.digits);
                strip_zeros(&mut remainder);
                digit += 1;
            }
            started |= digit > 0;
            if started {
                quotient.push(digit);
            }
        }
        // What has not come down stands for zeros or decides a tie; its digits count as places.
        let rest = coming.as_slice();
        exponent += rest.len() as i64;
        let is_exact = remainder.is_empty() && rest.iter().all(|&digit| digit == 0);
        let quotient =
            Decimal { is_negative: self.is_negative != other.is_negative, digits: quotient, exponent };
        quotient.rounded_to(QUOTIENT_DIGITS, is_exact).trimmed().bounded()
    }

    /// The first `count` digits, half to even; not `is_exact` means that something smaller follows the digits.
    fn rounded_to(mut self, count: usize, is_exact: bool) -> Decimal {
        if self.digits.len() <= count {
            return self;
        }
        let rest = self.digits.split_off(count);
        self.exponent += rest.len() as i64;
        let beyond_half = !is_exact || rest[1..].iter().any(|&digit| digit > 0);
        let is_odd = self.digits.last().is_some_and(|digit| digit % 2 == 1);
        if rest[0] > 5 || rest[0] == 5 && (beyond_half || is_odd) {
            self.digits = add_digits(&self.digits, &[1]);
        }
        self
    }

    /// The nearest integer, half to even.
    pub fn rounded(&self) -> Decimal {
        if self.exponent >= 0 {
            return self.clone();
        }
        let places = self.exponent.unsigned_abs() as usize;
        let mut widened = self.clone();
        // A digit before the point, so that 0.6 can round up to it.
        let missing = (places + 1).saturating_sub(widened.digits.len());
        widened.digits.splice(0..0, std::iter::repeat_n(0, missing));
        let count = widened.digits.len() - places;
        widened.rounded_to(count, true).trimmed()
    }

    /// Without fraction.
    pub fn truncated(&self) -> Decimal {
        if self.exponent >= 0 {
            return self.clone();
        }
        let kept = self.digits.len().saturating_sub(self.exponent.unsigned_abs() as usize);
        Decimal { is_negative: self.is_negative, digits: self.digits[..kept].to_vec(), exponent: 0 }.trimmed()
    }

    /// The remainder with the sign of `other`, as in Perl; this number itself when `other` is nought.
    pub fn remainder(&self, other: &Decimal) -> Option<Decimal> {
        if other.is_zero() {
            return Some(self.clone());
        }
        let (mut rest, divisor, exponent) = self.absolute().long_remainder(other)?;
        strip_zeros(&mut rest);
        let rest = Decimal { is_negative: self.is_negative, digits: rest, exponent }.trimmed();
        if !rest.is_zero() && self.is_negative != other.is_negative {
            let divisor = Decimal { is_negative: other.is_negative, digits: divisor, exponent }.trimmed();
            return rest.add(&divisor);
        }
        Some(rest)
    }

    /// The digits of the remainder and of the divisor, and their exponent.
    fn long_remainder(&self, other: &Decimal) -> Option<(Vec<u8>, Vec<u8>, i64)> {
        let (dividend, divisor, exponent) = self.aligned(other);
        let mut rest: Vec<u8> = Vec::new();
        for digit in dividend {
            rest.push(digit);
            strip_zeros(&mut rest);
            while compare_digits(&rest, &divisor) != Ordering::Less {
                rest = subtract_digits(&rest, &divisor);
                strip_zeros(&mut rest);
            }
        }
        Some((rest, divisor, exponent))
    }

    /// This number to the power of `other`. Fractions of an exponent have the 15 digits of a float.
    pub fn power(&self, other: &Decimal) -> Option<Decimal> {
        let exponent = match other.to_integer() {
            Some(exponent) => exponent,
            None => return Decimal::of_float(self.to_float().powf(other.to_float())),
        };
        let mut left = u32::try_from(exponent.unsigned_abs()).ok()?;
        let (mut result, mut square) = (Decimal::of_integer(1), self.clone());
        while left > 0 {
            if left % 2 == 1 {
                result = result.multiply(&square)?;
            }
            left /= 2;
            if left > 0 {
                square = square.multiply(&square)?;
            }
        }
        if exponent < 0 { Decimal::of_integer(1).divide(&result) } else { Some(result) }
    }

    /// The integer that this number is.
    pub fn to_integer(&self) -> Option<i128> {
        if self.exponent < 0 || self.exponent > 38 {
            return None;
        }
        self.to_string().parse().ok()
    }

    /// Which is larger.
    pub fn compare(&self, other: &Decimal) -> Ordering {
        match (self.is_negative, other.is_negative) {
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            _ => {}
        }
        let (a, b, _) = self.aligned(other);
        let by_magnitude = compare_digits(&a, &b);
        if self.is_negative { by_magnitude.reverse() } else { by_magnitude }
    }
}

/// Plain digits, never an exponent.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        let mut text: String = self.digits.iter().map(|&digit| char::from(b'0' + digit)).collect();
        if self.exponent >= 0 {
            text.extend(std::iter::repeat_n('0', self.exponent as usize));
        } else {
            let places = self.exponent.unsigned_abs() as usize;
            let missing = (places + 1).saturating_sub(text.len());
            text.insert_str(0, &"0".repeat(missing));
            text.insert(text.len() - places, '.');
        }
        if self.is_negative {
            f.write_str("-")?;
        }
        f.write_str(&text)
    }
}

fn strip_zeros(digits: &mut Vec<u8>) {
    let leading = digits.iter().take_while(|&&digit| digit == 0).count();
    digits.drain(..leading);
}

/// Compares integers without leading zeros.
fn compare_digits(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

fn add_digits(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut sum = Vec::with_capacity(a.len().max(b.len()) + 1);
    let (mut a, mut b, mut carry) = (a.iter().rev(), b.iter().rev(), 0);
    loop {
        let (x, y) = (a.next(), b.next());
        if x.is_none() && y.is_none() && carry == 0 {
            break;
        }
        let digit = x.unwrap_or(&0) + y.unwrap_or(&0) + carry;
        sum.push(digit % 10);
        carry = digit / 10;
    }
    sum.reverse();
    sum
}

/// `a - b`, where `a` is not smaller.
fn subtract_digits(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut difference = a.to_vec();
    let mut borrow = 0;
    let mut b = b.iter().rev();
    for digit in difference.iter_mut().rev() {
        let taken = b.next().unwrap_or(&0) + borrow;
        borrow = u8::from(*digit < taken);
        *digit = *digit + 10 * borrow - taken;
    }
    difference
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Decimal {
        Decimal::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn numbers_are_read_as_bigfloat_reads_them() {
        let check = |text: &str, want: Option<&str>| {
            assert_eq!(Decimal::parse(text).map(|number| number.to_string()).as_deref(), want, "{text}");
        };
        check("007.50", Some("7.5"));
        check("1e3", Some("1000"));
        check("1.5E-2", Some("0.015"));
        check("0x10", Some("16"));
        check("0b11", Some("3"));
        check("1_000", Some("1000"));
        check("-0.0", Some("0"));
        for bad in
            ["", "1,5", "1 5", "5x10", "abc", "1e", "1e999999999", "80e9223372036854775807", "inf", "--1"]
        {
            check(bad, None);
        }
    }

    /// What Debian's mrtg stored for these.
    #[test]
    fn operations_are_exact_and_quotients_have_40_digits() {
        let third = of("1").divide(&of("3")).unwrap();
        assert_eq!(third.to_string(), "0.3333333333333333333333333333333333333333");
        assert_eq!(
            third.multiply(&of("3")).unwrap().to_string(),
            "0.9999999999999999999999999999999999999999"
        );
        let two_thirds = of("2").divide(&of("3")).unwrap();
        assert_eq!(
            two_thirds.multiply(&of("3")).unwrap().to_string(),
            "2.0000000000000000000000000000000000000001"
        );
        let quotient = of("-9.5").divide(&of("3")).unwrap();
        assert_eq!(quotient.to_string(), "-3.166666666666666666666666666666666666667");
        assert_eq!(
            of("18446744073709551615").subtract(&of("1")).unwrap().to_string(),
            "18446744073709551614"
        );
        let counter = of("18446744073709551615");
        assert_eq!(
            counter.power(&of("3")).unwrap().to_string(),
            "6277101735386680762814942322444851025767571854389858533375"
        );
        assert_eq!(of("2").power(&of("-1")).unwrap().to_string(), "0.5");
        assert_eq!(of("123456").divide(&of("123456")).unwrap().to_string(), "1");
        assert_eq!(of("100").divide(&of("8")).unwrap().to_string(), "12.5");
    }

    #[test]
    fn integers_are_rounded_half_to_even_and_remainders_have_the_divisor_s_sign() {
        let round = |text: &str| of(text).rounded().to_string();
        assert_eq!(
            ["2.5", "3.5", "-7.5", "0.5", "0.6", "99.9", "-0.4"].map(round),
            ["2", "4", "-8", "0", "1", "100", "0"]
        );
        let rest = |a: &str, b: &str| of(a).remainder(&of(b)).unwrap().to_string();
        assert_eq!(rest("7", "4"), "3");
        assert_eq!(rest("-9", "4"), "3");
        assert_eq!(rest("7", "-4"), "-1");
        assert_eq!(rest("-9.5", "4"), "2.5");
        assert_eq!(rest("5", "0"), "5");
        assert_eq!(
            [of("3.7"), of("-3.7"), of("-0.7")].map(|number| number.truncated().to_string()),
            ["3", "-3", "0"]
        );
    }
}
