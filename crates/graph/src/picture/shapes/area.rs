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
    (all, runs)
}

/// The outlines of all pieces: along the upper edge to the right, and along the lower one back.
pub(super) fn path(values: &[f64], floor: &[f64], canvas: &Canvas, slope: bool) -> Path {
    let (edges, runs) = runs(values, floor, canvas, slope);
    let points = Vec::with_capacity(edges.len() * 3);
    let mut path = Path { points, ends: Vec::with_capacity(runs.len()), closed: true };
    for run in runs {
        let edges = &edges[run.from..run.to];
        let end = run.first + edges.len();
        if slope && edges.len() < 2 {
            continue;
        }
        let begin = path.points.len();
        let mut push = |column: usize, y: f64| {
            push(&mut path.points, begin, canvas.fit.area(Point { x: canvas.x(column), y }));
        };
        for (column, &(top, _)) in (run.first..).zip(edges) {
            push(column, top);
            if !slope {
                push(column + 1, top);
            }
        }
        for (column, &(_, bottom)) in (run.first..end).zip(edges).rev() {
            if !slope {
                push(column + 1, bottom);
            }
            push(column, bottom);
        }
        path.ends.push(path.points.len());
    }
    path
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

/// What lies between the left edges of two columns: their numbers, and the upper and lower edge at each.
#[derive(Clone, Copy, PartialEq)]
struct Slice {
    columns: (usize, usize),
    left: (f64, f64),
    right: (f64, f64),
}

/// Adds an area with a gradient: each column has its own, and level ones are one.
///
/// Compat: from right to left, and the first column of a piece stays empty.
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
    for run in runs {
        let edges = &edges[run.from..run.to];
        let mut pending: Option<Slice> = None;
        for index in (if slope { 2 } else { 1 }..edges.len()).rev() {
            let left = if slope { edges[index - 1] } else { edges[index] };
            let column = run.first + index - usize::from(slope);
            let slice = Slice { columns: (column, column + 1), left, right: edges[index] };
            match &mut pending {
                Some(wide) if wide.left == wide.right && wide.left == left && left == slice.right => {
                    wide.columns.0 = column;
                }
                _ => {
                    if let Some(done) = pending.replace(slice) {
                        add(done, canvas, gradient, begin, items);
                    }
                }
            }
        }
        if let Some(done) = pending {
            add(done, canvas, gradient, begin, items);
        }
    }
}

/// Adds a slice: to the item before it where that has the same paint and is one of this area, which begin at `begin`.
fn add(slice: Slice, canvas: &Canvas, gradient: Gradient, begin: usize, items: &mut Vec<Item>) {
    let paint = gradient.paint((slice.left.0 + slice.right.0) / 2.0, (slice.left.1 + slice.right.1) / 2.0);
    let corner = |column: usize, y: f64| canvas.fit.area(Point { x: canvas.x(column), y });
    let (from, to) = slice.columns;
    let corners = [
        corner(from, slice.left.0),
        corner(to, slice.right.0),
        corner(to, slice.right.1),
        corner(from, slice.left.1),
    ];
    match items[begin..].last_mut() {
        Some(Item::Fill { path, paint: same }) if *same == paint => {
            path.points.extend(corners);
            path.ends.push(path.points.len());
        }
        _ => {
            let path = Path { points: corners.to_vec(), ends: vec![4], closed: true };
            items.push(Item::Fill { path, paint });
        }
    }
}
