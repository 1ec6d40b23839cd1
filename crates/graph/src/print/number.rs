//! Formats with one number: C's `%lf`, `%le` and `%lg` with flag, width and precision, and the text around them.

use std::fmt::Write;

use rrd::portable::xport;

/// Greatest width and precision. RRDtool's limit is its memory.
const DIGITS_MAX: usize = 4096;

/// A format with one number in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NumberFormat {
    before: Vec<u8>,
    flag: Option<u8>,
    width: usize,
    precision: usize,
    /// `e`, `f` or `g`, in either case.
    conversion: u8,
    between: Vec<u8>,
    /// The text after `%s` or `%S`, if there is one.
    after_symbol: Option<Vec<u8>>,
    /// Whether digits are those of RRDtool's own printf.
    portable: bool,
}

impl NumberFormat {
    /// `%.0lf`
    pub(crate) fn whole_number() -> NumberFormat {
        NumberFormat::fixed_point(false, 0, 0)
    }

    /// `%.0le`
    pub(crate) fn exponent() -> NumberFormat {
        NumberFormat { conversion: b'e', ..NumberFormat::fixed_point(false, 0, 0) }
    }

    /// `%WIDTH.PRECISIONlf`, filled with zeros or blanks.
    pub(crate) fn fixed_point(zeros: bool, width: usize, precision: usize) -> NumberFormat {
        NumberFormat {
            before: Vec::new(),
            flag: zeros.then_some(b'0'),
            width,
            precision,
            conversion: b'f',
            between: Vec::new(),
            after_symbol: None,
            portable: false,
        }
    }

    /// Parses a format; `None` if it is not one.
    pub(crate) fn parse(format: &[u8]) -> Option<NumberFormat> {
        let mut rest = format;
        let before = literal(&mut rest);
        rest = rest.strip_prefix(b"%")?;
        let flag = rest.first().copied().filter(|byte| b"-+ 0#".contains(byte));
        rest = &rest[usize::from(flag.is_some())..];
        let width = digits(&mut rest)?.unwrap_or(0);
        let precision = match rest.strip_prefix(b".") {
            Some(after) => {
                rest = after;
                digits(&mut rest)??
            }
            None => 6,
        };
        rest = rest.strip_prefix(b"l")?;
        let conversion = rest.first().copied().filter(|byte| b"eEfFgG".contains(byte))?;
        rest = &rest[1..];
        let between = literal(&mut rest);
        let after_symbol = match rest {
            [b'%', b's' | b'S', after @ ..] => {
                rest = after;
                Some(literal(&mut rest))
            }
            _ => None,
        };
        let whole = rest.is_empty();
        let portable = false;
        whole.then_some(NumberFormat {
            portable,
            before,
            flag,
            width,
            precision,
            conversion,
            between,
            after_symbol,
        })
    }

    /// Whether it has `%s` or `%S`.
    pub(crate) fn has_symbol(&self) -> bool {
        self.after_symbol.is_some()
    }

    /// The same with the digits of RRDtool's own printf.
    pub(crate) fn portable(self, portable: bool) -> NumberFormat {
        NumberFormat { portable, ..self }
    }

    /// Formats `value`, and `symbol` for `%s`; `point` is the decimal point.
    pub(crate) fn text(&self, value: f64, symbol: &[u8], point: &str) -> Vec<u8> {
        let mut text = self.before.clone();
        let Some(number) = self.number(value) else { return text };
        text.extend_from_slice(number.replacen('.', point, 1).as_bytes());
        text.extend_from_slice(&self.between);
        if let Some(after) = &self.after_symbol {
            text.extend_from_slice(symbol);
            text.extend_from_slice(after);
        }
        text
    }

    /// `None` if the text ends before the number.
    fn number(&self, value: f64) -> Option<String> {
        let sign = match (value.is_sign_negative(), self.flag) {
            (true, _) => "-",
            (false, Some(b'+')) => "+",
            (false, Some(b' ')) => " ",
            _ => "",
        };
        let digits = self.digits(value.abs())?;
        let fill = self.width.saturating_sub(sign.len() + digits.len());
        Some(match self.flag {
            Some(b'-') => format!("{sign}{digits}{:fill$}", ""),
            Some(b'0') if value.is_finite() => format!("{sign}{:0>fill$}{digits}", ""),
            _ => format!("{:fill$}{sign}{digits}", ""),
        })
    }

    /// The number without its sign.
    fn digits(&self, size: f64) -> Option<String> {
        let text = if size.is_nan() {
            "nan".to_string()
        } else if size.is_infinite() {
            "inf".to_string()
        } else {
            match self.conversion.to_ascii_lowercase() {
                b'f' => self.fixed(size, self.precision)?,
                b'e' => self.scientific(size),
                _ => self.shorter(size, self.precision.max(1))?,
            }
        };
        Some(if self.conversion.is_ascii_uppercase() { text.to_ascii_uppercase() } else { text })
    }

