//! The outlines of an AREA.

use super::Canvas;
use crate::picture::scene::{Colour, Item, Paint, Path, Point};

/// How far an area reaches beyond its value and its base, in pixels. Compat: so thin areas are visible, as in RRDtool.
const REACH: f64 = 0.2;

/// The upper and the lower edge of a column, in pixels; `None` if nothing is visible.
fn edges(value: f64, floor: f64, canvas: &Canvas) -> Option<(f64, f64)> {
    if value.is_nan() {
        return None;
    }
    let (top, bottom) = (canvas.y(value), canvas.y(floor));
    (top != bottom).then(|| (top.min(bottom) - REACH, top.max(bottom) + REACH))
}

/// A run of visible columns.
struct Run {
    /// The left edge of the first.
    first: usize,
    /// Index of the run's first edge in the list of all edges.
    from: usize,
    /// Index after its last edge.
    to: usize,
}

/// The edges of all visible columns, and the runs that they form.
///
/// In slope mode an edge is a point at the left of its column, and a run has at least two. Without it an edge is a
/// tread from the left of the column before to the left of its own, and the first column is invisible.
fn runs(values: &[f64], floor: &[f64], canvas: &Canvas, slope: bool) -> (Vec<(f64, f64)>, Vec<Run>) {
    let mut all = Vec::with_capacity(values.len());
    let mut runs: Vec<Run> = Vec::new();
    let mut open = false;
    for column in usize::from(!slope)..values.len() {
        let edge = edges(values[column], floor[column], canvas);
        if let Some(edge) = edge {
            if !open {
                let first = column - usize::from(!slope);
                runs.push(Run { first, from: all.len(), to: all.len() });
            }
            all.push(edge);
            if let Some(run) = runs.last_mut() {
                run.to = all.len();
            }
        }
        open = edge.is_some();
    }
    if slope {
        runs.retain(|run| run.to - run.from > 1);
    }
    (all, runs)
}

/// Adds the outline of a run: from its upper left corner down, along the lower edge to the right, and back along the
/// upper edge. Points on a level are merged.
fn outline(run: &Run, edges: &[(f64, f64)], canvas: &Canvas, slope: bool, points: &mut Vec<Point>) {
    let begin = points.len();
    let edges = &edges[run.from..run.to];
    let first = run.first;
    let mut push = |column: usize, y: f64| push(points, begin, Point { x: canvas.x(column), y });
    push(first, edges[0].0);
    for (column, &(_, bottom)) in (first..).zip(edges) {
        push(column, bottom);
        if !slope {
            push(column + 1, bottom);
        }
    }
    for (index, &(top, _)) in edges.iter().enumerate().skip(usize::from(slope)).rev() {
        let column = first + index;
        push(if slope { column } else { column + 1 }, top);
        if !slope && index > 0 {
            push(column, top);
        }
    }
}

/// Adds a point to the subpath that begins at `begin`; on a level it replaces the last point.
fn push(points: &mut Vec<Point>, begin: usize, at: Point) {
    if let [.., before, last] = &mut points[begin..]
        && before.y == at.y
        && last.y == at.y
    {
        *last = at;
    } else {
        points.push(at);
    }
}

/// The outlines of all runs.
pub(super) fn path(values: &[f64], floor: &[f64], canvas: &Canvas, slope: bool) -> Path {
    let (edges, runs) = runs(values, floor, canvas, slope);
    let points = Vec::with_capacity(edges.len() * 3);
    let mut path = Path { points, ends: Vec::with_capacity(runs.len()), closed: true };
    for run in runs {
        outline(&run, &edges, canvas, slope, &mut path.points);
        path.ends.push(path.points.len());
    }
    for point in &mut path.points {
        *point = canvas.fit.area(*point);
    }
    path
}

/// The colours of an area with a gradient.
#[derive(Clone, Copy)]
pub(super) struct Gradient {
    /// The upper colour.
    pub upper: Colour,
    /// The lower colour.
    pub lower: Colour,
    /// Positive: pixels from the upper edge down to the pure lower colour. Negative: pixels from the lower edge up to the
    /// pure upper colour. 0: from edge to edge.
    pub height: f64,
}

impl Gradient {
    fn paint(self, top: f64, bottom: f64) -> Paint {
        let (from_y, to_y) = if self.height > 0.0 {
            (top + self.height, top)
        } else if self.height < 0.0 {
            (bottom, bottom + self.height)
        } else {
            (bottom, top)
        };
        Paint::Vertical { from_y, from: self.lower, to_y, to: self.upper }
    }
}

/// Adds an area with a gradient: one slice per level of its outline, down to the lower edge of its first column.
///
/// Compat: that lower edge counts even if the area is stacked on a slope; the first column stays empty; and in slope
/// mode each column is level, while its colours go by the mean of its two heights.
pub(super) fn gradient(
    values: &[f64],
    floor: &[f64],
    canvas: &Canvas,
    slope: bool,
    gradient: Gradient,
    items: &mut Vec<Item>,
) {
    let (edges, runs) = runs(values, floor, canvas, slope);
    let begin = items.len();
    let mut points = Vec::new();
    for run in runs {
        points.clear();
        outline(&run, &edges, canvas, slope, &mut points);
        let bottom = edges[run.from].1;
        // Skips the first level of the lower edge.
        for pair in points.windows(2).skip(2) {
            let (from, to) = (pair[0], pair[1]);
            if from.x == to.x || to.y == bottom {
                continue;
            }
            let paint = gradient.paint((from.y + to.y) / 2.0, bottom);
            let (low, high) = (Point { x: from.x, y: bottom }, to);
            let slice = Path::rectangle(canvas.fit.area(low), canvas.fit.area(high));
            match items[begin..].last_mut() {
                Some(Item::Fill { path, paint: same }) if *same == paint => {
                    path.points.extend(slice.points);
                    path.ends.push(path.points.len());
                }
                _ => items.push(Item::Fill { path: Path { closed: true, ..slice }, paint }),
            }
        }
    }
}
