//! The data as lines, areas and marks on the canvas.
//!
//! Owns which pieces a line or an area falls into (an unknown value ends a piece), what stands on what, and
//! where the points are. One item of the scene for each element, however many pieces it has, but for areas with
//! a gradient. Knows columns and pixels; how a value becomes a height is [`Mapping`]'s.

mod area;
pub(crate) mod columns;
mod line;

use super::fit::Fit;
use super::scene::{Cap, Colour, Item, Join, Paint, Path, Point, Stroke};
use crate::eval::Data;
use crate::language::drawn::{Drawn, Plotted, Rule, Shape, ShapeKind, Tick};
use crate::language::{Element, Script};
use columns::{Columns, Figure};

/// Where the canvas is, in pixels of the image, and how values lie on it.
#[derive(Clone, Copy)]
pub(crate) struct Canvas<'a> {
    /// Left edge.
    pub left: f64,
    /// Upper edge.
    pub top: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
    /// Values and times to pixels.
    pub mapping: &'a Mapping,
    /// Whether points are moved.
    pub fit: Fit,
}

/// Heights are kept within so many heights of the canvas beyond its other edge, as RRDtool does.
const BEYOND: f64 = 10.0;

impl Canvas<'_> {
    /// Right edge.
    pub(crate) fn right(&self) -> f64 {
        self.left + self.width
    }

    /// Lower edge.
    pub(crate) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// The height of a value; an infinite one lies on the edge. NaN stays NaN.
    fn y(&self, value: f64) -> f64 {
        if value == f64::INFINITY {
            return self.top;
        }
        if value == f64::NEG_INFINITY {
            return self.bottom();
        }
        let far = BEYOND * self.height;
        self.mapping.to_y(value).clamp(self.bottom() - far, self.top + far)
    }

    /// The left edge of a column.
    fn x(&self, column: usize) -> f64 {
        self.left + column as f64
    }

    /// The value that areas stand on: 0, or the limit nearest to it.
    fn ground(&self, min: f64, max: f64) -> f64 {
        if min > 0.0 {
            min
        } else if max < 0.0 {
            max
        } else {
            0.0
        }
    }
}

/// Adds all shapes and ticks to `items`, inside the canvas.
pub(crate) fn draw(
    columns: &Columns<'_>,
    limits: (f64, f64),
    canvas: &Canvas<'_>,
    slope: bool,
    items: &mut Vec<Item>,
) {
    let clip = |canvas: &Canvas<'_>| Item::Clip {
        from: Point { x: canvas.left, y: canvas.top - 1.0 },
        to: Point { x: canvas.right(), y: canvas.bottom() + 1.0 },
    };
    items.push(clip(canvas));
    let ground = canvas.ground(limits.0, limits.1);
    // What an area stands on that is stacked.
    let mut floor = vec![ground; canvas.width as usize];
    columns.walk(|figure, values| match figure {
        Figure::Tick(mark) => items.extend(tick(mark, values, canvas)),
        Figure::Shape(shape) => {
            if !shape.stack {
                floor.fill(ground);
            }
            visible(shape, values, &floor, canvas, slope, items);
            // An unknown value leaves what is below it.
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
    canvas: &Canvas<'_>,
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

/// A stroke of one pixel with square ends and pointed corners.
pub(crate) fn thin(width: f64, dashes: Vec<f64>, dash_offset: f64) -> Stroke {
    Stroke { width, dashes, dash_offset, cap: Cap::Butt, join: Join::Miter }
}

/// Marks of one pixel at each column whose value is neither unknown nor zero.
fn tick(tick: &Tick, values: &[f64], canvas: &Canvas<'_>) -> Option<Item> {
    let length = tick.fraction.abs() * canvas.height;
    let (from, to) = if tick.fraction > 0.0 {
        (canvas.bottom() + 1.0, canvas.bottom() - length)
    } else {
        (canvas.top - 1.0, canvas.top + length)
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
pub(crate) fn rules(
    script: &Script,
    data: &Data,
    limits: (f64, f64),
    span: (i64, i64),
    canvas: &Canvas<'_>,
    items: &mut Vec<Item>,
) {
    for element in &script.elements {
        let Element::Drawn(Drawn::Rule(rule)) = element else { continue };
        let Some(value) = rule_value(rule, data) else { continue };
        let line = if rule.vertical {
            if !(value >= span.0 as f64 && value <= span.1 as f64) {
                continue;
            }
            let x = canvas.mapping.to_x(value as i64);
            [Point { x, y: canvas.bottom() }, Point { x, y: canvas.top }]
        } else {
            if !(value >= limits.0 && value <= limits.1) {
                continue;
            }
            let y = canvas.y(value);
            [Point { x: canvas.left, y }, Point { x: canvas.right(), y }]
        };
        items.push(segment(
            line,
            rule.colour,
            thin(1.0, rule.dashes.lengths.clone(), rule.dashes.offset),
            canvas.fit,
        ));
    }
}

/// The value or time of a rule.
pub(crate) fn rule_value(rule: &Rule, data: &Data) -> Option<f64> {
    match rule.value {
        Plotted::Number(number) => Some(number),
        Plotted::Scalar(scalar) if rule.vertical => data.scalars[scalar].time.map(|time| time as f64),
        Plotted::Scalar(scalar) => Some(data.scalars[scalar].value),
        Plotted::Series(_) => None,
    }
}

/// One straight line.
pub(crate) fn segment(line: [Point; 2], colour: Colour, stroke: Stroke, fit: Fit) -> Item {
    let points = line.map(|at| fit.line(at, stroke.width)).to_vec();
    Item::Stroke { path: Path { points, ends: vec![2], closed: false }, colour, stroke }
}

/// Values and times to pixels, until the axes have theirs.
pub(crate) struct Mapping {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
    pub limits: (f64, f64),
    pub span: (f64, f64),
}

impl Mapping {
    pub(crate) fn to_y(&self, value: f64) -> f64 {
        self.top + self.height - (value - self.limits.0) / (self.limits.1 - self.limits.0) * self.height
    }

    pub(crate) fn to_x(&self, time: i64) -> f64 {
        (self.left + (time as f64 - self.span.0) / (self.span.1 - self.span.0) * self.width).floor()
    }
}
