//! Splits texts into segments, for formats that keep text as text.
//!
//! A layout has glyphs; a document that sets the text again, in its own copy of the font or another font, needs
//! characters. A [`Segment`] can be set in one go: it has no tab, no line break and no blanks at its ends.

use std::collections::HashMap;
use std::ops::Range;

use graph::picture::text::{GlyphRun, TextLayout};

/// Width of the line around glyphs of an emboldened run, in ems: guessed by eye.
pub(crate) const EMBOLDEN: f64 = 1.0 / 24.0;

/// A part of a text that is set in one go.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Segment {
    /// Left end in pixels from the left edge of the text's box.
    pub left: f64,
    /// Right end, measured as `left`.
    pub right: f64,
    /// Its baseline in pixels from the upper edge of the text's box.
    pub baseline: f64,
    /// Whether it is read from right to left.
    pub from_right: bool,
    /// Its parts in logical order; neighbours differ in their run.
    pub spans: Vec<Span>,
}

/// A part of a segment that comes from one run of glyphs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span {
    /// Bytes of the layout's text.
    pub bytes: Range<usize>,
    /// Number of the run.
    pub run: usize,
    /// Its baseline in pixels from the upper edge of the text's box.
    pub baseline: f64,
}

/// The position of a glyph, and the text that it comes from.
#[derive(Clone, Copy)]
struct Placed {
    cluster: usize,
    run: usize,
    left: f64,
    right: f64,
    y: f64,
}

/// The segments of a text, in logical order.
pub(crate) fn segments(layout: &TextLayout) -> Vec<Segment> {
    let mut glyphs: Vec<Placed> = layout
        .runs
        .iter()
        .enumerate()
        .flat_map(|(run, of)| {
            of.glyphs.iter().map(move |glyph| Placed {
                cluster: glyph.cluster,
                run,
                left: glyph.x,
                right: glyph.x + glyph.advance,
                y: glyph.y,
            })
        })
        .collect();
    glyphs.sort_by_key(|glyph| glyph.cluster);
    let mut found = Vec::new();
    let mut start = 0;
    for piece in layout.text.split(['\t', '\n', '\r', '\u{2028}', '\u{2029}']) {
        let trimmed = piece.trim_matches(' ');
        if !trimmed.is_empty() {
            let from = start + (piece.len() - piece.trim_start_matches(' ').len());
            found.extend(segment(layout, &glyphs, from..from + trimmed.len()));
        }
        start += piece.len() + layout.text[start + piece.len()..].chars().next().map_or(0, char::len_utf8);
    }
    found
}

/// The segment of these bytes; `None` if it has no glyphs.
fn segment(layout: &TextLayout, glyphs: &[Placed], bytes: Range<usize>) -> Option<Segment> {
    let first = glyphs.partition_point(|glyph| glyph.cluster < bytes.start);
    let end = glyphs.partition_point(|glyph| glyph.cluster < bytes.end);
    let own = &glyphs[first..end];
    let head = own.first()?;
    let left = own.iter().map(|glyph| glyph.left).fold(f64::INFINITY, f64::min);
    let right = own.iter().map(|glyph| glyph.right).fold(f64::NEG_INFINITY, f64::max);
    let mut spans = vec![Span { bytes: bytes.clone(), run: head.run, baseline: head.y }];
    for glyph in own {
        let last = spans.len() - 1;
        if glyph.run != spans[last].run && layout.text.is_char_boundary(glyph.cluster) {
            spans[last].bytes.end = glyph.cluster;
            spans.push(Span { bytes: glyph.cluster..bytes.end, run: glyph.run, baseline: glyph.y });
        }
    }
    spans.retain(|span| !span.bytes.is_empty());
    // The first character is leftmost, except in a line that is read from right to left.
    let from_right = own.len() > 1 && own.iter().all(|glyph| glyph.right <= head.right) && head.left > left;
    Some(Segment { left, right, baseline: head.y, from_right, spans })
}

/// The byte offset at which the text of each cluster ends.
pub(crate) fn cluster_ends(layout: &TextLayout) -> HashMap<usize, usize> {
    let mut starts: Vec<usize> =
        layout.runs.iter().flat_map(|run| run.glyphs.iter().map(|glyph| glyph.cluster)).collect();
    starts.sort_unstable();
    starts.dedup();
    let next = starts.iter().skip(1).copied().chain([layout.text.len()]);
    starts.iter().copied().zip(next).collect()
}

/// The lines under or through the glyphs of a run: left, top, width, height in pixels, from the upper left corner of
/// the text's box.
pub(crate) fn rules(run: &GlyphRun) -> impl Iterator<Item = [f64; 4]> + '_ {
    let left = run.glyphs.iter().map(|glyph| glyph.x).fold(f64::INFINITY, f64::min);
    let right = run.glyphs.iter().map(|glyph| glyph.x + glyph.advance).fold(f64::NEG_INFINITY, f64::max);
    run.rules
        .iter()
        .filter(move |_| right > left)
        .map(move |&(y, thickness)| [left, y, right - left, thickness])
}
