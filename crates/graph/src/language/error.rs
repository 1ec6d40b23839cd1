//! Errors of the graph language.

use std::fmt;

use rrd::rpn::RpnError;
use rrd::when::at::PairError;

/// Why an argument was refused. `Display` is RRDtool's text.
#[derive(Clone, Debug, PartialEq)]
pub enum LanguageError {
    /// Every part of the argument is of the form `a=b`.
    NoCommand(String),
    /// There is no such element.
    UnknownElement {
        /// What it was called.
        command: String,
        /// The argument.
        line: String,
    },
    /// The element has parts that it does not know.
    Unused {
        /// The parts that are left, separated by colons.
        parts: String,
        /// The argument.
        line: String,
    },
    /// A DEF, CDEF or VDEF without one of its parts.
    Missing {
        /// RRDtool's name for it.
        part: &'static str,
        /// The argument.
        line: String,
    },
    /// A text or an XPORT without one of its parts.
    NoPositional(&'static str),
    /// A DEF's consolidation function is unknown.
    BadCf(String),
    /// The function of a DEF's `reduce=` is unknown.
    BadReduceCf(String),
    /// A DEF's `step=` is no positive number.
    BadStep(String),
    /// A DEF's `start=` or `end=` is no time.
    BadTime(PairError),
    /// A DEF that ends before it starts.
    EndBeforeStart {
        /// Seconds since the epoch.
        start: i64,
        /// Seconds since the epoch.
        end: i64,
    },
    /// A DEF that starts before 1980.
    TooOld(i64),
    /// The name of a CDEF or VDEF is taken.
    Reused(String),
    /// An expression is wrong.
    Rpn(RpnError),
    /// The width after LINE is no number, or negative.
    BadLineWidth(String),
    /// A part of `dashes=` that is no number.
    BadDash(String),
    /// Something other than a comma follows a number of `dashes=`.
    DashComma(String),
    /// `dash-offset=` is no number.
    BadDashOffset(String),
    /// `gradheight=` is no number.
    BadGradientHeight(String),
    /// HRULE or VRULE of a DEF or CDEF.
    WrongType {
        /// The variable.
        name: String,
        /// The argument.
        line: String,
    },
    /// A STACK without a LINE or AREA before it.
    NothingToStackOn(String),
    /// A STACK with a colour that cannot be read.
    StackStays,
    /// The fraction of a TICK or the offset of a SHIFT is no number.
    BadNumber(String),
    /// A SHIFT of an undefined variable.
    NoVname(String),
    /// A SHIFT without its offset.
    NoShift,
    /// A SHIFT by a DEF or CDEF.
    OffsetIsSeries {
        /// The variable.
        name: String,
        /// The argument.
        line: String,
    },
    /// Neither a variable nor a number.
    NotVnameNorNumber(String),
    /// An XPORT or a SHIFT of a VDEF.
    CannotShiftVdef {
        /// The variable.
        name: String,
        /// The argument.
        line: String,
    },
    /// An XPORT of a number.
    UnknownVariableType(String),
    /// A PRINT or GPRINT of an undefined variable.
    UndefinedVname(String),
    /// The function of `PRINT:vname:CF:format` is unknown.
    BadPrintCf(String),
    /// A TEXTALIGN without its word.
    NoAlignment,
    /// A TEXTALIGN with an unknown word.
    UnknownAlignment(String),
}

impl From<RpnError> for LanguageError {
    fn from(error: RpnError) -> Self {
        LanguageError::Rpn(error)
    }
}

impl fmt::Display for LanguageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use LanguageError as E;
        match self {
            E::NoCommand(line) => write!(f, "no command set in argument {line}"),
            E::UnknownElement { command, line } => {
                write!(f, "'{command}' is not a valid function name in {line}")
            }
            E::Unused { parts, line } => write!(f, "Unused Arguments \"{parts}\" in command : {line}"),
            E::Missing { part, line } => write!(f, "No argument for definition of {part} in {line}"),
            E::NoPositional(what) => write!(f, "No positional {what}"),
            E::BadCf(text) => write!(f, "bad CF: {text}"),
            E::BadReduceCf(text) => write!(f, "bad reduce CF: {text}"),
            E::BadStep(text) => write!(f, "Bad step value: {text}"),
            E::BadTime(error) => error.fmt(f),
            E::EndBeforeStart { start, end } => write!(f, "start ({start}) should be less than end ({end})"),
            E::TooOld(start) => write!(f, "the first entry to fetch should be after 1980 ({start})"),
            E::Reused(name) => write!(f, "trying to reuse vname {name}"),
            E::Rpn(error) => error.fmt(f),
            E::BadLineWidth(text) => write!(f, "Bad line width: {text}"),
            E::BadDash(text) => write!(f, "Could not parse number: {text}"),
            E::DashComma(text) => write!(f, "expected a ',' at : {text}"),
            E::BadDashOffset(text) => write!(f, "Could not parse dash-offset: {text}"),
            E::BadGradientHeight(text) => write!(f, "Bad gradheight: {text}"),
            E::WrongType { name, line } => writeln!(f, "Using vname {name} of wrong type in line {line}"),
            E::NothingToStackOn(line) => write!(f, "No previous LINE or AREA found for {line}"),
            E::StackStays => f.write_str("STACK should already be turned into LINE or AREA here"),
            E::BadNumber(text) => write!(f, "error parsing number {text}"),
            E::NoVname(name) => write!(f, "vname {name} not found"),
            E::NoShift => f.write_str("No shift given"),
            E::OffsetIsSeries { name, line } => {
                writeln!(f, "Offset cannot be a (C)DEF: '{name}' in line '{line}'")
            }
            E::NotVnameNorNumber(text) => write!(f, "{text} is not a vname nor a number"),
            E::CannotShiftVdef { name, line } => {
                writeln!(f, "Cannot shift a VDEF: '{name}' in line '{line}'")
            }
            E::UnknownVariableType(line) => {
                write!(f, "Encountered unknown type variable '' in line '{line}'")
            }
            E::UndefinedVname(name) => write!(f, "undefined vname {name}"),
            E::BadPrintCf(text) => write!(f, "bad CF for DEF/CDEF: {text}"),
            E::NoAlignment => f.write_str("No alignment given"),
            E::UnknownAlignment(text) => write!(f, "Unknown alignment type '{text}'"),
        }
    }
}

impl std::error::Error for LanguageError {}
