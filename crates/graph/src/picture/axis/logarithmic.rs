//! Plans a logarithmic vertical axis.
//!
//! A decade has as many major lines as there is room for, and minor lines at its other whole multiples. Where there is
//! less room, several decades share one major line and two minor ones.

use super::value_label::Labels;
use super::vertical::{ValueAxisInput, ValueLine, VerticalAxis};

/// Multiples of a power of ten that may be major lines; the longest list first.
const MULTIPLES: [&[i32]; 5] = [&[1, 2, 3, 4, 5, 6, 7, 8, 9], &[1, 2, 4, 6, 8], &[1, 2, 5, 7], &[1, 5], &[1]];
/// Least pixels between the last major line of a decade and the next decade.
const LINE_PIXELS_MIN: f64 = 16.0;
/// Least pixels between powers of ten with a label.
const POWER_PIXELS_MIN: f64 = 24.0;
/// More decades than doubles have.
const DECADES_MAX: i32 = 700;

/// Which lines a number of decades has.
struct Pattern {
    /// Decades from one major power of ten to the next.
    decades: i32,
    /// Multiples of that power with a major line.
    majors: &'static [i32],
}

impl Pattern {
    fn of(pixels_per_decade: f64) -> Pattern {
        let last =
            |multiples: &&&[i32]| multiples.last().map_or(1.0, |last| (10.0 / f64::from(*last)).log10());
        let fits = MULTIPLES.iter().find(|multiples| last(multiples) * pixels_per_decade >= LINE_PIXELS_MIN);
        let enough = |decades: &i32| f64::from(*decades) * pixels_per_decade >= POWER_PIXELS_MIN;
        let threes = (1..).map(|count| count * 3).take_while(|decades| *decades < DECADES_MAX);
        let decades = std::iter::once(1).chain(threes).find(enough).unwrap_or(DECADES_MAX);
        let majors = fits.filter(|_| decades == 1).unwrap_or(&MULTIPLES[MULTIPLES.len() - 1]);
        Pattern { decades, majors }
    }

    /// The major values from the power of ten `exponent` to the next, each with the minor values after it.
    fn lines(&self, exponent: i32) -> Vec<(f64, Vec<f64>)> {
        let power = |exponent: i32| 10_f64.powi(exponent);
        if self.decades > 1 {
            let third = self.decades / 3;
            return vec![(power(exponent), vec![power(exponent + third), power(exponent + 2 * third)])];
        }
        let next = self.majors.iter().skip(1).chain(&[10]);
        let value = |multiple: i32| f64::from(multiple) * power(exponent);
        let lines = self.majors.iter().zip(next);
        lines.map(|(&major, &next)| (value(major), (major + 1..next).map(value).collect())).collect()
    }
}

/// Plans the axis. Compat: minor lines come after the major line above them; there is no line at the upper edge.
pub(super) fn plan(input: &ValueAxisInput<'_>, labels: &Labels<'_>) -> VerticalAxis {
    let (low, high) = input.limits;
    let mut axis = VerticalAxis::default();
    let (from, to) = (low.log10(), high.log10());
    if !(from.is_finite() && to.is_finite()) {
        return axis;
    }
    let pattern = Pattern::of(input.mapping.rect().height / (to - from));
    let top = input.mapping.rect().top;
    let inside = |value: &f64| *value >= low && (input.mapping.to_y(*value) - top).round() > 0.0;
    let minor = |value: f64| ValueLine { value, major: false, label: None, right_label: None };
    let mut minors_before = Vec::new();
    // Compat: the exponents of labelled powers need not be multiples of their distance.
    let above = from.ceil() as i32;
    let mut exponent = above + (above % pattern.decades).abs() - pattern.decades;
    while f64::from(exponent) <= to {
        for (value, minors) in pattern.lines(exponent) {
            if inside(&value) {
                let label = Some(labels.logarithmic_left(input.options, value));
                let right_label = labels.logarithmic_right(input.options, value);
                axis.lines.push(ValueLine { value, major: true, label, right_label });
            }
            axis.lines.extend(minors_before.drain(..).filter(inside).map(minor));
            minors_before = minors;
        }
        exponent += pattern.decades;
    }
    axis.lines.extend(minors_before.into_iter().filter(inside).map(minor));
    axis
}
