//! Why a dump was refused.

use std::fmt;

/// Why XML is no usable dump. `Display` is RRDtool's text where it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreError {
    /// It is no well-formed XML.
    Malformed {
        /// Line, from 1.
        line: usize,
        /// What the parser says.
        what: String,
    },
    /// It ends too early.
    Ended,
    /// Text where an element should stand.
    Text {
        /// Line, from 1.
        line: usize,
        /// The text.
        text: String,
    },
    /// Another element than the one wanted; both in angle brackets.
    Element {
        /// Line, from 1.
        line: usize,
        /// What was wanted.
        want: String,
        /// What stands there.
        got: String,
    },
    /// An element where a value should stand.
    NoValue {
        /// Line, from 1.
        line: usize,
        /// The element.
        got: String,
    },
    /// No number.
    Number {
        /// Line, from 1.
        line: usize,
        /// The text.
        text: String,
        /// Whether there was a number in front of something else.
        trailing: bool,
    },
    /// An element that has no meaning inside the first.
    UnknownTag(&'static str, String),
    /// No type of data source.
    DsType(String),
    /// No consolidation function.
    Cf(String),
    /// A text that does not fit in its field of so many bytes.
    TooLong(String, usize),
    /// A data source behind an archive.
    LateSource,
    /// A version RRDtool does not know.
    Version(u64),
    /// Well-formed, but no RRD the engine could work with.
    Refused(String),
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use RestoreError as E;
        match self {
            E::Malformed { line, what } => write!(f, "error reading/parsing XML: {what} (line {line})"),
            E::Ended => f.write_str("the xml ended while we were looking for an element"),
            E::Text { line, text } => write!(f, "line {line}: expected element but found text '{text}'"),
            // Compat: RRDtool has what it wants and what it got the wrong way round.
            E::Element { line, want, got } => {
                write!(f, "line {line}: expected {got} element but found {want}")
            }
            E::NoValue { line, got } => {
                write!(f, "line {line}: expected a value but found a <{got}> element")
            }
            // Compat: the misspelt "ling" is RRDtool's.
            E::Number { line, text, trailing } => {
                let why = if *trailing { "Success" } else { "Numerical result out of range" };
                write!(f, "ling {line}: get_xml_double from '{text}' {why}")
            }
            E::UnknownTag(parent, tag) => write!(f, "parse_tag_{parent}: Unknown tag: {tag}"),
            E::DsType(name) => write!(f, "parse_tag_ds_type: Unknown data source type: {name}"),
            E::Cf(name) => write!(f, "parse_tag_rra_cf: Unknown consolidation function: {name}"),
            E::TooLong(text, bytes) => write!(f, "'{text}' is longer than {bytes}"),
            E::LateSource => {
                f.write_str("parse_tag_ds: All data source definitions MUST precede the RRA definitions!")
            }
            E::Version(version) => write!(f, "can't handle RRD file version {version:04}"),
            E::Refused(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for RestoreError {}
