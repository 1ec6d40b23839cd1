//! Texts as texts, with the position and length of the layout.

use graph::picture::scene::{Colour, Point};
use graph::picture::text::{GlyphRun, TextLayout};

use super::Writer;
use super::markup::{attribute, content, paint_attributes};
use crate::digits::Places;
use crate::segments::{Segment, rules, segments};

/// Decimal places of an angle in degrees.
const ANGLE: Places = Places::new(3);

impl Writer {
    /// Adds a text with the upper left corner of its box at `at`, turned clockwise around it.
    pub(super) fn text(&mut self, at: Point, turned: f64, layout: &TextLayout, colour: Colour) {
        let turn = self.turn(at, turned);
        for segment in segments(layout) {
            self.segment(at, &turn, layout, colour, &segment);
        }
        for run in &layout.runs {
            for [left, top, width, height] in rules(run) {
                let mut attributes = String::new();
                paint_attributes(&mut attributes, "fill", run.colour.unwrap_or(colour));
                attributes.push_str(&turn);
                let mut data = String::new();
                let numbers =
                    [("M", at.x + left), (" ", at.y + top), ("h", width), ("v", height), ("h", -width)];
                for (letter, number) in numbers {
                    data.push_str(letter);
                    self.places.push(&mut data, number);
                }
                data.push('z');
                self.path(attributes, &data, false);
            }
        }
    }

    /// ` transform="..."` of a text that is turned.
    fn turn(&self, at: Point, turned: f64) -> String {
        let mut attributes = String::new();
        if turned != 0.0 {
            let mut value = String::from("rotate(");
            ANGLE.push(&mut value, turned);
            for number in [at.x, at.y] {
                value.push(' ');
                self.places.push(&mut value, number);
            }
            value.push(')');
            attribute(&mut attributes, "transform", &value);
        }
        attributes
    }

    fn segment(&mut self, at: Point, turn: &str, layout: &TextLayout, colour: Colour, segment: &Segment) {
        let runs: Vec<&GlyphRun> =
            segment.spans.iter().filter_map(|span| layout.runs.get(span.run)).collect();
        let Some(&head) = runs.first() else { return };
        let ink = |run: &GlyphRun| run.colour.unwrap_or(colour);
        if runs.iter().all(|run| ink(run).alpha <= 0.0) {
            return;
        }
        let mut attributes = String::new();
        attribute(&mut attributes, "font-family", &families(&runs));
        attributes.push_str(&self.look(head, ink(head)));
        self.join(attributes);
        self.begin("text");
        let mut place = String::new();
        let x = at.x + if segment.from_right { segment.right } else { segment.left };
        for (name, value) in [("x", x), ("y", at.y + segment.baseline)] {
            let mut text = String::new();
            self.places.push(&mut text, value);
            attribute(&mut place, name, &text);
        }
        let bytes = segment.spans.first().map_or(0, |span| span.bytes.start)
            ..segment.spans.last().map_or(0, |span| span.bytes.end);
        let whole = layout.text.get(bytes).unwrap_or_default();
        if whole.chars().nth(1).is_some() {
            let mut text = String::new();
            self.places.push(&mut text, segment.right - segment.left);
            attribute(&mut place, "textLength", &text);
        }
        if segment.from_right {
            attribute(&mut place, "direction", "rtl");
        }
        if whole.contains("  ") {
            attribute(&mut place, "xml:space", "preserve");
        }
        place.push_str(turn);
        place.push('>');
        let mut baseline = segment.baseline;
        for (span, run) in segment.spans.iter().zip(&runs) {
            let text = layout.text.get(span.bytes.clone()).unwrap_or_default();
            if span.baseline == baseline && self.look(head, ink(head)) == self.look(run, ink(run)) {
                content(&mut place, text);
                continue;
            }
            place.push_str("<tspan");
            if span.baseline != baseline {
                let mut step = String::new();
                self.places.push(&mut step, span.baseline - baseline);
                attribute(&mut place, "dy", &step);
                baseline = span.baseline;
            }
            let look = self.look(run, ink(run));
            for (name, usual) in [("font-weight", "400"), ("font-style", "normal"), ("fill-opacity", "1")] {
                if !look.contains(name) {
                    attribute(&mut place, name, usual);
                }
            }
            place.push_str(&look);
            place.push('>');
            content(&mut place, text);
            place.push_str("</tspan>");
        }
        place.push_str("</text>\n");
        self.group.elements.push_str(&place);
    }

    /// Size, weight, style and colour of a run as attributes.
    fn look(&self, run: &GlyphRun, colour: Colour) -> String {
        let mut out = String::new();
        let mut size = String::new();
        self.places.push(&mut size, run.size);
        attribute(&mut out, "font-size", &size);
        let weight = if run.embolden { run.weight.max(700.0) } else { run.weight };
        if weight.round() != 400.0 {
            attribute(&mut out, "font-weight", &format!("{}", weight.round().clamp(1.0, 1000.0)));
        }
        if run.italic || run.slant != 0.0 {
            attribute(&mut out, "font-style", "italic");
        }
        paint_attributes(&mut out, "fill", colour);
        out
    }
}

/// The families of the runs, each once, and generic fallbacks.
fn families(runs: &[&GlyphRun]) -> String {
    let mut names: Vec<String> = Vec::new();
    for run in runs {
        let name = quoted(&run.font.family);
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    let first = names.first().map(|name| name.to_lowercase()).unwrap_or_default();
    let generic = if ["mono", "courier", "consol", "typewriter"].iter().any(|word| first.contains(word)) {
        "monospace"
    } else if first.contains("serif") && !first.contains("sans") {
        "serif"
    } else {
        "sans-serif"
    };
    names.push(generic.to_string());
    names.join(",")
}

/// A family's name in CSS syntax.
fn quoted(name: &str) -> String {
    let mut clean = String::new();
    let kept: String = name.chars().filter(|letter| !matches!(letter, '\'' | '"' | '\\' | ';')).collect();
    content(&mut clean, kept.trim());
    let plain = |word: &str| {
        word.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && word.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
    };
    if clean.is_empty() || clean.split(' ').all(plain) { clean } else { format!("'{clean}'") }
}
