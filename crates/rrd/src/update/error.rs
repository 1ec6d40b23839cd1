//! Why an update was refused, in RRDtool's words.

use std::fmt;

use crate::definition::DsType;
use crate::rpn::EvaluateError;
use crate::time::Timestamp;

/// Why an update was refused. `Display` is RRDtool's text, without the name of the RRD in front.
#[derive(Clone, Debug, PartialEq)]
pub enum UpdateError {
    /// A word with neither `:` nor `@`.
    NoTimestamp {
        /// The word.
        word: String,
    },
    /// Fewer values than sources (or names in the template).
    TooFewValues {
        /// How many there should be.
        expected: usize,
        /// How many there are.
        got: usize,
        /// The text of the time.
        time: String,
    },
    /// More values than sources (or names in the template).
    ExtraData {
        /// What is too much.
        rest: String,
    },
    /// A time that is no number.
    TimeNotANumber {
        /// Its text.
        text: String,
    },
    /// A time with something behind the number.
    TimeTrailing {
        /// Its text.
        text: String,
        /// The number.
        value: f64,
        /// What stands behind it.
        rest: String,
    },
    /// An AT time that cannot be understood.
    AtTime {
        /// Its text.
        text: String,
        /// What the AT parser said.
        why: String,
    },
    /// A time so far away that no arithmetic on it is safe. RRDtool takes it.
    TimeTooFar {
        /// Its text.
        text: String,
    },
    /// Not later than the last update. Times in seconds; the command line prints the whole ones, the daemon
    /// six decimals.
    NotLater {
        /// The time of the update.
        time: Timestamp,
        /// The last update.
        last_update: Timestamp,
    },
    /// A value that is no number.
    NotANumber {
        /// The type of its source.
        ds_type: DsType,
        /// Its text.
        text: String,
    },
    /// A value with something behind the number.
    Trailing {
        /// The type of its source.
        ds_type: DsType,
        /// Its text.
        text: String,
        /// The number.
        value: f64,
        /// What stands behind it.
        rest: String,
    },
    /// A value of a COUNTER that is more than digits.
    NotUnsigned {
        /// Its text.
        text: String,
    },
    /// A COMPUTE source has no result.
    Compute(EvaluateError),
    /// A value of a DERIVE that is more than digits with an optional minus.
    NotSigned {
        /// Its text.
        text: String,
    },
}

impl UpdateError {
    /// True when `--skip-past-updates` passes over it.
    pub fn is_past(&self) -> bool {
        matches!(self, UpdateError::NotLater { .. })
    }
}

impl fmt::Display for UpdateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const TIME: &str = "error while parsing time in get_time_from_reading";
        const VALUE: &str = "Function update_pdp_prep, case DST_";
        match self {
            UpdateError::NoTimestamp { word } => {
                write!(f, "expected timestamp not found in data source from {word}")
            }
            UpdateError::TooFewValues { expected, got, time } => {
                write!(f, "expected {expected} data source readings (got {got}) from {time}")
            }
            UpdateError::ExtraData { rest } => write!(f, "found extra data on update argument: {rest}"),
            UpdateError::TimeNotANumber { text } => write!(f, "{TIME} - Cannot convert '{text}' to float"),
            UpdateError::TimeTrailing { text, value, rest } => {
                write!(f, "{TIME} - Converted '{text}' to {value:.6}, but cannot convert '{rest}'")
            }
            // Compat: of a time that refers to a start or end there is none, RRDtool says so first.
            UpdateError::AtTime { text, why } if why.starts_with("specifying time relative") => {
                write!(f, "{why}: {text}")
            }
            UpdateError::AtTime { text, why } => write!(f, "ds time: {text}: {why}"),
            UpdateError::TimeTooFar { text } => {
                write!(f, "cannot update using time {text}: it is out of range; give seconds since 1970")
            }
            UpdateError::NotLater { time, last_update } => write!(
                f,
                "illegal attempt to update using time {} when last update time is {} (minimum one second step)",
                time.whole, last_update.whole
            ),
            UpdateError::NotANumber { ds_type, text } => {
                write!(f, "{VALUE}{} - Cannot convert '{text}' to float", ds_type.name())
            }
            UpdateError::Trailing { ds_type, text, value, rest } => write!(
                f,
                "{VALUE}{} - Converted '{text}' to {value:.6}, but cannot convert '{rest}'",
                ds_type.name()
            ),
            UpdateError::Compute(error) => error.fmt(f),
            UpdateError::NotUnsigned { text } => write!(f, "not a simple unsigned integer: '{text}'"),
            UpdateError::NotSigned { text } => write!(f, "not a simple signed integer: '{text}'"),
        }
    }
}

impl std::error::Error for UpdateError {}
