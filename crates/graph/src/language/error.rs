//! Why arguments are no graph.

use std::fmt;

use rrd::rpn::RpnError;
use rrd::when::at::PairError;

/// Why an argument was refused. `Display` is RRDtool's text.
#[derive(Clone, Debug, PartialEq)]
pub enum LanguageError {
    /// Every piece of the argument is of the form `a=b`.
    NoCommand(String),
    /// There is no such element.
    UnknownElement {
        /// What it was called.
        command: String,
        /// The argument.
        line: String,
    },
    /// More than the element takes.
    Unused {
        /// What is left, with colons between.
        pieces: String,
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
    /// A text or an exported variable without one of its parts.
    NoPositional(&'static str),
    /// A DEF's function.
    BadCf(String),
    /// A DEF's `reduce=`.
    BadReduceCf(String),
    /// A DEF's `step=`.
    BadStep(String),
    /// A DEF's `start=` or `end=`.
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
    /// An expression.
    Rpn(RpnError),
    /// The number behind LINE.
    BadLineWidth(String),
    /// A part of `dashes=` that is no number.
    BadDash(String),
    /// Something other than a comma behind a number of `dashes=`.
    DashComma(String),
    /// `dash-offset=`
    BadDashOffset(String),
    /// `gradheight=`
    BadGradientHeight(String),
    /// A rule at a DEF or CDEF.
    WrongType {
        /// The variable.
        name: String,
        /// The argument.
        line: String,
    },
    /// A STACK with nothing before it to stand on.
    NothingToStackOn(String),
    /// A STACK of a colour that cannot be read.
    StackStays,
    /// The fraction of a TICK, or the offset of a SHIFT.
    BadNumber(String),
    /// A SHIFT of what is not there.
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
    /// A PRINT or GPRINT of a variable that is not there.
    UndefinedVname(String),
    /// The function of `PRINT:vname:CF:format`.
    BadPrintCf(String),
    /// A TEXTALIGN without its word.
    NoAlignment,
    /// A TEXTALIGN that is none of the four.
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
            E::Unused { pieces, line } => write!(f, "Unused Arguments \"{pieces}\" in command : {line}"),
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