    fn fixed(&self, size: f64, precision: usize) -> Option<String> {
        let mut text = match self.portable {
            true => xport::fixed_text(size, precision)?,
            false => format!("{size:.precision$}"),
        };
        if self.flag == Some(b'#') && precision == 0 {
            text.push('.');
        }
        Some(text)
    }

    fn scientific(&self, size: f64) -> String {
        let (mantissa, exponent) = self.mantissa(size, self.precision);
        with_exponent(&mantissa, exponent, self.flag == Some(b'#') && self.precision == 0)
    }

    fn mantissa(&self, size: f64, precision: usize) -> (String, i32) {
        if self.portable {
            return xport::scientific_text(size, precision);
        }
        let text = format!("{size:.precision$e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        (mantissa.to_string(), exponent.parse().unwrap_or(0))
    }

    /// `%g`: as many significant digits as `precision`, in the shorter form, without zeros at the end.
    fn shorter(&self, size: f64, precision: usize) -> Option<String> {
        let point = self.flag == Some(b'#');
        let (mantissa, exponent) = self.mantissa(size, precision - 1);
        let short = |text: &str| {
            let without = text.trim_end_matches('0').trim_end_matches('.');
            if point || !text.contains('.') { text.to_string() } else { without.to_string() }
        };
        if exponent < -4 || exponent >= precision as i32 {
            return Some(with_exponent(&short(&mantissa), exponent, point && precision == 1));
        }
        Some(short(&self.fixed(size, (precision as i32 - 1 - exponent) as usize)?))
    }
}

/// Takes text up to the next conversion; `%%` is a percent sign.
fn literal(rest: &mut &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    loop {
        match *rest {
            [b'%', b'%', after @ ..] => {
                text.push(b'%');
                *rest = after;
            }
            [b'%', ..] | [] => return text,
            [byte, after @ ..] => {
                text.push(*byte);
                *rest = after;
            }
        }
    }
}

/// Takes digits: `Some(None)` if there are none, `None` if the number is too large.
pub(super) fn digits(rest: &mut &[u8]) -> Option<Option<usize>> {
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, after) = rest.split_at(count);
    *rest = after;
    if count == 0 {
        return Some(None);
    }
    let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (number <= DIGITS_MAX).then_some(Some(number))
}

fn with_exponent(mantissa: &str, exponent: i32, point: bool) -> String {
    let mut text = mantissa.to_string();
    if point {
        text.push('.');
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    // Writing to a String does not fail.
    let _ = write!(text, "e{sign}{:02}", exponent.unsigned_abs());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_c() {
        fn check(format: &str, value: f64, want: &str) {
            let text = NumberFormat::parse(format.as_bytes()).unwrap().text(value, b"k", ".");
            assert_eq!(String::from_utf8(text).unwrap(), want, "{format}");
        }
        check("%lf", 750.170_212_756_446_1, "750.170213");
        check("%.25lf", 750.170_212_756_446_1, "750.1702127564460624853381887");
        check("a%%b%lfc%%d%sc%%", 1.0, "a%b1.000000c%dkc%");
        check("%-8.2lf|", 750.17, "750.17  |");
        check("%08.2lf", -750.17, "-0750.17");
        check("% lf", 1.5, " 1.500000");
        check("%+.1le", 1e100, "+1.0e+100");
        check("%#.0lf", 2.0, "2.");
        check("%012lf", f64::NEG_INFINITY, "        -inf");
        check("%lG", f64::NAN, "NAN");
        check("%lg", 123_456.789, "123457");
        check("%lg", 1_234_567.0, "1.23457e+06");
        check("%lg", -0.00001234, "-1.234e-05");
        check("%#lg", 1.5, "1.50000");
        check("%.3lg", 1e5, "1e+05");
        check("%.0lg", 2.5, "2");
        check("%#lg", 0.0, "0.00000");
        check("%lg", 0.0, "0");
        check("%lg", 100_000.0, "100000");
    }

    #[test]
    fn what_is_no_number_format_is_refused() {
        for format in [
            "",
            "x",
            "%",
            "%%",
            "%s",
            "%d",
            "%f",
            "%l",
            "%.lf",
            "%la",
            "%Lf",
            "%*lf",
            "%lf %lf",
            "%s%lf",
            "%lf%s%s",
            "%lf%",
            "%1$lf",
            "%99999999999lf",
            "%5000lf",
            "%-+lf",
        ] {
            assert_eq!(NumberFormat::parse(format.as_bytes()), None, "{format}");
        }
    }
}
