//! The set operators, which work on the topmost values.

use super::machine::known;
use crate::live::UNKNOWN;

/// Whether RRDtool sorts `a` after `b`.
///
/// Compat: unknown comes first; an infinite number decides by its own sign alone, whichever side it is on, so
/// this is not an order, and the result depends on the sorting algorithm (`tests/compute_oracle.rs`).
fn goes_after(a: f64, b: f64) -> bool {
    if a.is_nan() {
        false
    } else if b.is_nan() {
        true
    } else if a.is_infinite() {
        a > 0.0
    } else if b.is_infinite() {
        b > 0.0
    } else {
        a > b
    }
}

/// Merge sort by halves, the first half rounded down, like `qsort` of the C library. `aside` is memory to use.
pub(super) fn sort(values: &mut [f64], aside: &mut Vec<f64>) {
    if values.len() < 2 {
        return;
    }
    if aside.len() < values.len() {
        aside.resize(values.len(), 0.0);
    }
    merge_sort(values, aside, goes_after);
}

/// As [`sort`], but swaps equal values whenever they meet.
///
/// Compat: PERCENT of a VDEF sorts like this; it shows in which of two zeros it picks (`tests/rpn_oracle.rs`).
pub(super) fn sort_turning(values: &mut [f64]) {
    let mut aside = vec![0.0; values.len()];
    merge_sort(values, &mut aside, |a, b| a == b && a.is_finite() || goes_after(a, b));
}

fn merge_sort(values: &mut [f64], aside: &mut [f64], goes_after: impl Fn(f64, f64) -> bool + Copy) {
    let count = values.len();
    if count < 2 {
        return;
    }
    let half = count / 2;
    merge_sort(&mut values[..half], aside, goes_after);
    merge_sort(&mut values[half..], aside, goes_after);
    let first = &mut aside[..half];
    first.copy_from_slice(&values[..half]);
    let (mut left, mut right) = (0, half);
    for index in 0..count {
        if left == half {
            return;
        }
        if right < count && goes_after(first[left], values[right]) {
            values[index] = values[right];
            right += 1;
        } else {
            values[index] = first[left];
            left += 1;
        }
    }
}

/// The mean, added from the top of the stack down: the order decides how it rounds.
pub(super) fn mean(values: &[f64]) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for &value in values.iter().rev().filter(|value| !value.is_nan()) {
        sum += value;
        count += 1.0;
    }
    if count > 0.0 { known(sum / count) } else { UNKNOWN }
}

/// The deviation of a sample (n - 1), unknown for fewer than two values; in one pass, by Welford's running mean.
pub(super) fn deviation(values: &[f64]) -> f64 {
    let (mut average, mut squares, mut count) = (0.0, 0.0, 0.0);
    for &value in values.iter().rev().filter(|value| !value.is_nan()) {
        count += 1.0;
        let before = average;
        average += (value - average) / count;
        squares += (value - average) * (value - before);
    }
    if count > 1.0 { known((squares / (count - 1.0)).sqrt()) } else { UNKNOWN }
}

/// The median of the known values; the values themselves stay unchanged.
pub(super) fn median(values: &[f64], aside: &mut Vec<f64>) -> f64 {
    let count = gather(values, aside);
    let (known, memory) = aside.split_at_mut(count);
    merge_sort(known, memory, goes_after);
    middle(known)
}

/// The median of the distances from the median.
pub(super) fn median_deviation(values: &[f64], aside: &mut Vec<f64>) -> f64 {
    let count = gather(values, aside);
    let (distances, memory) = aside.split_at_mut(count);
    merge_sort(distances, memory, goes_after);
    let median = middle(distances);
    for distance in distances.iter_mut() {
        *distance = known((*distance - median).abs());
    }
    merge_sort(distances, memory, goes_after);
    middle(distances)
}

/// Moves the known values to the start of `aside`, followed by as much memory. Returns their count.
///
/// The last value replaces an unknown one, as in RRDtool: with infinities among them, the order decides the
/// result of the sort.
fn gather(values: &[f64], aside: &mut Vec<f64>) -> usize {
    aside.clear();
    aside.extend_from_slice(values);
    let mut index = 0;
    while index < aside.len() {
        if aside[index].is_nan() {
            aside.swap_remove(index);
        } else {
            index += 1;
        }
    }
    let count = aside.len();
    aside.resize(2 * count, 0.0);
    count
}

fn middle(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => UNKNOWN,
        count if count % 2 == 1 => sorted[count / 2],
        count => known((sorted[count / 2 - 1] + sorted[count / 2]) / 2.0),
    }
}

/// The best known value; among equals, the one nearest the top. Without any known, the lowest on the stack.
pub(super) fn fold(values: &[f64], better: impl Fn(f64, f64) -> bool) -> f64 {
    let mut best = UNKNOWN;
    for &value in values.iter().rev() {
        if best.is_nan() || better(value, best) {
            best = value;
        }
    }
    best
}
