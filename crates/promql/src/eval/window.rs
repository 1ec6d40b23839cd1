//! Rows of series over ranges.

use std::sync::Arc;

use crate::ast::Edges;
use crate::source::RowKind;
use crate::value::{Column, is_absent};

use super::RangeSeries;

/// What a function sees of a series at a time: the values of a range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a> {
    /// Times, ascending.
    pub times: &'a [i64],
    /// Their values.
    pub values: &'a [f64],
    /// The place of the first of them among all rows.
    pub first: usize,
    /// The range begins after this.
    pub start: i64,
    /// The range ends with this.
    pub end: i64,
}

impl Window<'_> {
    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }
}

/// Rows of one series, in which every row has a value.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    /// The series without values.
    pub series: Column,
    pub times: Arc<[i64]>,
    pub values: Vec<f64>,
    pub kind: RowKind,
    /// How many readings a value stands for.
    pub weight: f64,
}

impl Rows {
    /// Leaves out where there is no value.
    pub(crate) fn new(series: Column, times: Arc<[i64]>, values: Vec<f64>) -> Rows {
        let (times, values) = match values.iter().any(|value| is_absent(*value)) {
            false => (times, values),
            true => {
                let known = times.iter().zip(&values).filter(|(_, value)| !is_absent(**value));
                let (times, values): (Vec<i64>, Vec<f64>) = known.unzip();
                (times.into(), values)
            }
        };
        Rows { series, times, values, kind: RowKind::Points, weight: 1.0 }
    }
}

/// Ranges of several series at the times of a grid.
#[derive(Clone, Debug)]
pub(crate) struct Ranges {
    pub rows: Vec<Rows>,
    /// The length of the range.
    pub range: i64,
    /// The end of the range at each time.
    pub ends: Vec<i64>,
    pub edges: Edges,
    /// How far from an edge a value may be.
    pub lookback: i64,
}

impl Ranges {
    /// Calls `each` with the window at every end, which moves forward.
    pub(crate) fn windows<'r>(&self, rows: &'r Rows, mut each: impl FnMut(usize, Window<'r>)) {
        let (mut first, mut last) = (0, 0);
        let mut before = i64::MIN;
        for (index, &end) in self.ends.iter().enumerate() {
            let start = end.saturating_sub(self.range);
            if end < before {
                (first, last) = (0, 0);
            }
            before = end;
            while last < rows.times.len() && rows.times[last] <= end {
                last += 1;
            }
            while first < rows.times.len() && rows.times[first] <= start {
                first += 1;
            }
            let range = first..last.max(first);
            let (times, values) = (&rows.times[range.clone()], &rows.values[range]);
            each(index, Window { times, values, first, start, end });
        }
    }

    /// The rows at the only end, as they are answered.
    pub(crate) fn answer(&self) -> Vec<RangeSeries> {
        let mut all = Vec::new();
        for rows in &self.rows {
            self.windows(rows, |index, window| {
                if index > 0 {
                    return;
                }
                let (times, values) = match self.edges {
                    Edges::Inside => (window.times.to_vec(), window.values.to_vec()),
                    edges => self.with_edges(rows, window, edges, false),
                };
                let points: Vec<(i64, f64)> = times.into_iter().zip(values).collect();
                if !points.is_empty() {
                    all.push(RangeSeries { labels: rows.series.final_labels(), points });
                }
            });
        }
        all.sort_by(|a, b| a.labels.cmp(&b.labels));
        all
    }

    /// The rows of a window with one at each edge: none of them if no row is near enough.
    pub(crate) fn with_edges(
        &self,
        rows: &Rows,
        window: Window<'_>,
        edges: Edges,
        is_counter: bool,
    ) -> (Vec<i64>, Vec<f64>) {
        let is_near = |time: &i64| *time > window.start.saturating_sub(self.lookback);
        let first = rows.times.partition_point(|time| *time <= window.start);
        let before = first.checked_sub(1).filter(|at| is_near(&rows.times[*at]));
        let last = first + window.len();
        let after = Some(last).filter(|at| {
            rows.times.get(*at).is_some_and(|time| *time <= window.end.saturating_add(self.lookback))
        });
        let is_smooth = edges == Edges::Smoothed;
        if window.len() == 0 && !(is_smooth && before.is_some() && after.is_some()) {
            return (Vec::new(), Vec::new());
        }
        let between = |left: usize, right: usize, time: i64| {
            let (a, b) = (rows.values[left], rows.values[right]);
            let share = (time - rows.times[left]) as f64 / (rows.times[right] - rows.times[left]) as f64;
            if is_counter && b < a { b * share } else { a + (b - a) * share }
        };
        let left = match before {
            Some(at) if is_smooth && rows.times[at] < window.start && at + 1 < rows.times.len() => {
                between(at, at + 1, window.start)
            }
            Some(at) => rows.values[at],
            None => rows.values[first],
        };
        let right = match after {
            Some(at) if is_smooth && at > 0 && rows.times[at - 1] < window.end => {
                between(at - 1, at, window.end)
            }
            _ => rows.values[last - 1],
        };
        let mut times = vec![window.start];
        let mut values = vec![left];
        times.extend(window.times);
        values.extend(window.values);
        times.push(window.end);
        values.push(right);
        if times[times.len() - 2] == window.end {
            times.pop();
            values.pop();
        }
        (times, values)
    }
}
