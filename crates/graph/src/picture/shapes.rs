//! Draws the data: lines, areas, ticks and rules.
//!
//! Splits lines and areas into subpaths (an unknown value ends one), stacks them, and places their points. Each element
//! becomes one item of the scene, except areas with a gradient. Values become heights through [`Mapping`].

mod area;
pub(crate) mod columns;
mod line;

use super::axis::mapping::{CanvasRect, Mapping};
use super::fit::GridFit;
use super::scene::{Cap, Colour, Item, Join, Paint, Path, Point, Stroke};
use crate::eval::Data;
use crate::language::graphic::{Graphic, PlotValue, Rule, Shape, ShapeKind, Tick};
use crate::language::{Element, Script};
use columns::{Columns, Figure};

/// The canvas, and how times and values lie on it.
#[derive(Clone, Copy)]
pub(crate) struct Canvas {
    /// Its rectangle, in pixels of the image.
    pub rect: CanvasRect,
    /// Maps values and times to pixels.
    pub mapping: Mapping,
    /// The lowest and the highest value.
    pub limits: (f64, f64),
    /// Start and end in seconds since the epoch.
    pub span: (i64, i64),
    /// How points are moved to the pixel grid.
    pub fit: GridFit,
}

/// Values are kept within this many ranges of the axis from its other end, as in RRDtool.
const BEYOND: f64 = 10.0;

/// Longest tick, in heights of the canvas; only one of them is visible.
const TICK_MAX: f64 = 10.0;

impl Canvas {
    /// Right edge.
    pub(crate) fn right(&self) -> f64 {
        self.rect.left + self.rect.width
    }

    /// Lower edge.
    pub(crate) fn bottom(&self) -> f64 {
        self.rect.top + self.rect.height
    }

    /// The y of a value; infinities are at the edge, NaN stays NaN.
    fn y(&self, value: f64) -> f64 {
        if value == f64::INFINITY {
            return self.rect.top;
        }
        if value == f64::NEG_INFINITY {
            return self.bottom();
        }
        if value.is_nan() {
            return value;
        }
        let (low, high) = self.limits;
        let far = BEYOND * (high - low);
        let y = self.mapping.to_y(value.min(low + far).max(high - far));
        // With limits near the greatest double, `y` overflows.
        let far = BEYOND * self.rect.height;
        if y.is_nan() { self.bottom() } else { y.clamp(self.bottom() - far, self.rect.top + far) }
    }

    /// The left edge of a column.
    fn x(&self, column: usize) -> f64 {
        self.rect.left + column as f64
    }

    /// The base of areas: 0, or the limit nearest to it.
    fn ground(&self) -> f64 {
        let (low, high) = self.limits;
        if low > 0.0 {
            low
        } else if high < 0.0 {
            high
        } else {
            0.0
        }
    }
}

/// Adds all shapes and ticks to `items`, inside the canvas.
pub(crate) fn draw(columns: &Columns<'_>, canvas: &Canvas, slope: bool, items: &mut Vec<Item>) {
    items.push(Item::Clip {
        from: Point { x: canvas.rect.left, y: canvas.rect.top - 1.0 },
        to: Point { x: canvas.right(), y: canvas.bottom() + 1.0 },
    });
    let ground = canvas.ground();
    // The base of a stacked area in each column.
    let mut floor = vec![ground; canvas.rect.width as usize];
    columns.walk(|figure, values| match figure {
        Figure::Tick(mark) => items.extend(tick(mark, values, canvas)),
        Figure::Shape(shape) => {
            if !shape.stack {
                floor.fill(ground);
            }
            visible(shape, values, &floor, canvas, slope, items);
            // An unknown value does not raise the base.
            for (floor, &value) in floor.iter_mut().zip(values) {
                if !value.is_nan() {
                    *floor = value;
                }
            }
        }
    });
    items.push(Item::Unclip);
}

