//! What can go wrong with a query as a whole.

use std::fmt;
use std::io;

use graph::language::LanguageError;

/// Why there is no answer.
#[derive(Debug)]
pub enum QueryError {
    /// The arguments are no script.
    Language(LanguageError),
    /// There is nothing to compute.
    Nothing,
    /// An element that belongs on a graph.
    Element(String),
    /// PRINT, which gives a line an RRD, beside XPORT, which gives a line a row.
    PrintBesideRows,
    /// A percentile that is not within 0 and 100.
    Percentile(String),
    /// Two wildcards of different shape, which cannot be matched with each other.
    Wildcards(String, String),
    /// A wildcard with too many stars.
    Pattern(String),
    /// No RRD has a name like that.
    NoRrd(String),
    /// The daemon cannot be asked.
    Daemon {
        /// Where it is said to be.
        address: String,
        /// What happened.
        why: String,
    },
    /// The answer cannot be written.
    Output(io::Error),
    /// The form is not compiled in.
    NotBuilt(&'static str),
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryError::Language(error) => error.fmt(f),
            QueryError::Nothing => f.write_str("nothing to query: give a DEF, as in DEF:in=*.rrd:in:AVERAGE"),
            QueryError::Element(line) => {
                write!(
                    f,
                    "cannot query \"{line}\": give DEF, CDEF, VDEF, PRINT and XPORT; a graph takes the others"
                )
            }
            QueryError::PrintBesideRows => f.write_str(
                "cannot query PRINT and XPORT at once: one gives a line an RRD, the other a line a row",
            ),
            QueryError::Percentile(text) => {
                write!(f, "cannot use percentile \"{text}\": give a number from 0 to 100")
            }
            QueryError::Wildcards(one, other) => write!(
                f,
                "cannot match \"{one}\" with \"{other}\": DEFs with wildcards need the same number of them"
            ),
            QueryError::Pattern(pattern) => {
                write!(f, "cannot use \"{pattern}\": at most {} stars in a name", crate::names::STARS_MAX)
            }
            QueryError::NoRrd(pattern) => write!(f, "no RRD matches \"{pattern}\""),
            QueryError::Daemon { address, why } => {
                write!(f, "cannot ask the daemon at \"{address}\": {why}; start it, or leave --daemon out")
            }
            QueryError::Output(error) => write!(f, "cannot write the answer: {error}"),
            QueryError::NotBuilt(form) => {
                write!(f, "cannot write {form}: this executable is built without the feature arrow")
            }
        }
    }
}

impl std::error::Error for QueryError {}

impl From<io::Error> for QueryError {
    fn from(error: io::Error) -> Self {
        QueryError::Output(error)
    }
}
