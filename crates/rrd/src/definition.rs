//! What an RRD is: step, data sources and archives, as `rrdcreate(1)` defines them.
//!
//! A definition is plain data that only `tune` changes. Limits of the `.rrd` file (19-character names,
//! whole-second steps) belong to the codec.

mod arguments;
pub mod text;

use crate::time::Moment;
use crate::when::{FINE_UNITS, Step};

/// Version numbers of the `.rrd` file: `RRD_VERSION` 1 to 5.
pub type FormatVersion = u8;

/// The version `create` writes when nothing newer is needed.
pub const VERSION_DEFAULT: FormatVersion = 3;
/// The first version with MHWPREDICT or an explicit smoothing window.
pub const VERSION_SMOOTHING_WINDOW: FormatVersion = 4;
/// The first version with DCOUNTER or DDERIVE.
pub const VERSION_DCOUNTER: FormatVersion = 5;

/// Step, data sources and archives of one RRD.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// The `.rrd` format version it needs (or was read with). As in RRDtool it decides about fractions of a
    /// second (from 3) and the smoothing window (from 4).
    pub version: FormatVersion,
    /// Units per second: 1 for every RRD RRDtool can make, 1000 when the step is a fraction of a second.
    pub units_per_second: u32,
    /// Length of a primary data point, in units. At least 1.
    pub step: u64,
    /// Data sources in order; never empty.
    pub ds: Vec<Ds>,
    /// Archives in order; never empty.
    pub rra: Vec<Rra>,
}

/// One data source.
#[derive(Clone, Debug, PartialEq)]
pub struct Ds {
    /// `[a-zA-Z0-9_-]`, at most 19 characters in a `.rrd` file, at most 255 in a store.
    pub name: String,
    /// The kind of number it takes, with the kind's parameters.
    pub kind: DsKind,
}

/// The seven kinds of data source.
#[derive(Clone, Debug, PartialEq)]
pub enum DsKind {
    /// A source that clients feed.
    Fed {
        /// How a reading becomes a rate.
        ds_type: DsType,
        /// Units without an update after which the source becomes unknown.
        heartbeat: u64,
        /// Smallest rate accepted; NaN = unlimited.
        min: f64,
        /// Largest rate accepted; NaN = unlimited.
        max: f64,
    },
    /// COMPUTE: a value from the sources before it.
    Compute(ComputeProgram),
}

/// How a reading becomes a rate (`rrdcreate(1)`, DS types).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DsType {
    /// The value itself.
    Gauge,
    /// An ever-growing integer that wraps at 32 or 64 bits.
    Counter,
    /// The rate of change of an integer, up or down.
    Derive,
    /// A count since the last reading.
    Absolute,
    /// Like COUNTER, for fractions; a decrease is a reset.
    Dcounter,
    /// Like DERIVE, for fractions.
    Dderive,
}

/// The compiled RPN of a COMPUTE source: the nodes of the `.rrd` file, without the final `OP_END`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct ComputeProgram {
    /// At most 19 nodes (20 with the end mark fill the 80 bytes).
    pub nodes: Vec<ComputeNode>,
}

/// One node of a COMPUTE program, as on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ComputeNode {
    /// Number in RRDtool's `enum op_en`; fixed by the file format.
    pub op: u8,
    /// The integer constant, or the index of an earlier source.
    pub operand: i16,
}

/// One round-robin archive.
#[derive(Clone, Debug, PartialEq)]
pub struct Rra {
    /// The consolidation function with its parameters.
    pub cf: Consolidation,
    /// PDPs per row; 1 for all Holt-Winters kinds.
    pub pdp_per_row: u64,
    /// Number of rows.
    pub row_count: u64,
}