/// Adds one shape.
fn visible(
    shape: &Shape,
    values: &[f64],
    floor: &[f64],
    canvas: &Canvas,
    slope: bool,
    items: &mut Vec<Item>,
) {
    let Some(colour) = shape.colour else { return };
    match &shape.kind {
        ShapeKind::Line { width, dashes } => {
            let path = line::path(values, canvas, *width, slope);
            if !path.points.is_empty() {
                let stroke = Stroke {
                    width: *width,
                    dashes: dashes.lengths.clone(),
                    dash_offset: dashes.offset,
                    cap: Cap::Round,
                    join: Join::Round,
                };
                items.push(Item::Stroke { path, colour, stroke });
            }
        }
        ShapeKind::Area { gradient: None } => {
            let path = area::path(values, floor, canvas, slope);
            if !path.points.is_empty() {
                items.push(Item::Fill { path, paint: Paint::Solid(colour) });
            }
        }
        ShapeKind::Area { gradient: Some((second, height)) } => {
            let gradient = area::Gradient { upper: colour, lower: *second, height: *height };
            area::gradient(values, floor, canvas, slope, gradient, items);
        }
    }
}

/// A stroke with flat ends and mitred corners.
pub(crate) fn thin(width: f64, dashes: Vec<f64>, dash_offset: f64) -> Stroke {
    Stroke { width, dashes, dash_offset, cap: Cap::Butt, join: Join::Miter }
}

/// Ticks one pixel wide at each column whose value is neither unknown nor 0.
fn tick(tick: &Tick, values: &[f64], canvas: &Canvas) -> Option<Item> {
    let length = tick.fraction.abs().min(TICK_MAX) * canvas.rect.height;
    let (from, to) = if tick.fraction > 0.0 {
        (canvas.bottom() + 1.0, canvas.bottom() - length)
    } else {
        (canvas.rect.top - 1.0, canvas.rect.top + length)
    };
    if tick.fraction == 0.0 {
        return None;
    }
    let mut path = Path::default();
    for (column, _) in values.iter().enumerate().filter(|(_, value)| !value.is_nan() && **value != 0.0) {
        let x = canvas.x(column);
        path.points.extend([from, to].map(|y| canvas.fit.line(Point { x, y }, 1.0)));
        path.ends.push(path.points.len());
    }
    let there = !path.points.is_empty();
    there.then(|| Item::Stroke { path, colour: tick.colour, stroke: thin(1.0, Vec::new(), 0.0) })
}

/// Adds the HRULEs and VRULEs that lie on the canvas, above everything else.
pub(crate) fn rules(script: &Script, data: &Data, canvas: &Canvas, items: &mut Vec<Item>) {
    for element in &script.elements {
        let Element::Graphic(Graphic::Rule(rule)) = element else { continue };
        let Some(line) = rule_line(rule, data, canvas) else { continue };
        if rule.colour.alpha > 0.0 {
            let stroke = thin(1.0, rule.dashes.lengths.clone(), rule.dashes.offset);
            items.push(segment(line, rule.colour, stroke, canvas.fit));
        }
    }
}

/// The ends of a rule; `None` if it is not on the canvas.
fn rule_line(rule: &Rule, data: &Data, canvas: &Canvas) -> Option<[Point; 2]> {
    if rule.vertical {
        let time = match rule.value {
            PlotValue::Number(number) => number as i64,
            PlotValue::Scalar(scalar) => data.scalars[scalar].time?,
            PlotValue::Series(_) => return None,
        };
        let x = canvas.mapping.to_x(time);
        // With an empty time range, x is not finite.
        let there = (canvas.span.0..=canvas.span.1).contains(&time) && x.is_finite();
        return there.then_some([Point { x, y: canvas.bottom() }, Point { x, y: canvas.rect.top }]);
    }
    let value = match rule.value {
        PlotValue::Number(number) => number,
        PlotValue::Scalar(scalar) => data.scalars[scalar].value,
        PlotValue::Series(_) => return None,
    };
    let there = value >= canvas.limits.0 && value <= canvas.limits.1;
    let y = canvas.y(value);
    there.then_some([Point { x: canvas.rect.left, y }, Point { x: canvas.right(), y }])
}

/// One straight line.
pub(crate) fn segment(line: [Point; 2], colour: Colour, stroke: Stroke, fit: GridFit) -> Item {
    let points = line.map(|at| fit.line(at, stroke.width)).to_vec();
    Item::Stroke { path: Path { points, ends: vec![2], closed: false }, colour, stroke }
}
