//! The rows of one variable.

/// Rows of one variable, all of one width.
///
/// `values[i]` belongs to the row that **ends** at `start + (i + 1) * step`, as everywhere (row time).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Where the first row begins: seconds since the epoch.
    pub start: i64,
    /// Seconds in a row; never 0.
    pub step: u64,
    /// The row values, oldest first; NaN is unknown.
    pub values: Vec<f64>,
}

impl Series {
    /// Where the last row ends: seconds since the epoch.
    pub fn end(&self) -> i64 {
        let seconds = self.step.saturating_mul(self.values.len() as u64);
        self.start.saturating_add_unsigned(seconds)
    }
}
