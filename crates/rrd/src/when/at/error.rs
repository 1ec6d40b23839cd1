//! Why a text is not a time. `Display` is RRDtool's text.

use std::fmt;

/// Why a text is not a time specification, or has no time by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AtError {
    /// No time starts here; the rest of the text.
    Unparsable(String),
    /// A time followed by something else.
    Trailing(String),
    /// No offset after `start`, `end` or `epoch`.
    OffsetMissing,
    /// Something other than an offset after `now`.
    OffsetExpected,
    /// No number after this sign.
    NumberMissing(char),
    /// No number after the colon of a time of day.
    MinutesMissing,
    /// Too many minutes.
    Minutes(i32),
    /// An hour above 12 with AM or PM.
    HalfDay,
    /// A month's name without a day.
    DayMissing,
    /// No month, or day, after this sign of a date.
    DatePartMissing {
        /// Whether it is the month.
        month: bool,
        /// The sign.
        sign: char,
    },
    /// No year after this sign of a date.
    YearMissing(char),
    /// Not the number of a month.
    Month(i32),
    /// Not a day of any month.
    Day(i32),
    /// A year out of range.
    Year(i32),
    /// A year before 1970.
    BeforeEpoch,
    /// No such time in the calendar.
    OutOfRange,
    /// Relative to a start or end, where there is none.
    NothingToReferTo,
}

impl fmt::Display for AtError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AtError::Unparsable(rest) => write!(f, "unparsable time: {rest}"),
            AtError::Trailing(rest) => write!(f, "unparsable trailing text: '...{rest}'"),
            AtError::OffsetMissing => f.write_str("'start' or 'end' MUST be followed by +|- offset"),
            AtError::OffsetExpected => f.write_str("if 'now' is followed by a token it must be +|- offset"),
            AtError::NumberMissing(sign) => write!(f, "There should be number after '{sign}'"),
            AtError::MinutesMissing => f.write_str("Parsing HH:MM syntax, expecting MM as number, got none"),
            AtError::Minutes(number) => write!(f, "parsing HH:MM syntax, got MM = {number} (>59!)"),
            AtError::HalfDay => f.write_str("there cannot be more than 12 AM or PM hours"),
            AtError::DayMissing => f.write_str("the day of the month should follow month name"),
            AtError::DatePartMissing { month, sign } => {
                write!(f, "there should be {} number after '{sign}'", if *month { "month" } else { "day" })
            }
            AtError::YearMissing(sign) => write!(f, "there should be year number after '{sign}'"),
            AtError::Month(number) => write!(f, "did you really mean month {number}?"),
            AtError::Day(number) => write!(f, "I'm afraid that {number} is not a valid day of the month"),
            AtError::Year(number) => {
                write!(f, "invalid year {number} (should be either 00-99 or >1900)")
            }
            AtError::BeforeEpoch => f.write_str("won't handle dates before epoch (01/01/1970), sorry"),
            AtError::OutOfRange => f.write_str("the specified time is incorrect (out of range?)"),
            AtError::NothingToReferTo => {
                f.write_str("specifying time relative to the 'start' or 'end' makes no sense here")
            }
        }
    }
}

impl std::error::Error for AtError {}

/// Why a start and an end are not a range. `Display` is RRDtool's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairError {
    /// The start is not a time.
    Start(AtError),
    /// The end is not a time.
    End(AtError),
    /// The start is relative to the start.
    StartToItself,
    /// The end is relative to the end.
    EndToItself,
    /// Each is relative to the other.
    ToEachOther,
}

impl fmt::Display for PairError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PairError::Start(error) => write!(f, "start time: {error}"),
            PairError::End(error) => write!(f, "end time: {error}"),
            PairError::StartToItself => f.write_str("the start time cannot be specified relative to itself"),
            PairError::EndToItself => f.write_str("the end time cannot be specified relative to itself"),
            PairError::ToEachOther => {
                f.write_str("the start and end times cannot be specified relative to each other")
            }
        }
    }
}

impl std::error::Error for PairError {}
