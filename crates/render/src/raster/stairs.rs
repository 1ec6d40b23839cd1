//! Paints strokes of stairs whose edges lie between pixels, as most lines of graphs do, without an outline.
//!
//! Around each point is a block of pixels as wide as the line, with round outer corners; between two blocks the line is
//! a bar of whole pixels. A test compares the result with painted outlines.

use graph::picture::scene::{Cap, Join, Path, Stroke};

use super::canvas::Canvas;
use super::coverage::covered;

/// Widest line that is painted like this, in pixels; wider ones are rare.
const WIDTH_MAX: f64 = 16.0;
/// Greatest coordinate in pixels, far outside of any image.
const FAR: f64 = 1e6;
/// Rows of which the area of a circle inside half a pixel is summed.
const SLICES: u32 = 16;

/// The bits of a block's sides at which the line continues.
const LEFT: usize = 1;
const RIGHT: usize = 2;
const UP: usize = 4;
const DOWN: usize = 8;

/// The upper left pixels of the blocks of a line's points; the memory is reused.
#[derive(Default)]
pub(super) struct Stairs {
    blocks: Vec<(i32, i32)>,
}

/// Pixels inside a clip: left, top, right, bottom.
type Bounds = [i32; 4];

impl Stairs {
    /// Paints `path`; false, without painting, if it is another kind of line. `ink` must be opaque, as blocks overlap.
    pub(super) fn paint(
        &mut self,
        canvas: &mut Canvas,
        clip: Bounds,
        (path, stroke, zoom): (&Path, &Stroke, f64),
        ink: u32,
    ) -> bool {
        let width = stroke.width * zoom;
        let suits = is_whole(width) && (1.0..=WIDTH_MAX).contains(&width);
        let round = stroke.cap == Cap::Round && stroke.join == Join::Round;
        let plain = !path.closed && stroke.dashes.is_empty();
        if !(suits && round && plain && self.find_blocks(path, width / 2.0, zoom)) {
            return false;
        }
        let width = width as i32;
        let pen = Pen { width, masks: masks(width), clip, ink };
        // Bars come last: they cover pixels that a corner has painted in part.
        let mut start = 0;
        for &end in &path.ends {
            pen.corners(canvas, &self.blocks[start..end]);
            start = end;
        }
        let mut start = 0;
        for &end in &path.ends {
            for pair in self.blocks[start..end].windows(2) {
                pen.bar(canvas, pair[0], pair[1]);
            }
            start = end;
        }
        true
    }

    /// False if a point is off the pixel grid or a step is slanted.
    fn find_blocks(&mut self, path: &Path, half: f64, zoom: f64) -> bool {
        self.blocks.clear();
        for point in &path.points {
            let (left, top) = (point.x * zoom - half, point.y * zoom - half);
            if !(is_whole(left) && is_whole(top)) {
                return false;
            }
            self.blocks.push((left as i32, top as i32));
        }
        let mut start = 0;
        path.ends.iter().all(|&end| {
            let Some(piece) = self.blocks.get(start..end) else { return false };
            start = end;
            piece.windows(2).all(|pair| (pair[0].0 == pair[1].0) != (pair[0].1 == pair[1].1))
        })
    }
}

/// Whether a coordinate is between two pixels, and small enough to be on an image.
fn is_whole(at: f64) -> bool {
    at.abs() < FAR && f64::from(at as i32) == at
}

/// What the blocks of a line have in common.
struct Pen {
    width: i32,
    /// Coverage of a block's pixels for every set of sides at which the line continues.
    masks: Vec<u8>,
    clip: Bounds,
    ink: u32,
}

impl Pen {
    /// Paints the blocks around corners and ends.
    fn corners(&self, canvas: &mut Canvas, blocks: &[(i32, i32)]) {
        for (index, &at) in blocks.iter().enumerate() {
            let before = index.checked_sub(1).map_or(0, |before| side(at, blocks[before]));
            let after = blocks.get(index + 1).map_or(0, |&after| side(at, after));
            self.block(canvas, at, before | after);
        }
    }

