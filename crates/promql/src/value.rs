//! What expressions are worth, and the times at which.

use crate::labels::{Labels, NAME};

/// Stands where a series has no value: the bits by which Prometheus marks the end of a series, which no calculation makes.
pub const ABSENT: f64 = f64::from_bits(0x7ff0_0000_0000_0002);

/// Whether there is no value.
pub fn is_absent(value: f64) -> bool {
    value.to_bits() == ABSENT.to_bits()
}

/// Times with equal distances, in milliseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// The first.
    pub start: i64,
    /// The distance, more than 0.
    pub step: i64,
    /// How many.
    pub count: usize,
}

impl Grid {
    /// A single time.
    pub fn at(time: i64) -> Grid {
        Grid { start: time, step: 1, count: 1 }
    }

    /// Times from `start` to at most `end`.
    pub fn new(start: i64, end: i64, step: i64) -> Grid {
        let step = step.max(1);
        let count = if end < start { 0 } else { (end.saturating_sub(start) / step) as usize + 1 };
        Grid { start, step, count }
    }

    /// One of them.
    pub fn time(&self, index: usize) -> i64 {
        self.start.saturating_add(self.step.saturating_mul(index as i64))
    }

    /// The last.
    pub fn last(&self) -> i64 {
        self.time(self.count.saturating_sub(1))
    }

    /// All of them.
    pub fn times(&self) -> impl Iterator<Item = i64> + use<> {
        let grid = *self;
        (0..grid.count).map(move |index| grid.time(index))
    }
}

/// A series with one value for each time of a grid, or [`ABSENT`].
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its labels.
    pub labels: Labels,
    /// Whether its name is still to be removed.
    pub(crate) unnamed: bool,
    /// Its values.
    pub values: Vec<f64>,
}

impl Column {
    /// A series.
    pub fn new(labels: Labels, values: Vec<f64>) -> Column {
        Column { labels, unnamed: false, values }
    }

    /// Whether it has no value at all.
    pub fn is_empty(&self) -> bool {
        self.values.iter().all(|value| is_absent(*value))
    }

    /// The labels once the name is removed, if it is to be.
    pub(crate) fn final_labels(&self) -> Labels {
        if self.unnamed { self.labels.without_name() } else { self.labels.clone() }
    }

    /// The metric's name for messages.
    pub(crate) fn name(&self) -> &str {
        self.labels.get(NAME)
    }
}

/// What an expression is worth.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// A number for each time.
    Scalar(Vec<f64>),
    /// A text.
    Text(String),
    /// Series.
    Vector(Vec<Column>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_ends_where_it_should() {
        let grid = Grid::new(10, 29, 10);
        assert_eq!(grid.times().collect::<Vec<_>>(), [10, 20]);
        assert_eq!((grid.last(), Grid::new(5, 4, 1).count, Grid::at(7).last()), (20, 0, 7));
    }

    #[test]
    fn no_calculation_makes_the_mark() {
        for value in [ABSENT + 1.0, ABSENT * ABSENT, -ABSENT, f64::NAN] {
            assert!(!is_absent(value));
        }
        assert!(is_absent(ABSENT));
    }
}
