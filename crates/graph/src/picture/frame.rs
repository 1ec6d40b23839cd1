//! Everything around the data: background, border, grid, axes, texts and the legend's boxes.
//!
//! Each function adds one part; [`compose`](super::compose) decides which is painted over which. Positions come from the
//! [`Layout`] and the planned axes; here they become lines. Lengths and widths are RRDtool's.

pub(super) mod grid;

use super::fit::GridFit;
use super::layout::{Layout, PlacedText};
use super::legend::{MarkShape, PlacedEntry, PlacedMark};
use super::options::{ColourTag, Options};
use super::scene::{Colour, Item, Paint, Path, Point, Stroke};
use super::shapes::{Canvas, segment, thin};

/// Width of the axes in pixels.
const AXIS_WIDTH: f64 = 0.6;
/// How far the axes reach beyond the canvas, in pixels.
const AXIS_BEYOND: f64 = 4.0;
/// From the edge of the canvas to the base of an arrow head, in pixels.
const ARROW_FROM: f64 = 2.0;
/// From the edge of the canvas to its tip, in pixels.
const ARROW_TO: f64 = 7.0;
/// From the axis to each of its other corners, in pixels.
const ARROW_HALF: f64 = 3.0;
/// Opacity of watermark and signature.
const FAINT: f64 = 0.3;
/// Dashes around the legend's box of a dashed element: on and off, in pixels.
const BOX_DASH: [f64; 1] = [3.0];
/// Fully transparent.
const INVISIBLE: Colour = Colour { red: 0.0, green: 0.0, blue: 0.0, alpha: 0.0 };

/// Adds a filled polygon, unless it is invisible.
fn fill(points: &[(f64, f64)], colour: Colour, fit: GridFit, items: &mut Vec<Item>) {
    if colour.alpha > 0.0 {
        let points: Vec<Point> = points.iter().map(|&(x, y)| fit.area(Point { x, y })).collect();
        let path = Path { ends: vec![points.len()], points, closed: true };
        items.push(Item::Fill { path, paint: Paint::Solid(colour) });
    }
}

/// Adds a line, unless it is invisible.
pub(super) fn line(
    from: (f64, f64),
    to: (f64, f64),
    colour: Colour,
    stroke: Stroke,
    fit: GridFit,
    items: &mut Vec<Item>,
) {
    if colour.alpha > 0.0 {
        let ends = [from, to].map(|(x, y)| Point { x, y });
        items.push(segment(ends, colour, stroke, fit));
    }
}

/// Adds the background of the image and of the canvas.
pub(super) fn background(layout: &Layout, options: &Options, fit: GridFit, items: &mut Vec<Item>) {
    let whole = Point { x: layout.image_width as f64, y: layout.image_height as f64 };
    let canvas = options.colour(ColourTag::Canvas);
    if !options.only_graph || canvas.alpha < 1.0 {
        rectangle(Point::default(), whole, options.colour(ColourTag::Back), fit, items);
    }
    let from = Point { x: layout.canvas_left as f64, y: layout.canvas_top as f64 };
    let to = Point { x: from.x + layout.canvas_width as f64, y: from.y + layout.canvas_height as f64 };
    rectangle(from, to, canvas, fit, items);
}

fn rectangle(from: Point, to: Point, colour: Colour, fit: GridFit, items: &mut Vec<Item>) {
    fill(&[(from.x, from.y), (to.x, from.y), (to.x, to.y), (from.x, to.y)], colour, fit, items);
}

/// Adds the border that makes the image look raised.
pub(super) fn border(layout: &Layout, options: &Options, fit: GridFit, items: &mut Vec<Item>) {
    let (width, height) = (layout.image_width as f64, layout.image_height as f64);
    let border = f64::from(options.border);
    if options.border <= 0 {
        return;
    }
    let (inner_right, inner_bottom) = (width - border, height - border);
    let light = [
        (0.0, height),
        (border, inner_bottom),
        (border, border),
        (inner_right, border),
        (width, 0.0),
        (0.0, 0.0),
    ];
    fill(&light, options.colour(ColourTag::ShadeA), fit, items);
    let dark = [
        (border, inner_bottom),
        (inner_right, inner_bottom),
        (inner_right, border),
        (width, 0.0),
        (width, height),
        (0.0, height),
    ];
    fill(&dark, options.colour(ColourTag::ShadeB), fit, items);
}

