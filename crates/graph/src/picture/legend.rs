//! The legend: which entries there are, and where each stands.
//!
//! [`entries`] makes entries of a script's elements, [`flow`] breaks them into lines. Positions are pixels of the
//! image, from its upper left corner; how wide a text is comes through a
//! [`Typesetter`](super::text::Typesetter). Compat: RRDtool counts every height here in whole pixels, cut after
//! each step, and the lines of Debian's legends stand so (`tests/legend_oracle.rs`).

pub mod entries;
pub mod flow;

use super::scene::{Colour, Point};
use super::text::TextLayout;

/// What may stand in the legend, in the order of the arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A text with its escapes at the end, and the colour box in front of it.
    Text {
        /// The text; of a GPRINT what it printed. Spaces in front make room for the box.
        text: Vec<u8>,
        /// The colour box; GPRINT and COMMENT have none.
        mark: Option<Mark>,
        /// Whether it is a COMMENT, which keeps its place with `--legend-direction=bottomup2`.
        comment: bool,
    },
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
    /// Its colour; of an element without one the box stays empty.
    pub colour: Option<Colour>,
}

/// See [`Mark`]. All but the box come with `--dynamic-labels` alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MarkShape {
    /// A box with a frame, filled with the colour over the image's background.
    Box {
        /// Whether the frame is broken, 3 pixels on and 3 off, as it is for an element with dashes.
        dashed: bool,
    },
    /// A line from the lower left to the upper right corner, for LINE.
    Rising {
        /// Its width in pixels.
        width: f64,
    },
    /// A horizontal line of one pixel through the middle, for HRULE.
    Level,
    /// A vertical line of one pixel through the middle, for VRULE.
    Upright,
}

/// The place of a colour box.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedMark {
    /// What it is.
    pub mark: Mark,
    /// Its upper left corner.
    pub from: Point,
    /// Its lower right corner.
    pub to: Point,
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
    /// Its colour box.
    pub mark: Option<PlacedMark>,
}

/// An escape at the end of a legend that there is not. `Display` is RRDtool's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownControl {
    /// The whole text.
    pub text: String,
}

impl std::fmt::Display for UnknownControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Unknown control code at the end of '{}'", self.text)
    }
}

impl std::error::Error for UnknownControl {}
