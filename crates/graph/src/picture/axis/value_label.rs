//! Writes the labels of the vertical axis.

use std::fmt;

use super::steps::Numbers;
use super::vertical::ValueAxisInput;
use crate::argument::lossy;
use crate::picture::options::{AxisFormatter, AxisText, Options};
use crate::print::number::NumberFormat;
use crate::print::scale::Scale;
use crate::print::{TimeFormat, duration};

/// What RRDtool says a number's format must match.
const PATTERN: &str = "^(?:[^%]+|%%)*%[-+ 0#]?[0-9]*(?:[.][0-9]+)?l[eEfFgG](?:[^%]+|%%)*$";
/// Default format of timestamps.
const TIMESTAMP: &[u8] = b"%Y-%m-%d %H:%M:%S";
/// Characters of a number on the left, before its unit.
const LEFT_WIDTH: usize = 4;
/// The same on the right.
const RIGHT_WIDTH: usize = 5;
/// Unit prefixes of the left axis; the middle one is none.
const SYMBOLS: &[u8; 17] = b"yzafpnum kMGTPEZY";
const MIDDLE: i32 = 8;

/// Why a label cannot be written. `Display` is RRDtool's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelError {
    /// The format is none for a number.
    Number(String),
    /// The format is none for a duration.
    Duration,
}

impl fmt::Display for LabelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabelError::Number(format) => {
                write!(f, "invalid format string '{format}' (should match '{PATTERN}')")
            }
            LabelError::Duration => f.write_str("Wrong duration format"),
        }
    }
}

impl std::error::Error for LabelError {}

/// The unit of the labels: that of the limits, or of `--units-exponent`.
///
/// Compat: the latter is computed with a power of the base in single precision, so its numbers are slightly off: 0.2 is
/// 0.00020000000949949 k.
fn unit(options: &Options, limits: (f64, f64)) -> Scale {
    let base = f64::from(options.base);
    let own = match limits.0.abs().max(limits.1.abs()) {
        0.0 => 0,
        greatest => (greatest.ln() / base.ln()).floor() as i32,
    };
    let power = options.units_exponent.map_or(own, |exponent| exponent / 3);
    let ratio = base.powf(f64::from(own) - f64::from(power)) as f32;
    let symbol = usize::try_from(power.saturating_add(MIDDLE)).ok().and_then(|index| SYMBOLS.get(index));
    Scale { factor: base.powf(f64::from(own)) / f64::from(ratio), symbol: symbol.copied().unwrap_or(b'?') }
}

/// Writes the labels of both axes.
pub(super) struct Labels<'a> {
    pub(super) unit: Scale,
    left: Writer<'a>,
    right: Option<Right<'a>>,
    /// The decimal point.
    point: String,
}

/// The right axis, whose values are the left one's, scaled and shifted.
struct Right<'a> {
    scale: f64,
    shift: f64,
    writer: Writer<'a>,
}

/// A line of a linear axis.
#[derive(Clone, Copy)]
pub(super) struct Labelled {
    /// Steps above 0.
    pub(super) index: i64,
    /// From line to line.
    pub(super) step: f64,
    /// Digits after the point, unless the format says how many.
    pub(super) digits: usize,
    /// How the number on the left is written.
    pub(super) numbers: Numbers,
}

