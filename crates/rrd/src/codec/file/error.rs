//! Why a `.rrd` file could not be read or written.

use std::fmt;

use crate::when::Step;

/// Why bytes are not a usable `.rrd` file. RRDtool's texts need the file's name: see [`FileError::named`].
#[derive(Clone, Debug, PartialEq)]
pub enum FileError {
    /// The magic is missing.
    NotRrd,
    /// The float cookie differs: another byte order or alignment.
    OtherArchitecture,
    /// A version RRDtool does not know, as in the file.
    Version(String),
    /// The file ends within this part of the header (RRDtool's name of the part).
    HeaderCut(&'static str),
    /// Shorter than its own header says.
    TooSmall {
        /// The length it should at least have, in bytes.
        should_be: u64,
    },
    /// The type of a data source is none of the seven.
    UnknownDsType(String),
    /// The name of a consolidation function is none of the ten.
    UnknownCf(String),
    /// A field holds what RRDtool never writes and no update could work with.
    Damaged {
        /// Offset of the field in bytes.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// The RRD has something a `.rrd` file cannot hold.
    Inexpressible(Inexpressible),
}

/// What keeps an RRD out of a `.rrd` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inexpressible {
    /// A source's name is longer than 19 bytes, or contains a NUL.
    DsName(String),
    /// The step is not a whole number of seconds.
    SubSecondStep {
        /// The step, in units.
        step: u64,
        /// Units in a second.
        units_per_second: u32,
    },
    /// A COMPUTE program of more than 19 nodes; how many.
    ComputeNodes(usize),
    /// A FAILURES window of more than 28 rows; how many.
    FailuresWindow(u64),
    /// Parts of the RRD do not fit its definition.
    Inconsistent(&'static str),
}

impl FileError {
    /// The message with the name of the file, as RRDtool words it.
    pub fn named<'a>(&'a self, name: &'a str) -> Named<'a> {
        Named { error: self, name }
    }
}

/// A [`FileError`] together with the name of its file.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    error: &'a FileError,
    name: &'a str,
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name;
        match self.error {
            FileError::NotRrd => write!(f, "'{name}' is not an RRD file"),
            FileError::TooSmall { should_be } => {
                write!(f, "'{name}' is too small (should be {should_be} bytes)")
            }
            FileError::Damaged { offset, what } => {
                write!(f, "cannot read RRD file '{name}': {what} at byte {offset}; restore it from a dump")
            }
            FileError::Inexpressible(why) => write!(f, "cannot write RRD file '{name}': {why}"),
            other => other.fmt(f),
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::NotRrd => f.write_str("not an RRD file"),
            FileError::OtherArchitecture => f.write_str("This RRD was created on another architecture"),
            FileError::Version(version) => write!(f, "can't handle RRD file version {version}"),
            FileError::HeaderCut(part) => write!(f, "reached EOF while loading header rrd->{part}"),
            FileError::TooSmall { should_be } => write!(f, "too small (should be {should_be} bytes)"),
            FileError::UnknownDsType(name) => write!(f, "unknown data acquisition function '{name}'"),
            FileError::UnknownCf(name) => write!(f, "unknown consolidation function '{name}'"),
            FileError::Damaged { offset, what } => write!(f, "{what} at byte {offset}"),
            FileError::Inexpressible(why) => why.fmt(f),
        }
    }
}

impl fmt::Display for Inexpressible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Inexpressible::DsName(name) => write!(
                f,
                "the name of data source \"{name}\" is longer than the 19 characters a file holds; rename it first"
            ),
            Inexpressible::SubSecondStep { step, units_per_second } => write!(
                f,
                "it counts thousandths of a second (its step is {} s), and a .rrd file counts whole seconds; \
                 only a store can hold it",
                Step { units: *step, units_per_second: *units_per_second }
            ),
            Inexpressible::ComputeNodes(count) => {
                write!(f, "a COMPUTE program of {count} nodes is longer than the 19 a file holds")
            }
            Inexpressible::FailuresWindow(rows) => {
                write!(f, "a FAILURES window of {rows} rows is longer than the 28 a file holds")
            }
            Inexpressible::Inconsistent(what) => write!(f, "its parts do not fit: {what}"),
        }
    }
}

impl std::error::Error for FileError {}
