//! Pixels, and how colours are blended over them.

use graph::picture::scene::{Colour, Path, Point};

use super::coverage::{Coverage, covered};

/// A painted picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Rows from top to bottom; each pixel is red, green, blue and opacity from the low byte up, premultiplied.
    pub pixels: Vec<u32>,
}

/// A rectangle in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Area {
    /// The rectangle between two corners.
    pub(super) fn between(a: Point, b: Point) -> Area {
        Area { left: a.x.min(b.x), top: a.y.min(b.y), right: a.x.max(b.x), bottom: a.y.max(b.y) }
    }

    /// The intersection.
    pub(super) fn within(self, other: Area) -> Area {
        Area {
            left: self.left.max(other.left),
            top: self.top.max(other.top),
            right: self.right.min(other.right),
            bottom: self.bottom.min(other.bottom),
        }
    }

    /// The rectangle scaled by `zoom` around the origin.
    pub(super) fn scaled(self, zoom: f64) -> Area {
        Area {
            left: self.left * zoom,
            top: self.top * zoom,
            right: self.right * zoom,
            bottom: self.bottom * zoom,
        }
    }

    /// Left, top, right and bottom edge, if all of them are between pixels.
    pub(super) fn pixels(self) -> Option<[i32; 4]> {
        let edges = [self.left, self.top, self.right, self.bottom];
        let whole = edges.map(|edge| edge as i32);
        (edges == whole.map(f64::from)).then_some(whole)
    }

    /// Whether it is empty, or an edge is NaN.
    pub(super) fn is_empty(self) -> bool {
        !(self.left < self.right && self.top < self.bottom)
    }
}

/// The colours of pixels.
pub(super) enum Ink {
    /// One for all.
    Solid(u32),
    /// By row.
    Vertical { from_y: f64, from: Colour, to_y: f64, to: Colour },
}

impl Ink {
    /// One colour.
    pub(super) fn solid(colour: Colour) -> Ink {
        Ink::Solid(premultiplied(colour))
    }

    /// The pixel, if it is the same everywhere and opaque.
    pub(super) fn opaque(&self) -> Option<u32> {
        match self {
            Ink::Solid(pixel) if pixel >> 24 == 255 => Some(*pixel),
            _ => None,
        }
    }

    /// The premultiplied colour in row `y`.
    fn at(&self, y: u32) -> u32 {
        match self {
            Ink::Solid(pixel) => *pixel,
            Ink::Vertical { from_y, from, to_y, to } => {
                let length = to_y - from_y;
                let part = if length == 0.0 { 1.0 } else { (f64::from(y) + 0.5 - from_y) / length };
                let part = part.clamp(0.0, 1.0);
                let mix = |a: f64, b: f64| a + (b - a) * part;
                premultiplied(Colour {
                    red: mix(from.red, to.red),
                    green: mix(from.green, to.green),
                    blue: mix(from.blue, to.blue),
                    alpha: mix(from.alpha, to.alpha),
                })
            }
        }
    }
}

/// `colour` as a pixel.
pub(super) fn premultiplied(colour: Colour) -> u32 {
    let byte = |part: f64| (part.clamp(0.0, 1.0) * 255.0).round() as u8;
    let alpha = colour.alpha.clamp(0.0, 1.0);
    let part = |part: f64| byte(part.clamp(0.0, 1.0) * alpha);
    u32::from_le_bytes([part(colour.red), part(colour.green), part(colour.blue), byte(alpha)])
}

/// Every part of `pixel` times `factor`/255, rounded.
fn dimmed(pixel: u32, factor: u32) -> u32 {
    let times = |pair: u32| {
        let product = pair * factor + 0x0080_0080;
        ((product + ((product >> 8) & 0x00ff_00ff)) >> 8) & 0x00ff_00ff
    };
    times(pixel & 0x00ff_00ff) | times((pixel >> 8) & 0x00ff_00ff) << 8
}

