//! Why a definition was refused.

use std::fmt;

use crate::definition::Cf;
use crate::rpn::CompileError;
use crate::when::DurationError;

/// Why a `DS:` or `RRA:` argument was refused. `Display` is RRDtool's text after "ERROR: ", where it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefinitionError {
    /// Neither `DS:` nor `RRA:`; the argument.
    Argument(String),
    /// A `DS:` argument without name, type and parameters.
    DsFormat,
    /// A second source with this name.
    DuplicateDs(String),
    /// No such type.
    DsType(String),
    /// The parameters of a source: their text, and what is wrong.
    Ds(String, DsError),
    /// A limit that is not a number, as RRDtool words it.
    Limit(String),
    /// The expression of a COMPUTE source.
    Compute(CompileError),
    /// No such consolidation function.
    Cf(String),
    /// Too few fields for an archive.
    RraArguments {
        /// The number needed.
        want: usize,
        /// The number given.
        got: usize,
    },
    /// A field after the last one of this function.
    ExtraArgument(Cf),
    /// More fields than any function takes.
    Unknown,
    /// The number of rows, or the season.
    RowCount(String, DurationError),
    /// The PDPs per row.
    RraStep(String, DurationError),
    /// xff, alpha, beta or gamma outside its range.
    Parameter(&'static str),
    /// An option of SEASONAL or DEVSEASONAL.
    Option(String),
    /// A smoothing window outside 0 to 1, as RRDtool prints it.
    SmoothingWindow(String),
    /// A season longer than the prediction.
    SeasonLength,
    /// The failure threshold outside 1 to 28.
    Threshold,
    /// The failure window shorter than the threshold.
    WindowShort,
    /// The failure window outside 1 to 28.
    Window,
    /// No `RRA:` argument.
    NoArchive,
    /// No `DS:` argument.
    NoSource,
    /// More sources or archives than allowed.
    TooMany,
    /// A step of zero, or longer than time.
    StepRange,
    /// An archive (by index) longer than time.
    Span(usize),
    /// A season without rows; RRDtool divides by their number.
    NoSeason,
    /// A Holt-Winters archive that refers to an archive of the wrong kind, or to none.
    Mate {
        /// Its index.
        rra: usize,
        /// Its function.
        cf: Cf,
        /// The index it refers to.
        mate: usize,
        /// The function expected there.
        wanted: Cf,
    },
    /// Durations with decimals, for a file; a store would take them all.
    Decimals,
    /// A heartbeat that needs a finer unit; never leaves the parser.
    FinerHeartbeat,
}

/// The refusal of a step, heartbeat or archive with decimals of a second where a `.rrd` file would hold it.
pub const DECIMALS_IN_FILE: &str = "durations with decimals need a store: a .rrd file counts whole seconds; \
                                    create the RRD through a running daemon with stripes (--daemon)";

/// What is wrong with the parameters of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DsError {
    /// Nothing after the heartbeat.
    Separator,
    /// The heartbeat.
    Heartbeat(DurationError),
    /// No minimum and maximum.
    MinMax,
    /// The minimum is not below the maximum.
    Order,
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use DefinitionError as E;
        match self {
            E::Argument(word) => write!(f, "can't parse argument '{word}'"),
            E::DsFormat => f.write_str("invalid DS format"),
            E::DuplicateDs(name) => write!(f, "Duplicate DS name: {name}"),
            E::DsType(name) => write!(f, "invalid DS type specified ({name})"),
            E::Ds(arguments, error) => write!(f, "failed to parse data source {arguments}: {error}"),
            E::Limit(text) => f.write_str(text),
            E::Compute(error) => error.fmt(f),
            E::Cf(name) => write!(f, "Unrecognized consolidation function {name}"),
            E::RraArguments { want, got } => {
                write!(f, "Expected at least {want} arguments for RRA but got {got}")
            }
            E::ExtraArgument(cf) => {
                write!(f, "Unexpected extra argument for consolidation function {}", cf.name())
            }
            E::Unknown | E::FinerHeartbeat => f.write_str("Unknown error"),
            E::RowCount(text, error) => write!(f, "Invalid row count {text}: {error}"),
            E::RraStep(text, error) => write!(f, "Invalid step {text}: {error}"),
            E::Parameter(name) => write!(f, "Invalid {name}: must be between 0 and 1"),
            E::Option(text) => write!(f, "Invalid option {text}"),
            E::SmoothingWindow(text) => write!(f, "Invalid smoothing-window {text}: must be between 0 and 1"),
            E::SeasonLength => f.write_str("Length of seasonal cycle exceeds length of HW prediction array"),
            E::Threshold => f.write_str("Failure threshold is out of range 1, 28"),
            E::WindowShort => f.write_str("Window length is shorter than the failure threshold"),
            E::Window => f.write_str("Window length is out of range 1, 28"),
            E::NoArchive => f.write_str("you must define at least one Round Robin Archive"),
            E::NoSource => f.write_str("you must define at least one Data Source"),
            E::TooMany => write!(f, "more than {} data sources or archives; split the RRD", super::PARTS_MAX),
            E::StepRange => f.write_str("step size: out of range; use one of 0.001 to 2^53 s"),
            E::Decimals => f.write_str(DECIMALS_IN_FILE),
            E::Span(index) => write!(f, "RRA {} spans too long a time; take fewer rows or steps", index + 1),
            E::NoSeason => f.write_str("the seasonal period must be at least 1"),
            E::Mate { rra, cf, mate, wanted } => write!(
                f,
                "RRA {} ({}) names RRA {} as its {}, which it is not; correct its last argument",
                rra + 1,
                cf.name(),
                mate.wrapping_add(1) as i64,
                wanted.name()
            ),
        }
    }
}

impl fmt::Display for DsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DsError::Separator => f.write_str("missing separator"),
            DsError::Heartbeat(error) => error.fmt(f),
            DsError::MinMax => f.write_str("failed to extract min:max"),
            DsError::Order => f.write_str("min must be less than max in DS definition"),
        }
    }
}

impl std::error::Error for DefinitionError {}
