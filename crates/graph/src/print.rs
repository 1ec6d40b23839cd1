//! The texts of PRINT and GPRINT.
//!
//! Parses formats and fills them with values, times and durations. The [`Printer`] keeps the magnitude that `%S` takes
//! from one text to the next. Dates come through [`TimeFormat`], as the C library's calendar and locale belong to the
//! caller.

pub(crate) mod duration;
pub(crate) mod number;
pub(crate) mod scale;

use std::borrow::Cow;
use std::fmt;

use rrd::definition::Cf;
use rrd::live::UNKNOWN;
use rrd::rpn::{Series, VdefValue};

use crate::argument::lossy;
use crate::eval::Data;
use crate::language::{Element, Print, PrintSource, PrintStyle, Script};
use number::NumberFormat;
use scale::Scale;

/// What RRDtool says a number's format must match.
const PATTERN: &str =
    "^(?:[^%]+|%%)*%[-+ 0#]?[0-9]*(?:[.][0-9]+)?l[eEfFgG](?:[^%]+|%%)*(?:%[sS])?(?:[^%]+|%%)*$";
/// Times beyond this have no date: 2^63 seconds.
const TIME_LIMIT: f64 = 9_223_372_036_854_775_808.0;

/// Formats dates in local time and the current locale, and knows its decimal point.
pub trait TimeFormat {
    /// C's `strftime` for `time`, in seconds since the epoch.
    fn strftime(&self, format: &[u8], time: i64) -> Vec<u8>;

    /// The same in universal time.
    fn strftime_utc(&self, format: &[u8], time: i64) -> Vec<u8>;

    /// The decimal point.
    fn decimal_point(&self) -> String {
        ".".to_string()
    }
}

/// Why a text cannot be printed. `Display` is the text of `rrdtool graph`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrintError {
    /// The format is none for a number.
    NumberFormat(String),
    /// The format is none for a duration.
    DurationFormat,
}

impl fmt::Display for PrintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrintError::NumberFormat(format) => {
                write!(f, "invalid format string '{format}' (should match '{PATTERN}')")
            }
            PrintError::DurationFormat => f.write_str("Wrong duration format"),
        }
    }
}

impl std::error::Error for PrintError {}

/// The texts of all PRINTs and GPRINTs of a graph, in the order of the arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// PRINT
    pub outside: Vec<Vec<u8>>,
    /// GPRINT
    pub inside: Vec<Vec<u8>>,
}

impl Printed {
    /// Prints them in order: `%S` depends on the texts before it. `base` is 1000 or 1024.
    ///
    /// # Errors
    /// The first [`PrintError`].
    pub fn of(
        script: &Script,
        data: &Data,
        times: &dyn TimeFormat,
        base: u32,
    ) -> Result<Printed, PrintError> {
        let mut printer = Printer::new(times, f64::from(base));
        let mut printed = Printed::default();
        for element in &script.elements {
            if let Element::Print(print) = element {
                let list = if print.inside { &mut printed.inside } else { &mut printed.outside };
                list.push(printer.print(print, data)?);
            }
        }
        Ok(printed)
    }
}

/// Prints texts one after the other.
pub struct Printer<'a> {
    times: &'a dyn TimeFormat,
    base: f64,
    kept: Option<Scale>,
    of_xport: bool,
    point: String,
}

