//! Durations, as `rrdcreate(1)` takes them for steps, heartbeats and rows.
//!
//! A plain integer is a count. With one of the suffixes `s m h d w M y` (M = 31 days, y = 366 days) it is a
//! time, which must be a multiple of the target unit; anything after the suffix is ignored, as in RRDtool, so that
//! `100ms` are 100 minutes. Beyond RRDtool, which refuses them, and only where the target is a store: decimals, as in
//! `0.1` and `0.1s`, down to a thousandth of a second.

use std::fmt;

/// Units per second of an RRD whose step is a fraction of a second.
pub const FINE_UNITS: u32 = 1000;

/// Why a text is not a duration. `Display` is RRDtool's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurationError {
    /// It does not begin with a digit.
    NotNumber,
    /// It is zero.
    Zero,
    /// Something other than a suffix follows the number.
    Trailing,
    /// It is not a multiple of the target unit.
    Truncates,
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DurationError::NotNumber => "value must be (suffixed) positive number",
            DurationError::Zero => "value must be positive",
            DurationError::Trailing => "value has trailing garbage",
            DurationError::Truncates => "value would truncate when scaled",
        })
    }
}

impl std::error::Error for DurationError {}

/// How to read a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationScale {
    /// What a plain integer counts, in units of the RRD.
    pub divisor: u64,
    /// Units per second: 1 or [`FINE_UNITS`].
    pub units_per_second: u32,
    /// Whether decimals are accepted; otherwise they are refused, as by RRDtool.
    pub sub_second: bool,
}

impl DurationScale {
    /// RRDtool's own scale, for a time in whole seconds.
    pub const SECONDS: DurationScale = DurationScale { divisor: 1, units_per_second: 1, sub_second: false };
}

/// The duration in `text`, in multiples of `scale.divisor` units.
///
/// # Errors
/// [`DurationError`]. With one unit per second a sub-second duration truncates.
pub fn parse_duration(text: &str, scale: DurationScale) -> Result<u64, DurationError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return Err(DurationError::NotNumber);
    }
    // Like strtoul: too many digits give the largest number.
    let number = text[..digits].parse().unwrap_or(u64::MAX);
    let suffix = &text[digits..];
    if scale.sub_second
        && let Some(thousandths) = parse_decimals(number, suffix)?
    {
        return divide(thousandths, 1000, scale);
    }
    let Some(suffix) = suffix.bytes().next() else {
        return if number == 0 { Err(DurationError::Zero) } else { Ok(number) };
    };
    let seconds = suffix_seconds(suffix).ok_or(DurationError::Trailing)?;
    divide(number.wrapping_mul(seconds), 1, scale)
}

/// Thousandths of a second, when the number has decimals.
fn parse_decimals(number: u64, suffix: &str) -> Result<Option<u64>, DurationError> {
    let Some(fraction) = suffix.strip_prefix('.') else { return Ok(None) };
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    let seconds = match &fraction.as_bytes()[digits..] {
        [] => 1,
        [suffix] => suffix_seconds(*suffix).ok_or(DurationError::Trailing)?,
        _ => return Err(DurationError::Trailing),
    };
    // Nine digits are finer than a thousandth can hold, whatever the suffix.
    if digits == 0 || digits > 9 {
        return Err(DurationError::Trailing);
    }
    let scale = 10u128.pow(digits as u32);
    let value: u128 = fraction[..digits].parse().map_err(|_| DurationError::Trailing)?;
    // The largest number of years with nine digits after the point is more than 128 bits hold.
    let total = (u128::from(number) * scale + value)
        .checked_mul(u128::from(seconds) * 1000)
        .ok_or(DurationError::Truncates)?;
    if !total.is_multiple_of(scale) {
        return Err(DurationError::Truncates);
    }
    u64::try_from(total / scale).map(Some).map_err(|_| DurationError::Truncates)
}

/// `time` is in `1/per_second` seconds.
fn divide(time: u64, per_second: u64, scale: DurationScale) -> Result<u64, DurationError> {
    let units = u128::from(time) * u128::from(scale.units_per_second);
    let divisor = u128::from(per_second) * u128::from(scale.divisor.max(1));
    if units == 0 {
        return Err(DurationError::Zero);
    }
    if !units.is_multiple_of(divisor) {
        return Err(DurationError::Truncates);
    }
    u64::try_from(units / divisor).map_err(|_| DurationError::Truncates)
}

