//! What is around the data: background, border, grid, axes, texts and the legend's boxes.
//!
//! Each function adds one part; their order over each other is [`compose`](super::compose)'s. Where things are
//! comes from the [`Layout`] and the plans of the axes: here they only become lines. Lengths and widths are
//! RRDtool's.

use super::fit::Fit;
use super::layout::{Layout, PlacedText};
use super::legend::{Mark, MarkShape, Placed};
use super::options::{ColourTag, Options};
use super::scene::{Colour, Item, Paint, Path, Point, Stroke};
use super::shapes::{Canvas, segment, thin};

/// The lines of the axes, in pixels.
const AXIS_WIDTH: f64 = 0.6;
/// How far they reach beyond the canvas.
const AXIS_BEYOND: f64 = 4.0;
/// From the canvas's edge to where an arrow head begins.
const ARROW_FROM: f64 = 2.0;
/// And to its tip.
const ARROW_TO: f64 = 7.0;
/// From the axis to each of its other corners.
const ARROW_HALF: f64 = 3.0;
/// Opacity of watermark and signature.
const FAINT: f64 = 0.3;

/// Adds a filled path, unless it would not be seen.
fn fill(points: &[(f64, f64)], colour: Colour, fit: Fit, items: &mut Vec<Item>) {
    if colour.alpha > 0.0 {
        let points: Vec<Point> = points.iter().map(|&(x, y)| fit.area(Point { x, y })).collect();
        let path = Path { ends: vec![points.len()], points, closed: true };
        items.push(Item::Fill { path, paint: Paint::Solid(colour) });
    }
}

/// Adds a line, unless it would not be seen.
pub(super) fn line(
    from: (f64, f64),
    to: (f64, f64),
    colour: Colour,
    stroke: Stroke,
    fit: Fit,
    items: &mut Vec<Item>,
) {
    if colour.alpha > 0.0 {
        let ends = [from, to].map(|(x, y)| Point { x, y });
        items.push(segment(ends, colour, stroke, fit));
    }
}

/// The background of the image, and the canvas.
pub(super) fn background(layout: &Layout, options: &Options, fit: Fit, items: &mut Vec<Item>) {
    let (width, height) = (layout.image_width as f64, layout.image_height as f64);
    let behind = if options.only_graph { ColourTag::Canvas } else { ColourTag::Back };
    rectangle(0.0, 0.0, width, height, options.colour(behind), fit, items);
    if !options.only_graph {
        let (left, top) = (layout.canvas_left as f64, layout.canvas_top as f64);
        let (right, bottom) = (left + layout.canvas_width as f64, top + layout.canvas_height as f64);
        rectangle(left, top, right, bottom, options.colour(ColourTag::Canvas), fit, items);
    }
}

fn rectangle(left: f64, top: f64, right: f64, bottom: f64, colour: Colour, fit: Fit, items: &mut Vec<Item>) {
    fill(&[(left, bottom), (right, bottom), (right, top), (left, top)], colour, fit, items);
}

/// The border that makes the image look raised.
pub(super) fn border(layout: &Layout, options: &Options, fit: Fit, items: &mut Vec<Item>) {
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

/// The axes and their arrow heads.
pub(super) fn axes(canvas: &Canvas<'_>, options: &Options, items: &mut Vec<Item>) {
    let (left, right, top, bottom) = (canvas.left, canvas.right(), canvas.top, canvas.bottom());
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

/// A text, unless it is empty or would not be seen.
pub(super) fn text(placed: PlacedText, colour: Colour, items: &mut Vec<Item>) {
    if !placed.layout.runs.is_empty() && colour.alpha > 0.0 {
        items.push(Item::Text { at: placed.at, turned: placed.turned, layout: placed.layout, colour });
    }
}

/// The texts at the sides: labels of the axes, title, watermark, signature.
pub(super) fn texts(layout: &mut Layout, options: &Options, items: &mut Vec<Item>) {
    let colour = options.colour(ColourTag::Font);
    let faint = Colour { alpha: FAINT, ..colour };
    let all = [
        (layout.vertical_label.take(), colour),
        (layout.right_axis_label.take(), colour),
        (layout.title.take(), colour),
        (layout.signature.take(), faint),
        (layout.watermark.take(), faint),
    ];
    for (placed, colour) in all {
        if let Some(placed) = placed {
            text(placed, colour, items);
        }
    }
}

/// The legend's entries with their boxes.
pub(super) fn legend(entries: Vec<Placed>, options: &Options, fit: Fit, items: &mut Vec<Item>) {
    for entry in entries {
        let placed = PlacedText { layout: entry.layout, at: entry.at, turned: 0.0 };
        text(placed, options.colour(ColourTag::Font), items);
        if let Some((mark, from, to)) = entry.mark {
            self::mark(&mark, from, to, options, fit, items);
        }
    }
}

/// A colour box, or what `--dynamic-labels` has for it.
fn mark(mark: &Mark, from: Point, to: Point, options: &Options, fit: Fit, items: &mut Vec<Item>) {
    let sides = [(from.x, from.y), (from.x, to.y), (to.x, to.y), (to.x, from.y)];
    match &mark.shape {
        MarkShape::Box | MarkShape::Gradient(_) => {
            fill(&sides, options.colour(ColourTag::Back), fit, items);
            fill(&sides, mark.colour, fit, items);
        }
        MarkShape::Level { width, dashes } => {
            let y = (from.y + to.y) / 2.0;
            let stroke = thin(*width, dashes.lengths.clone(), dashes.offset);
            line((from.x, y), (to.x, y), mark.colour, stroke, fit, items);
        }
        MarkShape::Upright { width, dashes } => {
            let x = (from.x + to.x) / 2.0;
            let stroke = thin(*width, dashes.lengths.clone(), dashes.offset);
            line((x, from.y), (x, to.y), mark.colour, stroke, fit, items);
        }
    }
    let frame = options.colour(ColourTag::Frame);
    if frame.alpha > 0.0 {
        let stroke = thin(1.0, Vec::new(), 0.0);
        let corners = [(from.x, to.y), (to.x, to.y), (to.x, from.y), (from.x, from.y)];
        let points = corners.map(|(x, y)| fit.line(Point { x, y }, stroke.width)).to_vec();
        items.push(Item::Stroke {
            path: Path { points, ends: vec![4], closed: true },
            colour: frame,
            stroke,
        });
    }
}
