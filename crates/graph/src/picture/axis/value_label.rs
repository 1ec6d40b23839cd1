//! What the labels of the vertical axis say.

use std::fmt;

use crate::argument::lossy;
use crate::picture::options::{AxisFormatter, AxisText, Options};
use crate::print::number::NumberFormat;
use crate::print::scale::Scale;
use crate::print::{TimeFormat, duration};

/// What RRDtool says a number's format must match.
const PATTERN: &str = "^(?:[^%]+|%%)*%[-+ 0#]?[0-9]*(?:[.][0-9]+)?l[eEfFgG](?:[^%]+|%%)*$";
/// Format of timestamps that have none of their own.
const TIMESTAMP: &[u8] = b"%Y-%m-%d %H:%M:%S";
/// Characters of a number on the right, before its unit.
const RIGHT_WIDTH: usize = 5;
/// Units of the left axis; the middle one stands for none.
const SYMBOLS: &[u8; 17] = b"yzafpnum kMGTPEZY";
const MIDDLE: i32 = 8;

/// Why a label cannot be written. `Display` is RRDtool's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelError {
    /// The format of a number.
    Number(String),
    /// The format of a duration.
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

/// What labels are in: the unit of the limits, or that of `--units-exponent`.
fn unit(options: &Options, limits: (f64, f64)) -> Scale {
    let base = f64::from(options.base);
    let power = match options.units_exponent {
        Some(exponent) => exponent / 3,
        None => match limits.0.abs().max(limits.1.abs()) {
            0.0 => 0,
            greatest => (greatest.ln() / base.ln()).floor() as i32,
        },
    };
    let symbol = usize::try_from(power.saturating_add(MIDDLE)).ok().and_then(|index| SYMBOLS.get(index));
    Scale { factor: base.powf(f64::from(power)), symbol: symbol.copied().unwrap_or(b'?') }
}

/// Writes the labels of both axes.
pub(super) struct Labels<'a> {
    pub(super) unit: Scale,
    left: Writer<'a>,
    right: Option<Right<'a>>,
}

/// The right axis: its values are the left one's, scaled and shifted.
struct Right<'a> {
    scale: f64,
    shift: f64,
    unit: Scale,
    writer: Writer<'a>,
}

impl<'a> Labels<'a> {
    /// Of an axis between these limits.
    pub(super) fn new(
        options: &'a Options,
        limits: (f64, f64),
        times: &'a dyn TimeFormat,
    ) -> Result<Labels<'a>, LabelError> {
        let right = match options.right_axis {
            Some((scale, shift)) => {
                let greatest = (limits.0 * scale + shift).abs().max((limits.1 * scale + shift).abs());
                let unit = Scale::of(greatest, f64::from(options.base));
                Some(Right { scale, shift, unit, writer: Writer::new(&options.right_axis_text, times)? })
            }
            None => None,
        };
        Ok(Labels { unit: unit(options, limits), left: Writer::new(&options.left_axis, times)?, right })
    }

    /// The label on the left of a linear axis: by its own format in the unit, or with so many characters and
    /// digits behind the point.
    pub(super) fn left(&self, value: f64, width: usize, digits: usize) -> Result<Vec<u8>, LabelError> {
        let scaled = value / self.unit.factor;
        if let Some(text) = self.left.text(value, scaled)? {
            return Ok(text);
        }
        let mut text = NumberFormat::fixed_point(false, width, digits).text(scaled, b"");
        if self.unit.symbol != b' ' {
            text.extend_from_slice(&[b' ', if value == 0.0 { b' ' } else { self.unit.symbol }]);
        }
        Ok(text)
    }

    /// The label on the right of a linear axis, if there is one. Compat: its own format is not given the value in
    /// the unit, as the left one's is.
    pub(super) fn right(&self, value: f64, digits: usize) -> Result<Option<Vec<u8>>, LabelError> {
        let Some(right) = &self.right else { return Ok(None) };
        let value = value * right.scale + right.shift;
        if let Some(text) = right.writer.text(value, value)? {
            return Ok(Some(text));
        }
        let number = NumberFormat::fixed_point(false, RIGHT_WIDTH, digits);
        Ok(Some(with_symbol(number.text(value / right.unit.factor, b""), right.unit.symbol)))
    }
}

/// `text` and its unit behind it.
fn with_symbol(mut text: Vec<u8>, symbol: u8) -> Vec<u8> {
    text.extend_from_slice(&[b' ', symbol]);
    text
}

/// Writes the labels of one axis that has a format.
struct Writer<'a> {
    text: &'a AxisText,
    /// The format of numbers.
    number: Option<NumberFormat>,
    times: &'a dyn TimeFormat,
}

impl<'a> Writer<'a> {
    fn new(text: &'a AxisText, times: &'a dyn TimeFormat) -> Result<Writer<'a>, LabelError> {
        let number = match (text.formatter, &text.format) {
            (AxisFormatter::Numeric, Some(format)) => {
                let refused = || LabelError::Number(lossy(format));
                Some(NumberFormat::parse(format).filter(|format| !format.has_symbol()).ok_or_else(refused)?)
            }
            _ => None,
        };
        Ok(Writer { text, number, times })
    }

    /// `None` when the options say nothing of how. Numbers are given as `number`.
    fn text(&self, value: f64, number: f64) -> Result<Option<Vec<u8>>, LabelError> {
        let format = self.text.format.as_deref();
        Ok(match self.text.formatter {
            AxisFormatter::Numeric => self.number.as_ref().map(|format| format.text(number, b"")),
            AxisFormatter::Timestamp => Some(self.times.strftime(format.unwrap_or(TIMESTAMP), value as i64)),
            AxisFormatter::Duration => {
                Some(duration::text(format.unwrap_or_default(), value).ok_or(LabelError::Duration)?)
            }
        })
    }
}
