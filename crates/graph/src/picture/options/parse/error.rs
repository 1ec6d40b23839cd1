//! Why the words are no graph.

use std::fmt;

use words::options::OptionError;
use words::times::RangeError;

use crate::argument::lossy;
use crate::language::LanguageError;
use crate::picture::axis::value_label::LabelError;

/// Why the words are no graph. `Display` is RRDtool's text.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionsError {
    /// There is no such option, or it lacks its argument.
    Option(OptionError),
    /// `--start` or `--end`.
    Range(RangeError),
    /// The range of time.
    Span(LanguageError),
    /// No file is named.
    MissingFile,
    /// `--daemon` was given before.
    DaemonTwice,
    /// `--units` was given before.
    UnitsTwice,
    /// `width` or `height` below ten pixels.
    TooSmall(&'static str),
    /// A width or height that no memory holds.
    TooLarge,
    /// `--zoom` of nothing or less.
    Zoom,
    /// `--base` of neither 1000 nor 1024.
    Base,
    /// A logarithmic axis from zero or below.
    LogarithmOfNothing,
    /// A formatter of the `left` or `right` axis.
    UnknownFormatter(&'static str),
    /// The format of an axis.
    AxisFormat(LabelError),
    /// A number of an option with a letter.
    NoNumber {
        /// The option's letter.
        letter: char,
        /// What was given.
        text: String,
    },
    /// A number with something behind it.
    NumberTrailing {
        /// The option's letter.
        letter: char,
        /// What was given.
        text: String,
        /// The number before it.
        value: f64,
        /// What stands behind.
        rest: String,
    },
    /// Any other argument that is none: the whole text.
    Bad(String),
}

impl OptionsError {
    /// `text`, then what was given.
    pub(super) fn bad(text: &str, word: &[u8]) -> OptionsError {
        OptionsError::Bad(format!("{text}{}", lossy(word)))
    }

    /// A word that is none of those that `what` may be.
    pub(super) fn unknown(what: &str, word: &[u8]) -> OptionsError {
        OptionsError::Bad(format!("unknown {what} '{}'", lossy(word)))
    }

    /// A graph's `format` or `type`.
    pub(super) fn unsupported(what: &str, word: &[u8]) -> OptionsError {
        OptionsError::Bad(format!("unsupported graphics {what} '{}'", lossy(word)))
    }

    /// A text of its own.
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
            E::TooLarge => f.write_str("malloc data_proc"),
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
