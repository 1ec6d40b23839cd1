//! Settings of Holt-Winters archives, and the reset of what they have learned.

use super::error::TuneError;
use super::option::Setting;
use super::source::leading_integer;
use crate::definition::{Cf, Consolidation, Definition, VERSION_SMOOTHING_WINDOW};
use crate::live::{CdpPrep, HeadShape, HwPrep, Live, UNKNOWN};
use crate::number::{self, NumberError};

/// Smallest factor of the confidence band; RRDtool's.
const DELTA_MIN: f64 = 0.1;
/// Rows a FAILURES archive may look back (`MAX_FAILURES_WINDOW_LEN`).
const WINDOW_MAX: i32 = 28;

/// Sets one parameter of the first archive that has it.
pub(super) fn set(
    definition: &mut Definition,
    live: &mut Live,
    setting: Setting,
    argument: &str,
) -> Result<(), TuneError> {
    match setting {
        Setting::DeltaPos | Setting::DeltaNeg => set_delta(definition, setting, argument),
        Setting::FailureThreshold | Setting::WindowLength => set_window(definition, live, setting, argument),
        _ => set_adaption(definition, setting, argument),
    }
}

fn set_delta(definition: &mut Definition, setting: Setting, argument: &str) -> Result<(), TuneError> {
    let value = match number::parse(argument.as_bytes()) {
        Ok(value) if value < DELTA_MIN => return Err(TuneError::DeltaTooSmall),
        Ok(value) => value,
        // Compat: a text without a number counts as 0, which is not too small.
        Err(NumberError::Nothing) => 0.0,
        Err(NumberError::Trailing { value, .. }) if value < DELTA_MIN => {
            return Err(TuneError::DeltaTooSmall);
        }
        Err(NumberError::Trailing { .. }) => return Err(TuneError::DeltaUnreadable),
    };
    let rra = archive(definition, Cf::Failures).ok_or(TuneError::NoFailures)?;
    if let Consolidation::Failures { delta_pos, delta_neg, .. } = &mut definition.rra[rra].cf {
        *if setting == Setting::DeltaPos { delta_pos } else { delta_neg } = value;
    }
    Ok(())
}

fn set_window(
    definition: &mut Definition,
    live: &mut Live,
    setting: Setting,
    argument: &str,
) -> Result<(), TuneError> {
    // Compat: the upper half of a long is cut off, as in C.
    let count = leading_integer(argument).unwrap_or(0) as i32;
    if !(1..=WINDOW_MAX).contains(&count) {
        return Err(TuneError::WindowOutOfRange);
    }
    let rra = archive(definition, Cf::Failures).ok_or(TuneError::NoFailures)?;
    if let Consolidation::Failures { window_length, threshold, .. } = &mut definition.rra[rra].cf {
        *if setting == Setting::WindowLength { window_length } else { threshold } = count as u64;
    }
    for ds in 0..definition.ds.len() {
        erase_violations(definition, live, rra, ds);
    }
    Ok(())
}

/// Alpha, beta, gamma and smoothing windows: fractions of one.
fn set_adaption(definition: &mut Definition, setting: Setting, argument: &str) -> Result<(), TuneError> {
    let smoothing = matches!(setting, Setting::SmoothingWindow | Setting::SmoothingWindowDeviation);
    let cf = match setting {
        Setting::Alpha | Setting::Beta => Cf::HwPredict,
        Setting::Gamma | Setting::SmoothingWindow => Cf::Seasonal,
        _ => Cf::DevSeasonal,
    };
    let value = match number::parse(argument.as_bytes()) {
        Ok(value) | Err(NumberError::Trailing { value, .. }) => value,
        Err(NumberError::Nothing) => return Err(TuneError::HoltWintersUnreadable),
    };
    // Compat: NaN is neither below nor above, and is accepted.
    let inside = match smoothing {
        true => (0.0..=1.0).contains(&value),
        false => value > 0.0 && value < 1.0,
    };
    if !inside && !value.is_nan() {
        return Err(TuneError::HoltWintersOutOfRange);
    }
    let found = archive(definition, cf)
        .or_else(|| archive(definition, Cf::MhwPredict).filter(|_| cf == Cf::HwPredict));
    let rra = found.ok_or(TuneError::NoHoltWinters)?;
    match &mut definition.rra[rra].cf {
        Consolidation::Predict { alpha, beta, .. } => {
            *if setting == Setting::Alpha { alpha } else { beta } = value;
        }
        Consolidation::Seasonal { gamma, smoothing_window, .. } => {
            *if smoothing { smoothing_window } else { gamma } = value;
        }
        _ => {}
    }
    if smoothing {
        definition.version = definition.version.max(VERSION_SMOOTHING_WINDOW);
    }
    Ok(())
}

fn archive(definition: &Definition, cf: Cf) -> Option<usize> {
    definition.rra.iter().position(|rra| rra.cf.cf() == cf)
}

/// `--aberrant-reset`: every archive forgets what it has learned about one data source.
pub(super) fn reset(definition: &Definition, live: &mut Live, ds: usize) {
    for rra in 0..definition.rra.len() {
        match definition.rra[rra].cf.cf() {
            Cf::HwPredict | Cf::MhwPredict => {
                let unknown = UNKNOWN.to_bits();
                let (_, hw) = cell(definition, live, rra, ds);
                hw.words = [unknown, unknown, unknown, unknown, 1, 1];
            }
            Cf::Seasonal | Cf::DevSeasonal => reset_season(definition, live, rra, ds),
            Cf::Failures => erase_violations(definition, live, rra, ds),
            _ => {}
        }
    }
}

fn reset_season(definition: &Definition, live: &mut Live, rra: usize, ds: usize) {
    let ds_count = definition.ds.len();
    if let Some(season) = live.seasons.iter_mut().find(|season| season.rra == rra) {
        season.values.iter_mut().skip(ds).step_by(ds_count).for_each(|value| *value = UNKNOWN);
    }
    let (_, hw) = cell(definition, live, rra, ds);
    hw.words[0] = UNKNOWN.to_bits();
    hw.words[1] = UNKNOWN.to_bits();
}

/// Clears the violation flags of the window, which share the bytes that other kinds use for their numbers.
/// RRDtool leaves the flags after the window unchanged.
fn erase_violations(definition: &Definition, live: &mut Live, rra: usize, ds: usize) {
    let Consolidation::Failures { window_length, .. } = definition.rra[rra].cf else { return };
    let (cdp, hw) = cell(definition, live, rra, ds);
    let keep = |word: u64| match (window_length * 8).saturating_sub(word * 64) {
        64.. => 0,
        bits => u64::MAX << bits,
    };
    cdp.value = f64::from_bits(cdp.value.to_bits() & keep(0));
    cdp.unknown_pdps &= keep(1);
    hw.words[0] &= keep(2);
    hw.words[1] &= keep(3);
}

/// The state of one data source in one Holt-Winters archive.
fn cell<'a>(
    definition: &Definition,
    live: &'a mut Live,
    rra: usize,
    ds: usize,
) -> (&'a mut CdpPrep, &'a mut HwPrep) {
    let shape = HeadShape::of(definition);
    let ds_count = definition.ds.len();
    let hw = shape.hw_index(rra).expect("only Holt-Winters archives get here");
    let head = shape.split_mut(&mut live.words);
    (&mut head.cdp[rra * ds_count + ds], &mut head.hw[hw * ds_count + ds])
}
