//! Numbers as senders write them: whole ones stay whole, because a counter may be larger than what a float holds.

/// A number of a sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole number.
    Unsigned(u64),
    /// A whole number below zero.
    Signed(i64),
    /// Any other. It may be infinite or NaN.
    Float(f64),
}

impl Number {
    /// A decimal number, `nan` or `inf` in any case, with a sign or without.
    pub fn of_text(text: &[u8]) -> Option<Number> {
        let (is_negative, digits) = match text.split_first()? {
            (b'-', digits) => (true, digits),
            (b'+', digits) => (false, digits),
            _ => (false, text),
        };
        // Nineteen digits always fit.
        if (1..=19).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit) {
            let magnitude = digits.iter().fold(0_u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
            return match is_negative {
                false => Some(Number::Unsigned(magnitude)),
                true => Some(0_i64.checked_sub_unsigned(magnitude).map_or_else(
                    || Number::Float(-(magnitude as f64)),
                    |number| if number == 0 { Number::Unsigned(0) } else { Number::Signed(number) },
                )),
            };
        }
        let text = std::str::from_utf8(text).ok()?;
        if let Ok(number) = text.parse::<u64>() {
            return Some(Number::Unsigned(number));
        }
        text.parse::<f64>().ok().map(Number::Float)
    }

    /// The nearest float.
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Unsigned(number) => number as f64,
            Number::Signed(number) => number as f64,
            Number::Float(number) => number,
        }
    }

    /// True unless it is infinite or NaN.
    pub fn is_finite(self) -> bool {
        self.to_f64().is_finite()
    }
}

impl From<i64> for Number {
    fn from(number: i64) -> Number {
        u64::try_from(number).map_or(Number::Signed(number), Number::Unsigned)
    }
}

/// Seconds as a number, as nanoseconds; `None` when such a time is not to be had.
pub fn nanoseconds(seconds: Number) -> Option<i64> {
    match seconds {
        Number::Unsigned(whole) => i64::try_from(whole).ok()?.checked_mul(1_000_000_000),
        Number::Signed(whole) => whole.checked_mul(1_000_000_000),
        // Microseconds are the finest that seconds of this size have as a float.
        Number::Float(seconds) if seconds.abs() < 9.2e9 => Some((seconds * 1e6).round() as i64 * 1_000),
        Number::Float(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_stay_whole() {
        let check = |text: &str, want: Option<Number>| {
            assert_eq!(Number::of_text(text.as_bytes()), want, "{text}");
        };
        check("0", Some(Number::Unsigned(0)));
        check("-0", Some(Number::Unsigned(0)));
        check("+7", Some(Number::Unsigned(7)));
        check("18446744073709551615", Some(Number::Unsigned(u64::MAX)));
        check("-9223372036854775808", Some(Number::Signed(i64::MIN)));
        check("-9999999999999999999", Some(Number::Float(-9_999_999_999_999_999_999.0)));
        check("18446744073709551616", Some(Number::Float(18_446_744_073_709_551_616.0)));
        check("1.5e3", Some(Number::Float(1500.0)));
        check(".5", Some(Number::Float(0.5)));
        check("-inf", Some(Number::Float(f64::NEG_INFINITY)));
        for bad in ["", "-", "+", "1,5", "0x10", "1_000", " 1", "1e", "--1"] {
            check(bad, None);
        }
        assert!(!Number::of_text(b"NaN").unwrap().is_finite());
    }

    #[test]
    fn seconds_have_fractions() {
        assert_eq!(nanoseconds(Number::Unsigned(1_700_000_000)), Some(1_700_000_000_000_000_000));
        assert_eq!(nanoseconds(Number::Float(1_700_000_000.25)), Some(1_700_000_000_250_000_000));
        assert_eq!(nanoseconds(Number::Float(f64::NAN)), None);
        assert_eq!(nanoseconds(Number::Unsigned(u64::MAX)), None);
        assert_eq!(nanoseconds(Number::Signed(-1)), Some(-1_000_000_000));
    }
}
