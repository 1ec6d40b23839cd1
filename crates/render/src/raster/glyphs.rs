//! Glyphs as masks of coverage, cached by font, size and style.
//!
//! Upright texts and quarter turns use hinted masks at whole pixels; any other angle is painted from outlines.
//! A mask of an 11-pixel glyph takes about 80 bytes and 2 to 3 us to make; see [`KEPT_MAX`].

use std::collections::HashMap;
use std::sync::Arc;

use graph::picture::scene::{Colour, Path, Point};
use graph::picture::text::{Glyph, GlyphRun, TextLayout};
use skrifa::instance::{LocationRef, Size};
use skrifa::outline::{
    DrawSettings, Engine, HintingInstance, HintingOptions, OutlinePen, SmoothMode, Target,
};
use skrifa::{FontRef, GlyphId, MetadataProvider};

use super::canvas::{Area, Canvas, Ink, premultiplied};
use super::coverage::Coverage;

/// Most masks that are kept; then all are dropped. About a megabyte of usual ones.
const KEPT_MAX: usize = 8_192;
/// Greatest size with hinted masks, in pixels per em; larger glyphs are painted from outlines.
const MASK_EM_MAX: f64 = 256.0;

/// Position, angle and scale of a text.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Upper left corner of its box in pixels of the image, before it is turned.
    pub(super) at: Point,
    /// Degrees clockwise.
    pub(super) turned: f64,
    /// Pixels of the image for a pixel of the layout.
    pub(super) zoom: f64,
}

/// The key of a mask.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    font: u64,
    glyph: u32,
    size: u32,
    slant: u32,
    bold: bool,
    smooth: bool,
}

/// The mask of a glyph.
struct Mask {
    /// From the glyph's origin to the mask's left edge, in pixels.
    left: i32,
    /// From the baseline to the mask's upper edge, in pixels, downwards.
    top: i32,
    width: u32,
    covers: Vec<u8>,
}

/// The cache of masks.
#[derive(Default)]
pub struct Glyphs {
    masks: HashMap<Key, Arc<Mask>>,
    hinting: HashMap<(u64, u32, bool), Option<HintingInstance>>,
    coverage: Coverage,
    /// Memory for painting paths, between pictures.
    pub(super) paths: Coverage,
}

impl Glyphs {
    /// An empty cache.
    pub fn new() -> Glyphs {
        Glyphs::default()
    }

    pub(super) fn paint(
        &mut self,
        canvas: &mut Canvas,
        clip: Area,
        place: Place,
        layout: &TextLayout,
        colour: Colour,
        smooth: bool,
    ) {
        for run in &layout.runs {
            let colour = run.colour.unwrap_or(colour);
            let quarters = place.turned / 90.0;
            let em = run.size * place.zoom;
            if quarters == quarters.trunc() && em <= MASK_EM_MAX {
                let quarters = quarters.rem_euclid(4.0) as u32;
                self.paint_masks(canvas, clip, place, run, premultiplied(colour), (quarters, smooth));
            } else {
                paint_outlines(canvas, clip, place, run, colour, smooth);
            }
            paint_rules(canvas, clip, place, run, colour, smooth);
        }
    }

    fn paint_masks(
        &mut self,
        canvas: &mut Canvas,
        clip: Area,
        place: Place,
        run: &GlyphRun,
        ink: u32,
        (quarters, smooth): (u32, bool),
    ) {
        if !(run.size > 0.0 && place.at.x.is_finite() && place.at.y.is_finite()) {
            return;
        }
        let size = (run.size * place.zoom) as f32;
        for glyph in &run.glyphs {
            let key = Key {
                font: run.font.id,
                glyph: glyph.id,
                size: size.to_bits(),
                slant: (run.slant as f32).to_bits(),
                bold: run.embolden,
                smooth,
            };
            let mask = self.mask(key, run);
            let (x, y) = (glyph.x * place.zoom, glyph.y * place.zoom);
            let (x, y) = match quarters {
                0 => (x, y),
                1 => (-y, x),
                2 => (-x, -y),
                _ => (y, -x),
            };
            let origin = ((place.at.x + x).round() as i64, (place.at.y + y).round() as i64);
            stamp(canvas, clip, &mask, origin, quarters, ink);
        }
    }

    fn mask(&mut self, key: Key, run: &GlyphRun) -> Arc<Mask> {
        if let Some(mask) = self.masks.get(&key) {
            return Arc::clone(mask);
        }
        if self.masks.len() >= KEPT_MAX {
            self.masks.clear();
            self.hinting.clear();
        }
        let outline = self.hinted_outline(key, run);
        let mask = Arc::new(self.cover(&outline, key));
        self.masks.insert(key, Arc::clone(&mask));
        mask
    }

