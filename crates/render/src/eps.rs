//! Writes Encapsulated PostScript: seven-bit, small, and reproducible.
//!
//! Texts are shown in generated fonts with the outlines of the glyphs in use (`font`). PostScript has no opacity:
//! translucent colours are blended before (`flatten`).
//!
//! Compat: a pixel is a point, and the bounding box has RRDtool's size, zoom included.

mod flatten;
mod font;

use graph::picture::scene::{Cap, Colour, Item, Join, Paint, Path, Point, Scene, Stroke};
use graph::picture::text::TextLayout;

use crate::digits::Places;
use crate::segments::rules;
use crate::steps::{Step, dashes, is_nothing, steps};
use flatten::{Layers, Seen};
use font::Fonts;

/// Decimal places of a colour: exact for eight bits.
const COLOUR: Places = Places::new(4);
/// Points of a path that one procedure may hold: arrays end at 65,535 objects, of which a point is three.
const PROCEDURE_POINTS: usize = 15_000;
/// Characters of a line of comment: more than 255 are not allowed.
const COMMENT_LETTERS: usize = 200;

/// The procedures of every document.
const PROLOGUE: &str = "\
/m{moveto}bind def/l{lineto}bind def/z{closepath}bind def/f{fill}bind def/s{stroke}bind def
/k{setrgbcolor}bind def/w{setlinewidth}bind def/d{setdash}bind def/J{setlinecap}bind def/j{setlinejoin}bind def
/q{gsave}bind def/Q{grestore}bind def/C{clip newpath}bind def/F{selectfont}bind def/x{xshow}bind def
/e{dup length dup array exch 1 sub 0 1 3 -1 roll{1 index exch 4 index put}for xshow pop}bind def
";

/// Renders a scene as an EPS document.
pub fn eps(scene: &Scene) -> Vec<u8> {
    let mut writer = Writer {
        places: Places::of_zoom(scene.zoom),
        out: String::new(),
        state: State::default(),
        fonts: Fonts::default(),
        layers: Layers::of(scene),
        shaded: false,
        paths: 0,
        clipped: false,
    };
    for (number, item) in scene.items.iter().enumerate() {
        writer.item(number, item);
    }
    writer.unclip();
    document(scene, &writer).into_bytes()
}

/// Everything around the body.
fn document(scene: &Scene, writer: &Writer) -> String {
    let (width, height) = (scene.width * scene.zoom, scene.height * scene.zoom);
    let mut head = String::from("%!PS-Adobe-3.0 EPSF-3.0\n%%Creator: Roundel\n");
    let title: String = scene
        .title
        .chars()
        .take(COMMENT_LETTERS)
        .map(|c| if matches!(c, ' '..='~') { c } else { '?' })
        .collect();
    if !title.is_empty() {
        head.extend(["%%Title: ", &title, "\n"]);
    }
    head.push_str(&format!("%%BoundingBox: 0 0 {} {}\n", width.ceil(), height.ceil()));
    head.push_str(&format!(
        "%%LanguageLevel: {}\n%%DocumentData: Clean7Bit\n%%Pages: 1\n%%EndComments\n%%BeginProlog\n",
        if writer.shaded { 3 } else { 2 }
    ));
    head.push_str("40 dict begin\n");
    head.push_str(PROLOGUE);
    head.push_str("%%EndProlog\n%%BeginSetup\n");
    writer.fonts.define(&mut head);
    head.push_str("%%EndSetup\n%%Page: 1 1\nq 0 ");
    writer.places.push(&mut head, height);
    head.push_str(" translate ");
    for sign in ["", " -"] {
        head.push_str(sign);
        Places::new(6).push(&mut head, scene.zoom);
    }
    head.push_str(" scale\n");
    head.extend([writer.out.as_str(), "Q\nshowpage\n%%Trailer\nend\n%%EOF\n"]);
    head
}

/// PostScript's current graphics state; `None` = unknown.
#[derive(Default)]
struct State {
    colour: Option<String>,
    stroke: Option<String>,
    font: Option<String>,
}

/// The body written so far.
struct Writer {
    places: Places,
    out: String,
    state: State,
    fonts: Fonts,
    layers: Layers,
    /// Whether a gradient was painted, which needs level 3.
    shaded: bool,
    /// How many paths have names.
    paths: usize,
    clipped: bool,
}

