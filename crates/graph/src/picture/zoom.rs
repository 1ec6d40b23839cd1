//! Texts of a picture with `--zoom`, measured in pixels before zoom.
//!
//! Compat: Pango places glyphs at whole pixels of the zoomed image, so its lines are a little wider or narrower than
//! scaled ones would be; their widths are rounded to whole pixels before zoom. Heights stay.

use super::text::{Font, GlyphRun, TextLayout, TextOptions, Typesetter};

/// A fraction of a pixel that is a rounding error: widths are sums.
const NOTHING: f64 = 1e-6;

/// Sets texts at the size at which they are painted, and reports their layout in pixels before zoom.
#[derive(Clone, Copy)]
pub(crate) struct Zoomed<'a> {
    /// Sets texts at any size.
    pub typesetter: &'a dyn Typesetter,
    /// Pixels of the image for a pixel of the layout.
    pub zoom: f64,
}

impl Typesetter for Zoomed<'_> {
    fn set(&self, text: &[u8], text_options: TextOptions<'_>) -> TextLayout {
        self.again(self.typesetter.set(text, text_options), text, text_options)
    }
}

impl Zoomed<'_> {
    /// Sets a text again whose layout without zoom is `plain`.
    pub(crate) fn again(&self, plain: TextLayout, text: &[u8], text_options: TextOptions<'_>) -> TextLayout {
        if self.zoom == 1.0 {
            return TextLayout { width: whole(plain.width), ..plain };
        }
        let font = Font { size: text_options.font.size * self.zoom, ..text_options.font.clone() };
        let tab_width = text_options.tab_width * self.zoom;
        let large = self.typesetter.set(text, TextOptions { font: &font, tab_width, ..text_options });
        // The first baseline is where the plain text has it.
        let above = plain.baseline - large.baseline / self.zoom;
        let runs = large.runs.into_iter().map(|run| self.small(run, above)).collect();
        TextLayout { width: whole(large.width / self.zoom), runs, ..plain }
    }

    /// Scales a run back to pixels before zoom and moves it down by `above`.
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