/// Adds the axes and their arrow heads.
pub(super) fn axes(canvas: &Canvas, options: &Options, items: &mut Vec<Item>) {
    let (left, right, top, bottom) = (canvas.rect.left, canvas.right(), canvas.rect.top, canvas.bottom());
    let mut axis = |from: (f64, f64), to: (f64, f64)| {
        line(from, to, options.colour(ColourTag::Axis), thin(AXIS_WIDTH, Vec::new(), 0.0), canvas.fit, items);
    };
    axis((left - AXIS_BEYOND, bottom), (right + AXIS_BEYOND, bottom));
    axis((left, bottom + AXIS_BEYOND), (left, top - AXIS_BEYOND));
    let mut head =
        |corners: [(f64, f64); 3]| fill(&corners, options.colour(ColourTag::Arrow), canvas.fit, items);
    head([
        (right + ARROW_FROM, bottom - ARROW_HALF),
        (right + ARROW_FROM, bottom + ARROW_HALF),
        (right + ARROW_TO, bottom),
    ]);
    head([
        (left - ARROW_HALF, top - ARROW_FROM),
        (left + ARROW_HALF, top - ARROW_FROM),
        (left, top - ARROW_TO),
    ]);
    if options.right_axis.is_some() {
        let stroke = thin(AXIS_WIDTH, Vec::new(), 0.0);
        let (low, high) = ((right, bottom + AXIS_BEYOND), (right, top - AXIS_BEYOND));
        line(low, high, options.colour(ColourTag::Axis), stroke, canvas.fit, items);
        // Compat: this head is a pixel narrower on the left.
        let corners = [
            (right - ARROW_FROM, top - ARROW_FROM),
            (right + ARROW_HALF, top - ARROW_FROM),
            (right, top - ARROW_TO),
        ];
        fill(&corners, options.colour(ColourTag::Arrow), canvas.fit, items);
    }
}

/// Adds a text, unless it is empty or invisible.
pub(super) fn text(placed: PlacedText, colour: Colour, items: &mut Vec<Item>) {
    if !placed.layout.runs.is_empty() && colour.alpha > 0.0 {
        items.push(Item::Text { at: placed.at, turned: placed.turned, layout: placed.layout, colour });
    }
}

/// Adds the texts around the canvas: axis titles, title, watermark, signature.
pub(super) fn texts(layout: &mut Layout, options: &Options, items: &mut Vec<Item>) {
    let colour = options.colour(ColourTag::Font);
    let faint = Colour { alpha: FAINT, ..colour };
    let upright = [layout.vertical_label.take(), layout.right_axis_label.take()];
    let title = std::mem::take(&mut layout.title);
    for placed in upright.into_iter().flatten().chain(title) {
        text(placed, colour, items);
    }
    for placed in [layout.signature.take(), layout.watermark.take()].into_iter().flatten() {
        text(placed, faint, items);
    }
}

/// Adds the legend: texts and boxes.
pub(super) fn legend(entries: Vec<PlacedEntry>, options: &Options, fit: GridFit, items: &mut Vec<Item>) {
    for entry in entries {
        let placed = PlacedText { layout: entry.layout, at: entry.at, turned: 0.0 };
        text(placed, options.colour(ColourTag::Font), items);
        if let Some(placed) = entry.mark {
            mark(&placed, options, fit, items);
        }
    }
}

/// Adds a colour box, or the mark that `--dynamic-labels` has instead.
fn mark(placed: &PlacedMark, options: &Options, fit: GridFit, items: &mut Vec<Item>) {
    let PlacedMark { mark, from, to } = placed;
    let colour = mark.colour.unwrap_or(INVISIBLE);
    let mut stroke = |from: (f64, f64), to: (f64, f64), width: f64| {
        line(from, to, colour, thin(width, Vec::new(), 0.0), fit, items);
    };
    match mark.shape {
        MarkShape::Rising { width } => stroke((from.x, to.y), (to.x, from.y), width),
        MarkShape::Level => {
            let y = (from.y + to.y) / 2.0;
            stroke((from.x, y), (to.x, y), 1.0);
        }
        MarkShape::Upright => {
            let x = (from.x + to.x) / 2.0;
            stroke((x, to.y), (x, from.y), 1.0);
        }
        MarkShape::Box { dashed } => {
            rectangle(*from, *to, options.colour(ColourTag::Back), fit, items);
            rectangle(*from, *to, colour, fit, items);
            let frame = options.colour(ColourTag::Frame);
            if frame.alpha > 0.0 {
                let stroke = thin(1.0, if dashed { BOX_DASH.to_vec() } else { Vec::new() }, 0.0);
                let points =
                    Path::rectangle(*from, *to).points.iter().map(|at| fit.line(*at, stroke.width)).collect();
                let path = Path { points, ends: vec![4], closed: true };
                items.push(Item::Stroke { path, colour: frame, stroke });
            }
        }
    }
}