/// A consolidation function and its parameters. Archive indexes are 0-based.
#[derive(Clone, Debug, PartialEq)]
pub enum Consolidation {
    /// AVERAGE, MIN, MAX, LAST with their xff.
    Plain {
        /// Which of the four.
        cf: PlainCf,
        /// The fraction of a row that may be unknown, `0.0..1.0`.
        xff: f64,
    },
    /// HWPREDICT or MHWPREDICT.
    Predict {
        /// True for MHWPREDICT.
        multiplicative: bool,
        /// Adaption of the intercept.
        alpha: f64,
        /// Adaption of the slope.
        beta: f64,
        /// Index of its SEASONAL archive.
        seasonal: usize,
        /// The seasonal period, as given on the command line; RRDtool writes it as a double.
        period: f64,
    },
    /// SEASONAL or DEVSEASONAL.
    Seasonal {
        /// True for DEVSEASONAL.
        deviation: bool,
        /// Adaption of the coefficients.
        gamma: f64,
        /// The fraction of the period to smooth over (0 when not given).
        smoothing_window: f64,
        /// Index of its HWPREDICT or MHWPREDICT archive.
        predict: usize,
        /// The row at which smoothing is due.
        smooth_index: u64,
    },
    /// DEVPREDICT.
    DevPredict {
        /// Index of its DEVSEASONAL archive.
        devseasonal: usize,
    },
    /// FAILURES.
    Failures {
        /// Upper confidence bound in deviations.
        delta_pos: f64,
        /// Lower confidence bound in deviations.
        delta_neg: f64,
        /// Index of its DEVSEASONAL archive.
        devseasonal: usize,
        /// Rows in the window, at most 28.
        window_length: u64,
        /// Violations in the window that count as a failure.
        threshold: u64,
    },
}

/// The four consolidation functions without state of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlainCf {
    /// Mean of the known PDPs.
    Average,
    /// Smallest known PDP.
    Min,
    /// Largest known PDP.
    Max,
    /// Newest PDP.
    Last,
}

/// Consolidation functions by name, numbered as RRDtool's `enum cf_en`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Cf {
    /// AVERAGE
    Average = 0,
    /// MIN
    Min = 1,
    /// MAX
    Max = 2,
    /// LAST
    Last = 3,
    /// HWPREDICT
    HwPredict = 4,
    /// SEASONAL
    Seasonal = 5,
    /// DEVPREDICT
    DevPredict = 6,
    /// DEVSEASONAL
    DevSeasonal = 7,
    /// FAILURES
    Failures = 8,
    /// MHWPREDICT
    MhwPredict = 9,
}

impl Cf {
    /// All functions, in the order of their numbers.
    pub const ALL: [Cf; 10] = [
        Cf::Average,
        Cf::Min,
        Cf::Max,
        Cf::Last,
        Cf::HwPredict,
        Cf::Seasonal,
        Cf::DevPredict,
        Cf::DevSeasonal,
        Cf::Failures,
        Cf::MhwPredict,
    ];

    /// The name in files and commands.
    pub fn name(self) -> &'static str {
        match self {
            Cf::Average => "AVERAGE",
            Cf::Min => "MIN",
            Cf::Max => "MAX",
            Cf::Last => "LAST",
            Cf::HwPredict => "HWPREDICT",
            Cf::Seasonal => "SEASONAL",
            Cf::DevPredict => "DEVPREDICT",
            Cf::DevSeasonal => "DEVSEASONAL",
            Cf::Failures => "FAILURES",
            Cf::MhwPredict => "MHWPREDICT",
        }
    }

    /// The function with this exact (upper-case) name.
    pub fn from_name(name: &str) -> Option<Cf> {
        Cf::ALL.into_iter().find(|cf| cf.name() == name)
    }
}

impl DsType {
    /// The name in files and commands.
    pub fn name(self) -> &'static str {
        match self {
            DsType::Gauge => "GAUGE",
            DsType::Counter => "COUNTER",
            DsType::Derive => "DERIVE",
            DsType::Absolute => "ABSOLUTE",
            DsType::Dcounter => "DCOUNTER",
            DsType::Dderive => "DDERIVE",
        }
    }

    /// The type with this exact (upper-case) name.
    pub fn from_name(name: &str) -> Option<DsType> {
        [DsType::Gauge, DsType::Counter, DsType::Derive, DsType::Absolute, DsType::Dcounter, DsType::Dderive]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

impl DsKind {
    /// The type's name, COMPUTE included.
    pub fn name(&self) -> &'static str {
        match self {
            DsKind::Fed { ds_type, .. } => ds_type.name(),
            DsKind::Compute(_) => "COMPUTE",
        }
    }
}

