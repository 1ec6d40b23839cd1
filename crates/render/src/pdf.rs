//! Writes PDF, with glyphs in subsets of their fonts, so that texts can be searched and copied.
//!
//! One page; the output is reproducible. Compat: a pixel is a point, zoom included, as in RRDtool.

use std::collections::HashMap;
use std::ops::Range;

use graph::picture::scene::{Cap, Colour, Item, Join, Paint, Path, Point, Scene, Stroke};
use graph::picture::text::{Glyph, GlyphRun, TextLayout};
use krilla::color::rgb;
use krilla::geom::{PathBuilder, Transform};
use krilla::metadata::Metadata;
use krilla::num::NormalizedF32;
use krilla::page::{Page, PageSettings};
use krilla::paint::{Fill, FillRule, LineCap, LineJoin, LinearGradient, SpreadMethod, Stop, StrokeDash};
use krilla::surface::Surface;
use krilla::text::{Font, GlyphId, KrillaGlyph};
use krilla::{Data, Document, SerializeSettings};

use crate::digits::Places;
use crate::pdf_error::PdfError;
use crate::segments::{EMBOLDEN, cluster_ends, rules};
use crate::steps::{Step, dashes, is_nothing, steps};

/// Renders a scene as a PDF of one page.
pub fn pdf(scene: &Scene) -> Result<Vec<u8>, PdfError> {
    let (width, height) = (scene.width * scene.zoom, scene.height * scene.zoom);
    let settings = PageSettings::from_wh(width as f32, height as f32)
        .ok_or_else(|| PdfError::Size(format!("{width} x {height}")))?;
    let mut document = Document::new_with(SerializeSettings {
        xmp_metadata: false,
        enable_tagging: false,
        ..SerializeSettings::default()
    });
    let mut metadata = Metadata::new().producer("Roundel".to_string());
    if !scene.title.is_empty() {
        metadata = metadata.title(scene.title.clone());
    }
    if !scene.description.is_empty() {
        metadata = metadata.description(scene.description.clone());
    }
    document.set_metadata(metadata);
    let mut page = document.start_page_with(settings);
    draw(&mut page, scene)?;
    page.finish();
    document.finish().map_err(|error| PdfError::Document(format!("{error:?}")))
}

/// Draws the picture on its page.
fn draw(page: &mut Page<'_>, scene: &Scene) -> Result<(), PdfError> {
    let surface = page.surface();
    let mut writer =
        Writer { surface, places: Places::of_zoom(scene.zoom), fonts: HashMap::new(), clipped: false };
    writer.surface.push_transform(&Transform::from_scale(scene.zoom as f32, scene.zoom as f32));
    let painted = scene.items.iter().try_for_each(|item| writer.item(item));
    writer.unclip();
    writer.surface.pop();
    painted
}

struct Writer<'a> {
    surface: Surface<'a>,
    places: Places,
    fonts: HashMap<u64, Font>,
    clipped: bool,
}

