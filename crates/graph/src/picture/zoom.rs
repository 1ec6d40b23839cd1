//! Texts of an enlarged picture (`--zoom`), in its own pixels.
//!
//! Compat: Pango sets glyphs at whole pixels of the enlarged image, so that lines are a little wider or narrower
//! there than enlarged ones would be, and says how wide they are in whole pixels of the picture. Heights stay.

use super::text::{Font, GlyphRun, Setting, TextLayout, Typesetter};

/// A part of a pixel that is none: widths are sums.
const NOTHING: f64 = 1e-6;

/// Sets texts at the size that they are painted in, and tells of them in the picture's pixels.
#[derive(Clone, Copy)]
pub(crate) struct Zoomed<'a> {
    /// Sets texts at any size.
    pub typesetter: &'a dyn Typesetter,
    /// How many pixels of the image one of the picture is.
    pub zoom: f64,
}

impl Typesetter for Zoomed<'_> {
    fn set(&self, text: &[u8], setting: Setting<'_>) -> TextLayout {
        self.again(self.typesetter.set(text, setting), text, setting)
    }
}

impl Zoomed<'_> {
    /// The text whose layout without a zoom is `plain`.
    pub(crate) fn again(&self, plain: TextLayout, text: &[u8], setting: Setting<'_>) -> TextLayout {
        if self.zoom == 1.0 {
            return TextLayout { width: whole(plain.width), ..plain };
        }
        let font = Font { size: setting.font.size * self.zoom, ..setting.font.clone() };
        let tab_width = setting.tab_width * self.zoom;
        let large = self.typesetter.set(text, Setting { font: &font, tab_width, ..setting });
        // Its first baseline is put where the plain text has it.
        let above = plain.baseline - large.baseline / self.zoom;
        let runs = large.runs.into_iter().map(|run| self.small(run, above)).collect();
        TextLayout { width: whole(large.width / self.zoom), runs, ..plain }
    }

    /// The glyphs of an enlarged text in pixels of the picture, so much lower.
    fn small(&self, mut run: GlyphRun, above: f64) -> GlyphRun {
        run.size /= self.zoom;
        for (y, thickness) in &mut run.rules {
            *y = *y / self.zoom + above;
            *thickness /= self.zoom;
        }
        for glyph in &mut run.glyphs {
            glyph.x /= self.zoom;
            glyph.advance /= self.zoom;
            glyph.y = glyph.y / self.zoom + above;
        }
        run
    }
}

/// A width in whole pixels.
fn whole(width: f64) -> f64 {
    (width - NOTHING).ceil().max(0.0)
}