impl Writer {
    fn item(&mut self, number: usize, item: &Item) {
        match item {
            Item::Fill { path, paint } => self.fill(number, path, paint),
            Item::Stroke { path, colour, stroke } => self.stroke(path, *colour, stroke),
            Item::Text { at, turned, layout, colour } => self.text(*at, *turned, layout, *colour),
            Item::Clip { from, to } => self.clip(*from, *to),
            Item::Unclip => self.unclip(),
        }
    }

    fn fill(&mut self, number: usize, path: &Path, paint: &Paint) {
        if path.points.is_empty() {
            return;
        }
        let area = self.layers.shown(flatten::bounds(path, 0.0));
        let name = self.layers.wanted(number, area).then(|| self.name(path));
        let seen = self.layers.under(area, paint);
        for Seen { paint, clips } in &seen {
            let saved = !clips.is_empty();
            if saved {
                self.save(clips);
            }
            match &name {
                Some(name) => self.out.extend([name, " "]),
                None => self.path(path, true),
            }
            self.paint(paint);
            if saved {
                self.restore();
            }
        }
        if let Some(name) = name {
            self.layers.add(name, area, flatten::rectangle(path), seen);
        }
    }

    /// Fills the current path.
    fn paint(&mut self, paint: &Paint) {
        match *paint {
            Paint::Vertical { from_y, from, to_y, to } if from_y != to_y => {
                self.shaded = true;
                self.out.push_str("q C<</ShadingType 2/ColorSpace/DeviceRGB/Extend[true true]/Coords[0 ");
                self.places.push(&mut self.out, from_y);
                self.out.push_str(" 0 ");
                self.places.push(&mut self.out, to_y);
                self.out.push_str("]/Function<</FunctionType 2/Domain[0 1]/N 1/C0[");
                self.out.push_str(&numbers(from));
                self.out.push_str("]/C1[");
                self.out.push_str(&numbers(to));
                self.out.push_str("]>>>>shfill Q newpath\n");
            }
            // A gradient without height has only its end colours.
            Paint::Solid(colour) | Paint::Vertical { to: colour, .. } => {
                self.colour(colour);
                self.out.push_str("f\n");
            }
        }
    }

    fn stroke(&mut self, path: &Path, colour: Colour, stroke: &Stroke) {
        if path.points.is_empty() || is_nothing(stroke.width) {
            return;
        }
        let area = self.layers.shown(flatten::bounds(path, stroke.width));
        for Seen { paint, clips } in self.layers.under(area, &Paint::Solid(colour)) {
            let saved = !clips.is_empty();
            if saved {
                self.save(&clips);
            }
            self.look(stroke);
            if let Paint::Vertical { .. } = paint {
                self.path(path, path.closed);
                self.out.push_str("strokepath ");
                self.paint(&paint);
            } else if let Paint::Solid(colour) = paint {
                self.colour(colour);
                self.path(path, path.closed);
                self.out.push_str("s\n");
            }
            if saved {
                self.restore();
            }
        }
    }

    /// Sets how lines look.
    fn look(&mut self, stroke: &Stroke) {
        let mut look = String::new();
        self.places.push(&mut look, stroke.width);
        look.push_str(" w[");
        let dashes = dashes(stroke);
        for &length in dashes {
            self.places.push(&mut look, length.max(0.0));
            look.push(' ');
        }
        look.push(']');
        self.places.push(&mut look, if dashes.is_empty() { 0.0 } else { stroke.dash_offset });
        let cap = match stroke.cap {
            Cap::Butt => 0,
            Cap::Round => 1,
            Cap::Square => 2,
        };
        look.push_str(&format!(" d {cap} J {} j\n", u8::from(stroke.join == Join::Round)));
        if self.state.stroke.as_ref() != Some(&look) {
            self.out.push_str(&look);
            self.state.stroke = Some(look);
        }
    }

    fn colour(&mut self, colour: Colour) {
        let numbers = numbers(colour);
        if self.state.colour.as_ref() != Some(&numbers) {
            self.out.extend([&numbers, " k\n"]);
            self.state.colour = Some(numbers);
        }
    }