impl<'a> Labels<'a> {
    /// Makes the labels of an axis.
    pub(super) fn new(input: &ValueAxisInput<'a>) -> Result<Labels<'a>, LabelError> {
        let (options, times) = (input.options, input.times);
        let right = match options.right_axis {
            Some((scale, shift)) => {
                Some(Right { scale, shift, writer: Writer::new(&options.right_axis_text, times)? })
            }
            None => None,
        };
        let unit = unit(options, input.narrow_limits());
        let left = Writer::new(&options.left_axis, times)?;
        Ok(Labels { unit, left, right, point: times.decimal_point() })
    }

    /// The label on the left of a linear axis.
    pub(super) fn left(&self, line: Labelled) -> Result<Option<Vec<u8>>, LabelError> {
        let scaled = line.step / self.unit.factor * line.index as f64;
        if let Some(text) = self.left.text(line.step * line.index as f64, scaled, &self.point)? {
            return Ok(Some(text));
        }
        let (width, digits) = match line.numbers {
            Numbers::ByGreatest => (LEFT_WIDTH, line.digits),
            Numbers::Fixed(width, digits) => (width, digits),
            Numbers::None => return Ok(None),
        };
        let text = NumberFormat::fixed_point(false, width, digits).text(scaled, b"", &self.point);
        Ok(Some(match self.unit.symbol {
            b' ' => text,
            symbol => with_symbol(text, if line.index == 0 { b' ' } else { symbol }),
        }))
    }

    /// The unit of the right axis, where the left one's middle value is `middle`. Compat: not that of the limits.
    pub(super) fn right_unit(&self, options: &Options, middle: f64) -> Scale {
        let of = |right: &Right<'_>| Scale::of(middle * right.scale + right.shift, f64::from(options.base));
        self.right.as_ref().map_or(self.unit, of)
    }

    /// The label on the right of a linear axis, if there is one. Compat: a format gets the plain value, not the value
    /// in the unit as on the left.
    pub(super) fn right(&self, line: Labelled, unit: Scale) -> Result<Option<Vec<u8>>, LabelError> {
        let Some(right) = &self.right else { return Ok(None) };
        let value = line.step * line.index as f64 * right.scale + right.shift;
        if let Some(text) = right.writer.text(value, value, &self.point)? {
            return Ok(Some(text));
        }
        let number = NumberFormat::fixed_point(false, RIGHT_WIDTH, line.digits);
        Ok(Some(with_symbol(number.text(value / unit.factor, b"", &self.point), unit.symbol)))
    }

    /// The label on the left of a logarithmic axis. Compat: format, formatter and base are ignored.
    pub(super) fn logarithmic_left(&self, options: &Options, value: f64) -> Vec<u8> {
        logarithmic(options, value, 3, 1000.0)
    }

    /// The label on the right of a logarithmic axis, if there is one. Compat: the formatter is ignored.
    pub(super) fn logarithmic_right(&self, options: &Options, value: f64) -> Option<Vec<u8>> {
        let right = self.right.as_ref()?;
        let value = value * right.scale + right.shift;
        Some(match &right.writer.number {
            Some(format) => format.text(value, b"", &self.point),
            None => logarithmic(options, value, 4, f64::from(options.base)),
        })
    }
}

/// A number on a logarithmic axis: one digit and an exponent, or `--units=si` with `width` characters.
fn logarithmic(options: &Options, value: f64, width: usize, base: f64) -> Vec<u8> {
    if !options.units_si {
        return NumberFormat::exponent().text(value, b"", ".");
    }
    let scale = Scale::of(value, base);
    with_symbol(NumberFormat::fixed_point(false, width, 0).text(value / scale.factor, b"", "."), scale.symbol)
}

/// Appends a unit.
fn with_symbol(mut text: Vec<u8>, symbol: u8) -> Vec<u8> {
    text.extend_from_slice(&[b' ', symbol]);
    text
}

/// Writes the labels of one axis as its options say.
struct Writer<'a> {
    formatter: AxisFormatter,
    /// Never empty. Compat: an empty format counts as none.
    format: Option<&'a [u8]>,
    /// The format of numbers.
    number: Option<NumberFormat>,
    times: &'a dyn TimeFormat,
}

impl<'a> Writer<'a> {
    fn new(text: &'a AxisText, times: &'a dyn TimeFormat) -> Result<Writer<'a>, LabelError> {
        let formatter = text.formatter;
        let format = text.format.as_deref().filter(|format| !format.is_empty());
        let number = match format {
            Some(format) if formatter == AxisFormatter::Numeric => {
                let refused = || LabelError::Number(lossy(format));
                Some(NumberFormat::parse(format).filter(|format| !format.has_symbol()).ok_or_else(refused)?)
            }
            _ => None,
        };
        Ok(Writer { formatter, format, number, times })
    }

    /// The text of `value`, for numeric formats that of `number`; `None` if the options have no format.
    fn text(&self, value: f64, number: f64, point: &str) -> Result<Option<Vec<u8>>, LabelError> {
        Ok(match self.formatter {
            AxisFormatter::Numeric => self.number.as_ref().map(|format| format.text(number, b"", point)),
            AxisFormatter::Timestamp => {
                Some(self.times.strftime_utc(self.format.unwrap_or(TIMESTAMP), value as i64))
            }
            AxisFormatter::Duration => Some(
                duration::text(self.format.unwrap_or_default(), value, point).ok_or(LabelError::Duration)?,
            ),
        })
    }
}
