//! The fonts of this host, and texts set in them.
//!
//! DejaVu Sans Mono, RRDtool's default, is inside: the usual graph opens no font file, and a host without fonts
//! draws all the same.

use std::sync::{Arc, OnceLock};

use graph::picture::text::{FontFile, Glyph, GlyphRun, Setting, TextLayout, Typesetter};
use skrifa::instance::{LocationRef, Size};
use skrifa::{FontRef, MetadataProvider};

/// Pixels of an em for a point of a font's size: RRDtool draws at 100 dots an inch, of 72 points.
pub const PIXELS_PER_POINT: f64 = 100.0 / 72.0;

/// Version 2.37, as Debian has it.
static EMBEDDED: &[u8] = include_bytes!("../fonts/DejaVuSansMono.ttf");

/// The fonts of this host.
#[derive(Default)]
pub struct Fonts {
    embedded: OnceLock<FontFile>,
}

impl Fonts {
    /// Looks for nothing yet.
    pub fn new() -> Fonts {
        Fonts::default()
    }

    fn embedded(&self) -> &FontFile {
        self.embedded.get_or_init(|| FontFile {
            bytes: Arc::new(EMBEDDED),
            index: 0,
            id: 0,
            family: Arc::from("DejaVu Sans Mono"),
        })
    }
}

impl Typesetter for Fonts {
    fn set(&self, text: &[u8], setting: Setting<'_>) -> TextLayout {
        let text = String::from_utf8_lossy(text).into_owned();
        let file = self.embedded();
        let size = setting.font.size * PIXELS_PER_POINT;
        let Ok(font) = FontRef::new(EMBEDDED) else { return TextLayout::default() };
        let scale = Size::new(size as f32);
        let metrics = font.metrics(scale, LocationRef::default());
        let advances = font.glyph_metrics(scale, LocationRef::default());
        let charmap = font.charmap();
        let baseline = f64::from(metrics.ascent).ceil();
        let mut x = 0.0;
        let mut glyphs = Vec::new();
        for (cluster, character) in text.char_indices() {
            let id = charmap.map(character).unwrap_or_default();
            let advance = f64::from(advances.advance_width(id).unwrap_or(0.0));
            let advance = if setting.hinted { advance.round() } else { advance };
            glyphs.push(Glyph { id: id.to_u32(), x, y: baseline, advance, cluster });
            x += advance;
        }
        let run = GlyphRun {
            font: file.clone(),
            size,
            embolden: false,
            slant: 0.0,
            weight: 400.0,
            italic: false,
            colour: None,
            rules: Vec::new(),
            glyphs,
        };
        TextLayout {
            text,
            width: x,
            height: baseline + f64::from(-metrics.descent).ceil(),
            baseline,
            runs: vec![run],
        }
    }
}
