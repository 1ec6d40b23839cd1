//! Sets styled text as lines of glyphs: paragraphs, directions, fonts, tabs.

use std::ops::Range;
use std::sync::Arc;

use graph::picture::text::{Glyph, GlyphRun, TextLayout};
use unicode_bidi::{BidiInfo, Level};
use unicode_script::{Script, UnicodeScript};

use super::cache::FontCache;
use super::face::Face;
use super::shape::{rounded, shape};
use super::style::{Style, Styled};

/// Slant in degrees of an upright font in place of an italic one: a fifth, as in fontconfig's rules.
const SLANT: f64 = 11.3;
/// From this weight on a font counts as bold.
const BOLD: u16 = 600;

/// Sets a text with tab stops every `tab` pixels.
pub(super) fn set(shelf: &mut FontCache, styled: Styled, tab: f64) -> TextLayout {
    let mut layout = TextLayout::default();
    let mut lines: Vec<(Range<usize>, f64, bool)> = Vec::new();
    for (number, line) in split(&styled.text).into_iter().enumerate() {
        let first_run = layout.runs.len();
        let set = Line::new(&styled, line, tab).set(shelf, &mut layout.runs);
        let baseline = layout.height + set.ascent;
        for run in &mut layout.runs[first_run..] {
            run.glyphs.iter_mut().for_each(|glyph| glyph.y += baseline);
            run.rules.iter_mut().for_each(|rule| rule.0 += baseline);
        }
        if number == 0 {
            layout.baseline = baseline;
        }
        layout.height += set.ascent + set.descent;
        layout.width = layout.width.max(set.width);
        lines.push((first_run..layout.runs.len(), set.width, set.right_to_left));
    }
    for (runs, width, right_to_left) in lines {
        if right_to_left && width < layout.width {
            let by = layout.width - width;
            layout.runs[runs].iter_mut().flat_map(|run| &mut run.glyphs).for_each(|glyph| glyph.x += by);
        }
    }
    layout.text = styled.text;
    layout
}

/// The lines of a text, without line ends.
fn split(text: &str) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        if !matches!(character, '\n' | '\r' | '\u{2028}' | '\u{2029}') {
            continue;
        }
        lines.push(start..at);
        start = at + character.len_utf8();
        if character == '\r' && characters.next_if(|(_, next)| *next == '\n').is_some() {
            start += 1;
        }
    }
    lines.push(start..text.len());
    lines
}

/// A character of a line, and how it is set.
#[derive(Clone)]
struct Letter {
    /// Bytes into the text.
    at: usize,
    character: char,
    /// Index of its span.
    span: usize,
    face: Arc<Face>,
    script: Script,
    level: Level,
}

impl Letter {
    fn goes_with(&self, other: &Letter) -> bool {
        self.span == other.span
            && Arc::ptr_eq(&self.face, &other.face)
            && self.script == other.script
            && self.level == other.level
            && (self.character == '\t') == (other.character == '\t')
    }
}

/// The size of a line.
struct Set {
    ascent: f64,
    descent: f64,
    width: f64,
    right_to_left: bool,
}

struct Line<'a> {
    styled: &'a Styled,
    range: Range<usize>,
    tab: f64,
}

