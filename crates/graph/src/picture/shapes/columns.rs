//! The values of every shape and tick at each column of pixels, stacked.
//!
//! A column shows the row that contains its left edge, whatever the row's step. Stacked elements are added to a running
//! sum, in which unknown values count as 0. An element that is not stacked starts a new sum, and so does a TICK; HRULE
//! and VRULE do not touch it.
//!
//! Needs memory for two numbers per column, however many elements there are: values are computed again for each walk.

use rrd::live::UNKNOWN;
use rrd::rpn::Series;

use crate::eval::Data;
use crate::language::graphic::{Graphic, PlotValue, Shape, Tick};
use crate::language::{Element, Script};
use crate::picture::limits::Extent;
use crate::picture::options::Options;
use crate::plan::TimeRange;

/// A shape or a tick.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Figure<'a> {
    /// LINE or AREA.
    Shape(&'a Shape),
    /// TICK
    Tick(&'a Tick),
}

/// The shapes and ticks of a script and where their values come from.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    script: &'a Script,
    data: &'a Data,
    start: i64,
    /// Seconds in a column.
    pixel: f64,
    width: usize,
}

impl<'a> Columns<'a> {
    /// The columns of a canvas that is `width` pixels wide.
    pub(crate) fn new(script: &'a Script, data: &'a Data, range: TimeRange, width: usize) -> Columns<'a> {
        let pixel = (range.end - range.start) as f64 / width.max(1) as f64;
        Columns { script, data, start: range.start, pixel, width }
    }

    /// Visits each shape and tick in the order of the arguments, with one value per column, NaN where unknown.
    pub(crate) fn walk(&self, mut visit: impl FnMut(Figure<'a>, &[f64])) {
        let mut sum = vec![0.0; self.width];
        let mut values = vec![0.0; self.width];
        for figure in self.script.elements.iter().filter_map(Figure::of) {
            let (source, stack) = match figure {
                Figure::Shape(shape) => (shape.value, shape.stack),
                Figure::Tick(tick) => (tick.value, false),
            };
            if !stack {
                sum.fill(0.0);
            }
            match source {
                PlotValue::Series(series) => self.sample(&self.data.series[series], &mut values),
                PlotValue::Scalar(scalar) => values.fill(self.data.scalars[scalar].value),
                PlotValue::Number(_) if matches!(figure, Figure::Tick(_)) => values.fill(UNKNOWN),
                PlotValue::Number(number) => values.fill(number),
            }
            for (sum, value) in sum.iter_mut().zip(&mut values) {
                if !value.is_nan() {
                    *sum += *value;
                    *value = *sum;
                }
            }
            visit(figure, &values);
        }
    }

    /// The range of values that the vertical axis has to show.
    pub(crate) fn extent(&self, options: &Options) -> Extent {
        let mut extent = Extent::new(options);
        self.walk(|figure, values| {
            if matches!(figure, Figure::Shape(shape) if !shape.skip_scale) {
                values.iter().for_each(|&value| extent.add(value));
            }
        });
        extent
    }

    /// The value of `series` at each column.
    fn sample(&self, series: &Series, values: &mut [f64]) {
        let step = i64::try_from(series.step).unwrap_or(i64::MAX).max(1);
        // The current row ends at this time.
        let (mut row_end, mut current) = (i64::MIN, UNKNOWN);
        for (column, value) in values.iter_mut().enumerate() {
            let time = (self.start as f64 + column as f64 * self.pixel) as i64;
            if time >= row_end {
                let row = time.saturating_sub(series.start).div_euclid(step);
                current = usize::try_from(row)
                    .ok()
                    .and_then(|row| series.values.get(row))
                    .copied()
                    .unwrap_or(UNKNOWN);
                row_end = row.saturating_add(1).saturating_mul(step).saturating_add(series.start);
            }
            *value = current;
        }
    }
}

impl<'a> Figure<'a> {
    fn of(element: &'a Element) -> Option<Figure<'a>> {
        match element {
            Element::Graphic(Graphic::Shape(shape)) => Some(Figure::Shape(shape)),
            Element::Graphic(Graphic::Tick(tick)) => Some(Figure::Tick(tick)),
            _ => None,
        }
    }
}