    /// The outline with the baseline at y = 0, y downwards.
    fn hinted_outline(&mut self, key: Key, run: &GlyphRun) -> Path {
        let bytes: &[u8] = (*run.font.bytes).as_ref();
        let Ok(font) = FontRef::from_index(bytes, run.font.index) else { return Path::default() };
        let outlines = font.outline_glyphs();
        let size = f32::from_bits(key.size);
        let hinting = self.hinting.entry((key.font, key.size, key.smooth)).or_insert_with(|| {
            let mode = SmoothMode::Normal;
            let smooth = Target::Smooth { mode, symmetric_rendering: true, preserve_linear_metrics: false };
            let target = if key.smooth { smooth } else { Target::Mono };
            let options = HintingOptions { engine: Engine::AutoFallback, target };
            HintingInstance::new(&outlines, Size::new(size), LocationRef::default(), options).ok()
        });
        let settings = match hinting {
            Some(instance) if f32::from_bits(key.slant) == 0.0 => DrawSettings::hinted(instance, false),
            _ => DrawSettings::unhinted(Size::new(size), LocationRef::default()),
        };
        let mut pen = Flattener::new(f32::from_bits(key.slant));
        let drawn = outlines
            .get(GlyphId::new(key.glyph))
            .is_some_and(|outline| outline.draw(settings, &mut pen).is_ok());
        if drawn { pen.path } else { Path::default() }
    }

    fn cover(&mut self, outline: &Path, key: Key) -> Mask {
        let mut low = Point { x: f64::INFINITY, y: f64::INFINITY };
        let mut high = Point { x: f64::NEG_INFINITY, y: f64::NEG_INFINITY };
        for point in &outline.points {
            low = Point { x: low.x.min(point.x), y: low.y.min(point.y) };
            high = Point { x: high.x.max(point.x), y: high.y.max(point.y) };
        }
        let bound = 8.0 * MASK_EM_MAX;
        if !(low.x > -bound && low.y > -bound && high.x < bound && high.y < bound) {
            return Mask { left: 0, top: 0, width: 0, covers: Vec::new() };
        }
        let thicker = if key.bold { bold_pixels(f32::from_bits(key.size)) } else { 0 };
        let (left, top) = (low.x.floor(), low.y.floor());
        let width = (high.x.ceil() - left) as u32 + thicker;
        let height = (high.y.ceil() - top) as u32;
        let mut covers = vec![0; (width * height) as usize];
        let mut path = outline.clone();
        for point in &mut path.points {
            *point = Point { x: point.x - left, y: point.y - top };
        }
        let area = Area { left: 0.0, top: 0.0, right: f64::from(width), bottom: f64::from(height) };
        self.coverage.of(&path, area, key.smooth, |span| {
            let row = &mut covers[(span.y * width) as usize..][..width as usize];
            for kept in &mut row[span.from as usize..(span.to + thicker).min(width) as usize] {
                *kept = (*kept).max(span.cover);
            }
        });
        Mask { left: left as i32, top: top as i32, width, covers }
    }
}

/// By how many pixels glyphs of a family without a bold font are smeared.
fn bold_pixels(size: f32) -> u32 {
    (size / 24.0).round().max(1.0) as u32
}

/// Blends `mask` where its origin is at `origin`, turned by `quarters` of a circle clockwise.
fn stamp(canvas: &mut Canvas, clip: Area, mask: &Mask, origin: (i64, i64), quarters: u32, ink: u32) {
    if mask.width == 0 || clip.is_empty() {
        return;
    }
    let (left, right) = (clip.left.round() as i64, clip.right.round() as i64);
    let (top, bottom) = (clip.top.round() as i64, clip.bottom.round() as i64);
    let rows = (i64::from(mask.top)..).zip(mask.covers.chunks_exact(mask.width as usize));
    if quarters == 0 {
        let from = origin.0 + i64::from(mask.left);
        let seen = left.max(from)..right.min(from + i64::from(mask.width));
        for (y, covers) in rows.map(|(row, covers)| (origin.1 + row, covers)) {
            if y >= top && y < bottom && !seen.is_empty() {
                let covers = &covers[(seen.start - from) as usize..(seen.end - from) as usize];
                canvas.lay(y as u32, seen.start as u32, ink, covers);
            }
        }
        return;
    }
    let mut put = |x: i64, y: i64, cover: u8| {
        if cover != 0 && x >= left && x < right && y >= top && y < bottom {
            canvas.pixel(x as u32, y as u32, ink, cover);
        }
    };
    for (row, covers) in rows {
        for (column, cover) in (i64::from(mask.left)..).zip(covers) {
            match quarters {
                1 => put(origin.0 - row - 1, origin.1 + column, *cover),
                2 => put(origin.0 - column - 1, origin.1 - row - 1, *cover),
                _ => put(origin.0 + row, origin.1 - column - 1, *cover),
            }
        }
    }
}

