//! How a stretch of text looks.

use std::sync::Arc;

use graph::picture::scene::Colour;

use super::description::Description;

/// How a stretch of text looks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Style {
    /// Families and face.
    pub(super) description: Arc<Description>,
    /// Pixels of an em.
    pub(super) size: f64,
    /// A colour of its own.
    pub(super) colour: Option<Colour>,
    /// A line under it.
    pub(super) underline: bool,
    /// A line through it.
    pub(super) strike: bool,
    /// Pixels that it is raised by.
    pub(super) rise: f64,
    /// Pixels between its letters.
    pub(super) spacing: f64,
    /// Raised (true) or lowered, and smaller, as its font says.
    pub(super) script: Option<bool>,
}

impl Style {
    /// Plain, in `description`, `size` pixels an em.
    pub(super) fn new(description: Arc<Description>, size: f64) -> Style {
        Style {
            description,
            size,
            colour: None,
            underline: false,
            strike: false,
            rise: 0.0,
            spacing: 0.0,
            script: None,
        }
    }
}

/// A text and its looks.
#[derive(Debug, PartialEq)]
pub(super) struct Styled {
    /// The text.
    pub(super) text: String,
    /// Up to where (bytes) it looks like what; the last ends with the text.
    pub(super) spans: Vec<(usize, Style)>,
}

impl Styled {
    /// All of it in one style.
    pub(super) fn plain(text: String, style: Style) -> Styled {
        let end = text.len();
        Styled { text, spans: vec![(end, style)] }
    }
}
