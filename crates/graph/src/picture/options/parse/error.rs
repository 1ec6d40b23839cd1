//! Errors in the options of a graph.

use std::fmt;

use args::options::OptionError;
use args::times::RangeError;

use crate::argument::lossy;
use crate::language::LanguageError;
use crate::picture::axis::value_label::LabelError;

/// Why options cannot be parsed. `Display` is RRDtool's text.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionsError {
    /// The option does not exist, or lacks its argument.
    Option(OptionError),
    /// `--start` or `--end` is no time.
    Range(RangeError),
    /// The time range is refused.
    Span(LanguageError),
    /// No file is named.
    MissingFile,
    /// `--daemon` is given twice.
    DaemonTwice,
    /// `--units` is given twice.
    UnitsTwice,
    /// `width` or `height` below ten pixels.
    TooSmall(&'static str),
    /// `--zoom` is not positive.
    Zoom,
    /// `--base` is neither 1000 nor 1024.
    Base,
    /// The lower limit of a logarithmic axis is not positive.
    LogarithmOfNothing,
    /// The formatter of the `left` or `right` axis is unknown.
    UnknownFormatter(&'static str),
    /// The format of an axis is bad.
    AxisFormat(LabelError),
    /// The argument of a short option is no number.
    NoNumber {
        /// The option's letter.
        letter: char,
        /// The argument.
        text: String,
    },
    /// Text follows the number of a short option.
    NumberTrailing {
        /// The option's letter.
        letter: char,
        /// The argument.
        text: String,
        /// The number.
        value: f64,
        /// The text after it.
        rest: String,
    },
    /// Any other bad argument, with the whole message.
    Bad(String),
}

impl OptionsError {
    /// A bad argument: `text`, then the argument.
    pub(super) fn bad(text: &str, word: &[u8]) -> OptionsError {
        OptionsError::Bad(format!("{text}{}", lossy(word)))
    }

    /// An unknown keyword for `what`.
    pub(super) fn unknown(what: &str, word: &[u8]) -> OptionsError {
        OptionsError::Bad(format!("unknown {what} '{}'", lossy(word)))
    }

    /// An unsupported `format` or `type`.
    pub(super) fn unsupported(what: &str, word: &[u8]) -> OptionsError {
        OptionsError::Bad(format!("unsupported graphics {what} '{}'", lossy(word)))
    }

    /// A bad argument with a fixed message.
    pub(super) fn text(text: &str) -> OptionsError {
        OptionsError::Bad(text.to_string())
    }
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use OptionsError as E;
        match self {
            E::Option(error) => f.write_str(&lossy(&error.text())),
            E::Range(error) => error.fmt(f),
            E::Span(error) => error.fmt(f),
            E::MissingFile => f.write_str("missing filename"),
            E::DaemonTwice => f.write_str("You cannot specify --daemon more than once."),
            E::UnitsTwice => f.write_str("--units can only be used once!"),
            E::TooSmall(side) => write!(f, "{side} below 10 pixels"),
            E::Zoom => f.write_str("zoom factor must be > 0"),
            E::Base => f.write_str("the only sensible value for base apart from 1000 is 1024"),
            E::LogarithmOfNothing => {
                f.write_str("for a logarithmic yaxis you must specify a lower-limit > 0")
            }
            E::UnknownFormatter(side) => write!(f, "Unknown {side} axis formatter"),
            E::AxisFormat(error) => error.fmt(f),
            E::NoNumber { letter, text } => write!(f, "option -{letter} - Cannot convert '{text}' to float"),
            E::NumberTrailing { letter, text, value, rest } => {
                write!(f, "option -{letter} - Converted '{text}' to {value:.6}, but cannot convert '{rest}'")
            }
            E::Bad(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for OptionsError {}
