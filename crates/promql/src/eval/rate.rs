//! `rate`, `increase`, `delta` and their kin.

use crate::ast::Edges;
use crate::source::RowKind;

use super::window::{Ranges, Rows, Window};

/// What is computed of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Per second, of a counter.
    Rate,
    /// Over the range, of a counter.
    Increase,
    /// Over the range, of a gauge.
    Delta,
}

impl Change {
    fn is_counter(self) -> bool {
        self != Change::Delta
    }

    fn of_seconds(self, difference: f64, seconds: f64) -> f64 {
        if self == Change::Rate { difference / seconds } else { difference }
    }
}

/// The change over a window.
pub(super) fn change(change: Change, ranges: &Ranges, rows: &Rows, window: Window<'_>) -> Option<f64> {
    let seconds = ranges.range as f64 / 1000.0;
    if let RowKind::Counter { row } = rows.kind {
        return integrated(change, rows, window, row);
    }
    if ranges.edges == Edges::Inside {
        return extrapolated(change, window, seconds);
    }
    let (_, values) = ranges.with_edges(rows, window, ranges.edges, change.is_counter());
    let (first, last) = (values.first()?, values.last()?);
    let resets = if change.is_counter() { reset_sum(&values) } else { 0.0 };
    Some(change.of_seconds(last - first + resets, seconds))
}

/// What a counter lost in resets.
fn reset_sum(values: &[f64]) -> f64 {
    values.windows(2).filter(|pair| pair[1] < pair[0]).map(|pair| pair[0]).sum()
}

/// The difference between the first and the last value, extended to the edges of the range as far as the values' distances and, for a
/// counter, its beginning at 0 allow.
fn extrapolated(change: Change, window: Window<'_>, seconds: f64) -> Option<f64> {
    let count = window.len();
    if count < 2 {
        return None;
    }
    let (first, last) = (window.values[0], window.values[count - 1]);
    let mut difference = last - first;
    if change.is_counter() {
        difference += reset_sum(window.values);
    }
    let span = |from: i64, to: i64| (to - from) as f64 / 1000.0;
    let sampled = span(window.times[0], window.times[count - 1]);
    let between = sampled / (count - 1) as f64;
    let limit = between * 1.1;
    let near = |distance: f64| if distance >= limit { between / 2.0 } else { distance };
    let mut before = near(span(window.start, window.times[0]));
    if change.is_counter() && difference > 0.0 && first >= 0.0 {
        before = before.min(sampled * (first / difference));
    }
    let after = near(span(window.times[count - 1], window.end));
    let mut factor = (sampled + before + after) / sampled;
    if change == Change::Rate {
        factor /= seconds;
    }
    Some(difference * factor)
}

/// The integral of rates over a window: each row is an interval, of which only the part inside counts; unknown time counts as missing.
fn integrated(change: Change, rows: &Rows, window: Window<'_>, row: i64) -> Option<f64> {
    let first = rows.times.partition_point(|time| *time <= window.start);
    let (mut sum, mut known) = (0.0, 0.0);
    for (time, value) in rows.times[first..].iter().zip(&rows.values[first..]) {
        let begin = time.saturating_sub(row);
        if begin >= window.end {
            break;
        }
        let seconds = ((*time).min(window.end) - begin.max(window.start)) as f64 / 1000.0;
        sum += value * seconds;
        known += seconds;
    }
    if known <= 0.0 {
        return None;
    }
    Some(change.of_seconds(sum, known))
}

/// The change between the last two values; per second if it is a rate.
pub(super) fn instant(is_rate: bool, rows: &Rows, window: Window<'_>) -> Option<f64> {
    if is_rate && matches!(rows.kind, RowKind::Counter { .. }) {
        return window.values.last().copied();
    }
    let [.., before, last] = window.values else { return None };
    if !is_rate {
        return Some(last - before);
    }
    let [.., from, to] = window.times else { return None };
    let difference = if last < before { *last } else { last - before };
    Some(difference / ((to - from) as f64 / 1000.0))
}

/// How often the value changes, or falls.
pub(super) fn count_steps(ranges: &Ranges, rows: &Rows, window: Window<'_>, only_falls: bool) -> Option<f64> {
    let anchored;
    let values = match ranges.edges {
        Edges::Inside => window.values,
        edges => {
            anchored = ranges.with_edges(rows, window, edges, false).1;
            &anchored
        }
    };
    if values.is_empty() {
        return None;
    }
    let differs = |pair: &&[f64]| match only_falls {
        true => pair[1] < pair[0],
        false => pair[1] != pair[0] && !(pair[0].is_nan() && pair[1].is_nan()),
    };
    Some(values.windows(2).filter(differs).count() as f64)
}
