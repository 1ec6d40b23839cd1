//! Path data: relative steps, each with the letter it needs.

use graph::picture::scene::Path;

use crate::digits::Places;
use crate::steps::{Step, steps};

/// The `d` of a path, empty if there is nothing to draw; `closed` = each subpath returns to its first point.
pub(super) fn data(places: Places, path: &Path, closed: bool) -> String {
    let mut out = String::with_capacity(path.points.len() * 8);
    let mut letter = 'z';
    steps(places, path, closed, |step| {
        let (next, first, second) = match step {
            Step::Begin(x, y) => ('M', x, Some(y)),
            Step::By(x, 0) => ('h', x, None),
            Step::By(0, y) => ('v', y, None),
            Step::By(x, y) => ('l', x, Some(y)),
            Step::Close => {
                letter = 'z';
                return out.push('z');
            }
        };
        if letter != next || next == 'M' {
            out.push(next);
        } else if first >= 0 {
            out.push(' ');
        }
        letter = next;
        places.push_units(&mut out, first);
        if let Some(second) = second {
            if second >= 0 {
                out.push(' ');
            }
            places.push_units(&mut out, second);
        }
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use graph::picture::scene::Point;

    fn check(pieces: &[&[(f64, f64)]], closed: bool, want: &str) {
        let mut path = Path { closed, ..Path::default() };
        for piece in pieces {
            path.points.extend(piece.iter().map(|&(x, y)| Point { x, y }));
            path.ends.push(path.points.len());
        }
        assert_eq!(data(Places::new(2), &path, closed), want);
    }

    #[test]
    fn steps_are_short() {
        check(&[&[(0.5, 1.0), (10.5, 1.0)]], false, "M.5 1h10");
        check(&[&[(0.5, 10.0), (0.5, 1.0)]], false, "M.5 10v-9");
        check(&[&[(1.0, 1.0), (2.0, 3.0), (3.5, 2.0)]], false, "M1 1l1 2 1.5-1");
        check(&[&[(0.0, 0.0), (4.0, 0.0), (4.0, 3.0), (0.0, 3.0)]], true, "M0 0h4v3h-4z");
        check(&[&[(-1.0, -2.0), (1.0, -2.0), (0.0, -2.0)]], false, "M-1-2h2-1");
    }

    #[test]
    fn pieces_follow_each_other() {
        check(&[&[(0.0, 0.0), (1.0, 0.0)], &[(0.0, 1.0), (1.0, 1.0)]], false, "M0 0h1M0 1h1");
        check(&[&[(0.0, 0.0), (1.0, 0.0)], &[], &[(2.0, 2.0)]], true, "M0 0h1zM2 2h0z");
        check(&[], true, "");
    }
}
