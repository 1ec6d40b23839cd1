//! What is wrong with something that was pushed.

use std::fmt;

/// Why a line, a point or a value does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// It is not UTF-8.
    NotUtf8,
    /// It is longer than a line may be.
    TooLong,
    /// The end of a connection came in the middle of it.
    CutOff,
    /// It has no name.
    NoName,
    /// It has a name and no value.
    NoValue,
    /// What stands where the value belongs is no number.
    BadValue,
    /// The value is a number, and NaN or infinite.
    NotFinite,
    /// What stands where the time belongs is no time.
    BadTime,
    /// It has more parts than its form has.
    TooManyParts,
    /// A tag is not `key=value`.
    BadTag,
    /// It has more tags than may be.
    TooManyTags,
    /// It has a tag twice, a NUL in it, or is too long for the name of a series.
    BadSeries,
    /// A text in quotation marks has no end.
    OpenQuote,
    /// It is not of the form that the protocol has.
    BadForm,
    /// A text: an RRD holds numbers.
    IsText,
    /// True or false: an RRD holds numbers.
    IsBoolean,
    /// Of a type that this protocol does not have.
    UnknownType,
    /// A sample rate that is not above 0 and at most 1.
    BadRate,
    /// An event or a service check: neither is a number.
    IsEvent,
    /// More names than are kept at once.
    TooManySeries,
    /// It says neither that it is cumulative nor that it is a difference.
    NoTemporality,
}

/// All of them, with their labels in counters and their texts.
const TEXTS: &[(Fault, &str, &str)] = &[
    (Fault::NotUtf8, "not_utf8", "it is not UTF-8"),
    (Fault::TooLong, "too_long", "it is too long"),
    (Fault::CutOff, "cut_off", "the connection ended in the middle of it"),
    (Fault::NoName, "no_name", "it has no name"),
    (Fault::NoValue, "no_value", "it has no value"),
    (Fault::BadValue, "bad_value", "its value is no number"),
    (Fault::NotFinite, "not_finite", "its value is NaN or infinite"),
    (Fault::BadTime, "bad_time", "its time is no time"),
    (Fault::TooManyParts, "too_many_parts", "it has too many parts"),
    (Fault::BadTag, "bad_tag", "a tag is not key=value"),
    (Fault::TooManyTags, "too_many_tags", "it has too many tags"),
    (Fault::BadSeries, "bad_series", "it has a tag twice, a NUL in it, or too long a name"),
    (Fault::OpenQuote, "open_quote", "a text has no closing quotation mark"),
    (Fault::BadForm, "bad_form", "it is not of the protocol's form"),
    (Fault::IsText, "text", "its value is a text, and an RRD holds numbers"),
    (Fault::IsBoolean, "boolean", "its value is true or false, and an RRD holds numbers"),
    (Fault::UnknownType, "unknown_type", "it is of a type that is not known"),
    (Fault::BadRate, "bad_rate", "its sample rate is not above 0 and at most 1"),
    (Fault::IsEvent, "event", "it is an event or a check, and an RRD holds numbers"),
    (Fault::TooManySeries, "too_many_series", "so many names are not kept at once"),
    (Fault::NoTemporality, "no_temporality", "it is neither cumulative nor a difference"),
];

impl Fault {
    fn texts(self) -> (&'static str, &'static str) {
        let found = TEXTS.iter().find(|(fault, ..)| *fault == self);
        found.map_or(("other", "it cannot be used"), |(_, label, text)| (label, text))
    }

    /// Its name as the label of a counter.
    pub fn label(self) -> &'static str {
        self.texts().0
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.texts().1)
    }
}

impl std::error::Error for Fault {}
