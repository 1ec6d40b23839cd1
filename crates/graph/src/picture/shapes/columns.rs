//! What stands at each column of pixels: the values of every shape and tick, stacked.
//!
//! A column shows the row that its left edge lies in, whatever the row's step. The sum that a stacked element is
//! added to goes on from element to element and counts an unknown value as nothing; an element that is not
//! stacked begins it anew, and so does a TICK. HRULE and VRULE leave it.
//!
//! Costs two numbers a column, however many elements there are: they are computed anew each time they are asked for.

use rrd::live::UNKNOWN;
use rrd::rpn::Series;

use crate::eval::Data;
use crate::language::drawn::{Drawn, Plotted, Shape, Tick};
use crate::language::{Element, Script};
use crate::picture::limits::Extent;
use crate::picture::options::Options;
use crate::plan::Frame;

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
    /// Those of a canvas of `width` pixels.
    pub(crate) fn new(script: &'a Script, data: &'a Data, frame: Frame, width: usize) -> Columns<'a> {
        let pixel = (frame.end - frame.start) as f64 / width.max(1) as f64;
        Columns { script, data, start: frame.start, pixel, width }
    }

    /// Shows each shape and tick with its values, one a column, NaN where unknown; in the order of the arguments.
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
                Plotted::Series(series) => self.sample(&self.data.series[series], &mut values),
                Plotted::Scalar(scalar) => values.fill(self.data.scalars[scalar].value),
                Plotted::Number(_) if matches!(figure, Figure::Tick(_)) => values.fill(UNKNOWN),
                Plotted::Number(number) => values.fill(number),
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

    /// What the vertical axis has to show.
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
        // The row at hand is good until this time.
        let (mut row_end, mut at_hand) = (i64::MIN, UNKNOWN);
        for (column, value) in values.iter_mut().enumerate() {
            let time = (self.start as f64 + column as f64 * self.pixel) as i64;
            if time >= row_end {
                let row = time.saturating_sub(series.start).div_euclid(step);
                at_hand = usize::try_from(row)
                    .ok()
                    .and_then(|row| series.values.get(row))
                    .copied()
                    .unwrap_or(UNKNOWN);
                row_end = row.saturating_add(1).saturating_mul(step).saturating_add(series.start);
            }
            *value = at_hand;
        }
    }
}

impl<'a> Figure<'a> {
    fn of(element: &'a Element) -> Option<Figure<'a>> {
        match element {
            Element::Drawn(Drawn::Shape(shape)) => Some(Figure::Shape(shape)),
            Element::Drawn(Drawn::Tick(tick)) => Some(Figure::Tick(tick)),
            _ => None,
        }
    }
}
