//! The legend: which entries there are, and where each stands.
//!
//! Owns the flow of texts into lines as `rrdgraph_graph(1)` tells it (escapes at the end of texts, TEXTALIGN,
//! wrapping at the image's width) and the colour boxes before them. Positions are pixels of the image, from its
//! upper left corner; heights and widths of texts come through the [`Typesetter`](super::text::Typesetter).

use super::scene::{Colour, Point};
use super::text::TextLayout;
use crate::language::drawn::Dashes;

/// What may stand in the legend, in the order of the arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its text as the argument has it, the escapes at the end included; of a GPRINT what it printed.
    pub text: Vec<u8>,
    /// What kind of element it is of.
    pub kind: EntryKind,
}

/// See [`Entry`].
#[derive(Clone, Debug, PartialEq)]
pub enum EntryKind {
    /// A text alone: GPRINT and COMMENT.
    Text,
    /// The text has a colour box in front.
    Marked(Mark),
    /// TEXTALIGN: how lines that do not say are aligned from here on.
    Align(Align),
}

/// How a line of the legend is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// At the left edge.
    Left,
    /// At the right edge.
    Right,
    /// In the middle.
    Centre,
    /// At both edges.
    Justified,
}

/// The colour box of an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// What it looks like.
    pub shape: MarkShape,
    /// Its colour.
    pub colour: Colour,
}

/// See [`Mark`]. All but the box come with `--dynamic-labels` alone.
#[derive(Clone, Debug, PartialEq)]
pub enum MarkShape {
    /// A framed box.
    Box,
    /// A framed box of two colours, for an AREA with a gradient.
    Gradient(Colour),
    /// A horizontal line, for LINE and HRULE.
    Level {
        /// Width in pixels.
        width: f64,
        /// How it is broken.
        dashes: Dashes,
    },
    /// A vertical line, for VRULE and TICK.
    Upright {
        /// Width in pixels.
        width: f64,
        /// How it is broken.
        dashes: Dashes,
    },
}

/// An entry in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Its text without escapes, with spaces in front where the box stands.
    pub text: Vec<u8>,
    /// The same, set.
    pub layout: TextLayout,
    /// The upper left corner of the text's box.
    pub at: Point,
    /// Its colour box, and the box's upper left and lower right corner.
    pub mark: Option<(Mark, Point, Point)>,
}

/// The legend, placed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Legend {
    /// What stands in it, in the order of the arguments.
    pub items: Vec<Placed>,
}
