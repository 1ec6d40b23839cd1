//! Why a text is not an expression, and why an expression has no result.

use std::fmt;

use super::expression::TOKENS_MAX;

/// Why a CDEF or a VDEF was refused. `Display` is RRDtool's text; four of them end in a line feed.
#[derive(Clone, Debug, PartialEq)]
pub enum RpnError {
    /// An empty CDEF.
    Empty,
    /// No number, operator or variable starts here; the rest of the expression.
    NotUnderstood(String),
    /// `PREV(name` is not followed by a bracket; the rest of the expression.
    Garbage(String),
    /// `PREV(name)` of an undefined name.
    NoVariable(String),
    /// More tokens than [`TOKENS_MAX`]. RRDtool has no limit.
    TooLong,
    /// A VDEF without a comma; its text.
    NoComma(String),
    /// A VDEF of an undefined name: the name, the complete text.
    NotValidName(String, String),
    /// A VDEF of a VDEF: the name, the complete text.
    NotSeries(String, String),
    /// A VDEF whose function is malformed: the text in its place, the name of the VDEF.
    FunctionString(String, String),
    /// A VDEF without a known function: the function, the name of the VDEF.
    NoFunction(String, String),
    /// A VDEF's percentage is missing: the function, the name of the VDEF.
    NeedsParameter(String, String),
    /// A VDEF has a superfluous number: the function, the name of the VDEF.
    NeedsNoParameter(String, String),
    /// A VDEF's percentage is not within 0 and 100: the number, the name of the VDEF.
    OutOfRange(f64, String),
}

impl fmt::Display for RpnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RpnError::Empty => f.write_str("can not parse an empty rpn expression"),
            RpnError::NotUnderstood(rest) => write!(f, "don't understand '{rest}'"),
            RpnError::Garbage(rest) => write!(f, "garbage in RPN: '{rest}'"),
            RpnError::NoVariable(name) => write!(f, "variable '{name}' not found"),
            RpnError::TooLong => write!(f, "rpn expression of more than {TOKENS_MAX} words"),
            RpnError::NoComma(text) => write!(f, "Comma expected in VDEF definition {text}"),
            RpnError::NotValidName(name, text) => write!(f, "Not a valid vname: {name} in line {text}"),
            RpnError::NotSeries(name, text) => {
                write!(f, "variable '{name}' not DEF nor CDEF in VDEF '{text}'")
            }
            RpnError::FunctionString(text, vdef) => {
                write!(f, "Unknown function string '{text}' in VDEF '{vdef}'")
            }
            RpnError::NoFunction(function, vdef) => {
                writeln!(f, "Unknown function '{function}' in VDEF '{vdef}'")
            }
            RpnError::NeedsParameter(function, vdef) => {
                writeln!(f, "Function '{function}' needs parameter in VDEF '{vdef}'")
            }
            RpnError::NeedsNoParameter(function, vdef) => {
                writeln!(f, "Function '{function}' needs no parameter in VDEF '{vdef}'")
            }
            RpnError::OutOfRange(number, vdef) => {
                writeln!(f, "Parameter '{number:.6}' out of range in VDEF '{vdef}'")
            }
        }
    }
}

impl std::error::Error for RpnError {}

/// Why an expression has no result. `Display` is RRDtool's text, without the leading file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvaluateError {
    /// An operator needs more values than the stack holds.
    Underflow,
    /// Not exactly one value remains.
    FinalSize,
    /// PERCENT of something below 0 or above 100.
    Percentile,
    /// ROLL of a negative count, or COPY beyond [`super::machine::DEPTH_MAX`].
    OutOfMemory(i32),
    /// An operator that no COMPUTE source can have; only `PREV(..)` or a damaged file leads here.
    Unsupported,
    /// A CDEF that reads no DEF or CDEF: it has no rows.
    NoSeries,
    /// TREND of something other than the name of a DEF or CDEF.
    MalformedTrend,
    /// PREDICT with a negative shift, or a negative number of shifts.
    NegativeShift(i32),
    /// PREDICTPERC of a percentage outside -100 to 100; its bits.
    UnsupportedPercentile(u64),
    /// More work than [`super::machine::WORK_MAX`]. RRDtool has no limit.
    TooMuchWork,
}

impl fmt::Display for EvaluateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            EvaluateError::Underflow => f.write_str("RPN stack underflow"),
            EvaluateError::FinalSize => f.write_str("RPN final stack size != 1"),
            EvaluateError::Percentile => f.write_str("percentile argument must be between 0 and 100"),
            EvaluateError::OutOfMemory(count) => {
                write!(f, "RPN out of memory (allocating {count} objects)")
            }
            EvaluateError::Unsupported => f.write_str("VDEF made it into rpn_calc... aborting"),
            EvaluateError::NoSeries => {
                f.write_str("rpn expressions without DEF or CDEF variables are not supported")
            }
            EvaluateError::MalformedTrend => f.write_str("malformed trend arguments"),
            EvaluateError::NegativeShift(shift) => write!(f, "negative shift step not allowed: {shift}"),
            EvaluateError::UnsupportedPercentile(bits) => match f64::from_bits(bits) {
                percent if percent.is_finite() => write!(f, "unsupported percentile: {percent:.6}"),
                percent if percent.is_nan() => f.write_str("unsupported percentile: nan"),
                percent if percent > 0.0 => f.write_str("unsupported percentile: inf"),
                _ => f.write_str("unsupported percentile: -inf"),
            },
            EvaluateError::TooMuchWork => {
                f.write_str("cannot evaluate the rpn expression: its windows and sets are too large")
            }
        }
    }
}

impl std::error::Error for EvaluateError {}
