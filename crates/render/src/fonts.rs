//! The fonts of this host, and texts set in them.
//!
//! DejaVu Sans Mono, RRDtool's default, is embedded: the usual graph opens no font file, and a host without fonts can
//! draw. Widths and heights are those that RRDtool gets from Pango: whole pixels in every render mode and image format.
//! ASCII in the embedded font costs a table look-up per character; all other texts are shaped.

mod cache;
mod description;
mod face;
mod fontconfig;
mod lines;
mod markup;
mod shape;
mod style;

use std::sync::{Arc, Mutex, PoisonError};

use graph::picture::text::{Glyph, GlyphRun, TextLayout, TextOptions, Typesetter};

use cache::FontCache;
use face::Face;
use shape::rounded;
use style::{Style, Styled};

/// Pixels per point of font size. Compat: RRDtool draws at 100 dots per inch of 72 points.
pub const PIXELS_PER_POINT: f64 = 100.0 / 72.0;
/// Pango's units in a pixel or a point.
const UNITS: f64 = 1024.0;
/// Longest text that is set, in bytes; the rest is cut off. No image has room for more.
const TEXT_MAX: usize = 64 << 10;
/// Greatest size of a font in pixels.
const SIZE_MAX: f64 = 10_000.0;

/// The fonts of this host. One is enough for a process; threads share it.
#[derive(Default)]
pub struct Fonts {
    cache: Mutex<Option<FontCache>>,
}

impl Fonts {
    /// Opens and searches nothing yet.
    pub fn new() -> Fonts {
        Fonts::default()
    }
}

impl Typesetter for Fonts {
    fn set(&self, text: &[u8], setting: TextOptions<'_>) -> TextLayout {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let cache = cache.get_or_insert_with(FontCache::new);
        let size = pixels(setting.font.size);
        let text = &text[..text.len().min(TEXT_MAX)];
        let description = cache.description(&setting.font.description);
        let face = cache.face(&description);
        if face::is_plain(text)
            && !(setting.markup && text.iter().any(|byte| matches!(byte, b'<' | b'&')))
            && let Some(table) = face.ascii()
        {
            return from_table(text, &face, table, size);
        }
        let text = String::from_utf8_lossy(text);
        let style = Style::new(description, size);
        let styled = if setting.markup { markup::parse(&text, &style) } else { None };
        lines::set(
            cache,
            styled.unwrap_or_else(|| Styled::plain(text.into_owned(), style)),
            setting.tab_width,
        )
    }
}

/// Pixels of an em at `points`.
///
/// Compat: Pango truncates points to 1024ths.
fn pixels(points: f64) -> f64 {
    let size = (points * UNITS).trunc() / UNITS * PIXELS_PER_POINT;
    if size.is_finite() { size.clamp(0.0, SIZE_MAX) } else { 0.0 }
}

/// Sets printable ASCII in a font that does not need shaping for it.
fn from_table(text: &[u8], face: &Arc<Face>, table: &[(u32, u16)], size: f64) -> TextLayout {
    let (extents, scale) = (face.extents(size), face.scale(size));
    let mut x = 0.0;
    let glyphs = text.iter().enumerate().map(|(cluster, byte)| {
        let (id, units) = table[usize::from(byte - 0x20)];
        let advance = rounded((f64::from(units) * scale * UNITS).round() / UNITS);
        let glyph = Glyph { id, x, y: extents.ascent, advance, cluster };
        x += advance;
        glyph
    });
    let run = GlyphRun {
        font: face.file.clone(),
        size,
        embolden: false,
        slant: 0.0,
        weight: 400.0,
        italic: false,
        colour: None,
        rules: Vec::new(),
        glyphs: glyphs.collect(),
    };
    TextLayout {
        text: String::from_utf8_lossy(text).into_owned(),
        width: x,
        height: extents.ascent + extents.descent,
        baseline: extents.ascent,
        runs: vec![run],
    }
}