impl Writer<'_> {
    fn item(&mut self, item: &Item) -> Result<(), PdfError> {
        match item {
            Item::Fill { path, paint } => self.fill(path, paint),
            Item::Stroke { path, colour, stroke } => self.stroke(path, *colour, stroke),
            Item::Text { at, turned, layout, colour } => return self.text(*at, *turned, layout, *colour),
            Item::Clip { from, to } => self.clip(*from, *to),
            Item::Unclip => self.unclip(),
        }
        Ok(())
    }

    fn fill(&mut self, path: &Path, paint: &Paint) {
        let Some(path) = self.outline(path, true) else { return };
        let fill = match *paint {
            Paint::Solid(colour) => solid(colour),
            Paint::Vertical { from_y, to_y, to, .. } if from_y == to_y => solid(to),
            // A single opacity needs no mask; some readers turn masks into stripes.
            Paint::Vertical { from_y, from, to_y, to } if from.alpha == to.alpha => {
                let whole = |colour| Colour { alpha: 1.0, ..colour };
                Fill { paint: gradient((from_y, whole(from)), (to_y, whole(to))).into(), ..solid(from) }
            }
            Paint::Vertical { from_y, from, to_y, to } => {
                Fill { paint: gradient((from_y, from), (to_y, to)).into(), ..Fill::default() }
            }
        };
        if fill.opacity.get() > 0.0 {
            self.surface.set_stroke(None);
            self.surface.set_fill(Some(fill));
            self.surface.draw_path(&path);
        }
    }

    fn stroke(&mut self, path: &Path, colour: Colour, stroke: &Stroke) {
        let Some(outline) = self.outline(path, path.closed) else { return };
        if colour.alpha <= 0.0 || is_nothing(stroke.width) {
            return;
        }
        let number = |value: f64| self.places.value(self.places.units(value)) as f32;
        let dashes = dashes(stroke);
        self.surface.set_fill(None);
        self.surface.set_stroke(Some(krilla::paint::Stroke {
            paint: ink(colour).into(),
            width: number(stroke.width),
            miter_limit: 10.0,
            line_cap: match stroke.cap {
                Cap::Butt => LineCap::Butt,
                Cap::Round => LineCap::Round,
                Cap::Square => LineCap::Square,
            },
            line_join: match stroke.join {
                Join::Miter => LineJoin::Miter,
                Join::Round => LineJoin::Round,
            },
            opacity: opacity(colour),
            dash: (!dashes.is_empty()).then(|| StrokeDash {
                array: dashes.iter().map(|&length| number(length.max(0.0))).collect(),
                offset: number(stroke.dash_offset),
            }),
        }));
        self.surface.draw_path(&outline);
    }

    /// The path in krilla's form; `None` if there is nothing to draw.
    fn outline(&self, path: &Path, closed: bool) -> Option<krilla::geom::Path> {
        let mut builder = PathBuilder::new();
        let mut at = (0, 0);
        steps(self.places, path, closed, |step| match step {
            Step::Begin(x, y) => {
                at = (x, y);
                builder.move_to(self.places.value(x) as f32, self.places.value(y) as f32);
            }
            Step::By(x, y) => {
                at = (at.0 + x, at.1 + y);
                builder.line_to(self.places.value(at.0) as f32, self.places.value(at.1) as f32);
            }
            Step::Close => builder.close(),
        });
        builder.finish()
    }

    fn clip(&mut self, from: Point, to: Point) {
        self.unclip();
        if let Some(path) = self.outline(&Path::rectangle(from, to), true) {
            self.surface.push_clip_path(&path, &FillRule::NonZero);
            self.clipped = true;
        }
    }

    fn unclip(&mut self) {
        if std::mem::take(&mut self.clipped) {
            self.surface.pop();
        }
    }

    fn text(&mut self, at: Point, turned: f64, layout: &TextLayout, colour: Colour) -> Result<(), PdfError> {
        if turned != 0.0 {
            self.surface.push_transform(&Transform::from_rotate_at(turned as f32, at.x as f32, at.y as f32));
        }
        let ends = cluster_ends(layout);
        let done = layout.runs.iter().try_for_each(|run| self.run(at, layout, &ends, run, colour));
        if turned != 0.0 {
            self.surface.pop();
        }
        done
    }

    fn run(
        &mut self,
        at: Point,
        layout: &TextLayout,
        ends: &HashMap<usize, usize>,
        run: &GlyphRun,
        colour: Colour,
    ) -> Result<(), PdfError> {
        let colour = run.colour.unwrap_or(colour);
        if colour.alpha <= 0.0 || run.size <= 0.0 {
            return Ok(());
        }
        for [left, top, width, height] in rules(run) {
            let from = Point { x: at.x + left, y: at.y + top };
            self.fill(
                &Path::rectangle(from, Point { x: from.x + width, y: from.y + height }),
                &Paint::Solid(colour),
            );
        }
        let font = self.font(run)?;
        self.surface.set_fill(Some(solid(colour)));
        self.surface.set_stroke(run.embolden.then(|| krilla::paint::Stroke {
            paint: ink(colour).into(),
            width: (run.size * EMBOLDEN) as f32,
            opacity: opacity(colour),
            ..krilla::paint::Stroke::default()
        }));
        for line in run.glyphs.chunk_by(|a, b| a.y == b.y) {
            let Some(first) = line.first() else { continue };
            let start = Transform::from_translate((at.x + first.x) as f32, (at.y + first.y) as f32);
            self.surface.push_transform(&start);
            if run.slant != 0.0 {
                self.surface.push_transform(&Transform::from_skew(-run.slant.to_radians().tan() as f32, 0.0));
            }
            let glyphs: Vec<KrillaGlyph> = line
                .iter()
                .enumerate()
                .map(|(number, glyph)| {
                    let next = line.get(number + 1).map_or(glyph.x + glyph.advance, |next| next.x);
                    placed(glyph, (next - glyph.x) / run.size, layout, ends)
                })
                .collect();
            let start = krilla::geom::Point::from_xy(0.0, 0.0);
            self.surface.draw_glyphs(start, &glyphs, font.clone(), &layout.text, run.size as f32, false);
            if run.slant != 0.0 {
                self.surface.pop();
            }
            self.surface.pop();
        }
        Ok(())
    }

    fn font(&mut self, run: &GlyphRun) -> Result<Font, PdfError> {
        if let Some(font) = self.fonts.get(&run.font.id) {
            return Ok(font.clone());
        }
        let font = Font::new(Data::from(run.font.bytes.clone()), run.font.index)
            .ok_or_else(|| PdfError::Font(run.font.family.to_string()))?;
        self.fonts.insert(run.font.id, font.clone());
        Ok(font)
    }
}

/// A glyph with an advance in ems.
fn placed(glyph: &Glyph, advance: f64, layout: &TextLayout, ends: &HashMap<usize, usize>) -> KrillaGlyph {
    let end = ends.get(&glyph.cluster).copied().unwrap_or(glyph.cluster);
    let range: Range<usize> =
        if layout.text.get(glyph.cluster..end).is_some() { glyph.cluster..end } else { 0..0 };
    KrillaGlyph::new(GlyphId::new(glyph.id), advance as f32, 0.0, 0.0, 0.0, range, None)
}

fn solid(colour: Colour) -> Fill {
    Fill { paint: ink(colour).into(), opacity: opacity(colour), rule: FillRule::NonZero }
}

fn ink(colour: Colour) -> rgb::Color {
    let byte = |part: f64| (part.clamp(0.0, 1.0) * 255.0).round() as u8;
    rgb::Color::new(byte(colour.red), byte(colour.green), byte(colour.blue))
}

fn opacity(colour: Colour) -> NormalizedF32 {
    NormalizedF32::new(colour.alpha.clamp(0.0, 1.0) as f32).unwrap_or(NormalizedF32::ONE)
}

fn gradient(from: (f64, Colour), to: (f64, Colour)) -> LinearGradient {
    let stop = |offset, colour: Colour| Stop { offset, color: ink(colour).into(), opacity: opacity(colour) };
    LinearGradient {
        x1: 0.0,
        y1: from.0 as f32,
        x2: 0.0,
        y2: to.0 as f32,
        transform: Transform::identity(),
        spread_method: SpreadMethod::Pad,
        stops: vec![stop(NormalizedF32::ZERO, from.1), stop(NormalizedF32::ONE, to.1)],
        anti_alias: false,
    }
}
