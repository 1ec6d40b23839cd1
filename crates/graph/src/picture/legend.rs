//! The legend: its entries and where they are.
//!
//! [`entries`] collects the entries of a script, [`flow`] breaks them into lines. Positions are pixels of the image,
//! from its upper left corner; the widths of texts come through a [`Typesetter`](super::text::Typesetter). Compat:
//! RRDtool truncates every height to whole pixels after each step (`tests/layout_oracle.rs`).

pub mod entries;
pub mod flow;

use super::scene::{Colour, Point};
use super::text::TextLayout;

/// An entry of the legend.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A text, with a control code at its end, and the colour box before it.
    Text {
        /// The text; leading spaces make room for the box.
        text: Vec<u8>,
        /// The colour box; GPRINT and COMMENT have none.
        mark: Option<Mark>,
        /// Whether it is a COMMENT: leading and trailing ones stay with `--legend-direction=bottomup2`.
        comment: bool,
    },
    /// TEXTALIGN: the alignment of following lines that have none of their own.
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
    /// Its colour; without one the box is empty.
    pub colour: Option<Colour>,
}

/// See [`Mark`]. Only `--dynamic-labels` has others than the box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MarkShape {
    /// A box with a frame, filled with the colour over the image's background.
    Box {
        /// Whether the frame is dashed, 3 pixels on and 3 off, like its element.
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

/// A colour box and its position.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedMark {
    /// The box.
    pub mark: Mark,
    /// Its upper left corner.
    pub from: Point,
    /// Its lower right corner.
    pub to: Point,
}

/// An entry and its position.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedEntry {
    /// Its text without the control code; leading spaces make room for the box.
    pub text: Vec<u8>,
    /// The same, set.
    pub layout: TextLayout,
    /// The upper left corner of the text's box.
    pub at: Point,
    /// Its colour box.
    pub mark: Option<PlacedMark>,
}

/// An unknown control code (`\x`) at the end of a legend. `Display` is RRDtool's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownControlCode {
    /// The whole text.
    pub text: String,
}

impl std::fmt::Display for UnknownControlCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Unknown control code at the end of '{}'", self.text)
    }
}

impl std::error::Error for UnknownControlCode {}
