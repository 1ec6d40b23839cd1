//! Why a tune was refused.

use std::fmt;

use crate::definition::text::DefinitionError;
use crate::footprint::TooMuchMemory;

/// Why a tune was refused. `Display` is the text of Debian's rrdtool where it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TuneError {
    /// An unknown option, without its dashes.
    InvalidOption(String),
    /// A final option without its argument; the option without its dashes.
    MissingArgument(String),
    /// An argument that is neither an option nor a layout change.
    Unparseable(String),
    /// The argument of an option that names a source is malformed.
    InvalidArgument(&'static str),
    /// There is no such data source.
    UnknownDs(String),
    /// There is no such data source type.
    UnknownType(String),
    /// `--deltapos` or `--deltaneg` below 0.1.
    DeltaTooSmall,
    /// `--deltapos` or `--deltaneg` with something after the number.
    DeltaUnreadable,
    /// `--failure-threshold` or `--window-length` outside 1 to 28.
    WindowOutOfRange,
    /// A Holt-Winters parameter outside its range.
    HoltWintersOutOfRange,
    /// A Holt-Winters parameter that is not a number.
    HoltWintersUnreadable,
    /// No archive has the parameter.
    NoHoltWinters,
    /// There is no FAILURES archive.
    NoFailures,
    /// Heartbeat or limits for a source that stays COMPUTE. RRDtool destroys the source.
    LimitOfCompute(String),
    /// A fed source that should become COMPUTE. RRDtool makes an expression of its limits.
    ToCompute(String),
    /// A layout change where only settings may change.
    Structural(String),
    /// `--step` together with a layout change, which would need rows that do not exist.
    Step,
    /// `DELRRA:` with a negative index.
    DeleteIndex,
    /// `RRA#` without index, operation and number.
    Resize,
    /// `RRA#` with an operation other than `+`, `-`, `=`.
    ResizeOperation(char),
    /// A season whose length would differ from its period.
    ResizeSeason(usize),
    /// A deleted source that a COMPUTE source needs.
    Needed {
        /// The source.
        ds: String,
        /// The COMPUTE source.
        by: String,
    },
    /// A deleted archive that a Holt-Winters archive needs; both by index.
    ArchiveNeeded {
        /// The archive.
        rra: usize,
        /// The Holt-Winters archive.
        by: usize,
    },
    /// More values than tune handles.
    TooMany {
        /// Rows times data sources, over all archives.
        values: u64,
        /// The limit.
        max: u64,
    },
    /// More memory than an RRD may take.
    Memory(TooMuchMemory),
    /// A bad `DS:` or `RRA:` argument, or a bad resulting definition.
    Definition(DefinitionError),
    /// Any of them, in the words of another machine.
    Told(String),
}

/// Bytes of a message about an option that RRDtool keeps.
pub const OPTION_MESSAGE_BYTES_MAX: usize = 47;

fn of_option(what: &str, name: &str) -> String {
    let mut text = format!("{what} -- '{name}'");
    text.truncate(text.floor_char_boundary(OPTION_MESSAGE_BYTES_MAX));
    text
}

impl fmt::Display for TuneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TuneError::InvalidOption(name) => f.write_str(&of_option("invalid option", name)),
            TuneError::MissingArgument(name) if name.len() == 1 => {
                f.write_str(&of_option("option requires an argument", name))
            }
            TuneError::MissingArgument(name) => f.write_str(&of_option("option requires argument", name)),
            TuneError::Unparseable(arg) => write!(f, "unparseable argument: {arg}"),
            TuneError::InvalidArgument(what) => write!(f, "invalid {what}"),
            TuneError::UnknownDs(name) => write!(f, "unknown data source name '{name}'"),
            TuneError::UnknownType(name) => write!(f, "unknown data acquisition function '{name}'"),
            TuneError::DeltaTooSmall => f.write_str("Parameter specified is too small"),
            TuneError::DeltaUnreadable => f.write_str("Unable to parse parameter in set_deltaarg"),
            TuneError::WindowOutOfRange => f.write_str("Parameter must be between 1 and 28"),
            TuneError::HoltWintersOutOfRange => f.write_str("Holt-Winters parameter must be between 0 and 1"),
            TuneError::HoltWintersUnreadable => f.write_str("Unable to parse Holt-Winters parameter"),
            TuneError::NoHoltWinters => f.write_str("Holt-Winters RRA does not exist in this RRD"),
            TuneError::NoFailures => f.write_str("Failures RRA does not exist in this RRD"),
            TuneError::LimitOfCompute(name) => write!(
                f,
                "cannot set heartbeat, minimum or maximum of the COMPUTE data source '{name}'; \
                 change its type in the same command"
            ),
            TuneError::ToCompute(name) => write!(
                f,
                "cannot make '{name}' a COMPUTE data source: it has no expression; \
                 add a new one with DS:name:COMPUTE:expression"
            ),
            TuneError::Structural(arg) => write!(f, "cannot change the layout of this RRD in place: {arg}"),
            TuneError::Step => {
                f.write_str("cannot change the step together with data sources or archives; create a new RRD")
            }
            TuneError::DeleteIndex => f.write_str("DELRRA requires a non-negative, integer argument"),
            TuneError::Resize => f.write_str("Failed to parse RRA# command"),
            TuneError::ResizeOperation(operation) => {
                write!(f, "Failed to parse RRA# command: invalid operation: {operation}")
            }
            TuneError::ResizeSeason(rra) => {
                write!(f, "cannot resize RRA {rra}: a season is as long as its period")
            }
            TuneError::Needed { ds, by } => write!(
                f,
                "cannot delete data source '{ds}': the COMPUTE data source '{by}' needs it; delete both"
            ),
            TuneError::ArchiveNeeded { rra, by } => {
                write!(f, "cannot delete RRA {rra}: the Holt-Winters RRA {by} needs it; delete both")
            }
            TuneError::TooMany { values, max } => {
                write!(f, "cannot tune: {values} values would be more than {max}; take fewer rows")
            }
            TuneError::Memory(error) => error.fmt(f),
            TuneError::Definition(error) => error.fmt(f),
            TuneError::Told(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for TuneError {}
