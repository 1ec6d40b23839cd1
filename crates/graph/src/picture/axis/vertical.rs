//! The vertical axis: which values have a line, which lines a label, and what these say.
//!
//! Owns the walk over the lines; how far they are apart is [`super::steps`]' and, with `--alt-y-grid`,
//! [`super::alt_grid`]'s, the lines of a logarithmic axis are [`super::logarithmic`]'s, and the texts
//! [`super::value_label`]'s.

use super::mapping::Mapping;
use super::steps::{Numbers, Steps};
use super::value_label::{LabelError, Labelled, Labels};
use super::{alt_grid, logarithmic, steps};
use crate::picture::limits::{Extent, narrow_limits};
use crate::picture::options::{Options, YGrid};
use crate::print::TimeFormat;
use crate::print::scale::Scale;

/// Lines that a grid has at most; of more, only every so manyth is there. RRDtool has no limit, and draws 44 million
/// of them with `--alt-autoscale` around 1e-12. No canvas shows so many.
pub const LINES_MAX: usize = 5000;

/// A line of the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueLine {
    /// Where it is.
    pub value: f64,
    /// Whether it is a line of the major grid.
    pub major: bool,
    /// What stands on its left.
    pub label: Option<Vec<u8>>,
    /// What stands on its right, where there is a second axis.
    pub right_label: Option<Vec<u8>>,
}

/// The vertical axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VerticalAxis {
    /// Its lines, as they are drawn: upwards.
    pub lines: Vec<ValueLine>,
}

/// What the plan of a vertical axis needs to know.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The options.
    pub options: &'a Options,
    /// What the axis has to show.
    pub extent: &'a Extent,
    /// What [`limits`](crate::picture::limits::limits) made of that: lowest and highest value.
    pub limits: (f64, f64),
    /// Where values lie between these limits.
    pub mapping: &'a Mapping,
    /// Writes dates.
    pub times: &'a dyn TimeFormat,
}

impl Input<'_> {
    pub(super) fn narrow_limits(&self) -> (f64, f64) {
        narrow_limits(self.options, self.extent)
    }
}

/// Plans the vertical axis.
///
/// # Errors
/// When the format of a label is none.
pub fn plan(input: &Input<'_>) -> Result<VerticalAxis, LabelError> {
    let options = input.options;
    if options.y_grid == YGrid::None {
        return Ok(VerticalAxis::default());
    }
    let labels = Labels::new(input)?;
    if options.logarithmic {
        return Ok(logarithmic::plan(input, &labels));
    }
    let (low, high) = input.narrow_limits();
    let own = Scale::of(low.abs().max(high.abs()), f64::from(options.base));
    let steps = match options.y_grid {
        YGrid::Own { step, label_factor } => {
            // Compat: the two options together leave the labels without numbers.
            let numbers = if options.alt_y_grid { Numbers::None } else { Numbers::ByGreatest };
            Steps { step, label_factor: i64::from(label_factor), numbers }
        }
        _ if options.alt_y_grid => alt_grid::steps(input, labels.unit),
        _ => steps::automatic(input, own),
    };
    lines(input, &steps, &labels)
}

/// The lines of a linear axis.
///
/// Compat: a line may be half a pixel beyond the canvas. Labels stand at whole multiples of `step * label_factor`;
/// where that makes only one, the last line has one, too.
fn lines(input: &Input<'_>, steps: &Steps, labels: &Labels<'_>) -> Result<VerticalAxis, LabelError> {
    let (low, high) = input.limits;
    let first = (low / steps.step - 1.0) as i64;
    let last = (high / steps.step + 1.0) as i64;
    let one_digit = steps.step / labels.unit.factor * (last as f64) < 10.0;
    let middle = steps.step * (first as f64 + last as f64) * 0.5;
    let right_unit = labels.right_unit(input.options, middle);
    let place = input.mapping.place();
    let mut axis = VerticalAxis::default();
    let mut labelled = 0;
    let stride = usize::try_from(first.abs_diff(last)).unwrap_or(usize::MAX) / LINES_MAX + 1;
    for index in (first..=last).step_by(stride) {
        let value = steps.step * index as f64;
        let row = (input.mapping.to_y(value) - place.top).round();
        if !(0.0..=place.height).contains(&row) {
            continue;
        }
        let only_one = labelled == 1 && input.mapping.to_y(steps.step * (index as f64 + 1.0)) < place.top;
        let major = index.checked_rem(steps.label_factor) == Some(0) || only_one;
        let mut line = ValueLine { value, major, label: None, right_label: None };
        if major {
            labelled += 1;
            let numbers = steps.numbers;
            let label = Labelled { index, step: steps.step, digits: usize::from(one_digit), numbers };
            line.label = labels.left(label)?;
            line.right_label = labels.right(label, right_unit)?;
        }
        axis.lines.push(line);
    }
    Ok(axis)
}
