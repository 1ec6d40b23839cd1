//! Texts as glyphs, and the door that they come through.

use std::fmt;
use std::sync::Arc;

use super::scene::Colour;

/// A font as `--font` describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Font {
    /// Size in points, of which RRDtool counts one for a pixel at 72 and 100/72 at its 100 dots an inch: see
    /// `PIXELS_PER_POINT` of the typesetter.
    pub size: f64,
    /// Families and style in Pango's words: `DejaVu Sans Mono,monospace Bold`.
    pub description: Vec<u8>,
}

/// How a text is set.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The font.
    pub font: &'a Font,
    /// Pixels from each tab stop to the next, from the text's own start on.
    ///
    /// Compat: in RRDtool's legend that is `--tabwidth` plus the x that the text begins at.
    pub tab_width: f64,
    /// Whether the text has Pango's markup in it (`--pango-markup`).
    pub markup: bool,
}

/// The bytes of a font file.
#[derive(Clone)]
pub struct FontFile {
    /// The file.
    pub bytes: Arc<dyn AsRef<[u8]> + Send + Sync>,
    /// Which font of a collection.
    pub index: u32,
    /// The same for the same font of one typesetter.
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
    /// Where it stands, in pixels from the left edge of the text's box.
    pub x: f64,
    /// Its baseline, in pixels from the upper edge of the text's box.
    pub y: f64,
    /// Its advance in pixels.
    pub advance: f64,
    /// Where its part of the text begins, in bytes of [`TextLayout::text`].
    pub cluster: usize,
}

/// Glyphs of one font, size and look.
#[derive(Clone, Debug, PartialEq)]
pub struct GlyphRun {
    /// The font.
    pub font: FontFile,
    /// Size in pixels of an em.
    pub size: f64,
    /// Whether the font has no bold of its own and is made bolder.
    pub embolden: bool,
    /// Degrees by which an upright font is slanted.
    pub slant: f64,
    /// Weight (400 is normal, 700 bold), for backends that name fonts.
    pub weight: f64,
    /// Whether the style is italic or oblique, for backends that name fonts.
    pub italic: bool,
    /// A colour of its own (markup).
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
    /// Width of its logical box in pixels: what the layout counts with.
    pub width: f64,
    /// Height of its logical box in pixels, over all lines.
    pub height: f64,
    /// From the upper edge of the box to the first baseline, in pixels.
    pub baseline: f64,
    /// Its glyphs.
    pub runs: Vec<GlyphRun>,
}

/// Sets texts: knows the fonts of this host.
pub trait Typesetter {
    /// Sets one text. Bytes that are no UTF-8 show as replacement characters; a text never fails, and a host
    /// without fonts has one inside.
    fn set(&self, text: &[u8], setting: Setting<'_>) -> TextLayout;
}
