//! What to paint: filled and stroked paths and texts, back to front, in pixels.
//!
//! Every backend (raster, SVG, PDF, EPS) paints the same scene and needs to know nothing about graphs. The origin is the
//! upper left corner of the image; y grows downwards. Centres of pixels have half-integer coordinates.

use super::text::TextLayout;

/// A point in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// From the left edge.
    pub x: f64,
    /// From the upper edge.
    pub y: f64,
}

/// Red, green, blue and opacity, each 0 to 1, not premultiplied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Colour {
    /// 0 to 1.
    pub red: f64,
    /// 0 to 1.
    pub green: f64,
    /// 0 to 1.
    pub blue: f64,
    /// 1 is opaque.
    pub alpha: f64,
}

impl Colour {
    /// The colour `0xrrggbbaa`.
    pub fn new(rgba: u32) -> Colour {
        let [red, green, blue, alpha] = rgba.to_be_bytes().map(|part| f64::from(part) / 255.0);
        Colour { red, green, blue, alpha }
    }
}

/// A path of one or more subpaths of straight lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// The points of all subpaths.
    pub points: Vec<Point>,
    /// Index in `points` after the last point of each subpath.
    pub ends: Vec<usize>,
    /// Whether each subpath returns to its first point.
    pub closed: bool,
}

impl Path {
    /// The rectangle between two corners.
    pub fn rectangle(from: Point, to: Point) -> Path {
        let points = vec![from, Point { x: to.x, y: from.y }, to, Point { x: from.x, y: to.y }];
        Path { ends: vec![points.len()], points, closed: true }
    }
}

/// How a path is filled.
#[derive(Clone, Debug, PartialEq)]
pub enum Paint {
    /// With one colour.
    Solid(Colour),
    /// With a gradient along a vertical line; beyond its ends the colours continue.
    Vertical {
        /// y of the first colour.
        from_y: f64,
        /// The colour there.
        from: Colour,
        /// y of the second colour.
        to_y: f64,
        /// The colour there.
        to: Colour,
    },
}

/// The shape of a line's ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cap {
    /// It stops at the point.
    Butt,
    /// Half a circle around the point.
    Round,
    /// Half a square around the point.
    Square,
}

/// The shape of a line's corners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// Pointed, with cairo's limit of 10 line widths.
    Miter,
    /// Round.
    Round,
}

/// How a path is stroked.
#[derive(Clone, Debug, PartialEq)]
pub struct Stroke {
    /// Width in pixels.
    pub width: f64,
    /// Lengths of dashes and gaps in turn, in pixels; empty = a solid line.
    pub dashes: Vec<f64>,
    /// Where in the dashes the line begins, in pixels.
    pub dash_offset: f64,
    /// Its ends.
    pub cap: Cap,
    /// Its corners.
    pub join: Join,
}

/// One thing to paint.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// An area.
    Fill {
        /// Its outline; all subpaths count as closed, by the non-zero winding rule.
        path: Path,
        /// Its colour.
        paint: Paint,
    },
    /// A line.
    Stroke {
        /// Its points.
        path: Path,
        /// Its colour.
        colour: Colour,
        /// Its look.
        stroke: Stroke,
    },
    /// A text.
    Text {
        /// The upper left corner of its logical box, before it is turned.
        at: Point,
        /// By how many degrees it is turned clockwise around `at`.
        turned: f64,
        /// The text with its glyphs.
        layout: TextLayout,
        /// The colour of runs that have no own one.
        colour: Colour,
    },
    /// Following items are clipped to this rectangle, until [`Item::Unclip`]; not nested.
    Clip {
        /// Upper left corner.
        from: Point,
        /// Lower right corner.
        to: Point,
    },
    /// Ends the clip.
    Unclip,
}

/// A picture, back to front.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scene {
    /// Width in pixels, before `zoom`.
    pub width: f64,
    /// Height in pixels, before `zoom`.
    pub height: f64,
    /// Pixels of the image for a pixel of the scene.
    pub zoom: f64,
    /// Whether edges of lines and areas are smoothed (`--graph-render-mode`).
    pub smooth_lines: bool,
    /// Whether edges of texts are smoothed (`--font-render-mode`).
    pub smooth_texts: bool,
    /// Title for the metadata of SVG and PDF; empty = none. Never painted.
    pub title: String,
    /// Description for readers who cannot see the picture; empty = none. Never painted.
    pub description: String,
    /// The items.
    pub items: Vec<Item>,
}