    /// Appends a path.
    fn path(&mut self, path: &Path, closed: bool) {
        for procedure in self.pieces(path, closed) {
            self.out.push_str(&procedure);
        }
    }

    /// The operators of a path, in parts that fit into a procedure.
    fn pieces(&self, path: &Path, closed: bool) -> Vec<String> {
        let (mut parts, mut points, mut at) = (vec![String::new()], 0, (0, 0));
        steps(self.places, path, closed, |step| {
            if points == PROCEDURE_POINTS {
                parts.push(String::new());
                points = 0;
            }
            points += 1;
            let last = parts.len() - 1;
            let out = &mut parts[last];
            // Absolute coordinates: printers lose 1/256 pixel with each relative step.
            let operator = match step {
                Step::Begin(x, y) => {
                    at = (x, y);
                    " m "
                }
                Step::By(x, y) => {
                    at = (at.0 + x, at.1 + y);
                    " l "
                }
                Step::Close => return out.push_str("z "),
            };
            self.places.push_units(out, at.0);
            out.push(' ');
            self.places.push_units(out, at.1);
            out.push_str(operator);
        });
        parts
    }

    /// Names a closed path, so that it can be painted and used as a clip again.
    fn name(&mut self, path: &Path) -> String {
        let parts = self.pieces(path, true);
        self.paths += 1;
        let name = format!("p{}", self.paths);
        for (number, part) in parts.iter().enumerate() {
            self.out.push_str(&format!("/{name}"));
            if parts.len() > 1 {
                self.out.push_str(&format!("_{number}"));
            }
            self.out.extend(["{", part.trim_end(), "}def\n"]);
        }
        if parts.len() > 1 {
            let names: Vec<String> = (0..parts.len()).map(|number| format!("{name}_{number}")).collect();
            self.out.push_str(&format!("/{name}{{{}}}def\n", names.join(" ")));
        }
        name
    }

    fn save(&mut self, clips: &[String]) {
        self.out.push_str("q ");
        for clip in clips {
            self.out.extend([clip, " C "]);
        }
    }

    /// Restores the saved state, which is unknown until it is set again.
    fn restore(&mut self) {
        self.out.push_str("Q\n");
        self.state = State::default();
    }

    fn clip(&mut self, from: Point, to: Point) {
        self.unclip();
        let path = Path::rectangle(from, to);
        let name = self.name(&path);
        self.out.extend(["q ", &name, " C\n"]);
        self.layers.clip(Some((name, flatten::bounds(&path, 0.0))));
        self.clipped = true;
    }

    fn unclip(&mut self) {
        if std::mem::take(&mut self.clipped) {
            self.restore();
            self.layers.clip(None);
        }
    }

    fn text(&mut self, at: Point, turned: f64, layout: &TextLayout, colour: Colour) {
        let middle = flatten::middle(at, turned, layout);
        if turned != 0.0 {
            self.out.push_str("q ");
            self.places.push(&mut self.out, at.x);
            self.out.push(' ');
            self.places.push(&mut self.out, at.y);
            self.out.push_str(" translate ");
            self.places.push(&mut self.out, turned);
            self.out.push_str(" rotate\n");
        }
        let origin = if turned != 0.0 { Point::default() } else { at };
        for run in &layout.runs {
            let colour = run.colour.unwrap_or(colour);
            if colour.alpha <= 0.0 || run.size <= 0.0 {
                continue;
            }
            self.colour(self.layers.at(middle, colour));
            for [left, top, width, height] in rules(run) {
                let from = Point { x: origin.x + left, y: origin.y + top };
                let to = Point { x: from.x + width, y: from.y + height };
                self.path(&Path::rectangle(from, to), true);
                self.out.push_str("f\n");
            }
            self.fonts.show(&mut self.out, &mut self.state.font, self.places, origin, layout, run);
        }
        if turned != 0.0 {
            self.restore();
        }
    }
}

/// Red, green and blue.
fn numbers(colour: Colour) -> String {
    let mut out = String::new();
    for part in [colour.red, colour.green, colour.blue] {
        if !out.is_empty() {
            out.push(' ');
        }
        COLOUR.push(&mut out, part.clamp(0.0, 1.0));
    }
    out
}
