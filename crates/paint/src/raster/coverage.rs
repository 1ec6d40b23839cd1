//! How much of each pixel a path covers: exact areas, summed along the rows.
//!
//! Every edge adds to two cells of each row it passes: how much of the row's height it takes up, split by where it
//! is inside the pixel. The running sum along a row is then the winding number times the covered area. Where two
//! pieces overlap inside one pixel their areas add up (at most to a whole pixel); cairo is exact there.
//! Costs: four bytes a pixel of a band of [`BAND`] rows.

use graph::picture::scene::{Path, Point};

use super::canvas::Area;

/// Rows that are summed at once; bounds the memory of a path across a huge image. Guessed; the usual canvas of 100
/// to 300 rows fits into one or two.
const BAND: u32 = 256;

/// Shades of an edge. More are hardly seen, and with 255 of them a picture of smooth lines and texts has too many
/// colours for a palette: 280 instead of some 100, and so 1.6 times the bytes and 4 times the time of its PNG.
const STEPS: f32 = 16.0;

/// Cells of a band, kept from path to path.
#[derive(Default)]
pub(super) struct Coverage {
    cells: Vec<f32>,
    /// For each row of the band the first and the last cell that was touched.
    touched: Vec<(u32, u32)>,
    /// What a row's cells come to.
    covers: Vec<u8>,
    /// Cells of a row.
    width: u32,
}

impl Coverage {
    /// Calls `row` with (y, x of the first, coverage of pixels from there on) for what `path` covers inside `clip`.
    /// The path's pieces are closed here. Not `smooth`: a pixel is covered wholly when its centre is inside.
    pub(super) fn of(&mut self, path: &Path, clip: Area, smooth: bool, mut row: impl FnMut(u32, u32, &[u8])) {
        let area = bounds(path).within(clip);
        if area.is_empty() {
            return;
        }
        let (left, right) = (area.left.floor(), area.right.ceil());
        let (top, bottom) = (area.top.floor() as u32, area.bottom.ceil() as u32);
        let width = (right - left) as u32;
        let fade = Fade { area: clip, left: left as u32, smooth };
        let mut from = top;
        while from < bottom {
            let to = bottom.min(from + BAND);
            self.begin(width, to - from);
            let move_by = Point { x: left, y: f64::from(from) };
            self.edges(path, move_by, f64::from(to - from), smooth);
            for y in from..to {
                if let Some(start) = self.sum(y - from) {
                    fade.soften(y, start, &mut self.covers);
                    row(y, left as u32 + start, &self.covers);
                }
            }
            from = to;
        }
    }

    fn begin(&mut self, width: u32, rows: u32) {
        self.width = width + 2;
        self.cells.clear();
        self.cells.resize(self.width as usize * rows as usize, 0.0);
        self.touched.clear();
        self.touched.resize(rows as usize, (u32::MAX, 0));
    }

    /// Adds every edge of `path`, moved so that the band begins at the origin.
    fn edges(&mut self, path: &Path, move_by: Point, height: f64, smooth: bool) {
        let mut start = 0;
        for &end in &path.ends {
            let piece = &path.points[start..end];
            start = end;
            let Some(last) = piece.last() else { continue };
            let mut from = Point { x: last.x - move_by.x, y: last.y - move_by.y };
            for point in piece {
                let to = Point { x: point.x - move_by.x, y: point.y - move_by.y };
                if from.y != to.y {
                    if smooth {
                        self.edge(from, to, height);
                    } else {
                        self.hard_edge(from, to, height);
                    }
                }
                from = to;
            }
        }
    }

    /// An edge for sums of areas: the parts left of the band count as if they ran along its border.
    fn edge(&mut self, from: Point, to: Point, height: f64) {
        let (sign, upper, lower) = if from.y < to.y { (1.0, from, to) } else { (-1.0, to, from) };
        let slope = (lower.x - upper.x) / (lower.y - upper.y);
        let right = f64::from(self.width - 2);
        let mut y = upper.y.max(0.0);
        let end = lower.y.min(height);
        while y < end {
            let below = end.min(y.floor() + 1.0);
            let at = |y: f64| upper.x + (y - upper.y) * slope;
            let (start_x, end_x) = (at(y), at(below));
            self.inside_row(y as u32, (below - y) * sign, start_x.min(end_x), start_x.max(end_x), right);
            y = below;
        }
    }

    /// The part of an edge in one row: from `start` to `end`, taking up `height` of the row.
    fn inside_row(&mut self, row: u32, height: f64, start: f64, end: f64, right: f64) {
        if end - start < 1e-9 {
            self.inside_cell(row, height, start.clamp(0.0, right), right);
            return;
        }
        let per_pixel = height / (end - start);
        if start < 0.0 {
            self.inside_cell(row, per_pixel * (end.min(0.0) - start), 0.0, right);
        }
        let mut x = start.max(0.0);
        let stop = end.min(right);
        while x < stop {
            let next = stop.min(x.floor() + 1.0);
            self.inside_cell(row, per_pixel * (next - x), (x + next) / 2.0, right);
            x = next;
        }
    }

