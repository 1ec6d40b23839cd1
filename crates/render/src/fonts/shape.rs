//! Shapes characters of one font, direction and script into glyphs.

use harfrust::{Direction, ShapeOptions, UnicodeBuffer};

use super::UNITS;
use super::face::Face;

/// A glyph and its advance.
pub(super) struct Shaped {
    pub(super) glyph: u32,
    /// Bytes into the text.
    pub(super) cluster: usize,
    /// Whole pixels.
    pub(super) advance: f64,
    /// Offset to the right in pixels.
    pub(super) right: f64,
    /// Offset upwards in pixels.
    pub(super) up: f64,
}

/// Shapes `characters` (with their positions in the text) at `size` pixels per em; in visual order.
///
/// Compat: advances and offsets are rounded to whole pixels after kerning, as Pango does with hinted metrics.
pub(super) fn shape(
    face: &Face,
    size: f64,
    characters: impl Iterator<Item = (usize, char)>,
    script: unicode_script::Script,
    right_to_left: bool,
) -> Vec<Shaped> {
    let mut buffer = UnicodeBuffer::new();
    for (place, character) in characters {
        buffer.add(character, place as u32);
    }
    buffer.set_direction(if right_to_left { Direction::RightToLeft } else { Direction::LeftToRight });
    if let Ok(script) = script.short_name().parse() {
        buffer.set_script(script);
    }
    let font = face.font();
    let shaper = face.shaper().shaper(&font).build();
    let scale = (size * UNITS).round().clamp(1.0, f64::from(i32::MAX)) as i32;
    let shaped = shaper.shape(buffer, ShapeOptions::new().scale(Some(scale)));
    let pixels = |units: i32| f64::from(units) / UNITS;
    let glyphs = shaped.glyph_infos().iter().zip(shaped.glyph_positions());
    glyphs
        .map(|(glyph, at)| Shaped {
            glyph: glyph.glyph_id,
            cluster: glyph.cluster as usize,
            advance: rounded(pixels(at.x_advance)),
            right: rounded(pixels(at.x_offset)),
            up: rounded(pixels(at.y_offset)),
        })
        .collect()
}

/// Rounds to whole pixels, halves up.
pub(super) fn rounded(pixels: f64) -> f64 {
    (pixels + 0.5).floor()
}
