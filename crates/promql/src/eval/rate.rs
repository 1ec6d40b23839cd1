//! `rate`, `increase`, `delta` and their kin.

use std::ops::Range;
use std::sync::Arc;

use crate::ast::Edges;
use crate::source::RowKind;
use crate::value::ABSENT;

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
    /// What the function called so computes, if it is one.
    pub(super) fn of_function(name: &str) -> Option<Change> {
        match name {
            "rate" => Some(Change::Rate),
            "increase" => Some(Change::Increase),
            "delta" => Some(Change::Delta),
            _ => None,
        }
    }

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
    let extent = Extent::of(change, window.times, (window.start, window.end), seconds)?;
    let lost = if change.is_counter() { reset_sum(window.values) } else { 0.0 };
    Some(extent.extrapolated(change, window.values, lost, seconds))
}

/// What of the extension follows from the times of a window.
#[derive(Clone, Debug)]
struct Extent {
    /// Seconds between the first and the last value.
    sampled: f64,
    /// Seconds by which it is extended on each side.
    before: f64,
    after: f64,
    /// What the difference is multiplied by, unless a counter began meanwhile.
    factor: f64,
}

impl Extent {
    fn of(change: Change, times: &[i64], (start, end): (i64, i64), seconds: f64) -> Option<Extent> {
        let [first, .., last] = *times else { return None };
        let span = |from: i64, to: i64| (to - from) as f64 / 1000.0;
        let sampled = span(first, last);
        let between = sampled / (times.len() - 1) as f64;
        let limit = between * 1.1;
        let near = |distance: f64| if distance >= limit { between / 2.0 } else { distance };
        let (before, after) = (near(span(start, first)), near(span(last, end)));
        let extent = Extent { sampled, before, after, factor: 0.0 };
        Some(Extent { factor: extent.factor(change, before, seconds), ..extent })
    }

    fn factor(&self, change: Change, before: f64, seconds: f64) -> f64 {
        let factor = (self.sampled + before + self.after) / self.sampled;
        if change == Change::Rate { factor / seconds } else { factor }
    }

    fn extrapolated(&self, change: Change, values: &[f64], lost: f64, seconds: f64) -> f64 {
        let (first, last) = (values[0], values[values.len() - 1]);
        let mut difference = last - first;
        if change.is_counter() {
            difference += lost;
        }
        if !change.is_counter() || self.began_before(first, difference) {
            return difference * self.factor;
        }
        let mut before = self.before;
        if difference > 0.0 && first >= 0.0 {
            before = before.min(self.sampled * (first / difference));
        }
        difference * self.factor(change, before, seconds)
    }

    /// Whether a counter that grows so fast was 0 longer ago than it is extended: certainly, in spite of roundings. This saves divisions.
    fn began_before(&self, first: f64, difference: f64) -> bool {
        difference > 1e-200 && first * self.sampled > difference * self.before * 1.000_001
    }
}

/// The windows of series that have the same times: what follows from times is computed once for all.
pub(super) struct SharedExtents {
    change: Change,
    seconds: f64,
    times: Arc<[i64]>,
    windows: Vec<Option<(Range<usize>, Extent)>>,
}

impl SharedExtents {
    /// Columns of values that take as much memory.
    pub(super) const COLUMNS: usize = size_of::<Option<(Range<usize>, Extent)>>() / size_of::<f64>();

    /// For the times of these rows, if the change over ranges is one that is extrapolated.
    pub(super) fn of(change: Change, ranges: &Ranges, rows: &Rows) -> Option<SharedExtents> {
        if ranges.edges != Edges::Inside {
            return None;
        }
        let seconds = ranges.range as f64 / 1000.0;
        let mut windows = vec![None; ranges.ends.len()];
        ranges.windows(rows, |index, window| {
            let extent = Extent::of(change, window.times, (window.start, window.end), seconds);
            windows[index] = extent.map(|extent| (window.first..window.first + window.len(), extent));
        });
        Some(SharedExtents { change, seconds, times: Arc::clone(&rows.times), windows })
    }

    /// The change over all windows; `None` if these rows are at other times, or are none of a change that is extrapolated.
    pub(super) fn changes(&self, rows: &Rows) -> Option<Vec<f64>> {
        if !Arc::ptr_eq(&rows.times, &self.times) || matches!(rows.kind, RowKind::Counter { .. }) {
            return None;
        }
        let falls = rows.values.windows(2).filter(|pair| pair[1] < pair[0]).count();
        let has_resets = self.change.is_counter() && falls > 0;
        let nothing_lost = if self.change.is_counter() { reset_sum(&[]) } else { 0.0 };
        let change = |window: &Option<(Range<usize>, Extent)>| {
            let Some((range, extent)) = window else { return ABSENT };
            let values = &rows.values[range.clone()];
            let lost = if has_resets { reset_sum(values) } else { nothing_lost };
            extent.extrapolated(self.change, values, lost, self.seconds)
        };
        Some(self.windows.iter().map(change).collect())
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Column;

    /// Rows every `step` milliseconds or so, of a counter that may fall.
    fn rows(seed: u64, times: &Arc<[i64]>) -> Rows {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let mut value = next(50) as f64 * [0.0, 1.0, 1e17, 1e-310][next(4) as usize];
        let values = times.iter().map(|_| {
            match next(40) {
                0 => value = 0.0,
                1 => value = f64::NAN,
                2 => value = -3.0,
                3 if !value.is_nan() => {}
                _ if value.is_nan() => value = 1.0,
                _ => value += next(1000) as f64 / 7.0,
            }
            value
        });
        Rows::new(
            Column::new(crate::labels::Labels::default(), Vec::new()),
            Arc::clone(times),
            values.collect(),
        )
    }

    #[test]
    fn what_series_share_changes_no_bit() {
        let times: Arc<[i64]> = (0..300).map(|at| at * 1000 + at % 3 * 100 + at / 50 * 9000).collect();
        let ends: Vec<i64> = (-3..360).map(|at| at * 997).collect();
        for range in [500, 1000, 2500, 60_000] {
            let ranges =
                Ranges { rows: Vec::new(), range, ends: ends.clone(), edges: Edges::Inside, lookback: 0 };
            for kind in [Change::Rate, Change::Increase, Change::Delta] {
                let shared = SharedExtents::of(kind, &ranges, &rows(0, &times)).unwrap();
                for seed in 0..40 {
                    let rows = rows(seed, &times);
                    let got = shared.changes(&rows).unwrap();
                    ranges.windows(&rows, |index, window| {
                        let want = change(kind, &ranges, &rows, window).unwrap_or(ABSENT);
                        let are_nan = got[index].is_nan() && want.is_nan();
                        assert!(
                            are_nan || got[index].to_bits() == want.to_bits(),
                            "{kind:?} of {:?}: {} {want}",
                            window.values,
                            got[index]
                        );
                    });
                }
            }
        }
        let of_others = rows(1, &times.iter().copied().collect());
        let ranges = Ranges { rows: Vec::new(), range: 1000, ends, edges: Edges::Inside, lookback: 0 };
        assert!(
            SharedExtents::of(Change::Rate, &ranges, &of_others).unwrap().changes(&rows(1, &times)).is_none()
        );
    }
}
