//! Why an update was refused, with RRDtool's texts.

use std::fmt;

use crate::definition::DsType;
use crate::rpn::EvaluateError;
use crate::time::Timestamp;

/// Why an update was refused. `Display` is RRDtool's text, without the leading name of the RRD.
#[derive(Clone, Debug, PartialEq)]
pub enum UpdateError {
    /// An argument with neither `:` nor `@`.
    NoTimestamp {
        /// The argument.
        argument: String,
    },
    /// Fewer values than sources (or names in the template).
    TooFewValues {
        /// The number needed.
        expected: usize,
        /// The number found.
        got: usize,
        /// The text of the time.
        time: String,
    },
    /// More values than sources (or names in the template).
    ExtraData {
        /// The surplus.
        rest: String,
    },
    /// A time that is not a number.
    TimeNotANumber {
        /// Its text.
        text: String,
    },
    /// A time with something after the number.
    TimeTrailing {
        /// Its text.
        text: String,
        /// The number.
        value: f64,
        /// What follows it.
        rest: String,
    },
    /// An AT time that cannot be understood.
    AtTime {
        /// Its text.
        text: String,
        /// The AT parser's message.
        why: String,
    },
    /// A time so far away that arithmetic on it would overflow. RRDtool accepts it.
    TimeTooFar {
        /// Its text.
        text: String,
    },
    /// Not later than the last update. Times are in seconds; the command line prints whole seconds, the daemon
    /// six decimals, as both do for an RRD with a step below a second.
    NotLater {
        /// The time of the update.
        time: Timestamp,
        /// The last update.
        last_update: Timestamp,
        /// Units per second of the RRD.
        units_per_second: u32,
    },
    /// A value that is not a number.
    NotANumber {
        /// The type of its source.
        ds_type: DsType,
        /// Its text.
        text: String,
    },
    /// A value with something after the number.
    Trailing {
        /// The type of its source.
        ds_type: DsType,
        /// Its text.
        text: String,
        /// The number.
        value: f64,
        /// What follows it.
        rest: String,
    },
    /// A COUNTER value that has other characters than digits.
    NotUnsigned {
        /// Its text.
        text: String,
    },
    /// A COMPUTE source has no result.
    Compute(EvaluateError),
    /// A DERIVE value that has other characters than digits after an optional minus.
    NotSigned {
        /// Its text.
        text: String,
    },
    /// Any other than [`UpdateError::NotLater`], in the words of another machine.
    Told(String),
}

impl UpdateError {
    /// True when `--skip-past-updates` skips it.
    pub fn is_past(&self) -> bool {
        matches!(self, UpdateError::NotLater { .. })
    }
}

impl fmt::Display for UpdateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const TIME: &str = "error while parsing time in get_time_from_reading";
        const VALUE: &str = "Function update_pdp_prep, case DST_";
        match self {
            UpdateError::NoTimestamp { argument } => {
                write!(f, "expected timestamp not found in data source from {argument}")
            }
            UpdateError::TooFewValues { expected, got, time } => {
                write!(f, "expected {expected} data source readings (got {got}) from {time}")
            }
            UpdateError::ExtraData { rest } => write!(f, "found extra data on update argument: {rest}"),
            UpdateError::TimeNotANumber { text } => write!(f, "{TIME} - Cannot convert '{text}' to float"),
            UpdateError::TimeTrailing { text, value, rest } => {
                write!(f, "{TIME} - Converted '{text}' to {value:.6}, but cannot convert '{rest}'")
            }
            // Compat: for a time relative to a start or end, RRDtool puts the reason first.
            UpdateError::AtTime { text, why } if why.starts_with("specifying time relative") => {
                write!(f, "{why}: {text}")
            }
            UpdateError::AtTime { text, why } => write!(f, "ds time: {text}: {why}"),
            UpdateError::TimeTooFar { text } => {
                write!(f, "cannot update using time {text}: it is out of range; give seconds since 1970")
            }
            UpdateError::NotLater { time, last_update, units_per_second } => {
                let shown = |time: &Timestamp| match units_per_second {
                    1 => time.whole.to_string(),
                    _ => format!("{}.{:06}", time.whole, time.micros),
                };
                write!(
                    f,
                    "illegal attempt to update using time {} when last update time is {} (minimum one second step)",
                    shown(time),
                    shown(last_update)
                )
            }
            UpdateError::NotANumber { ds_type, text } => {
                write!(f, "{VALUE}{} - Cannot convert '{text}' to float", ds_type.name())
            }
            UpdateError::Trailing { ds_type, text, value, rest } => write!(
                f,
                "{VALUE}{} - Converted '{text}' to {value:.6}, but cannot convert '{rest}'",
                ds_type.name()
            ),
            UpdateError::Compute(error) => error.fmt(f),
            UpdateError::Told(text) => f.write_str(text),
            UpdateError::NotUnsigned { text } => write!(f, "not a simple unsigned integer: '{text}'"),
            UpdateError::NotSigned { text } => write!(f, "not a simple signed integer: '{text}'"),
        }
    }
}

impl std::error::Error for UpdateError {}
