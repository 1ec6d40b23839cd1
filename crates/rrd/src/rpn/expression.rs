//! A CDEF: an expression over whole series.

use super::EvaluateError;
use super::error::RpnError;
use super::series::Series;
use crate::when::calendar::Calendar;

/// What a name in an expression stands for; the index is the caller's, for [`Expression::evaluate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// A DEF or CDEF: one value a row.
    Series(usize),
    /// A VDEF: the same value in every row.
    Scalar(usize),
}

/// What operators can ask for beside their operands.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// What NOW gives: seconds since the epoch.
    pub now: i64,
    /// Where the graph (or xport) starts and ends, in seconds since the epoch: the rows of the result lie
    /// within, widened to what the series have (see [`Expression::evaluate`]).
    pub start: i64,
    /// See `start`.
    pub end: i64,
    /// Which day a week starts on: 0 is Sunday, 1 Monday. NEWWEEK takes it from the locale.
    pub first_weekday: u32,
    /// Local time, for LTIME and the NEW.. operators.
    pub calendar: &'a dyn Calendar,
}

/// A compiled CDEF.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    symbols: Vec<Symbol>,
}

impl Expression {
    /// Compiles `text`; `lookup` knows the variables defined before it.
    ///
    /// # Errors
    /// [`RpnError`], whose `Display` is RRDtool's text.
    pub fn parse(text: &str, lookup: impl Fn(&str) -> Option<Symbol>) -> Result<Expression, RpnError> {
        if text.is_empty() {
            return Err(RpnError::Empty);
        }
        Ok(Expression { symbols: lookup(text).into_iter().collect() })
    }

    /// Every variable that it reads, in the order of the text, each as often as it is named.
    ///
    /// The step of the result is the greatest common divisor of the steps of the series.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// The rows of the result. `series` and `scalars` are what the [`Symbol`]s index.
    ///
    /// # Errors
    /// [`EvaluateError`], whose `Display` is RRDtool's text.
    pub fn evaluate(
        &self,
        series: &[&Series],
        _scalars: &[f64],
        _surroundings: &Surroundings<'_>,
    ) -> Result<Series, EvaluateError> {
        match self.symbols.first() {
            Some(&Symbol::Series(index)) if self.symbols.len() == 1 => {
                series.get(index).map(|&rows| rows.clone()).ok_or(EvaluateError::NoSeries)
            }
            _ => Err(EvaluateError::NoSeries),
        }
    }
}