/// `ink` over `ground`.
fn over(ground: u32, ink: u32) -> u32 {
    // Premultiplied parts are at most their opacity, so no sum exceeds 255 by more than rounding; it cannot carry,
    // as both terms round to at most alpha and 255 - alpha.
    ink + dimmed(ground, 255 - (ink >> 24))
}

/// `ink` over `ground` where it covers `cover`/255 of the pixel.
fn blend(ground: &mut u32, ink: u32, cover: u8) {
    match cover {
        0 => {}
        255 if ink >> 24 == 255 => *ground = ink,
        255 => *ground = over(*ground, ink),
        _ => *ground = over(*ground, dimmed(ink, u32::from(cover))),
    }
}

/// An image that is being painted.
pub(super) struct Canvas {
    image: Image,
    coverage: Coverage,
}

impl Canvas {
    /// An image of one colour.
    pub(super) fn new(width: u32, height: u32, ground: u32, coverage: Coverage) -> Canvas {
        let pixels = vec![ground; width as usize * height as usize];
        Canvas { image: Image { width, height, pixels }, coverage }
    }

    /// The finished image, and memory for the next one.
    pub(super) fn finish(self) -> (Image, Coverage) {
        (self.image, self.coverage)
    }

    /// The area of the whole image.
    pub(super) fn area(&self) -> Area {
        Area { left: 0.0, top: 0.0, right: f64::from(self.image.width), bottom: f64::from(self.image.height) }
    }

    /// Pixels `from..to` of row `y`. All three must be inside the image.
    pub(super) fn row(&mut self, y: u32, from: u32, to: u32) -> &mut [u32] {
        let start = y as usize * self.image.width as usize;
        &mut self.image.pixels[start + from as usize..start + to as usize]
    }

    /// Paints one pixel, which must be inside the image.
    pub(super) fn pixel(&mut self, x: u32, y: u32, ink: u32, cover: u8) {
        blend(&mut self.row(y, x, x + 1)[0], ink, cover);
    }

    /// Paints pixels of row `y` from `x` on, each by its coverage. All must be inside the image.
    pub(super) fn lay(&mut self, y: u32, x: u32, ink: u32, covers: &[u8]) {
        let row = self.row(y, x, x + covers.len() as u32);
        for (pixel, cover) in row.iter_mut().zip(covers) {
            blend(pixel, ink, *cover);
        }
    }

    /// Paints `area`, which must be inside the image. If `smooth`, edges inside a pixel are soft.
    pub(super) fn rectangle(&mut self, area: Area, ink: &Ink, smooth: bool) {
        let area = if smooth { area } else { area.at_centres() };
        if area.is_empty() {
            return;
        }
        let columns = Cut::of(area.left, area.right);
        let rows = Cut::of(area.top, area.bottom);
        let whole = columns.is_whole() && rows.is_whole();
        for y in rows.from..rows.to {
            let (colour, cover) = (ink.at(y), rows.cover(y));
            let row = self.row(y, columns.from, columns.to);
            if whole {
                fill(row, colour, 255);
                continue;
            }
            let soft = |x: u32| covered((cover * columns.cover(x)) as f32);
            let inner = soft(columns.from + 1);
            let last = row.len() - 1;
            blend(&mut row[0], colour, soft(columns.from));
            if last > 0 {
                fill(&mut row[1..last], colour, inner);
                blend(&mut row[last], colour, soft(columns.to - 1));
            }
        }
    }

    /// Paints a stretch of a line; false if that is left to [`Canvas::rectangle`].
    pub(super) fn dash(&mut self, track: Option<&mut Track>, from: f64, to: f64) -> bool {
        let (first, end) = (from as u32, to as u32);
        let whole = f64::from(first) == from && f64::from(end) == to;
        let (Some(track), true) = (track, whole) else { return false };
        let (width, flat) = (self.image.width as usize, track.flat);
        for lane in &mut track.lanes[..track.count] {
            let at = lane.at as usize;
            let (start, step) = if flat { (at * width, 1) } else { (at, width) };
            let mut pixel = start + first as usize * step;
            for _ in first..end {
                let ground = &mut self.image.pixels[pixel];
                if *ground != lane.ground {
                    (lane.ground, lane.result) = (*ground, over(*ground, lane.ink));
                }
                *ground = lane.result;
                pixel += step;
            }
        }
        true
    }

