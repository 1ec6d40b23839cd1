//! The points of a LINE.

use super::Canvas;
use crate::picture::scene::{Path, Point};

/// The line through `values`: as stairs, or in slope mode from value to value.
///
/// Compat: of stairs each tread ends at its column's left edge, so that the first column's value shows in slope
/// mode alone, and a lone value has a tread but no slope.
pub(super) fn path(values: &[f64], canvas: &Canvas, width: f64, slope: bool) -> Path {
    let mut path = Path { points: Vec::with_capacity(values.len() * 2), ..Path::default() };
    // Where the piece at hand begins in the points.
    let mut begin = 0;
    let end_piece = |path: &mut Path, begin: &mut usize| {
        // One point is no line.
        if path.points.len() > *begin + 1 {
            path.ends.push(path.points.len());
        } else {
            path.points.truncate(*begin);
        }
        *begin = path.points.len();
    };
    for (column, &value) in values.iter().enumerate().skip(usize::from(!slope)) {
        if value.is_nan() {
            end_piece(&mut path, &mut begin);
            continue;
        }
        let y = canvas.y(value);
        let at = canvas.fit.line(Point { x: canvas.x(column), y }, width);
        let fresh = path.points.len() == begin;
        if !slope {
            let level = !fresh && path.points.last().is_some_and(|last| last.y == at.y);
            if level {
                path.points.pop();
            } else {
                let x = canvas.fit.line(Point { x: canvas.x(column - 1), y }, width).x;
                path.points.push(Point { x, y: at.y });
            }
        }
        path.points.push(at);
    }
    end_piece(&mut path, &mut begin);
    path
}
