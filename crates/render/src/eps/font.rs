//! Generates PostScript fonts (type 3) with the glyphs in use, from any font of the host.
//!
//! The glyph of a plain letter has that letter's code and name, so that text is readable in the file and survives
//! conversion to other formats.

use std::collections::HashMap;

use graph::picture::scene::Point;
use graph::picture::text::{FontFile, Glyph, GlyphRun, TextLayout};
use skrifa::instance::{LocationRef, Size};
use skrifa::outline::{DrawSettings, OutlinePen};
use skrifa::{FontRef, GlyphId, MetadataProvider};

use crate::digits::Places;
use crate::segments::{EMBOLDEN, cluster_ends};

/// Decimal places of numbers in units of the font.
const UNITS: Places = Places::new(1);
/// Codes of a font.
const CODES: usize = 256;

/// The fonts of a document.
#[derive(Default)]
pub(super) struct Fonts {
    fonts: Vec<Font>,
}

/// A generated font.
struct Font {
    file: FontFile,
    embolden: bool,
    /// The glyph of each code and its name.
    codes: Vec<Option<(u32, String)>>,
    /// The code of each glyph.
    glyphs: HashMap<u32, u8>,
}

impl Fonts {
    /// Shows the glyphs of a run of a text with the upper left corner of its box at `origin`.
    pub(super) fn show(
        &mut self,
        out: &mut String,
        current: &mut Option<String>,
        places: Places,
        origin: Point,
        layout: &TextLayout,
        run: &GlyphRun,
    ) {
        let ends = cluster_ends(layout);
        let coded: Vec<(usize, u8, &Glyph)> = run
            .glyphs
            .iter()
            .map(|glyph| {
                let end = ends.get(&glyph.cluster).copied().unwrap_or(glyph.cluster);
                let text = layout.text.get(glyph.cluster..end).unwrap_or_default();
                let (font, code) = self.code(run, glyph.id, text);
                (font, code, glyph)
            })
            .collect();
        for line in coded.chunk_by(|a, b| a.0 == b.0 && a.2.y == b.2.y) {
            let Some(&(font, _, first)) = line.first() else { continue };
            self.select(out, current, places, font, run);
            let step = |number: usize, glyph: &Glyph| match line.get(number + 1) {
                Some(next) => places.units(next.2.x) - places.units(glyph.x),
                None => places.units(glyph.advance),
            };
            let steps: Vec<i64> = line.iter().enumerate().map(|(n, &(_, _, glyph))| step(n, glyph)).collect();
            let even = steps.iter().take(steps.len() - 1).all(|&step| step == steps[0]);
            places.push(out, origin.x + first.x);
            out.push(' ');
            places.push(out, origin.y + first.y);
            out.push_str(" m ");
            if even {
                places.push_units(out, steps[0]);
            }
            string(out, line.iter().map(|&(_, code, _)| code));
            if even {
                out.push_str("e\n");
            } else {
                out.push('[');
                for step in steps {
                    places.push_units(out, step);
                    out.push(' ');
                }
                out.push_str("]x\n");
            }
        }
    }

    /// The font and code of a glyph that stands for `text`.
    fn code(&mut self, run: &GlyphRun, glyph: u32, text: &str) -> (usize, u8) {
        let of_run = |font: &Font| font.file == run.font && font.embolden == run.embolden;
        let known = self.fonts.iter().enumerate().filter(|(_, font)| of_run(font));
        for (number, font) in known {
            if let Some(&code) = font.glyphs.get(&glyph) {
                return (number, code);
            }
        }
        let free = self.fonts.iter().rposition(|font| of_run(font) && font.glyphs.len() < CODES - 1);
        let number = free.unwrap_or_else(|| {
            self.fonts.push(Font {
                file: run.font.clone(),
                embolden: run.embolden,
                codes: vec![None; CODES],
                glyphs: HashMap::new(),
            });
            self.fonts.len() - 1
        });
        (number, self.fonts[number].take(glyph, text))
    }

    fn select(
        &self,
        out: &mut String,
        current: &mut Option<String>,
        places: Places,
        font: usize,
        run: &GlyphRun,
    ) {
        let mut selected = format!("/R{font}");
        if run.slant != 0.0 {
            // y of a glyph grows upwards, so its upper part leans to the right.
            selected.push('[');
            let slant = run.size * run.slant.to_radians().tan();
            for number in [run.size, 0.0, slant, run.size, 0.0, 0.0] {
                places.push(&mut selected, number);
                selected.push(' ');
            }
            selected.push_str("]F\n");
        } else {
            selected.push(' ');
            places.push(&mut selected, run.size);
            selected.push_str(" F\n");
        }
        if current.as_ref() != Some(&selected) {
            out.push_str(&selected);
            *current = Some(selected);
        }
    }

    /// Appends the definitions.
    pub(super) fn define(&self, out: &mut String) {
        for (number, font) in self.fonts.iter().enumerate() {
            font.define(out, number);
        }
    }
}

impl Font {
    /// A code for a new glyph: that of its letter if it is free.
    fn take(&mut self, glyph: u32, text: &str) -> u8 {
        let mut letters = text.chars();
        let letter = letters.next().filter(|_| letters.next().is_none());
        let own = letter.filter(|letter| matches!(letter, ' '..='~')).map(|letter| letter as usize);
        let free = |code: &usize| self.codes[*code].is_none();
        // Code 0 stays empty; those of letters are given to others last.
        let code = own.filter(free).or_else(|| (128..CODES).chain(1..128).find(free)).unwrap_or_default();
        let named = letter.map(|letter| format!("uni{:04X}", letter as u32));
        let taken = |name: &String| self.codes.iter().flatten().any(|(_, other)| other == name);
        let name = named.filter(|name| !taken(name)).unwrap_or_else(|| format!("g{glyph}"));
        self.codes[code] = Some((glyph, name));
        self.glyphs.insert(glyph, code as u8);
        code as u8
    }

