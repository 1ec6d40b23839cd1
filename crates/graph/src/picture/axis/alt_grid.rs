//! `--alt-y-grid`: steps derived from the range's power of ten, whatever the height.

use super::steps::{LABEL_SIZES_MIN, Numbers, Steps};
use super::vertical::ValueAxisInput;
use crate::picture::options::FontTag;
use crate::print::scale::Scale;

/// More than the digits of any number.
const DIGITS_MAX: i64 = 400;
/// From this step on, steps are divided by ten if there would be few of them. Measured: it is between 12 and 95.
const STEP_LARGE: f64 = 30.0;

/// The steps; `unit` is that of the labels.
pub(super) fn steps(input: &ValueAxisInput<'_>, unit: Scale) -> Steps {
    let (low, high) = input.limits;
    let range = high - low;
    let whole_digits = ((low.abs().max(high.abs()) / unit.factor).log10().ceil() as i64).clamp(1, DIGITS_MAX);
    let mut power = ((range / unit.factor).log10().floor() as i64).clamp(-DIGITS_MAX, DIGITS_MAX);
    let mut step = 10_f64.powf(power as f64) * unit.factor;
    if range / step < 5.0 && step >= STEP_LARGE {
        step /= 10.0;
        power -= 1;
    }
    if range / step > 15.0 {
        step *= 10.0;
        power += 1;
    }
    let label_factor = if range / step > 5.0 {
        let narrow = range / step > 8.0 || step < LABEL_SIZES_MIN * input.options.font(FontTag::Axis).size;
        if narrow { 2 } else { 1 }
    } else {
        step /= 5.0;
        5
    };
    let digits = (-power).max(0);
    Steps {
        step,
        label_factor,
        numbers: Numbers::Fixed((whole_digits + digits + 1) as usize, digits as usize),
    }
}
