//! Turns strokes into outlines: dashes, joins, caps.
//!
//! An outline runs along one side and back along the other. At the inner side of a corner it passes through the corner
//! itself, so that it encloses the sum of one bar per segment and one wedge per corner, all with the same winding. Work
//! is bounded: see [`DASHES_MAX`].

use graph::picture::scene::{Cap, Join, Path, Point, Stroke};

/// Limit of mitred corners: cairo's default.
const MITER_LIMIT: f64 = 10.0;
/// Greatest distance of a polygon from the circle that it approximates, in pixels. Invisible in 8 bits of coverage at
/// usual line widths.
const ROUND_ERROR: f64 = 0.01;
/// A line with more dashes than this is painted solid: no eye could tell them apart.
const DASHES_MAX: f64 = 200_000.0;
/// Dashes with a shorter period than this (pixels) are painted solid, too.
const PERIOD_MIN: f64 = 1.0 / 16.0;

/// Scales `path` by `zoom` around the origin, into the memory of `to`.
pub(super) fn copy(path: &Path, zoom: f64, mut to: Path) -> Path {
    to.points.clear();
    to.points.extend(path.points.iter().map(|point| Point { x: point.x * zoom, y: point.y * zoom }));
    to.ends.clone_from(&path.ends);
    to.closed = true;
    to
}

/// A dash pattern, in pixels.
pub(super) struct Pattern {
    lengths: Vec<f64>,
    period: f64,
}

impl Pattern {
    /// None if there are no dashes.
    pub(super) fn of(stroke: &Stroke, zoom: f64) -> Option<Pattern> {
        let mut lengths: Vec<f64> = stroke.dashes.iter().map(|dash| (dash * zoom).max(0.0)).collect();
        if lengths.len() % 2 == 1 {
            lengths.extend_from_within(..);
        }
        let period: f64 = lengths.iter().sum();
        (period.is_finite() && period >= PERIOD_MIN).then_some(Pattern { lengths, period })
    }

    /// Whether it cuts a line of this length.
    pub(super) fn cuts(&self, length: f64) -> bool {
        length / self.period * self.lengths.len() as f64 <= DASHES_MAX
    }

    /// Calls `dash` with (start, end) of every dash between `from` and `to` of a line that begins `offset` into
    /// the pattern.
    pub(super) fn each(&self, offset: f64, from: f64, to: f64, mut dash: impl FnMut(f64, f64)) {
        let offset = if offset.is_finite() { offset } else { 0.0 };
        let into = (from + offset).rem_euclid(self.period);
        let mut start = from - into;
        while start < to {
            for pair in self.lengths.chunks_exact(2) {
                let (low, high) = (start.max(from), (start + pair[0]).min(to));
                if low < high {
                    dash(low, high);
                }
                start += pair[0] + pair[1];
            }
        }
    }
}

/// Puts the outline of `path`'s stroke into `out`, which is emptied first.
pub(super) fn outline(path: &Path, stroke: &Stroke, zoom: f64, out: &mut Path) {
    out.points.clear();
    out.ends.clear();
    out.closed = true;
    let half = stroke.width * zoom / 2.0;
    if !(half > 0.0 && half.is_finite()) {
        return;
    }
    let pen = Pen { half, cap: stroke.cap, join: stroke.join };
    let pattern = Pattern::of(stroke, zoom);
    let mut start = 0;
    let mut line: Vec<Point> = Vec::new();
    for &end in &path.ends {
        line.clear();
        for point in &path.points[start..end] {
            let point = Point { x: point.x * zoom, y: point.y * zoom };
            if line.last() != Some(&point) {
                line.push(point);
            }
        }
        start = end;
        let closed = path.closed && line.len() > 2;
        if closed && line.first() == line.last() {
            line.pop();
        }
        let length = line.windows(2).map(|pair| distance(pair[0], pair[1])).sum();
        match pattern.as_ref().filter(|pattern| pattern.cuts(length)) {
            None if closed => pen.ring(&line, out),
            None => pen.line(&line, out),
            Some(pattern) => {
                if closed {
                    line.push(line[0]);
                }
                cut(&line, pattern, stroke.dash_offset * zoom, |dash| pen.line(dash, out));
            }
        }
    }
}

/// Cuts a line into its dashes.
fn cut(line: &[Point], pattern: &Pattern, offset: f64, mut dash: impl FnMut(&[Point])) {
    let mut along = 0.0;
    let mut open: Vec<Point> = Vec::new();
    let mut open_to = f64::NEG_INFINITY;
    for pair in line.windows(2) {
        let length = distance(pair[0], pair[1]);
        let (from, to) = (along, along + length);
        let at = |s: f64| {
            let part = (s - from) / length;
            Point {
                x: pair[0].x + (pair[1].x - pair[0].x) * part,
                y: pair[0].y + (pair[1].y - pair[0].y) * part,
            }
        };
        pattern.each(offset, from, to, |low, high| {
            // A dash that ends at a corner continues after it.
            if low > from || open_to < from || open.is_empty() {
                if open.len() > 1 {
                    dash(&open);
                }
                open.clear();
                open.push(at(low));
            }
            open.push(at(high));
            open_to = high;
        });
        along = to;
    }
    if open.len() > 1 {
        dash(&open);
    }
}

