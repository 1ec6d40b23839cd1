//! Where series come from.

use std::error::Error;
use std::sync::Arc;

use crate::ast::Edges;
use crate::labels::Labels;
use crate::matcher::Matcher;

/// An error of a source.
pub type SourceError = Box<dyn Error + Send + Sync>;

/// What a selector asks for. Times are in milliseconds since the epoch.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// Conditions that all must hold.
    pub matchers: &'a [Matcher],
    /// The first time it is evaluated at.
    pub first: i64,
    /// The last time it is evaluated at.
    pub last: i64,
    /// The distance of these times; 0 when there is only one.
    pub step: i64,
    /// The range of a range selector: rows count that are after `first - range`.
    pub range: Option<i64>,
    /// How far from each edge rows are looked for, where that is asked for or there is no range.
    pub lookback: i64,
    /// What counts at the edges of a range.
    pub edges: Edges,
    /// The function that takes the rows.
    pub function: Option<&'static str>,
}

impl Wanted<'_> {
    /// The time after which rows are needed, if a series has no longer lookback of its own.
    pub fn after(&self) -> i64 {
        let range = match (self.range, self.edges) {
            (None, _) => self.lookback,
            (Some(range), Edges::Inside) => range,
            (Some(range), _) => range.saturating_add(self.lookback),
        };
        self.first.saturating_sub(range)
    }

    /// The time up to which rows are needed.
    pub fn until(&self) -> i64 {
        let after = if self.edges == Edges::Smoothed { self.lookback } else { 0 };
        self.last.saturating_add(after)
    }
}

/// What the values of rows are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowKind {
    /// Values at times.
    #[default]
    Points,
    /// Rates per second, so that a rate of them is probably a mistake.
    Rates,
    /// Rates per second over the milliseconds before each time, of which a counter is shown: `rate` and `increase` integrate them.
    Counter {
        /// How long each row is.
        row: i64,
    },
}

/// A series of the source.
#[derive(Clone, Debug, Default)]
pub struct SourceSeries {
    /// Its labels.
    pub labels: Labels,
    /// Times of its rows, ascending: milliseconds since the epoch. Series with the same times may share them.
    pub times: Arc<[i64]>,
    /// A value for each time; [`crate::value::ABSENT`] ends the series until the next one.
    pub values: Vec<f64>,
    /// What the values are.
    pub kind: RowKind,
    /// How far a single value is looked for; 0: as far as the query says.
    pub lookback: i64,
    /// How many readings a value stands for, at least 1: what `count_over_time` counts; 0 is 1.
    pub weight: f64,
}

/// What a source found.
#[derive(Clone, Debug, Default)]
pub struct Selected {
    /// The series, in any order.
    pub series: Vec<SourceSeries>,
    /// What could not be done as asked.
    pub warnings: Vec<String>,
    /// What is worth knowing.
    pub infos: Vec<String>,
}

/// Series and limits for the evaluation of a query.
pub trait Source {
    /// The series that a selector takes.
    ///
    /// # Errors
    /// When they cannot be read, or are too many.
    fn select(&mut self, wanted: &Wanted<'_>) -> Result<Selected, SourceError>;

    /// Called before so many more bytes are taken, and now and then with 0.
    ///
    /// # Errors
    /// When there is no memory for them, or the time is over.
    fn reserve(&mut self, bytes: u64) -> Result<(), SourceError>;

    /// Calls `work` with each number below `count` once, in any order. A source may use several threads for that; one is not worth less
    /// than `_least` numbers.
    ///
    /// # Errors
    /// When the time is over: then it was not called with all of them.
    fn run(&self, count: usize, _least: usize, work: &(dyn Fn(usize) + Sync)) -> Result<(), SourceError> {
        (0..count).for_each(work);
        Ok(())
    }
}
