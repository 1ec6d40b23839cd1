//! The outlines of an AREA.

use super::Canvas;
use crate::picture::scene::{Colour, Item, Paint, Path, Point};

/// An area reaches so far beyond its value and its floor, in pixels. Compat: RRDtool's, so that thin ones show.
const REACH: f64 = 0.2;

/// The upper and the lower edge of a column, in pixels; `None` where nothing shows.
fn edges(value: f64, floor: f64, canvas: &Canvas) -> Option<(f64, f64)> {
    if value.is_nan() {
        return None;
    }
    let (top, bottom) = (canvas.y(value), canvas.y(floor));
    (top != bottom).then(|| (top.min(bottom) - REACH, top.max(bottom) + REACH))
}

/// A run of columns that all show.
struct Run {
    /// The left edge of the first.
    first: usize,
    /// Where the run's edges begin in the list of all edges.
    from: usize,
    /// And end.
    to: usize,
}

/// The edges of all columns that show, and the runs that they make.
///
/// In slope mode an edge is at its column's left edge, and a run has two of them; of stairs it reaches from the
/// left edge of the column before to that of its own, and the first column never shows.
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

/// The outline of a run: from its first upper corner down, along the lower edge to the right, and along the upper
/// one back until the first column's right edge. Level points are one.
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

/// Adds a point to a piece that begins at `begin`; on a level the last point moves on.
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

/// The outlines of all pieces.
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
    /// The colour above.
    pub upper: Colour,
    /// The colour below.
    pub lower: Colour,
    /// Pixels from the upper edge down to where the lower colour is reached; negative, from the lower edge up to
    /// where the upper one is; 0, it goes from edge to edge.
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

/// Adds an area with a gradient: what is between each level of its outline and the lower edge of its first column.
///
/// Compat: so it is, whatever the area stands on; the first column stays empty; and in slope mode, too, each
/// column is level, while its colours go by the middle of its two heights.
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
        // Not so the first step of the lower edge.
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