impl<'a> Printer<'a> {
    /// A printer whose magnitudes are powers of `base`: 1000, or 1024 for `--base 1024`.
    pub fn new(times: &'a dyn TimeFormat, base: f64) -> Printer<'a> {
        Printer { times, base, kept: None, of_xport: false, point: times.decimal_point() }
    }

    /// A printer for xport. Compat: xport prints without the C library, so NaN and zero have no sign, the decimal point is
    /// a point in every locale, and `valstrftime` and `valstrfduration` do nothing.
    pub(crate) fn of_xport(times: &'a dyn TimeFormat, base: f64) -> Printer<'a> {
        Printer { of_xport: true, point: ".".to_string(), ..Printer::new(times, base) }
    }

    /// The text of `print`.
    ///
    /// # Errors
    /// [`PrintError`].
    pub fn print(&mut self, print: &Print, data: &Data) -> Result<Vec<u8>, PrintError> {
        let value = match print.source {
            PrintSource::Scalar(scalar) => data.scalars[scalar],
            PrintSource::Series { series, cf } => consolidated(&data.series[series], cf),
        };
        if !self.of_xport {
            return self.text(&print.format, print.style, value);
        }
        let style = if print.style == PrintStyle::Time { PrintStyle::Time } else { PrintStyle::Number };
        // Adding 0 leaves every number but -0 as it is.
        let plain = if value.value.is_nan() { f64::NAN.copysign(1.0) } else { value.value + 0.0 };
        self.text(&print.format, style, VdefValue { value: plain, ..value })
    }

    /// The text of one value.
    ///
    /// # Errors
    /// [`PrintError`].
    pub fn text(&mut self, format: &[u8], style: PrintStyle, of: VdefValue) -> Result<Vec<u8>, PrintError> {
        let whole = || NumberFormat::whole_number().text(of.value, b"", ".");
        match style {
            PrintStyle::Number => self.number(format, of.value),
            PrintStyle::Time => Ok(match of.time {
                Some(time) => self.times.strftime(format, time),
                None if self.of_xport => b"-".to_vec(),
                None => unknown_time(format),
            }),
            // NaN is not below the limit either. Compat: a value that is a time is universal time.
            PrintStyle::ValueAsTime if of.value.abs() < TIME_LIMIT => {
                Ok(self.times.strftime_utc(format, of.value as i64))
            }
            PrintStyle::Duration if of.value.is_finite() => {
                duration::text(format, of.value, &self.point).ok_or(PrintError::DurationFormat)
            }
            PrintStyle::ValueAsTime | PrintStyle::Duration => Ok(whole()),
        }
    }

    fn number(&mut self, format: &[u8], value: f64) -> Result<Vec<u8>, PrintError> {
        // Compat: RRDtool looks for %S before %s, and does not mind that a percent sign may precede; it makes the first one %s.
        let keeps = format.windows(2).position(|window| window == b"%S");
        let mut format = Cow::Borrowed(format);
        if let Some(at) = keeps {
            format.to_mut()[at + 1] = b's';
        }
        let parsed = NumberFormat::parse(&format).ok_or_else(|| PrintError::NumberFormat(lossy(&format)))?;
        let parsed = parsed.portable(self.of_xport);
        let scale = if keeps.is_some() {
            match self.kept {
                Some(kept) => kept,
                None => {
                    let own = Scale::of(value, self.base);
                    self.kept = (value != 0.0).then_some(own);
                    own
                }
            }
        } else if contains(&format, b"%s") {
            *self.kept.insert(Scale::of(value, self.base))
        } else {
            return Ok(parsed.text(value, b"", &self.point));
        };
        Ok(parsed.text(value / scale.factor, &[scale.symbol], &self.point))
    }
}

fn contains(text: &[u8], what: &[u8]) -> bool {
    text.windows(what.len()).any(|window| window == what)
}

/// Consolidates the finite rows of `series` to one value without a time, for the deprecated `PRINT:vname:CF:format`.
/// Compat: infinite rows are left out like unknown ones, whatever the consolidation function.
fn consolidated(series: &Series, cf: Cf) -> VdefValue {
    let mut known = series.values.iter().copied().filter(|value| value.is_finite());
    let value = match (known.next(), cf) {
        (None, _) => UNKNOWN,
        // Compat: of 0 and -0 the last one.
        (Some(first), Cf::Min) => {
            known.fold(first, |least, value| if value <= least { value } else { least })
        }
        (Some(first), Cf::Max | Cf::Failures) => {
            known.fold(first, |most, value| if value >= most { value } else { most })
        }
        (Some(first), Cf::Last) => known.next_back().unwrap_or(first),
        (Some(first), _) => {
            let (sum, count) = known.fold((first, 1.0), |(sum, count), value| (sum + value, count + 1.0));
            sum / count
        }
    };
    VdefValue { value, time: None }
}

/// The text of an unknown time: a dash for each digit of the date. Found by asking Debian's rrdtool for every letter.
fn unknown_time(format: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut rest = format.iter();
    while let Some(&byte) = rest.next() {
        if byte != b'%' {
            text.push(byte);
            continue;
        }
        let letter = rest.next().copied();
        if let Some(b'E' | b'O') = letter {
            rest.next();
        }
        text.extend_from_slice(match letter {
            Some(b'%') => b"%",
            Some(b'n') => b"\n",
            Some(b't') => b"\t",
            Some(b'd' | b'g' | b'm' | b'y' | b'C' | b'H' | b'I' | b'M' | b'S' | b'U' | b'V' | b'W') => b"--",
            Some(b'j') => b"---",
            Some(b'G' | b'Y') => b"----",
            Some(b'D') => b"--/--/--",
            Some(b'F') => b"----------",
            Some(b'R') => b"--:--",
            Some(b'T') => b"--:--:--",
            _ => b"-",
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl TimeFormat for Fixed {
        fn strftime(&self, _format: &[u8], time: i64) -> Vec<u8> {
            format!("at {time}").into_bytes()
        }

        fn strftime_utc(&self, _format: &[u8], time: i64) -> Vec<u8> {
            format!("at {time} UTC").into_bytes()
        }
    }

    fn texts(format: &str, values: &[f64]) -> String {
        let mut printer = Printer::new(&Fixed, 1000.0);
        let mut text = |&value: &f64| {
            let value = VdefValue { value, time: None };
            lossy(&printer.text(format.as_bytes(), PrintStyle::Number, value).unwrap())
        };
        values.iter().map(&mut text).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn magnitudes_are_each_its_own_or_kept() {
        assert_eq!(
            texts("%.3lf%s", &[12.5, 0.0, 1500.0, 999.9999, 1e-7, 1e30, 5e-324]),
            "12.500 |0.000 |1.500k|1000.000 |100.000n|1.000?|inf?"
        );
        assert_eq!(
            texts("%.3lf%S", &[0.0, 0.0, 1.5e6, 0.0, 2.0, 3e9]),
            "0.000 |0.000 |1.500M|0.000M|0.000M|3000.000M"
        );
        assert_eq!(texts("%.3lf%S", &[f64::INFINITY, 5000.0, UNKNOWN]), "inf?|inf?|-nan?");
        assert_eq!(texts("%.3lf%S", &[UNKNOWN, 5000.0]), "-nan |5000.000 ");
        // After a percent sign, too.
        assert_eq!(texts("%%S%.0lf%s", &[5000.0, 2.0]), "%s5k|%s0k");
        assert_eq!(texts("%%s%.0lf%S", &[5000.0, 2.0]), "%s5k|%s0k");
        assert_eq!(texts("%%s%.0lf", &[5000.0, 2.0]), "%s5|%s2");
    }

    /// A locale with a decimal comma.
    struct Comma;

    impl TimeFormat for Comma {
        fn strftime(&self, _format: &[u8], _time: i64) -> Vec<u8> {
            Vec::new()
        }

        fn strftime_utc(&self, _format: &[u8], _time: i64) -> Vec<u8> {
            Vec::new()
        }

        fn decimal_point(&self) -> String {
            ",".to_string()
        }
    }

    /// What Debian's rrdtool printed with `LC_ALL=de_DE.UTF-8`.
    #[test]
    fn decimals_follow_the_point_of_the_locale() {
        fn check(printer: &mut Printer<'_>, style: PrintStyle, format: &str, want: &str) {
            let value = VdefValue { value: 17.948, time: None };
            assert_eq!(lossy(&printer.text(format.as_bytes(), style, value).unwrap()), want);
        }
        let mut printer = Printer::new(&Comma, 1000.0);
        check(&mut printer, PrintStyle::Number, "a.b%.3lf%s.x", "a.b17,948 .x");
        check(&mut printer, PrintStyle::Duration, "%.2f|", "17,94|");
        check(&mut Printer::of_xport(&Comma, 1000.0), PrintStyle::Number, "a.b%.3lf%s.x", "a.b17.948 .x");
    }

    /// What Debian's rrdtool printed for these rows.
    #[test]
    fn of_two_zeros_the_last_one_is_printed() {
        fn check(values: &[f64], want: f64) {
            let series = Series { start: 0, step: 10, values: values.to_vec() };
            for cf in [Cf::Min, Cf::Max, Cf::Last] {
                assert_eq!(consolidated(&series, cf).value.to_bits(), want.to_bits(), "{cf:?} {values:?}");
            }
        }
        check(&[0.0, -0.0, 0.0, -0.0], -0.0);
        check(&[-0.0, 0.0, -0.0, 0.0], 0.0);
        check(&[UNKNOWN, 0.0, -0.0, UNKNOWN], -0.0);
    }

    /// What Debian's rrdtool printed.
    #[test]
    fn a_time_that_is_not_known_is_dashes() {
        fn check(format: &str, want: &str) {
            assert_eq!(String::from_utf8(unknown_time(format.as_bytes())).unwrap(), want, "{format}");
        }
        check("%Y-%m-%d %H:%M:%S", "---------- --:--:--");
        check("%F %T", "---------- --:--:--");
        check("%D %R%n%t%%", "--/--/-- --:--\n\t%");
        check("%j%U %c %s %Z", "----- - - -");
        check("x%Yy%%z %10Y %Ey %Od.", "x----y%z -0Y - -.");
        check("abc %", "abc -");
        check("", "");
    }

    #[test]
    fn times_and_durations_take_their_part_of_the_value() {
        fn check(style: PrintStyle, value: f64, time: Option<i64>, want: &str) {
            let got = Printer::new(&Fixed, 1000.0).text(b"%H", style, VdefValue { value, time });
            assert_eq!(got.map(|text| lossy(&text)).unwrap(), want);
        }
        check(PrintStyle::Time, 1.0, Some(7), "at 7");
        check(PrintStyle::Time, 1.0, None, "--");
        check(PrintStyle::ValueAsTime, -750.9, None, "at -750 UTC");
        check(PrintStyle::ValueAsTime, 1e19, None, "10000000000000000000");
        check(PrintStyle::ValueAsTime, UNKNOWN, None, "-nan");
        check(PrintStyle::Duration, 7_200_000.0, None, "2");
        check(PrintStyle::Duration, f64::NEG_INFINITY, None, "-inf");
    }

    #[test]
    fn what_is_no_format_is_told_with_the_pattern() {
        let value = VdefValue { value: 1.0, time: None };
        let mut printer = Printer::new(&Fixed, 1000.0);
        let error = printer.text(b"%lf%S%s", PrintStyle::Number, value).unwrap_err().to_string();
        assert!(error.starts_with("invalid format string '%lf%s%s' (should match '^(?:"), "{error}");
        let error = printer.text(b"%x", PrintStyle::Duration, value).unwrap_err();
        assert_eq!(error, PrintError::DurationFormat);
    }
}
