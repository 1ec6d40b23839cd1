//! Draws the grid and its labels.

use super::text;
use crate::picture::axis::horizontal::TimeAxis;
use crate::picture::axis::vertical::{ValueLine, VerticalAxis};
use crate::picture::fit::GridFit;
use crate::picture::layout::{PlacedText, text_options};
use crate::picture::options::{ColourTag, FontTag, Options};
use crate::picture::scene::{Colour, Item, Path, Point};
use crate::picture::shapes::{Canvas, thin};
use crate::picture::text::{TextLayout, Typesetter};

/// How far a tick reaches beyond the canvas, in pixels.
const FAR_TICK: f64 = 2.0;
/// The same of a major line below the canvas.
const MAJOR_TIME_TICK: f64 = 3.0;
/// From the lower edge of the canvas to the time labels, in pixels.
const TIME_LABEL: f64 = 3.0;
/// From the right edge of the canvas to the labels of the right axis, in pixels.
const RIGHT_LABEL: f64 = 7.0;

/// How the lines of one kind look.
struct Kind {
    colour: Colour,
    /// In pixels.
    width: f64,
    /// How far a line reaches beyond the canvas, in pixels.
    reach: f64,
}

impl Kind {
    fn of(options: &Options, major: bool) -> Kind {
        match major {
            true => Kind { colour: options.colour(ColourTag::MajorGrid), width: 0.6, reach: 2.0 },
            false => Kind { colour: options.colour(ColourTag::Grid), width: 0.4, reach: 1.0 },
        }
    }
}

/// Paints the grid of one picture.
pub(in crate::picture) struct Grid<'a> {
    /// The options.
    pub options: &'a Options,
    /// The canvas.
    pub canvas: &'a Canvas,
    /// Sets the labels.
    pub typesetter: &'a dyn Typesetter,
}

/// All lines of one kind. They become two items, one of ticks and one of dashed lines.
struct Lines {
    kind: Kind,
    fit: GridFit,
    dash: (f64, f64),
    ticks: Path,
    lines: Path,
}

impl Lines {
    fn tick(&mut self, from: (f64, f64), to: (f64, f64)) {
        let ends = [from, to].map(|(x, y)| self.fit.line(Point { x, y }, self.kind.width));
        self.ticks.points.extend(ends);
        self.ticks.ends.push(self.ticks.points.len());
    }

    /// Compat: dashed lines begin at a whole pixel, so that dashes fill pixels; other lines do not.
    fn line(&mut self, from: (f64, f64), to: (f64, f64)) {
        let upright = from.0 == to.0;
        for (x, y) in [from, to] {
            let at = Point { x, y };
            let (across, along) = (self.fit.line(at, self.kind.width), self.fit.whole(at));
            let at = match upright {
                true => Point { x: across.x, y: along.y },
                false => Point { x: along.x, y: across.y },
            };
            self.lines.points.push(at);
        }
        self.lines.ends.push(self.lines.points.len());
    }

    fn paint(self, items: &mut Vec<Item>) {
        let Kind { colour, width, .. } = self.kind;
        for (path, dashes) in [(self.ticks, Vec::new()), (self.lines, vec![self.dash.0, self.dash.1])] {
            if !path.points.is_empty() && colour.alpha > 0.0 {
                items.push(Item::Stroke { path, colour, stroke: thin(width, dashes, 0.0) });
            }
        }
    }
}

impl Grid<'_> {
    /// Adds the time grid: minor lines, major lines, labels.
    pub(in crate::picture) fn times(&self, axis: &TimeAxis, items: &mut Vec<Item>) {
        for major in self.kinds() {
            let kind = Kind::of(self.options, major);
            let reach = kind.reach;
            // A major line is as long as its tick.
            let (below, line_below) =
                if major { (MAJOR_TIME_TICK, MAJOR_TIME_TICK) } else { (FAR_TICK, reach) };
            let mut lines = self.lines(kind);
            let (top, bottom) = (self.canvas.rect.top, self.canvas.bottom());
            for at in axis.lines.iter().filter(|at| at.major == major) {
                let x = self.canvas.mapping.to_x(at.time);
                lines.tick((x, top - FAR_TICK), (x, top));
                lines.tick((x, bottom), (x, bottom + below));
                lines.line((x, bottom + line_below), (x, top - reach));
            }
            lines.paint(items);
        }
        for label in &axis.labels {
            let layout = self.label(&label.text);
            let x = self.canvas.mapping.to_x(label.time) - half(layout.width);
            self.text(layout, Point { x, y: self.canvas.bottom() + TIME_LABEL }, items);
        }
    }

    /// Adds the value grid from bottom to top: lines and labels.
    pub(in crate::picture) fn values(&self, axis: &VerticalAxis, items: &mut Vec<Item>) {
        for major in self.kinds() {
            let kind = Kind::of(self.options, major);
            let reach = kind.reach;
            let mut lines = self.lines(kind);
            let (left, right) = (self.canvas.rect.left, self.canvas.right());
            for at in axis.lines.iter().filter(|at| at.major == major) {
                let y = self.canvas.mapping.to_y(at.value);
                lines.tick((left - FAR_TICK, y), (left, y));
                lines.tick((right, y), (right + FAR_TICK, y));
                lines.line((left - reach, y), (right + reach, y));
            }
            lines.paint(items);
        }
        for at in &axis.lines {
            self.labels(at, self.canvas.mapping.to_y(at.value), items);
        }
    }

    /// The kinds of lines in painting order: minor (`false`), major (`true`).
    fn kinds(&self) -> impl Iterator<Item = bool> + use<> {
        let minor = self.options.minor_grid;
        [false, true].into_iter().filter(move |major| *major || minor)
    }

    fn labels(&self, at: &ValueLine, y: f64, items: &mut Vec<Item>) {
        if let Some(label) = &at.right_label {
            let layout = self.label(label);
            let y = y - half(layout.height);
            self.text(layout, Point { x: self.canvas.right() + RIGHT_LABEL, y }, items);
        }
        if let Some(label) = &at.label {
            let layout = self.label(label);
            let x = self.canvas.rect.left - self.options.font(FontTag::Axis).size - layout.width;
            let y = y - half(layout.height);
            self.text(layout, Point { x, y }, items);
        }
    }

    fn lines(&self, kind: Kind) -> Lines {
        let dash = self.options.grid_dash;
        Lines { kind, fit: self.canvas.fit, dash, ticks: Path::default(), lines: Path::default() }
    }

    fn label(&self, label: &[u8]) -> TextLayout {
        self.typesetter.set(label, text_options(self.options, FontTag::Axis))
    }

    fn text(&self, layout: TextLayout, at: Point, items: &mut Vec<Item>) {
        let placed = PlacedText { layout, at, turned: 0.0 };
        text(placed, self.options.colour(ColourTag::Font), items);
    }
}

/// Half a length, cut to whole pixels. Compat: RRDtool centres like this.
fn half(length: f64) -> f64 {
    (length / 2.0).floor()
}
