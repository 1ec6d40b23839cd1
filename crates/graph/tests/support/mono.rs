//! A typesetter without fonts: DejaVu Sans Mono as Pango sets it at 100 dots per inch, hinted.

use roundel_graph::picture::text::{TextLayout, TextOptions, Typesetter};

/// Pixels of a point.
const PIXELS: f64 = 100.0 / 72.0;
/// Metrics of DejaVu Sans Mono in ems: advance, ascent and descent.
const ADVANCE: f64 = 1233.0 / 2048.0;
const ABOVE: f64 = 1901.0 / 2048.0;
const BELOW: f64 = 483.0 / 2048.0;

/// Knows widths and heights, but no glyphs.
pub struct Mono;

impl Typesetter for Mono {
    fn set(&self, text: &[u8], text_options: TextOptions<'_>) -> TextLayout {
        let em = text_options.font.size * PIXELS;
        let advance = (em * ADVANCE).round();
        let text = String::from_utf8_lossy(text).into_owned();
        let mut width = 0.0;
        for letter in text.chars() {
            match letter {
                '\t' => width = ((width / text_options.tab_width).floor() + 1.0) * text_options.tab_width,
                _ => width += advance,
            }
        }
        let (above, below) = ((em * ABOVE).ceil(), (em * BELOW).ceil());
        TextLayout { text, width, height: above + below, baseline: above, runs: Vec::new() }
    }
}