impl Consolidation {
    /// The function, without its parameters.
    pub fn cf(&self) -> Cf {
        match self {
            Consolidation::Plain { cf: PlainCf::Average, .. } => Cf::Average,
            Consolidation::Plain { cf: PlainCf::Min, .. } => Cf::Min,
            Consolidation::Plain { cf: PlainCf::Max, .. } => Cf::Max,
            Consolidation::Plain { cf: PlainCf::Last, .. } => Cf::Last,
            Consolidation::Predict { multiplicative: false, .. } => Cf::HwPredict,
            Consolidation::Predict { multiplicative: true, .. } => Cf::MhwPredict,
            Consolidation::Seasonal { deviation: false, .. } => Cf::Seasonal,
            Consolidation::Seasonal { deviation: true, .. } => Cf::DevSeasonal,
            Consolidation::DevPredict { .. } => Cf::DevPredict,
            Consolidation::Failures { .. } => Cf::Failures,
        }
    }

    /// True for the six Holt-Winters kinds, which carry [`crate::live::HwPrep`].
    pub fn is_holt_winters(&self) -> bool {
        !matches!(self, Consolidation::Plain { .. })
    }

    /// True for SEASONAL and DEVSEASONAL, whose rows are rewritten in place and therefore live in memory.
    pub fn is_season(&self) -> bool {
        matches!(self, Consolidation::Seasonal { .. })
    }
}

impl Rra {
    /// The span of a row in units.
    pub fn span(&self, step: u64) -> i64 {
        crate::grid::row_span(step, self.pdp_per_row)
    }
}

impl Definition {
    /// The index of the source called `name`.
    pub fn ds_index(&self, name: &str) -> Option<usize> {
        self.ds.iter().position(|ds| ds.name == name)
    }

    /// A time of this RRD, given in its units.
    pub fn moment(&self, units: i64) -> Moment {
        Moment { units, units_per_second: self.units_per_second }
    }

    /// Replaces the step. Heartbeats stay as long as they are; the unit becomes the coarsest that step and heartbeats
    /// allow.
    pub fn set_step(&mut self, step: Step) {
        if self.units_per_second == 1 && step.units_per_second == 1 {
            self.step = step.units;
            return;
        }
        let fine = |units: u64, per_second: u32| match per_second {
            1 => units.saturating_mul(u64::from(FINE_UNITS)),
            _ => units,
        };
        let old_units = self.units_per_second;
        let step = fine(step.units, step.units_per_second);
        let mut heartbeats: Vec<&mut u64> = Vec::new();
        for ds in &mut self.ds {
            if let DsKind::Fed { heartbeat, .. } = &mut ds.kind {
                *heartbeat = fine(*heartbeat, old_units);
                heartbeats.push(heartbeat);
            }
        }
        let unit = u64::from(FINE_UNITS);
        let whole = step.is_multiple_of(unit) && heartbeats.iter().all(|units| units.is_multiple_of(unit));
        let divisor = if whole { unit } else { 1 };
        heartbeats.into_iter().for_each(|units| *units /= divisor);
        (self.step, self.units_per_second) = (step / divisor, if whole { 1 } else { FINE_UNITS });
    }

    /// Number of sources that take a value in an update (all but COMPUTE).
    pub fn fed_count(&self) -> usize {
        self.ds.iter().filter(|ds| matches!(ds.kind, DsKind::Fed { .. })).count()
    }

    /// The row number of archive `rra`'s newest complete row at `last_update_whole`.
    pub fn newest_row(&self, rra: usize, last_update_whole: i64) -> i64 {
        crate::grid::row_number(last_update_whole, self.rra[rra].span(self.step))
    }
}
