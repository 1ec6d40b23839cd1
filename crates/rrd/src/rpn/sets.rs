//! What the set operators make of the topmost values.

use super::machine::known;
use crate::live::UNKNOWN;

/// Whether RRDtool puts `a` behind `b`.
///
/// Compat: unknown comes first; an infinite number decides by its own sign alone, whichever side it is on,
/// so this is no order and the result depends on the way of sorting (`tests/compute_oracle.rs`).
fn goes_behind(a: f64, b: f64) -> bool {
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

/// Merge sort by halves, the first half rounded down: `qsort` of the C library. `aside` is memory to use.
pub(super) fn sort(values: &mut [f64], aside: &mut Vec<f64>) {
    if values.len() < 2 {
        return;
    }
    if aside.len() < values.len() {
        aside.resize(values.len(), 0.0);
    }
    merge_sort(values, aside, goes_behind);
}

/// As [`sort`], but that equal values change places whenever they meet.
///
/// Compat: PERCENT of a VDEF sorts so; it shows in which of two zeros it picks (`tests/rpn_oracle.rs`).
pub(super) fn sort_turning(values: &mut [f64]) {
    let mut aside = vec![0.0; values.len()];
    merge_sort(values, &mut aside, |a, b| a == b && a.is_finite() || goes_behind(a, b));
}

fn merge_sort(values: &mut [f64], aside: &mut [f64], behind_of: impl Fn(f64, f64) -> bool + Copy) {
    let count = values.len();
    if count < 2 {
        return;
    }
    let half = count / 2;
    merge_sort(&mut values[..half], aside, behind_of);
    merge_sort(&mut values[half..], aside, behind_of);
    let first = &mut aside[..half];
    first.copy_from_slice(&values[..half]);
    let (mut taken, mut behind) = (0, half);
    for place in 0..count {
        if taken == half {
            return;
        }
        if behind < count && behind_of(first[taken], values[behind]) {
            values[place] = values[behind];
            behind += 1;
        } else {
            values[place] = first[taken];
            taken += 1;
        }
    }
}

/// From the top of the stack down, in which order the additions round.
pub(super) fn mean(values: &[f64]) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for &value in values.iter().rev().filter(|value| !value.is_nan()) {
        sum += value;
        count += 1.0;
    }
    if count > 0.0 { known(sum / count) } else { UNKNOWN }
}

/// Of a sample (n - 1), unknown below two values; in one pass, by the running mean of Welford.
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

/// The middle of what is known; the values themselves stay as they are.
pub(super) fn median(values: &[f64], aside: &mut Vec<f64>) -> f64 {
    let count = gather(values, aside);
    let (known, memory) = aside.split_at_mut(count);
    merge_sort(known, memory, goes_behind);
    middle(known)
}

/// The median of the distances from the median.
pub(super) fn median_deviation(values: &[f64], aside: &mut Vec<f64>) -> f64 {
    let count = gather(values, aside);
    let (distances, memory) = aside.split_at_mut(count);
    merge_sort(distances, memory, goes_behind);
    let median = middle(distances);
    for distance in distances.iter_mut() {
        *distance = known((*distance - median).abs());
    }
    merge_sort(distances, memory, goes_behind);
    middle(distances)
}

/// Puts the known values in front, their count, and leaves as much memory behind them.
///
/// An unknown value's place is taken by the last one, as in RRDtool: with infinities among them, the order
/// decides what the sort makes of them.
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

/// The best of what is known, of equal ones that nearest the top; without any known, the lowest on the stack.
pub(super) fn fold(values: &[f64], better: impl Fn(f64, f64) -> bool) -> f64 {
    let mut kept = UNKNOWN;
    for &value in values.iter().rev() {
        if kept.is_nan() || better(value, kept) {
            kept = value;
        }
    }
    kept
}
