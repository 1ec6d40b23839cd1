//! Paths for the vector formats: rounded once, without points that add nothing.

use graph::picture::scene::{Path, Stroke};

use crate::digits::Places;

/// One step of a path, in units of the last place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A subpath begins here.
    Begin(i64, i64),
    /// A line by this much.
    By(i64, i64),
    /// Back to the start of the subpath.
    Close,
}

/// Calls `take` with every step of a path; with `closed` each subpath returns to its first point.
///
/// Steps in the same direction along an axis are joined. A subpath of one point is a step of length 0, as round and
/// square ends are visible there. Invalid ends of subpaths are skipped.
pub(crate) fn steps(places: Places, path: &Path, closed: bool, mut take: impl FnMut(Step)) {
    let mut start = 0;
    for &end in &path.ends {
        let piece = path.points.get(start..end).unwrap_or_default();
        start = end;
        let mut points = piece.iter().map(|point| (places.units(point.x), places.units(point.y)));
        let Some(mut at) = points.next() else { continue };
        take(Step::Begin(at.0, at.1));
        let (mut waiting, mut gone) = ((0, 0), false);
        for point in points {
            let step = (point.0 - at.0, point.1 - at.1);
            at = point;
            if goes_on(waiting, step) {
                waiting = (waiting.0 + step.0, waiting.1 + step.1);
            } else {
                take(Step::By(waiting.0, waiting.1));
                (waiting, gone) = (step, true);
            }
        }
        if waiting != (0, 0) || !gone {
            take(Step::By(waiting.0, waiting.1));
        }
        if closed {
            take(Step::Close);
        }
    }
}

/// Whether a line of this width is invisible; so is one of width NaN.
pub(crate) fn is_nothing(width: f64) -> bool {
    width.is_nan() || width <= 0.0
}

/// The dashes of a line; empty if it has no gaps.
pub(crate) fn dashes(stroke: &Stroke) -> &[f64] {
    let lengths = stroke.dashes.as_slice();
    // With an odd number of lengths, dashes and gaps swap roles in the second round.
    let gap = |(number, &length): (usize, &f64)| length > 0.0 && (number % 2 == 1 || lengths.len() % 2 == 1);
    if lengths.iter().enumerate().any(gap) { lengths } else { &[] }
}

/// Whether `next` extends `step` in the same direction.
fn goes_on(step: (i64, i64), next: (i64, i64)) -> bool {
    let one_way = |a: i64, b: i64| a == 0 || b == 0 || (a > 0) == (b > 0);
    step == (0, 0)
        || next == (0, 0)
        || (step.1 == 0 && next.1 == 0 && one_way(step.0, next.0))
        || (step.0 == 0 && next.0 == 0 && one_way(step.1, next.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use graph::picture::scene::Point;

    fn check(points: &[(f64, f64)], closed: bool, want: &[Step]) {
        let points: Vec<Point> = points.iter().map(|&(x, y)| Point { x, y }).collect();
        let path = Path { ends: vec![points.len()], points, closed };
        let mut found = Vec::new();
        steps(Places::new(0), &path, closed, |step| found.push(step));
        assert_eq!(found, want);
    }

    #[test]
    fn what_goes_on_is_one_step_and_what_turns_is_not() {
        use Step::{Begin, By, Close};
        check(&[(0.0, 0.0), (1.0, 0.0), (1.0, 0.0), (5.0, 0.0)], false, &[Begin(0, 0), By(5, 0)]);
        check(&[(0.0, 0.0), (5.0, 0.0), (2.0, 0.0)], false, &[Begin(0, 0), By(5, 0), By(-3, 0)]);
        check(&[(0.0, 0.0), (0.0, 5.0), (0.0, 2.0)], false, &[Begin(0, 0), By(0, 5), By(0, -3)]);
        check(&[(1.0, 1.0), (1.0, 4.0), (3.0, 4.0)], true, &[Begin(1, 1), By(0, 3), By(2, 0), Close]);
        check(&[(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)], false, &[Begin(0, 0), By(1, 1), By(1, 1)]);
        check(&[(0.0, 0.0), (1.0, 1.0), (0.0, 0.0)], false, &[Begin(0, 0), By(1, 1), By(-1, -1)]);
    }

    #[test]
    fn a_single_point_stays_and_no_point_is_nothing() {
        check(&[(1.0, 2.0)], false, &[Step::Begin(1, 2), Step::By(0, 0)]);
        check(&[(1.0, 2.0), (1.0, 2.0)], true, &[Step::Begin(1, 2), Step::By(0, 0), Step::Close]);
        check(&[], true, &[]);
    }

    #[test]
    fn a_million_steps_do_not_drift() {
        let points: Vec<Point> = (0..=1_000_000).map(|n| Point { x: f64::from(n) / 3.0, y: 0.1 }).collect();
        let path = Path { ends: vec![points.len()], points, closed: false };
        let mut sum = 0;
        steps(Places::new(2), &path, false, |step| {
            if let Step::By(x, _) = step {
                sum += x;
            }
        });
        assert_eq!(sum, 33_333_333);
    }

    #[test]
    fn dashes_without_gaps_are_a_line() {
        let check = |lengths: &[f64], want: &[f64]| {
            let (cap, join) = (graph::picture::scene::Cap::Butt, graph::picture::scene::Join::Miter);
            let stroke = Stroke { width: 1.0, dashes: lengths.to_vec(), dash_offset: 0.0, cap, join };
            assert_eq!(dashes(&stroke), want);
        };
        check(&[], &[]);
        check(&[1.0, 0.0], &[]);
        check(&[0.0, 0.0], &[]);
        check(&[3.0], &[3.0]);
        check(&[1.0, 2.0], &[1.0, 2.0]);
        check(&[0.0, 2.0], &[0.0, 2.0]);
    }

    #[test]
    fn ends_that_lie_are_skipped() {
        let path = Path { points: Vec::new(), ends: vec![3, 2], closed: true };
        steps(Places::new(2), &path, true, |step| panic!("{step:?}"));
    }
}
