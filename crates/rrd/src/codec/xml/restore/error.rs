//! Why a dump was refused.

use std::fmt;

/// Why XML is not a usable dump. `Display` is RRDtool's text where it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreError {
    /// The XML is not well-formed.
    Malformed {
        /// Line, from 1.
        line: usize,
        /// The parser's message.
        what: String,
    },
    /// The document ends too early.
    Ended,
    /// Text where an element was expected.
    Text {
        /// Line, from 1.
        line: usize,
        /// The text.
        text: String,
    },
    /// An unexpected element; both in angle brackets.
    Element {
        /// Line, from 1.
        line: usize,
        /// The expected element.
        want: String,
        /// The actual element.
        got: String,
    },
    /// An element where a value was expected.
    NoValue {
        /// Line, from 1.
        line: usize,
        /// The element.
        got: String,
    },
    /// Not a number.
    Number {
        /// Line, from 1.
        line: usize,
        /// RRDtool's word for the kind of number.
        kind: &'static str,
        /// The text.
        text: String,
        /// Whether the text starts with a number.
        trailing: bool,
    },
    /// An element that is unknown inside the first one.
    UnknownTag(&'static str, String),
    /// Not a type of data source.
    DsType(String),
    /// Not a consolidation function.
    Cf(String),
    /// A text that does not fit in its field of this many bytes.
    TooLong(String, usize),
    /// A data source after an archive.
    LateSource,
    /// A version RRDtool does not know.
    Version(u64),
    /// Well-formed, but not an RRD the engine could work with.
    Refused(String),
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use RestoreError as E;
        match self {
            E::Malformed { line, what } => write!(f, "error reading/parsing XML: {what} (line {line})"),
            E::Ended => f.write_str("the xml ended while we were looking for an element"),
            E::Text { line, text } => write!(f, "line {line}: expected element but found text '{text}'"),
            // Compat: RRDtool confuses what it expected with what it found.
            E::Element { line, want, got } => {
                write!(f, "line {line}: expected {got} element but found {want}")
            }
            E::NoValue { line, got } => {
                write!(f, "line {line}: expected a value but found a <{got}> element")
            }
            // Compat: the misspelt "ling" is RRDtool's.
            E::Number { line, kind, text, trailing } => {
                let why = if *trailing { "Success" } else { "Numerical result out of range" };
                write!(f, "ling {line}: get_xml_{kind} from '{text}' {why}")
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
