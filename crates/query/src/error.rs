//! Errors of a query as a whole.

use std::fmt;
use std::io;

use client::ClientError;
use graph::language::LanguageError;

/// Why a query fails as a whole.
#[derive(Debug)]
pub enum QueryError {
    /// The arguments cannot be parsed.
    Language(LanguageError),
    /// There is nothing to compute.
    Nothing,
    /// An element that only graphs can have.
    Element(String),
    /// PRINT, which makes one line per RRD, together with XPORT, which makes one line per row.
    PrintBesideRows,
    /// A percentile that is not within 0 and 100.
    Percentile(String),
    /// Two patterns with different numbers of wildcards, which cannot be matched with each other.
    Wildcards(String, String),
    /// No RRD matches the pattern.
    NoRrd(String),
    /// The daemon cannot be reached.
    Daemon {
        /// Its address.
        address: String,
        /// The reason.
        why: String,
    },
    /// The answer cannot be written.
    Output(io::Error),
    /// The format is not compiled in.
    NotBuilt(&'static str),
}

impl QueryError {
    /// That the daemon at `address` cannot be asked.
    pub(crate) fn of_daemon(address: &[u8], error: &ClientError) -> Self {
        let why = match error {
            ClientError::Connect(error) => error.to_string(),
            error => error.to_string(),
        };
        QueryError::Daemon { address: String::from_utf8_lossy(address).into_owned(), why }
    }
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
            QueryError::NoRrd(pattern) => write!(f, "no RRD matches \"{pattern}\""),
            QueryError::Daemon { address, why } => {
                write!(f, "cannot ask the daemon at \"{address}\": {why}; start it, or leave --daemon out")
            }
            QueryError::Output(error) => write!(f, "cannot write the answer: {error}"),
            QueryError::NotBuilt(form) => f.write_str(&args::feature::missing(form, "arrow")),
        }
    }
}

impl std::error::Error for QueryError {}

impl From<io::Error> for QueryError {
    fn from(error: io::Error) -> Self {
        QueryError::Output(error)
    }
}