    fn define(&self, out: &mut String, number: usize) {
        let bytes: &[u8] = (*self.file.bytes).as_ref();
        let font = FontRef::from_index(bytes, self.file.index).ok();
        let metrics = font.as_ref().map(|font| font.metrics(Size::unscaled(), LocationRef::default()));
        let em = metrics.as_ref().map_or(1000.0, |metrics| f64::from(metrics.units_per_em).max(1.0));
        out.push_str("8 dict begin/FontType 3 def/FontMatrix[");
        let scale = format!("{:.8}", 1.0 / em);
        // Our y grows downwards.
        out.push_str(&format!("{scale} 0 0 -{scale} 0 0]def/FontBBox[0 0 0 0]def\n/Encoding 256 array def "));
        out.push_str("0 1 255{Encoding exch/.notdef put}for\n");
        for (code, (_, name)) in
            self.codes.iter().enumerate().filter_map(|(code, glyph)| Some((code, glyph.as_ref()?)))
        {
            out.push_str(&format!("Encoding {code}/{name} put\n"));
        }
        out.push_str(&format!(
            "/CharProcs {} dict def CharProcs begin/.notdef{{0 0 setcharwidth}}def\n",
            CODES
        ));
        for (glyph, name) in self.codes.iter().flatten() {
            out.push_str(&format!("/{name}{{"));
            if let Some(font) = &font {
                outline(out, font, *glyph, self.embolden.then_some(em * EMBOLDEN));
            }
            out.push_str("}def\n");
        }
        out.push_str(
            "end\n/BuildGlyph{exch/CharProcs get exch 2 copy known not{pop/.notdef}if get exec}bind def\n",
        );
        out.push_str("/BuildChar{1 index/Encoding get exch get 1 index/BuildGlyph get exec}bind def\n");
        out.push_str(&format!("/R{number} currentdict end definefont pop\n"));
    }
}

/// Appends the procedure of a glyph, in font units; `bolder` is the width of a line around it.
fn outline(out: &mut String, font: &FontRef<'_>, glyph: u32, bolder: Option<f64>) {
    let advance =
        font.glyph_metrics(Size::unscaled(), LocationRef::default()).advance_width(GlyphId::new(glyph));
    let mut pen = Pen::default();
    if let Some(outline) = font.outline_glyphs().get(GlyphId::new(glyph)) {
        // A broken outline is drawn as far as it goes: better than no document.
        let _ = outline.draw(DrawSettings::unhinted(Size::unscaled(), LocationRef::default()), &mut pen);
    }
    UNITS.push(out, f64::from(advance.unwrap_or(0.0)));
    let room = bolder.unwrap_or(0.0);
    let [left, bottom, right, top] = if pen.path.is_empty() { [0.0; 4] } else { pen.area };
    out.push_str(" 0");
    for number in [left - room, bottom - room, right + room, top + room] {
        out.push(' ');
        UNITS.push(out, number);
    }
    out.push_str(" setcachedevice ");
    out.push_str(&pen.path);
    if let Some(width) = bolder {
        out.push_str("q fill Q ");
        UNITS.push(out, width);
        out.push_str(" setlinewidth 1 setlinejoin stroke");
    } else {
        out.push_str("fill");
    }
}

/// Writes an outline and finds its bounds.
struct Pen {
    path: String,
    area: [f64; 4],
    at: (f32, f32),
}

impl Default for Pen {
    fn default() -> Pen {
        let (most, least) = (f64::INFINITY, f64::NEG_INFINITY);
        Pen { path: String::new(), area: [most, most, least, least], at: (0.0, 0.0) }
    }
}

impl Pen {
    fn points(&mut self, points: &[(f32, f32)], operator: &str) {
        for &(x, y) in points {
            let (across, up) = (f64::from(x), f64::from(y));
            self.area = [
                self.area[0].min(across),
                self.area[1].min(up),
                self.area[2].max(across),
                self.area[3].max(up),
            ];
            UNITS.push(&mut self.path, across);
            self.path.push(' ');
            UNITS.push(&mut self.path, up);
            self.path.push(' ');
            self.at = (x, y);
        }
        self.path.push_str(operator);
    }
}

impl OutlinePen for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.points(&[(x, y)], "m ");
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.points(&[(x, y)], "l ");
    }

    fn quad_to(&mut self, cx: f32, cy: f32, x: f32, y: f32) {
        let third = |from: f32, control: f32| from + (control - from) * 2.0 / 3.0;
        let (from_x, from_y) = self.at;
        let first = (third(from_x, cx), third(from_y, cy));
        let second = (third(x, cx), third(y, cy));
        self.points(&[first, second, (x, y)], "curveto ");
    }

    fn curve_to(&mut self, ax: f32, ay: f32, bx: f32, by: f32, x: f32, y: f32) {
        self.points(&[(ax, ay), (bx, by), (x, y)], "curveto ");
    }

    fn close(&mut self) {
        self.path.push_str("z ");
    }
}

/// Appends codes as a PostScript string.
fn string(out: &mut String, codes: impl Iterator<Item = u8>) {
    out.push('(');
    for code in codes {
        match code {
            b'(' | b')' | b'\\' => out.extend(['\\', char::from(code)]),
            b' '..=b'~' => out.push(char::from(code)),
            _ => out.push_str(&format!("\\{code:03o}")),
        }
    }
    out.push(')');
}
