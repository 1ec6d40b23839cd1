//! What a graph is made of.

use rrd::definition::Cf;
use rrd::rpn::{Expression, Vdef};

use super::drawn::Drawn;

/// One argument of a graph.
#[derive(Clone, Debug)]
pub enum Element {
    /// Rows out of an RRD.
    Def(Def),
    /// Rows out of other rows.
    Cdef(Cdef),
    /// One value out of rows.
    Vdef(VdefElement),
    /// A column of `xport`.
    Xport(Xport),
    /// A text with a value in it: PRINT and GPRINT.
    Print(Print),
    /// A text without: COMMENT and TEXTALIGN.
    Note(Note),
    /// What is drawn.
    Drawn(Drawn),
}

/// `DEF:vname=rrdfile:ds-name:CF`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Def {
    /// Which series it makes.
    pub series: usize,
    /// The name of the variable.
    pub name: Vec<u8>,
    /// The RRD, as it was given.
    pub file: Vec<u8>,
    /// The data source.
    pub ds: Vec<u8>,
    /// The consolidation function.
    pub cf: Cf,
    /// How finer rows are made coarser, where not by `cf`.
    pub reduce: Option<Cf>,
    /// Start in seconds since the epoch.
    pub start: i64,
    /// End in seconds since the epoch.
    pub end: i64,
    /// The wanted step in seconds, where not the graph's.
    pub step: Option<u64>,
    /// The daemon to ask, where not the graph's.
    pub daemon: Option<Vec<u8>>,
}

/// `CDEF:vname=expression`
#[derive(Clone, Debug)]
pub struct Cdef {
    /// Which series it makes.
    pub series: usize,
    /// The name of the variable.
    pub name: Vec<u8>,
    /// How its rows are computed.
    pub expression: Expression,
}

/// `VDEF:vname=series,[number,]FUNCTION`
#[derive(Clone, Debug)]
pub struct VdefElement {
    /// Which scalar it makes.
    pub scalar: usize,
    /// The name of the variable.
    pub name: Vec<u8>,
    /// How its value is computed.
    pub vdef: Vdef,
}

/// `XPORT:vname[:legend]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xport {
    /// The series that is written.
    pub series: usize,
    /// What stands above the column; may be empty.
    pub legend: Vec<u8>,
}

/// `PRINT:vname:format` and `GPRINT:vname:format`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Print {
    /// Whether it is printed inside the graph (GPRINT).
    pub inside: bool,
    /// Where the value comes from.
    pub source: PrintSource,
    /// The format.
    pub format: Vec<u8>,
    /// What the format formats.
    pub style: PrintStyle,
}

/// Where the value of a PRINT comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrintSource {
    /// A VDEF.
    Scalar(usize),
    /// A DEF or CDEF, all of whose rows become one value (deprecated).
    Series {
        /// Which one.
        series: usize,
        /// How.
        cf: Cf,
    },
}

/// What the format of a PRINT formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrintStyle {
    /// The value, as a number.
    Number,
    /// The time that goes with the value.
    Time,
    /// The value, as a time.
    ValueAsTime,
    /// The value, as a duration in milliseconds.
    Duration,
}

/// `COMMENT:text` and `TEXTALIGN:word`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Which of the two.
    pub kind: NoteKind,
    /// The text, or the word.
    pub text: Vec<u8>,
}

/// See [`Note`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// COMMENT
    Comment,
    /// TEXTALIGN
    TextAlign,
}

impl NoteKind {
    /// The word that xport has for it.
    pub fn word(self) -> &'static str {
        match self {
            NoteKind::Comment => "comment",
            NoteKind::TextAlign => "align",
        }
    }
}