impl<'a> Line<'a> {
    fn new(styled: &'a Styled, range: Range<usize>, tab: f64) -> Line<'a> {
        Line { styled, range, tab }
    }

    fn style(&self, span: usize) -> &Style {
        &self.styled.spans[span].1
    }

    /// The span that has the byte at `at`, or the last one.
    fn span_at(&self, at: usize) -> usize {
        let spans = &self.styled.spans;
        spans.partition_point(|(end, _)| *end <= at).min(spans.len() - 1)
    }

    /// Adds the glyphs of this line to `runs`, with y counted from the baseline.
    fn set(&self, shelf: &mut FontCache, runs: &mut Vec<GlyphRun>) -> Set {
        let text = &self.styled.text[self.range.clone()];
        let (levels, right_to_left) = levels(text);
        let letters = self.letters(shelf, text, &levels);
        let mut set = Set { ascent: 0.0, descent: 0.0, width: 0.0, right_to_left };
        if letters.is_empty() {
            let style = self.style(self.span_at(self.range.start));
            let extents = shelf.face(&style.description).extents(style.size);
            (set.ascent, set.descent) = (extents.ascent, extents.descent);
            return set;
        }
        let mut highest = f64::NEG_INFINITY;
        let mut lowest = f64::NEG_INFINITY;
        for piece in visual(&letters) {
            let letters = &letters[piece];
            let style = self.style(letters[0].span);
            let face = &letters[0].face;
            let (size, rise) = script_size(style, face);
            let extents = face.extents(size);
            highest = highest.max(extents.ascent + rise);
            lowest = lowest.max(extents.descent - rise);
            let run = self.run(letters, style, size, rise, &mut set.width);
            runs.push(run);
        }
        (set.ascent, set.descent) = (highest, lowest);
        set
    }

    fn letters(&self, shelf: &mut FontCache, text: &str, levels: &[Level]) -> Vec<Letter> {
        let mut letters: Vec<Letter> = Vec::new();
        for (offset, character) in text.char_indices() {
            let at = self.range.start + offset;
            let span = self.span_at(at);
            let style = self.style(span);
            let before = letters.last();
            let own = before.filter(|before| before.span == span).map(|before| Arc::clone(&before.face));
            let script = match (character.script(), before) {
                (Script::Common | Script::Inherited, Some(before)) => before.script,
                (script, _) => script,
            };
            let face = choose(shelf, style, character, own);
            letters.push(Letter { at, character, span, face, script, level: levels[offset] });
        }
        self.lead(&mut letters);
        // Characters before the first letter of a script belong to it.
        let known = |script: &Script| !matches!(script, Script::Common | Script::Inherited);
        if let Some(first) = letters.iter().map(|letter| letter.script).find(known) {
            letters.iter_mut().take_while(|letter| !known(&letter.script)).for_each(|it| it.script = first);
        }
        letters
    }

    /// Blanks before the first letter of a span take that letter's font.
    fn lead(&self, letters: &mut [Letter]) {
        for span in letters.chunk_by_mut(|a, b| a.span == b.span) {
            let Some(first) = span.iter().position(|letter| !follows(letter.character)) else { continue };
            let face = Arc::clone(&span[first].face);
            span[..first].iter_mut().for_each(|letter| letter.face = Arc::clone(&face));
        }
    }

    fn run(&self, letters: &[Letter], style: &Style, size: f64, rise: f64, x: &mut f64) -> GlyphRun {
        let face = &letters[0].face;
        let wanted = &style.description;
        let start = *x;
        let mut glyphs = Vec::with_capacity(letters.len());
        if letters[0].character == '\t' {
            for _ in letters {
                *x = if self.tab > 0.0 { ((*x / self.tab).floor() + 1.0) * self.tab } else { *x };
            }
        } else {
            let characters = letters.iter().map(|letter| (letter.at, letter.character));
            let script = letters[0].script;
            for shaped in shape(face, size, characters, script, letters[0].level.is_rtl()) {
                if *x > 0.0 && style.spacing != 0.0 {
                    *x += rounded(style.spacing);
                }
                glyphs.push(Glyph {
                    id: shaped.glyph,
                    x: *x + shaped.right,
                    y: -rise - shaped.up,
                    advance: shaped.advance,
                    cluster: shaped.cluster,
                });
                *x += shaped.advance;
            }
        }
        let mut rules = Vec::new();
        let (metrics, scale) = (face.metrics(), face.scale(size));
        for (enabled, decoration) in [(style.underline, metrics.underline), (style.strike, metrics.strikeout)]
        {
            if let (true, Some(line), true) = (enabled, decoration, *x > start) {
                let thickness = (f64::from(line.thickness) * scale).round().max(1.0);
                rules.push(((-f64::from(line.offset) * scale).round() - rise, thickness));
            }
        }
        GlyphRun {
            font: face.file.clone(),
            size,
            embolden: wanted.weight >= BOLD && face.weight < BOLD,
            slant: if wanted.italic && !face.italic { SLANT } else { 0.0 },
            weight: f64::from(wanted.weight),
            italic: wanted.italic,
            colour: style.colour,
            rules,
            glyphs,
        }
    }
}

/// The embedding level of each byte, and whether the line is read from the right.
fn levels(text: &str) -> (Vec<Level>, bool) {
    if text.is_ascii() {
        return (vec![Level::ltr(); text.len()], false);
    }
    let bidi = BidiInfo::new(text, None);
    let right_to_left = bidi.paragraphs.first().is_some_and(|paragraph| paragraph.level.is_rtl());
    let levels = bidi.paragraphs.iter().flat_map(|it| {
        let levels = bidi.reordered_levels(it, it.range.clone());
        levels[it.range.clone()].to_vec()
    });
    (levels.collect(), right_to_left)
}

/// The font for a character: its style's, else the previous one (for blanks and combining marks), else any of the host.
fn choose(shelf: &mut FontCache, style: &Style, character: char, before: Option<Arc<Face>>) -> Arc<Face> {
    let own = shelf.face(&style.description);
    let joins = character.script() == Script::Inherited;
    match before {
        Some(before) if follows(character) || (joins && before.has(character)) => return before,
        _ => {}
    }
    if follows(character) || own.has(character) {
        return own;
    }
    shelf.fallback(&style.description, character).unwrap_or(own)
}

/// Whether a character is a blank or invisible. Compat: as in Pango, it takes the font of the letter before.
fn follows(character: char) -> bool {
    matches!(
        character,
        '\t' | ' ' | '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' |
        '\u{ad}' | '\u{34f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Runs that are shaped at once, from left to right.
fn visual(letters: &[Letter]) -> Vec<Range<usize>> {
    let mut pieces: Vec<Range<usize>> = Vec::new();
    for (index, letter) in letters.iter().enumerate() {
        match pieces.last_mut() {
            Some(piece) if letters[piece.start].goes_with(letter) => piece.end = index + 1,
            _ => pieces.push(index..index + 1),
        }
    }
    let levels: Vec<Level> = pieces.iter().map(|piece| letters[piece.start].level).collect();
    let order = BidiInfo::reorder_visual(&levels);
    order.into_iter().map(|index| pieces[index].clone()).collect()
}

/// Size and rise of a style in pixels; for superscript and subscript the font decides.
fn script_size(style: &Style, face: &Face) -> (f64, f64) {
    match style.script.and_then(|up| face.raised(up)) {
        Some((size, by)) => (style.size * size, style.rise + style.size * by),
        None => (style.size, style.rise),
    }
}
