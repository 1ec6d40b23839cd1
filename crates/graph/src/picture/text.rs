//! Texts as glyphs, and the trait that sets them.

use std::fmt;
use std::sync::Arc;

use super::scene::Colour;

/// A font as `--font` describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Font {
    /// Size in points. RRDtool draws at 100 dots per inch: `render::fonts::PIXELS_PER_POINT`.
    pub size: f64,
    /// Families and style as a Pango font description: `DejaVu Sans Mono,monospace Bold`.
    pub description: Vec<u8>,
}

/// How a text is set.
#[derive(Clone, Copy, Debug)]
pub struct TextOptions<'a> {
    /// The font.
    pub font: &'a Font,
    /// Pixels from tab stop to tab stop, counted from the start of the text.
    ///
    /// Compat: in RRDtool's legend `--tabwidth` plus the x at which the text begins.
    pub tab_width: f64,
    /// Whether the text is Pango markup (`--pango-markup`).
    pub markup: bool,
}

/// The bytes of a font file.
#[derive(Clone)]
pub struct FontFile {
    /// The file.
    pub bytes: Arc<dyn AsRef<[u8]> + Send + Sync>,
    /// Index of the font in a collection.
    pub index: u32,
    /// Identifies the font within one typesetter.
    pub id: u64,
    /// The family's name.
    pub family: Arc<str>,
}

impl fmt::Debug for FontFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} #{}", self.family, self.id)
    }
}

impl PartialEq for FontFile {
    fn eq(&self, other: &FontFile) -> bool {
        self.id == other.id
    }
}

/// One glyph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Glyph {
    /// Its number in the font.
    pub id: u32,
    /// Its origin in pixels from the left edge of the text's box.
    pub x: f64,
    /// Its baseline, in pixels from the upper edge of the text's box.
    pub y: f64,
    /// Its advance in pixels.
    pub advance: f64,
    /// Start of its cluster, in bytes of [`TextLayout::text`].
    pub cluster: usize,
}

/// Glyphs of one font, size and look.
#[derive(Clone, Debug, PartialEq)]
pub struct GlyphRun {
    /// The font.
    pub font: FontFile,
    /// Size in pixels of an em.
    pub size: f64,
    /// Whether glyphs are made bolder, as the family has no bold font.
    pub embolden: bool,
    /// Degrees by which glyphs are slanted, where the family has no italic font.
    pub slant: f64,
    /// Weight (400 is normal, 700 bold), for backends that name fonts.
    pub weight: f64,
    /// Whether the style is italic or oblique, for backends that name fonts.
    pub italic: bool,
    /// Its own colour, from markup.
    pub colour: Option<Colour>,
    /// Lines under or through it: (y, thickness) in pixels from the upper edge of the text's box.
    pub rules: Vec<(f64, f64)>,
    /// The glyphs, in visual order.
    pub glyphs: Vec<Glyph>,
}

/// A text, set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextLayout {
    /// The text without its markup.
    pub text: String,
    /// Width of its logical box in pixels; the layout counts with it.
    pub width: f64,
    /// Height of its logical box in pixels, over all lines.
    pub height: f64,
    /// From the upper edge of the box to the first baseline, in pixels.
    pub baseline: f64,
    /// Its glyphs.
    pub runs: Vec<GlyphRun>,
}

/// Sets texts in the fonts of this host.
pub trait Typesetter {
    /// Sets one text. Never fails: bytes that are not UTF-8 become replacement characters, and a host without fonts uses
    /// an embedded one.
    fn set(&self, text: &[u8], text_options: TextOptions<'_>) -> TextLayout;
}