    fn block(&self, canvas: &mut Canvas, (left, top): (i32, i32), sides: usize) {
        let area = (self.width * self.width) as usize;
        let mask = &self.masks[sides * area..][..area];
        for (y, covers) in (top..).zip(mask.chunks_exact(self.width as usize)) {
            if y < self.clip[1] || y >= self.clip[3] {
                continue;
            }
            for (x, &cover) in (left..).zip(covers) {
                if x >= self.clip[0] && x < self.clip[2] {
                    canvas.pixel(x as u32, y as u32, self.ink, cover);
                }
            }
        }
    }

    /// Paints the bars between blocks.
    fn bar(&self, canvas: &mut Canvas, a: (i32, i32), b: (i32, i32)) {
        let (from, to) = ((a.0.min(b.0), a.1.min(b.1)), (a.0.max(b.0), a.1.max(b.1)));
        let level = a.1 == b.1;
        let (left, top) = if level { (from.0 + self.width, from.1) } else { (from.0, from.1 + self.width) };
        let (right, bottom) = if level { (to.0, to.1 + self.width) } else { (to.0 + self.width, to.1) };
        let (left, right) = (left.max(self.clip[0]), right.min(self.clip[2]));
        if left < right {
            for y in top.max(self.clip[1])..bottom.min(self.clip[3]) {
                canvas.row(y as u32, left as u32, right as u32).fill(self.ink);
            }
        }
    }
}

/// The side of the block `at` at which the line continues to another.
fn side(at: (i32, i32), to: (i32, i32)) -> usize {
    match (to.0.cmp(&at.0), to.1.cmp(&at.1)) {
        (std::cmp::Ordering::Less, _) => LEFT,
        (std::cmp::Ordering::Greater, _) => RIGHT,
        (_, std::cmp::Ordering::Less) => UP,
        (_, std::cmp::Ordering::Greater) => DOWN,
        _ => 0,
    }
}

/// The masks of all sets of sides for a line of `width` pixels, row by row. A quarter of a block is full if the line
/// continues at one of its sides, else it is a quarter of a circle.
fn masks(width: i32) -> Vec<u8> {
    let quarter = quarter(width);
    // A block has twice as many halves of pixels as the quarter on each axis; those of the circle mirror it.
    let mirrored = |half: i32| if half < width { width - 1 - half } else { half - width };
    let part = |sides: usize, x: i32, y: i32| {
        let across = if x < width { LEFT } else { RIGHT };
        let along = if y < width { UP } else { DOWN };
        match sides & (across | along) {
            0 => quarter[(mirrored(y) * width + mirrored(x)) as usize],
            _ => 0.25,
        }
    };
    let mut masks = Vec::with_capacity(16 * (width * width) as usize);
    for sides in 0..16_usize {
        for (y, x) in (0..width).flat_map(|y| (0..width).map(move |x| (2 * y, 2 * x))) {
            let sum = [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(right, down)| part(sides, x + right, y + down));
            // In the one pixel of a thin line's corner the two bars' areas add up, as they do in an outline.
            let both = if width == 1 && sides.count_ones() > 1 { 0.25 } else { 0.0 };
            masks.push(covered(sum.iter().sum::<f32>() + both));
        }
    }
    masks
}

/// How much of each half of a pixel, both ways, a quarter of a circle covers; its centre is at the first one's corner.
fn quarter(width: i32) -> Vec<f32> {
    let radius = f64::from(width) / 2.0;
    let mut parts = Vec::with_capacity((width * width) as usize);
    for (y, x) in (0..width).flat_map(|y| (0..width).map(move |x| (y, x))) {
        let slices = (0..SLICES).map(|slice| {
            let height = f64::from(y) / 2.0 + (f64::from(slice) + 0.5) / f64::from(2 * SLICES);
            let reach = (radius * radius - height * height).max(0.0).sqrt();
            (reach - f64::from(x) / 2.0).clamp(0.0, 0.5)
        });
        parts.push((slices.sum::<f64>() / f64::from(2 * SLICES)) as f32);
    }
    parts
}