/// Paints glyphs at any angle and size, not hinted.
fn paint_outlines(
    canvas: &mut Canvas,
    clip: Area,
    place: Place,
    run: &GlyphRun,
    colour: Colour,
    smooth: bool,
) {
    let bytes: &[u8] = (*run.font.bytes).as_ref();
    let Ok(font) = FontRef::from_index(bytes, run.font.index) else { return };
    let outlines = font.outline_glyphs();
    let size = Size::new((run.size * place.zoom) as f32);
    for glyph in &run.glyphs {
        let Some(outline) = outlines.get(GlyphId::new(glyph.id)) else { continue };
        let mut pen = Flattener::new(run.slant as f32);
        if outline.draw(DrawSettings::unhinted(size, LocationRef::default()), &mut pen).is_err() {
            continue;
        }
        for point in &mut pen.path.points {
            let (x, y) = (glyph.x * place.zoom + point.x, glyph.y * place.zoom + point.y);
            *point = turned(place, x, y);
        }
        canvas.path(&pen.path, clip, &Ink::solid(colour), smooth);
    }
}

/// Paints the lines under and through a run.
fn paint_rules(canvas: &mut Canvas, clip: Area, place: Place, run: &GlyphRun, colour: Colour, smooth: bool) {
    let start = run.glyphs.iter().map(|glyph| glyph.x).fold(f64::INFINITY, f64::min);
    let end = |glyph: &Glyph| glyph.x + glyph.advance;
    let end = run.glyphs.iter().map(end).fold(f64::NEG_INFINITY, f64::max);
    for (y, thickness) in &run.rules {
        let corners = [(start, *y), (end, *y), (end, y + thickness), (start, y + thickness)];
        let points: Vec<Point> =
            corners.iter().map(|(x, y)| turned(place, x * place.zoom, y * place.zoom)).collect();
        let path = Path { points, ends: vec![4], closed: true };
        canvas.path(&path, clip, &Ink::solid(colour), smooth);
    }
}

/// A point of a text's box, in pixels from its upper left corner, on the image.
fn turned(place: Place, x: f64, y: f64) -> Point {
    let (sine, cosine) = place.turned.to_radians().sin_cos();
    Point { x: place.at.x + x * cosine - y * sine, y: place.at.y + x * sine + y * cosine }
}

/// Flattens a glyph's curves into polygons.
struct Flattener {
    path: Path,
    at: (f32, f32),
    /// How far a point moves to the right for a pixel above the baseline.
    lean: f32,
}

impl Flattener {
    fn new(slant: f32) -> Flattener {
        Flattener { path: Path::default(), at: (0.0, 0.0), lean: slant.to_radians().tan() }
    }

    fn push(&mut self, x: f32, y: f32) {
        self.at = (x, y);
        self.path.points.push(Point { x: f64::from(x + y * self.lean), y: f64::from(-y) });
    }

    /// How many lines approximate a curve whose control points are this far (pixels) off a straight line.
    fn steps(stray: f32) -> u32 {
        // n lines are off a quadratic curve by a quarter of that over n squared; a tenth of a pixel is fine.
        (stray / 0.4).sqrt().ceil().clamp(1.0, 32.0) as u32
    }
}

impl OutlinePen for Flattener {
    fn move_to(&mut self, x: f32, y: f32) {
        self.close();
        self.push(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.push(x, y);
    }

    fn quad_to(&mut self, cx: f32, cy: f32, x: f32, y: f32) {
        let (ax, ay) = self.at;
        let steps = Self::steps((ax - 2.0 * cx + x).hypot(ay - 2.0 * cy + y));
        for step in 1..=steps {
            let t = step as f32 / steps as f32;
            let (a, b, c) = ((1.0 - t) * (1.0 - t), 2.0 * t * (1.0 - t), t * t);
            self.push(a * ax + b * cx + c * x, a * ay + b * cy + c * y);
        }
    }

    fn curve_to(&mut self, bx: f32, by: f32, cx: f32, cy: f32, x: f32, y: f32) {
        let (ax, ay) = self.at;
        let stray = (ax - 2.0 * bx + cx).hypot(ay - 2.0 * by + cy);
        let steps = Self::steps(3.0 * stray.max((bx - 2.0 * cx + x).hypot(by - 2.0 * cy + y)));
        for step in 1..=steps {
            let t = step as f32 / steps as f32;
            let u = 1.0 - t;
            let (a, b, c, d) = (u * u * u, 3.0 * u * u * t, 3.0 * u * t * t, t * t * t);
            self.push(a * ax + b * bx + c * cx + d * x, a * ay + b * by + c * cy + d * y);
        }
    }

    fn close(&mut self) {
        let end = self.path.points.len();
        if self.path.ends.last().copied().unwrap_or(0) < end {
            self.path.ends.push(end);
        }
    }
}