    /// Fills `path` by the non-zero winding rule, inside `clip`.
    pub(super) fn path(&mut self, path: &Path, clip: Area, ink: &Ink, smooth: bool) {
        let mut coverage = std::mem::take(&mut self.coverage);
        coverage.of(path, clip, smooth, |span| {
            fill(self.row(span.y, span.from, span.to), ink.at(span.y), span.cover);
        });
        self.coverage = coverage;
    }
}

/// The rows or columns of pixels that a narrow line touches, and how it changes them.
pub(super) struct Track {
    flat: bool,
    lanes: [Lane; LANES_MAX],
    count: usize,
}

/// A line of at most two pixels touches at most three rows.
const LANES_MAX: usize = 3;

/// One row or column of pixels.
#[derive(Clone, Copy, Default)]
struct Lane {
    at: u32,
    ink: u32,
    /// The last pixel before and after painting: most pixels are alike.
    ground: u32,
    result: u32,
}

impl Track {
    /// The band of a line from `before` to `after` on the other axis, inside `clip`. None if the line is too wide or has
    /// more than one colour.
    pub(super) fn of(
        flat: bool,
        clip: Area,
        (before, after): (f64, f64),
        ink: &Ink,
        smooth: bool,
    ) -> Option<Track> {
        let Ink::Solid(colour) = *ink else { return None };
        let (low, high) = if flat { (clip.top, clip.bottom) } else { (clip.left, clip.right) };
        let (before, after) = (before.max(low), after.min(high));
        let mut track = Track { flat, lanes: Default::default(), count: 0 };
        let cut = Cut::of(before, after);
        let empty = before >= after;
        if !smooth || (!empty && cut.to - cut.from > LANES_MAX as u32) {
            return None;
        }
        for at in if empty { 0..0 } else { cut.from..cut.to } {
            let ink = dimmed(colour, u32::from(covered(cut.cover(at) as f32)));
            track.lanes[track.count] = Lane { at, ink, ground: 0, result: over(0, ink) };
            track.count += 1;
        }
        Some(track)
    }
}

/// Paints a run of pixels with one colour.
fn fill(pixels: &mut [u32], colour: u32, cover: u8) {
    let ink = if cover == 255 { colour } else { dimmed(colour, u32::from(cover)) };
    if ink >> 24 == 255 {
        pixels.fill(ink);
        return;
    }
    for pixel in pixels {
        *pixel = over(*pixel, ink);
    }
}

impl Area {
    /// The pixels whose centres are inside.
    fn at_centres(self) -> Area {
        let edge = |at: f64| (at - 0.5).ceil();
        Area {
            left: edge(self.left),
            top: edge(self.top),
            right: edge(self.right),
            bottom: edge(self.bottom),
        }
    }
}

/// The pixels of one axis that a stretch touches, and how much of each.
struct Cut {
    start: f64,
    end: f64,
    from: u32,
    to: u32,
}

impl Cut {
    fn of(start: f64, end: f64) -> Cut {
        // Neither is negative, so truncation rounds down; calls of `floor` and `ceil` would cost more than all the rest.
        let to = end as u32;
        Cut { start, end, from: start as u32, to: to + u32::from(f64::from(to) < end) }
    }

    /// Whether both ends are between pixels.
    fn is_whole(&self) -> bool {
        self.start == f64::from(self.from) && self.end == f64::from(self.to)
    }

    /// The part of pixel `at` that is inside.
    fn cover(&self, at: u32) -> f64 {
        let at = f64::from(at);
        (self.end.min(at + 1.0) - self.start.max(at)).clamp(0.0, 1.0)
    }
}
