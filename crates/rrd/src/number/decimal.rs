//! The digits of a number as they are written, without rounding.

/// A number as its digits: `0.d1 d2 d3 ... * 10^point`. Leading zeros are not among the digits.
#[derive(Clone, Copy, Debug)]
pub struct Decimal<'a> {
    /// True when a minus precedes it.
    pub negative: bool,
    /// Where the decimal point is, counted from the first digit.
    pub point: i32,
    /// The digits before the point of the text, without leading zeros.
    whole: &'a [u8],
    /// The digits after it; without leading zeros if there are no others before them.
    fraction: &'a [u8],
}

/// The digits of a text that [`super::parse_digits`] takes.
pub fn decimal(text: &[u8]) -> Decimal<'_> {
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
    let mut rest = &text[blanks..];
    let negative = super::take_sign(&mut rest);
    let whole = without_zeros(cut_digits(&mut rest));
    let (mut fraction, mut point) = (&[][..], whole.len() as i32);
    if let [b'.', after @ ..] = rest {
        rest = after;
        fraction = cut_digits(&mut rest);
        if whole.is_empty() {
            let length = fraction.len();
            fraction = without_zeros(fraction);
            point = -((length - fraction.len()) as i32);
        }
    }
    if let [b'e' | b'E', after @ ..] = rest {
        rest = after;
        point = point.saturating_add(super::take_exponent(&mut rest));
    }
    Decimal { negative, point, whole, fraction }
}

impl Decimal<'_> {
    fn digits(&self) -> impl Iterator<Item = u8> {
        self.whole.iter().chain(self.fraction).map(|digit| digit - b'0')
    }

    /// True for zero, whatever its sign.
    pub fn is_zero(&self) -> bool {
        self.digits().all(|digit| digit == 0)
    }

    /// The integer that the first `count` digits are, with zeros for those that the text does not have. Up to 38
    /// digits.
    pub fn to_the_left_of(&self, count: i32) -> i128 {
        let digits = self.digits().chain(std::iter::repeat(0));
        digits.take(count.max(0) as usize).fold(0i128, |number, digit| number * 10 + i128::from(digit))
    }

    /// True when a digit after the first `count` is not 0.
    pub fn has_digits_from(&self, count: i32) -> bool {
        self.digits().skip(count.max(0) as usize).any(|digit| digit != 0)
    }
}

fn cut_digits<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, after) = rest.split_at(count);
    *rest = after;
    digits
}

fn without_zeros(digits: &[u8]) -> &[u8] {
    &digits[digits.iter().take_while(|digit| **digit == b'0').count()..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_text() {
        fn check(text: &str, count: i32, want: i128) {
            let number = decimal(text.as_bytes());
            assert_eq!(number.to_the_left_of(number.point + count), want, "{text}");
        }
        check("1700000000.1", 6, 1_700_000_000_100_000);
        check("0001700000000.123456789", 6, 1_700_000_000_123_456);
        check(" +1.7000000001e9", 6, 1_700_000_000_100_000);
        check("17000000001e-1", 6, 1_700_000_000_100_000);
        check(".0001e7", 6, 1_000_000_000);
        check("0.0000004", 6, 0);
        check("5.", 0, 5);
        check("-2.5", 1, 25);
        assert!(decimal(b"-0.0").is_zero() && !decimal(b"0.01").is_zero());
        assert!(decimal(b"1.5").has_digits_from(1) && !decimal(b"1.50").has_digits_from(2));
    }
}
