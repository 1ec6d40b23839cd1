//! Which rows a graph needs, and the door they come through.
//!
//! One fetch answers for every DEF of the same file, function, range, step and daemon. What a fetch is
//! answered from is the caller's: a file, a store, a daemon ([`Rows`]).

use std::collections::HashMap;
use std::error::Error;

use rrd::definition::Cf;

use crate::language::{Def, Element, Script};

/// The range of a graph and its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Start in seconds since the epoch.
    pub start: i64,
    /// End in seconds since the epoch.
    pub end: i64,
    /// Seconds in a column; 0 where as fine as there is. Finer rows are reduced to it, coarser ones stay.
    pub step: u64,
}

impl Frame {
    /// The frame of `columns` columns (at least one): its step is the larger of the wish and of the seconds in
    /// a column.
    pub fn new(start: i64, end: i64, step_wish: u64, columns: u64) -> Frame {
        let seconds = end.saturating_sub(start).max(0) as u64 / columns.max(1);
        Frame { start, end, step: step_wish.max(seconds) }
    }
}

/// One fetch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// The RRD, as the DEF names it.
    pub file: Vec<u8>,
    /// The consolidation function.
    pub cf: Cf,
    /// Start in seconds since the epoch.
    pub start: i64,
    /// End in seconds since the epoch.
    pub end: i64,
    /// The wanted step in seconds; 0 or 1 is as fine as there is.
    pub step: u64,
    /// The daemon to ask, where not the caller's own.
    pub daemon: Option<Vec<u8>>,
}

/// What a fetch gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fetched {
    /// Where the first row begins: seconds since the epoch.
    pub start: i64,
    /// Seconds in a row; not 0.
    pub step: u64,
    /// Names of the data sources.
    pub names: Vec<Vec<u8>>,
    /// Row after row, a value for each data source.
    pub values: Vec<f64>,
}

impl Fetched {
    /// Rows whose times are counted in `units_per_second`; `None` where a row is no whole number of seconds.
    pub fn in_seconds(
        (start, step): (i64, u64),
        units_per_second: u32,
        names: impl IntoIterator<Item = String>,
        values: Vec<f64>,
    ) -> Option<Fetched> {
        let unit = u64::from(units_per_second.max(1));
        step.is_multiple_of(unit).then(|| Fetched {
            start: start.div_euclid(unit as i64),
            step: step / unit,
            names: names.into_iter().map(String::into_bytes).collect(),
            values,
        })
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.values.len().checked_div(self.names.len()).unwrap_or(0)
    }

    /// The values of data source `ds`.
    pub fn column(&self, ds: usize) -> Vec<f64> {
        if self.names.len() == 1 && ds == 0 {
            return self.values.clone();
        }
        self.values.iter().skip(ds).step_by(self.names.len().max(1)).copied().collect()
    }
}

/// Where rows come from.
pub trait Rows {
    /// Fetches as `rrdfetch(1)` does: which archive answers, and which rows, follows its rules.
    ///
    /// # Errors
    /// Whatever the source has to say; its text is shown as it is.
    fn fetch(&mut self, request: &Request) -> Result<Fetched, Box<dyn Error + Send + Sync>>;

    /// Asked before a CDEF is computed: how many rows it will have, and how many words are run for each. Whoever
    /// answers a network refuses what is too much; without an answer of its own a source refuses nothing.
    ///
    /// # Errors
    /// That it is too much.
    fn compute(&mut self, _rows: usize, _words: usize) -> Result<Computation, Box<dyn Error + Send + Sync>> {
        Ok(Computation::default())
    }
}

/// How a CDEF may be computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Computation {
    /// Most values that sets and windows may touch, where not the language's own bound.
    pub work_max: Option<u64>,
}

/// The fetches of a script, and which of them serves each DEF.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Every distinct fetch, in the order in which DEFs need them.
    pub requests: Vec<Request>,
    /// For each DEF, in order, the index of its fetch.
    pub of_def: Vec<usize>,
}

/// Plans the fetches of `script`.
pub fn plan(script: &Script, frame: Frame) -> Plan {
    let mut plan = Plan::default();
    let mut known: HashMap<Question<'_>, usize> = HashMap::new();
    for element in &script.elements {
        let Element::Def(def) = element else { continue };
        let step = def.step.unwrap_or(frame.step);
        let index = known.entry(Question::of(def, step)).or_insert_with(|| {
            plan.requests.push(Request {
                file: def.file.clone(),
                cf: def.cf,
                start: def.start,
                end: def.end,
                step,
                daemon: def.daemon.clone(),
            });
            plan.requests.len() - 1
        });
        plan.of_def.push(*index);
    }
    plan
}

/// What tells fetches apart: a [`Request`] that is a DEF's, to look it up without a copy.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Question<'a> {
    file: &'a [u8],
    cf: Cf,
    span: (i64, i64),
    step: u64,
    daemon: Option<&'a [u8]>,
}

impl<'a> Question<'a> {
    /// What `def` asks for when it wants rows of `step` seconds.
    pub(crate) fn of(def: &'a Def, step: u64) -> Question<'a> {
        let daemon = def.daemon.as_deref();
        Question { file: &def.file, cf: def.cf, span: (def.start, def.end), step, daemon }
    }
}