fn suffix_seconds(suffix: u8) -> Option<u64> {
    const DAY: u64 = 24 * 3600;
    Some(match suffix {
        b's' => 1,
        b'm' => 60,
        b'h' => 3600,
        b'd' => DAY,
        b'w' => 7 * DAY,
        b'M' => 31 * DAY,
        b'y' => 366 * DAY,
        _ => return None,
    })
}

/// A step: its length, and the units it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Length, in units.
    pub units: u64,
    /// Units per second: 1, or [`FINE_UNITS`] when the step is not a whole number of seconds.
    pub units_per_second: u32,
}

impl Step {
    /// The default of `create`.
    pub const DEFAULT: Step = Step { units: 300, units_per_second: 1 };
}

impl fmt::Display for Step {
    /// Seconds, as [`parse_step`] takes them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.units_per_second == 1 {
            return write!(f, "{}", self.units);
        }
        let unit = u64::from(self.units_per_second);
        let thousandths = self.units % unit * 1000 / unit;
        write!(f, "{}.{thousandths:03}", self.units / unit)
    }
}

/// The argument of `create --step`; `sub_second` as in [`DurationScale`].
///
/// # Errors
/// [`DurationError`]; RRDtool prefixes it with "step size: ".
pub fn parse_step(text: &str, sub_second: bool) -> Result<Step, DurationError> {
    let scale = DurationScale { sub_second, ..DurationScale::SECONDS };
    match parse_duration(text, scale) {
        Err(DurationError::Truncates) if sub_second => {
            let scale = DurationScale { units_per_second: FINE_UNITS, ..scale };
            parse_duration(text, scale).map(|units| Step { units, units_per_second: FINE_UNITS })
        }
        whole => whole.map(|units| Step { units, units_per_second: 1 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_rrdtool_reads_them() {
        fn check(text: &str, divisor: u64, want: Result<u64, DurationError>) {
            assert_eq!(
                parse_duration(text, DurationScale { divisor, ..DurationScale::SECONDS }),
                want,
                "{text}"
            );
        }
        check("10", 300, Ok(10));
        check("10m", 300, Ok(2));
        check("1d", 1, Ok(86400));
        check("1M", 1, Ok(2_678_400));
        check("1y", 1, Ok(31_622_400));
        check("5mm", 1, Ok(300));
        check("100ms", 1, Ok(6000));
        check("99999999999999999999", 1, Ok(u64::MAX));
        check("7m", 300, Err(DurationError::Truncates));
        check("0", 1, Err(DurationError::Zero));
        check("0m", 1, Err(DurationError::Zero));
        check("", 1, Err(DurationError::NotNumber));
        check("+5", 1, Err(DurationError::NotNumber));
        check("1.5", 1, Err(DurationError::Trailing));
        check("10x", 1, Err(DurationError::Trailing));
    }

    #[test]
    fn steps_can_be_fractions_where_a_store_holds_them() {
        fn check(text: &str, want: Option<(u64, u32)>) {
            let got = parse_step(text, true).ok().map(|step| (step.units, step.units_per_second));
            assert_eq!(got, want, "{text}");
        }
        check("0.1", Some((100, 1000)));
        check("0.25", Some((250, 1000)));
        check("0.001s", Some((1, 1000)));
        check("1.5s", Some((1500, 1000)));
        check("0.5m", Some((30, 1)));
        check("2.0", Some((2, 1)));
        // Found by libFuzzer: it overflowed.
        check("99999999999999999999.110000001y", None);
        check("5m", Some((300, 1)));
        check("0.0001", None);
        // As RRDtool reads it, wherever it stands: 100 minutes.
        check("100ms", Some((6000, 1)));
        check("0.0", None);
        check(".5", None);
        check("1.", None);
        check("1.5sx", None);
    }

    #[test]
    fn a_step_is_shown_as_it_is_read() {
        for text in ["300", "0.001", "0.100", "1.500", "86400.999"] {
            assert_eq!(parse_step(text, true).unwrap().to_string(), text);
        }
    }
}