fn distance(a: Point, b: Point) -> f64 {
    (b.x - a.x).hypot(b.y - a.y)
}

/// How a line is drawn.
struct Pen {
    half: f64,
    cap: Cap,
    join: Join,
}

impl Pen {
    /// The outline of an open line whose neighbouring points differ.
    fn line(&self, line: &[Point], out: &mut Path) {
        match line {
            [] => return,
            [point] => self.dot(*point, out),
            _ => {
                self.side(line.iter().copied(), out);
                self.side(line.iter().rev().copied(), out);
            }
        }
        out.ends.push(out.points.len());
    }

    /// The two outlines of a closed line.
    fn ring(&self, line: &[Point], out: &mut Path) {
        self.closed_side(line.iter().copied(), out);
        self.closed_side(line.iter().rev().copied(), out);
    }

    /// A line of length 0: a dot if caps stick out.
    fn dot(&self, at: Point, out: &mut Path) {
        let ahead = Point { x: self.half, y: 0.0 };
        let back = Point { x: -self.half, y: 0.0 };
        if self.cap != Cap::Butt {
            self.end(at, left_of(ahead), ahead, out);
            self.end(at, left_of(back), back, out);
        }
    }

    /// Adds the left side of `points`, with the cap at the last one.
    fn side(&self, mut points: impl Iterator<Item = Point>, out: &mut Path) {
        let (Some(from), Some(mut at)) = (points.next(), points.next()) else { return };
        let mut ahead = self.ahead(from, at);
        out.points.push(moved(from, left_of(ahead)));
        for next in points {
            let turned = self.ahead(at, next);
            self.corner(at, ahead, turned, out);
            (at, ahead) = (next, turned);
        }
        self.end(at, left_of(ahead), ahead, out);
    }

    fn closed_side(&self, points: impl Iterator<Item = Point> + Clone, out: &mut Path) {
        let mut around = points.clone().chain(points.take(2));
        let (Some(from), Some(mut at)) = (around.next(), around.next()) else { return };
        let mut ahead = self.ahead(from, at);
        for next in around {
            let turned = self.ahead(at, next);
            self.corner(at, ahead, turned, out);
            (at, ahead) = (next, turned);
        }
        out.ends.push(out.points.len());
    }

    /// The vector from `from` towards `to`, half a line width long.
    fn ahead(&self, from: Point, to: Point) -> Point {
        let length = distance(from, to);
        Point { x: (to.x - from.x) / length * self.half, y: (to.y - from.y) / length * self.half }
    }

    /// The left side of the corner `at`, between two directions.
    fn corner(&self, at: Point, before: Point, after: Point, out: &mut Path) {
        let (start, end) = (left_of(before), left_of(after));
        let cross = before.x * after.y - before.y * after.x;
        let square = self.half * self.half;
        let cosine = (before.x * after.x + before.y * after.y) / square;
        out.points.push(moved(at, start));
        if cross.abs() < 1e-9 * square && cosine > 0.0 {
            return;
        }
        if cross < 0.0 {
            // The line turns to this side.
            out.points.push(at);
        } else {
            match self.join {
                Join::Round => self.arc(at, start, end, out),
                Join::Miter => {
                    // 1 / sin(half the angle between the segments), squared, is 2 / (1 + cosine).
                    if 2.0 <= MITER_LIMIT * MITER_LIMIT * (1.0 + cosine) {
                        let stretch = 1.0 / (1.0 + cosine);
                        let tip = Point { x: (start.x + end.x) * stretch, y: (start.y + end.y) * stretch };
                        out.points.push(moved(at, tip));
                    }
                }
            }
        }
        out.points.push(moved(at, end));
    }

    /// Adds the cap of the end `at`, from its left to its right.
    fn end(&self, at: Point, left: Point, ahead: Point, out: &mut Path) {
        let right = Point { x: -left.x, y: -left.y };
        out.points.push(moved(at, left));
        match self.cap {
            Cap::Butt => {}
            Cap::Square => {
                out.points.push(moved(moved(at, left), ahead));
                out.points.push(moved(moved(at, right), ahead));
            }
            Cap::Round => {
                self.arc(at, left, ahead, out);
                out.points.push(moved(at, ahead));
                self.arc(at, ahead, right, out);
            }
        }
        out.points.push(moved(at, right));
    }

    /// Points between two on a circle, clockwise on the screen.
    fn arc(&self, centre: Point, from: Point, to: Point, out: &mut Path) {
        let start = from.y.atan2(from.x);
        let angle = (to.y.atan2(to.x) - start).rem_euclid(std::f64::consts::TAU);
        let step = 2.0 * (1.0 - ROUND_ERROR / self.half.max(ROUND_ERROR)).acos();
        let count = (angle / step).ceil().min(1_000.0);
        let mut number = 1.0;
        while number < count {
            let (sine, cosine) = (start + angle * number / count).sin_cos();
            out.points.push(moved(centre, Point { x: cosine * self.half, y: sine * self.half }));
            number += 1.0;
        }
    }
}

/// `direction` turned counterclockwise by a quarter (on the screen, where y grows downwards).
fn left_of(direction: Point) -> Point {
    Point { x: direction.y, y: -direction.x }
}

fn moved(point: Point, by: Point) -> Point {
    Point { x: point.x + by.x, y: point.y + by.y }
}
