//! Plans the vertical axis: which values have a line, which lines have a label, and the labels' texts.
//!
//! The steps come from [`super::steps`] or, with `--alt-y-grid`, from [`super::alt_grid`], the texts from
//! [`super::value_label`]. A logarithmic axis is planned in [`super::logarithmic`].

use super::mapping::Mapping;
use super::steps::{Numbers, Steps};
use super::value_label::{LabelError, Labelled, Labels};
use super::{alt_grid, logarithmic, steps};
use crate::picture::limits::{Extent, narrow_limits};
use crate::picture::options::{Options, YGrid};
use crate::print::TimeFormat;
use crate::print::scale::Scale;

/// Most lines of a grid; of more, only every nth is kept. RRDtool has no limit and draws 44 million lines with
/// `--alt-autoscale` around 1e-12. No canvas shows so many.
pub const LINES_MAX: usize = 5000;

/// A line of the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueLine {
    /// The value.
    pub value: f64,
    /// Whether it is a line of the major grid.
    pub major: bool,
    /// The label on its left.
    pub label: Option<Vec<u8>>,
    /// The label on its right, if there is a right axis.
    pub right_label: Option<Vec<u8>>,
}

/// The vertical axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VerticalAxis {
    /// Its lines, from bottom to top.
    pub lines: Vec<ValueLine>,
}

/// What a vertical axis is planned from.
#[derive(Clone, Copy)]
pub struct ValueAxisInput<'a> {
    /// The options.
    pub options: &'a Options,
    /// The range of the data.
    pub extent: &'a Extent,
    /// Lowest and highest value of the axis ([`limits`](crate::picture::limits::limits)).
    pub limits: (f64, f64),
    /// Maps values to pixels.
    pub mapping: &'a Mapping,
    /// Formats dates.
    pub times: &'a dyn TimeFormat,
}

impl ValueAxisInput<'_> {
    pub(super) fn narrow_limits(&self) -> (f64, f64) {
        narrow_limits(self.options, self.extent)
    }
}

/// Plans the vertical axis.
///
/// # Errors
/// [`LabelError`].
pub fn plan(input: &ValueAxisInput<'_>) -> Result<VerticalAxis, LabelError> {
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
        YGrid::Custom { step, label_factor } => {
            // Compat: with both options labels have no numbers.
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
/// Compat: a line may be half a pixel outside of the canvas. Labels are at whole multiples of `step * label_factor`; if
/// that makes only one, the last line has one too.
fn lines(input: &ValueAxisInput<'_>, steps: &Steps, labels: &Labels<'_>) -> Result<VerticalAxis, LabelError> {
    let (low, high) = input.limits;
    let first = (low / steps.step - 1.0) as i64;
    let last = (high / steps.step + 1.0) as i64;
    let one_digit = steps.step / labels.unit.factor * (last as f64) < 10.0;
    let middle = steps.step * (first as f64 + last as f64) * 0.5;
    let right_unit = labels.right_unit(input.options, middle);
    let rect = input.mapping.rect();
    let mut axis = VerticalAxis::default();
    let mut labelled = 0;
    let stride = usize::try_from(first.abs_diff(last)).unwrap_or(usize::MAX) / LINES_MAX + 1;
    for index in (first..=last).step_by(stride) {
        let value = steps.step * index as f64;
        let row = (input.mapping.to_y(value) - rect.top).round();
        if !(0.0..=rect.height).contains(&row) {
            continue;
        }
        let only_one = labelled == 1 && input.mapping.to_y(steps.step * (index as f64 + 1.0)) < rect.top;
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