    /// A stretch of an edge inside one pixel, `middle` being where it is on the average.
    fn inside_cell(&mut self, row: u32, height: f64, middle: f64, right: f64) {
        if middle >= right {
            return;
        }
        let cell = middle as u32;
        let past = (middle - f64::from(cell)) * height;
        self.add(row, cell, (height - past) as f32);
        self.add(row, cell + 1, past as f32);
    }

    /// An edge for pixels that are covered or not: it counts from the first pixel whose centre is right of it.
    fn hard_edge(&mut self, from: Point, to: Point, height: f64) {
        let (sign, upper, lower) = if from.y < to.y { (1.0, from, to) } else { (-1.0, to, from) };
        let slope = (lower.x - upper.x) / (lower.y - upper.y);
        let first = (upper.y - 0.5).ceil().max(0.0);
        let end = (lower.y - 0.5).ceil().min(height);
        let right = f64::from(self.width - 2);
        let mut y = first;
        while y < end {
            let x = (upper.x + (y + 0.5 - upper.y) * slope - 0.5).ceil().max(0.0);
            if x < right {
                self.add(y as u32, x as u32, sign);
            }
            y += 1.0;
        }
    }

    fn add(&mut self, row: u32, cell: u32, part: f32) {
        self.cells[(row * self.width + cell) as usize] += part;
        let touched = &mut self.touched[row as usize];
        touched.0 = touched.0.min(cell);
        touched.1 = touched.1.max(cell);
    }

    /// Sums up a row into `covers`; the first pixel they stand for, counted from the band's left.
    fn sum(&mut self, row: u32) -> Option<u32> {
        let (first, last) = self.touched[row as usize];
        let pixels = self.width - 2;
        if first >= pixels {
            return None;
        }
        let start = (row * self.width) as usize;
        let cells = &self.cells[start..start + pixels as usize];
        let last = last.min(pixels - 1);
        self.covers.clear();
        let (mut sum, mut cover) = (0.0, 0);
        for cell in &cells[first as usize..=last as usize] {
            if *cell != 0.0 {
                sum += cell;
                cover = covered(sum);
            }
            self.covers.push(cover);
        }
        if cover != 0 {
            self.covers.resize((pixels - first) as usize, cover);
        }
        Some(first)
    }
}

/// What part of a pixel of 255 a sum of areas stands for.
pub(super) fn covered(sum: f32) -> u8 {
    // Halves go up; 255 / STEPS of each, rounded.
    let step = (sum.abs().min(1.0) * STEPS + 0.5) as u32;
    ((step * 255 + STEPS as u32 / 2) / STEPS as u32) as u8
}

/// Where a clip ends inside a pixel.
struct Fade {
    area: Area,
    left: u32,
    smooth: bool,
}

impl Fade {
    /// Takes away what is beyond the clip's edge in the pixels that it goes through.
    fn soften(&self, y: u32, start: u32, covers: &mut [u8]) {
        if !self.smooth {
            return;
        }
        let inside = |at: f64, low: f64, high: f64| (high.min(at + 1.0) - low.max(at)).clamp(0.0, 1.0);
        let rows = inside(f64::from(y), self.area.top, self.area.bottom);
        let mut soften = |index: usize, part: f64| {
            if let Some(cover) = covers.get_mut(index) {
                *cover = (f64::from(*cover) * part).round() as u8;
            }
        };
        let first = f64::from(self.left + start);
        if self.area.left > first {
            soften(0, inside(first, self.area.left, self.area.right));
        }
        let end = self.area.right.floor();
        if end < self.area.right && end >= first {
            soften((end - first) as usize, self.area.right - end);
        }
        if rows < 1.0 {
            covers.iter_mut().for_each(|cover| *cover = (f64::from(*cover) * rows).round() as u8);
        }
    }
}

/// The smallest area around all points; empty where one of them is no number.
fn bounds(path: &Path) -> Area {
    let mut area =
        Area { left: f64::INFINITY, top: f64::INFINITY, right: f64::NEG_INFINITY, bottom: f64::NEG_INFINITY };
    for point in &path.points {
        if !(point.x.is_finite() && point.y.is_finite()) {
            return Area { left: 0.0, top: 0.0, right: 0.0, bottom: 0.0 };
        }
        area.left = area.left.min(point.x);
        area.top = area.top.min(point.y);
        area.right = area.right.max(point.x);
        area.bottom = area.bottom.max(point.y);
    }
    area
}
