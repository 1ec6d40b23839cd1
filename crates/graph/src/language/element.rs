//! The elements of a graph.

use rrd::definition::Cf;
use rrd::rpn::{Expression, Vdef};

use super::graphic::Graphic;

/// One argument of a graph.
#[derive(Clone, Debug)]
pub enum Element {
    /// Rows of an RRD.
    Def(Def),
    /// Rows computed from other rows.
    Cdef(Cdef),
    /// One value computed from rows.
    Vdef(VdefElement),
    /// A column of `xport`.
    Xport(Xport),
    /// A text with a value in it: PRINT and GPRINT.
    Print(Print),
    /// `COMMENT:text`
    Comment(Vec<u8>),
    /// `TEXTALIGN:left|right|justified|center`
    TextAlign(Vec<u8>),
    /// Anything drawn.
    Graphic(Graphic),
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
    /// The function that consolidates finer rows (`reduce=`); `None` = `cf`.
    pub reduce: Option<Cf>,
    /// Start in seconds since the epoch.
    pub start: i64,
    /// End in seconds since the epoch.
    pub end: i64,
    /// The requested step in seconds (`step=`); `None` = the graph's.
    pub step: Option<u64>,
    /// The daemon to ask (`daemon=`); `None` = the graph's.
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
    /// The column's heading; may be empty.
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
    /// What the format is applied to.
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

/// What the format of a PRINT is applied to.
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
