//! Styles of texts.

use std::sync::Arc;

use graph::picture::scene::Colour;

use super::description::Description;

/// The style of a stretch of text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Style {
    /// Families and face.
    pub(super) description: Arc<Description>,
    /// Size in pixels per em.
    pub(super) size: f64,
    /// Its own colour.
    pub(super) colour: Option<Colour>,
    /// Whether it is underlined.
    pub(super) underline: bool,
    /// Whether it is struck through.
    pub(super) strike: bool,
    /// Rise in pixels.
    pub(super) rise: f64,
    /// Extra space between letters in pixels.
    pub(super) spacing: f64,
    /// Superscript (true) or subscript, as its font defines them.
    pub(super) script: Option<bool>,
}

impl Style {
    /// The plain style in `description` at `size` pixels per em.
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

/// A text and its styles.
#[derive(Debug, PartialEq)]
pub(super) struct Styled {
    /// The text.
    pub(super) text: String,
    /// Each style with the byte offset where it ends; the last one ends with the text.
    pub(super) spans: Vec<(usize, Style)>,
}

impl Styled {
    /// A text in one style.
    pub(super) fn plain(text: String, style: Style) -> Styled {
        let end = text.len();
        Styled { text, spans: vec![(end, style)] }
    }
}
