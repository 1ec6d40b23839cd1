//! The steps that RRDtool chooses for the vertical axis.

use super::vertical::ValueAxisInput;
use crate::picture::options::FontTag;
use crate::print::scale::Scale;

/// Steps in units of the axis, and after how many of them a label may follow. Measured by sweeping ranges of 40
/// decades at heights of 10 to 400 pixels.
const STEPS: [(f64, [i64; 4]); 12] = [
    (0.1, [1, 2, 5, 10]),
    (0.2, [1, 5, 10, 20]),
    (0.5, [1, 2, 4, 10]),
    (1.0, [1, 2, 5, 10]),
    (2.0, [1, 5, 10, 20]),
    (5.0, [1, 2, 4, 10]),
    (10.0, [1, 2, 5, 10]),
    (20.0, [1, 5, 10, 20]),
    (50.0, [1, 2, 4, 10]),
    (100.0, [1, 2, 5, 10]),
    (200.0, [1, 5, 10, 20]),
    (500.0, [1, 2, 4, 10]),
];
/// Least whole pixels between two lines.
const LINE_PIXELS_MIN: f64 = 5.0;
/// Least whole pixels between two labels, in font sizes of the axes.
pub(super) const LABEL_SIZES_MIN: f64 = 1.8;

/// Lines per label where no distance is great enough for the font.
const LABEL_FACTOR_CROWDED: i64 = 2;

/// Distances of lines and labels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Steps {
    /// Between two lines.
    pub(super) step: f64,
    /// Lines per label.
    pub(super) label_factor: i64,
    /// How the numbers of the labels are written.
    pub(super) numbers: Numbers,
}

/// How the numbers of labels are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Numbers {
    /// By the greatest of them: see [`super::value_label`].
    #[default]
    ByGreatest,
    /// With this many characters, and digits after the point.
    Fixed(usize, usize),
    /// Not at all.
    None,
}

/// The smallest steps that the canvas has room for; `scale` is the magnitude of the limits.
pub(super) fn automatic(input: &ValueAxisInput<'_>, scale: Scale) -> Steps {
    let range = (input.limits.1 - input.limits.0) / scale.factor;
    let label_pixels_min = LABEL_SIZES_MIN * input.options.font(FontTag::Axis).size;
    let height = input.mapping.rect().height;
    let pixels = |step: f64| (height / (range / step)).trunc();
    let fits = STEPS.iter().find(|(step, _)| pixels(*step) >= LINE_PIXELS_MIN);
    let (step, factors) = fits.unwrap_or(&STEPS[STEPS.len() - 1]);
    let far_enough = |factor: &&i64| pixels(*step) * **factor as f64 >= label_pixels_min;
    let label_factor = *factors.iter().find(far_enough).unwrap_or(&LABEL_FACTOR_CROWDED);
    Steps { step: step * scale.factor, label_factor, numbers: Numbers::ByGreatest }
}
