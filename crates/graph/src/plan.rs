//! Which rows a graph needs, and the trait that they come through.
//!
//! One fetch serves every DEF of the same file, function, range, step and daemon. The caller decides where its rows
//! come from: a file, a store or a daemon ([`Rows`]).

use std::collections::HashMap;
use std::error::Error;

use rrd::definition::Cf;
use rrd::fetch::{FetchRequest, FetchRows};

use crate::language::{Def, Element, Script};

/// The range of a graph and its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// Start in seconds since the epoch.
    pub start: i64,
    /// End in seconds since the epoch.
    pub end: i64,
    /// Seconds in a row; 0 = as fine as the archives are. Finer rows are consolidated, coarser ones stay.
    pub step: u64,
}

impl TimeRange {
    /// A range that is shown in `columns` columns (at least one). Its step is `step_min`, or the seconds in a column if
    /// those are more.
    pub fn new(start: i64, end: i64, step_min: u64, columns: u64) -> TimeRange {
        let seconds = end.saturating_sub(start).max(0) as u64 / columns.max(1);
        TimeRange { start, end, step: step_min.max(seconds) }
    }
}

/// The fetch that answers one or more DEFs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// The RRD, as the DEF names it.
    pub file: Vec<u8>,
    /// What to fetch from it.
    pub fetch: FetchRequest,
    /// The daemon to ask, where not the caller's own.
    pub daemon: Option<Vec<u8>>,
}

/// Where rows come from.
pub trait Rows {
    /// Fetches by the rules of `rrdfetch(1)`, which decide on the archive and its rows. Their step is not 0; rows that
    /// are no whole seconds are consolidated afterwards.
    ///
    /// # Errors
    /// Any; the text is shown as it is.
    fn fetch(&mut self, request: &Request) -> Result<FetchRows, Box<dyn Error + Send + Sync>>;

    /// Called before `values` values are allocated that no fetch returned, because data is missing. A server refuses
    /// what is too much; by default nothing is.
    ///
    /// # Errors
    /// That it is too much.
    fn reserve(&mut self, _values: u64) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }

    /// Called before a CDEF is computed for this many rows, with this many operations for each. A server refuses what
    /// is too much; by default nothing is.
    ///
    /// # Errors
    /// That it is too much.
    fn compute(&mut self, _rows: usize, _words: usize) -> Result<ComputeLimit, Box<dyn Error + Send + Sync>> {
        Ok(ComputeLimit::default())
    }

    /// Whether an error of [`Rows::fetch`] is the refusal of a limit: that is no missing data.
    fn is_limit(&self, _error: &(dyn Error + Send + Sync + 'static)) -> bool {
        false
    }
}

/// How a CDEF may be computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComputeLimit {
    /// Most values that sets and windows may touch; `None` = the language's own bound.
    pub work_max: Option<u64>,
}

/// The fetches of a script.
#[derive(Clone, Debug, Default)]
pub struct FetchPlan {
    /// Every distinct fetch, in the order in which DEFs need them.
    pub requests: Vec<Request>,
    /// For each DEF, in order, the index of its fetch.
    pub of_def: Vec<usize>,
}

/// Plans the fetches of `script`.
pub fn plan(script: &Script, range: TimeRange) -> FetchPlan {
    let mut plan = FetchPlan::default();
    let mut known: HashMap<FetchKey<'_>, usize> = HashMap::new();
    for element in &script.elements {
        let Element::Def(def) = element else { continue };
        let step = def.step.unwrap_or(range.step);
        let index = known.entry(FetchKey::of(def, step)).or_insert_with(|| {
            plan.requests.push(Request {
                file: def.file.clone(),
                fetch: FetchRequest::new(def.cf, def.start, def.end, step),
                daemon: def.daemon.clone(),
            });
            plan.requests.len() - 1
        });
        plan.of_def.push(*index);
    }
    plan
}

/// Identifies a fetch, like [`Request`], but borrows from its DEF.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FetchKey<'a> {
    file: &'a [u8],
    cf: Cf,
    span: (i64, i64),
    step: u64,
    daemon: Option<&'a [u8]>,
}

impl<'a> FetchKey<'a> {
    /// The fetch that `def` needs for rows of `step` seconds.
    pub(crate) fn of(def: &'a Def, step: u64) -> FetchKey<'a> {
        let daemon = def.daemon.as_deref();
        FetchKey { file: &def.file, cf: def.cf, span: (def.start, def.end), step, daemon }
    }
}
