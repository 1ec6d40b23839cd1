//! Paints strokes of horizontal and vertical lines: grids, ticks, rules.
//!
//! Almost all of a grid's thousands of dashes are whole pixels along their line and alike across it, so coverage is
//! computed once per line, not per dash.

use graph::picture::scene::{Cap, Path, Point, Stroke};

use super::canvas::{Area, Canvas, Ink, Track};
use super::stroke::Pattern;

/// A line from left to right or from top to bottom.
struct Straight {
    flat: bool,
    /// Its middle on the other axis.
    middle: f64,
    from: f64,
    to: f64,
    /// Whether its first point is `to`.
    backwards: bool,
    half: f64,
    offset: f64,
}

/// Paints the subpaths of `path` one by one, as lines of a grid that do not meet. False, without painting, if one of
/// them is something else or has round ends.
pub(super) fn paint(
    canvas: &mut Canvas,
    clip: Area,
    (path, stroke, zoom): (&Path, &Stroke, f64),
    ink: &Ink,
    smooth: bool,
) -> bool {
    let pairs = path.ends.iter().zip(1..).all(|(end, count)| *end == 2 * count);
    if path.points.len() != 2 * path.ends.len() || path.closed || stroke.cap == Cap::Round || !pairs {
        return false;
    }
    let pieces = path.points.chunks_exact(2);
    let pattern = Pattern::of(stroke, zoom);
    let ends_stick_out = stroke.cap == Cap::Square && pattern.is_some();
    if ends_stick_out || !pieces.clone().all(|ends| is_straight(ends[0], ends[1], stroke)) {
        return false;
    }
    for ends in pieces {
        let line = Straight::of(ends[0], ends[1], stroke, zoom);
        let pattern = pattern.as_ref().filter(|pattern| pattern.cuts(line.to - line.from));
        line.paint(canvas, clip, pattern, ink, smooth);
    }
    true
}

fn is_straight(a: Point, b: Point, stroke: &Stroke) -> bool {
    let known = [a.x, a.y, b.x, b.y, stroke.width].iter().all(|part| part.is_finite());
    known && (a.y == b.y) != (a.x == b.x)
}

impl Straight {
    fn of(a: Point, b: Point, stroke: &Stroke, zoom: f64) -> Straight {
        let flat = a.y == b.y;
        let (start, end) = if flat { (a.x * zoom, b.x * zoom) } else { (a.y * zoom, b.y * zoom) };
        let half = stroke.width.max(0.0) * zoom / 2.0;
        let more = if stroke.cap == Cap::Square { half } else { 0.0 };
        Straight {
            flat,
            middle: if flat { a.y * zoom } else { a.x * zoom },
            from: start.min(end) - more,
            to: start.max(end) + more,
            backwards: end < start,
            half,
            offset: stroke.dash_offset * zoom,
        }
    }

    fn paint(&self, canvas: &mut Canvas, clip: Area, pattern: Option<&Pattern>, ink: &Ink, smooth: bool) {
        let (before, after) = (self.middle - self.half, self.middle + self.half);
        let (low, high) = if self.flat { (clip.left, clip.right) } else { (clip.top, clip.bottom) };
        let mut track = Track::of(self.flat, clip, (before, after), ink, smooth);
        self.dashes(pattern, low, high, |from, to| {
            if canvas.dash(track.as_mut(), from, to) {
                return;
            }
            let area = match self.flat {
                true => Area { left: from, right: to, top: before, bottom: after },
                false => Area { left: before, right: after, top: from, bottom: to },
            };
            canvas.rectangle(area.within(clip), ink, smooth);
        });
    }

    /// Calls `dash` with start and end of every dash between `low` and `high`.
    fn dashes(&self, pattern: Option<&Pattern>, low: f64, high: f64, mut dash: impl FnMut(f64, f64)) {
        let (low, high) = (low.max(self.from), high.min(self.to));
        if low >= high {
            return;
        }
        match pattern {
            None => dash(low, high),
            Some(pattern) if self.backwards => {
                let end = self.to;
                pattern.each(self.offset, end - high, end - low, |from, to| dash(end - to, end - from));
            }
            Some(pattern) => {
                let start = self.from;
                pattern
                    .each(self.offset, low - start, high - start, |from, to| dash(start + from, start + to));
            }
        }
    }
}
