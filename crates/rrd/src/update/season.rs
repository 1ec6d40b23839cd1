//! The rows of SEASONAL and DEVSEASONAL archives: written in place, and smoothed once a season.

use super::pdp::canonical;
use crate::definition::{Consolidation, Definition};
use crate::live::{CdpPrep, HeadMut, HeadShape, Season};

/// Cycles during which a season is smoothed whenever it begins again; afterwards at its smoothing index.
const BURN_IN_CYCLES: u64 = 3;
/// The word of a cell that counts these cycles (source 0 only).
const BURN_IN: usize = 4;
/// The smoothing window of files before [`crate::definition::VERSION_SMOOTHING_WINDOW`].
const SMOOTHING_WINDOW_DEFAULT: f64 = 0.05;

/// The value `ahead` rows after the row written last.
pub(super) fn value(season: &Season, ds_count: usize, ahead: u64, ds: usize) -> f64 {
    let row_count = (season.values.len() / ds_count) as u64;
    let row = (season.current_row + ahead % row_count) % row_count;
    season.values[row as usize * ds_count + ds]
}

/// Writes the row of one PDP, or skips the rows of several. True when smoothing is due.
pub(super) fn write(
    season: &mut Season,
    cells: &[CdpPrep],
    burn_in: &mut u64,
    smooth_index: u64,
    elapsed: u64,
) -> bool {
    let ds_count = cells.len();
    let row_count = (season.values.len() / ds_count) as u64;
    let count = elapsed.min(row_count);
    let before = season.current_row;
    season.current_row = (before + count) % row_count;
    if elapsed == 1 {
        let start = season.current_row as usize * ds_count;
        for (value, cell) in season.values[start..start + ds_count].iter_mut().zip(cells) {
            *value = cell.primary;
        }
    }
    // Whether the rows that were passed include this one.
    let passes = |row: u64| row < row_count && (row + row_count - before - 1) % row_count < count;
    if *burn_in > BURN_IN_CYCLES {
        return passes(smooth_index);
    }
    if passes(0) {
        *burn_in += 1;
    }
    passes(0)
}

/// The burn-in counter of a season.
pub(super) fn burn_in(words: &mut [u64; 6]) -> &mut u64 {
    &mut words[BURN_IN]
}

/// Replaces each value by the mean of the window around it. The mean of a SEASONAL then moves to the intercept,
/// so that the coefficients stay centred.
pub(super) fn smooth(
    definition: &Definition,
    shape: &HeadShape,
    head: &mut HeadMut<'_>,
    season: &mut Season,
    smoothed: &mut Vec<f64>,
) {
    let Consolidation::Seasonal { deviation, smoothing_window, predict, .. } = definition.rra[season.rra].cf
    else {
        return;
    };
    let ds_count = shape.ds_count();
    let row_count = season.values.len() / ds_count;
    let window = if definition.version < crate::definition::VERSION_SMOOTHING_WINDOW {
        SMOOTHING_WINDOW_DEFAULT
    } else {
        smoothing_window
    };
    // A file may hold any window; one longer than the season would cover rows twice.
    let offset = ((window / 2.0 * row_count as f64).floor() as usize).min(row_count / 2);
    if offset == 0 || season.values.iter().any(|value| value.is_nan()) {
        return;
    }
    for ds in 0..ds_count {
        let mean = moving_mean(season, ds_count, ds, offset, smoothed);
        let multiplicative =
            matches!(definition.rra[predict].cf, Consolidation::Predict { multiplicative: true, .. });
        for (row, &value) in smoothed.iter().enumerate() {
            let smooth = match (deviation, multiplicative) {
                (true, _) => value,
                (false, false) => value - mean,
                (false, true) => super::hw::ratio(value, mean),
            };
            season.values[row * ds_count + ds] = canonical(smooth);
        }
        if !deviation && let Some(hw) = shape.hw_index(predict) {
            let word = &mut head.hw[hw * ds_count + ds].words[super::hw::COEFFICIENT];
            let intercept = f64::from_bits(*word);
            *word = canonical(intercept + mean).to_bits();
        }
    }
}

/// Puts the mean of each row's window into `smoothed`. Returns the mean of those means.
fn moving_mean(season: &Season, ds_count: usize, ds: usize, offset: usize, smoothed: &mut Vec<f64>) -> f64 {
    let row_count = season.values.len() / ds_count;
    let at = |row: usize| season.values[row % row_count * ds_count + ds];
    let width = (2 * offset + 1) as f64;
    smoothed.clear();
    let mut sum = 0.0;
    let first = row_count - offset % row_count;
    for row in 0..2 * offset {
        sum += at(first + row);
    }
    let mut total = 0.0;
    for row in 0..row_count {
        sum += at(row + offset);
        smoothed.push(sum / width);
        total += sum / width;
        sum -= at(first + row);
    }
    total / row_count as f64
}
