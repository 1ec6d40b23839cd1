//! Pictures as lists of plain items, so that Debian's SVG and our scene can be compared: one item per subpath, without
//! points on a line between others, closed subpaths in one order.

use roundel_graph::picture::scene::{Colour, Item, Paint, Path, Scene};
use testkit::svg::{self, Svg};

/// Cairo's coordinates are multiples of 1/256 pixel.
const CLOSE: f64 = 0.0045;
/// Lower columns of a gradient are hardly visible, and rounding decides whether they exist.
const SLIVER: f64 = 0.1;
/// Some of RRDtool's colours are not whole 255ths; on screen they are equal.
const CLOSE_COLOUR: f64 = 0.005;

/// One painted item.
#[derive(Clone, Debug, PartialEq)]
pub enum Painted {
    /// Filled with one colour.
    Fill([f64; 4], Vec<(f64, f64)>),
    /// Filled with a gradient: height and colour of both ends.
    Gradient([(f64, [f64; 4]); 2], Vec<(f64, f64)>),
    /// A line.
    Stroke(Look, Vec<(f64, f64)>),
    /// A text: its colour, the position of its first glyph, the number of glyphs, and whether it is turned.
    Text([f64; 4], (f64, f64), usize),
}

/// How a line looks.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    colour: [f64; 4],
    width: f64,
    dashes: Vec<f64>,
    offset: f64,
    cap: String,
    join: String,
    closed: bool,
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < CLOSE
}

/// Compares point by point; or, for almost flat corners, each corner with the lines of the other.
fn near_all(a: &[(f64, f64)], b: &[(f64, f64)]) -> bool {
    let same = a.len() == b.len() && a.iter().zip(b).all(|(a, b)| near(a.0, b.0) && near(a.1, b.1));
    same || a.iter().all(|&at| is_on(at, b)) && b.iter().all(|&at| is_on(at, a))
}

fn is_on(at: (f64, f64), line: &[(f64, f64)]) -> bool {
    (0..line.len()).any(|index| {
        let (from, to) = (line[index], line[(index + 1) % line.len()]);
        let (along, step) = ((to.0 - from.0, to.1 - from.1), (at.0 - from.0, at.1 - from.1));
        let length2 = (along.0 * along.0 + along.1 * along.1).max(1e-12);
        let part = ((along.0 * step.0 + along.1 * step.1) / length2).clamp(0.0, 1.0);
        (step.0 - part * along.0).hypot(step.1 - part * along.1) < 2.0 * CLOSE
    })
}

fn near_colour(a: [f64; 4], b: [f64; 4]) -> bool {
    a.iter().zip(b).all(|(a, b)| (a - b).abs() < CLOSE_COLOUR)
}

impl Painted {
    /// Whether both look the same.
    pub fn is_like(&self, other: &Painted) -> bool {
        match (self, other) {
            (Painted::Fill(a, p), Painted::Fill(b, q)) => near_colour(*a, *b) && near_all(p, q),
            (Painted::Gradient(a, p), Painted::Gradient(b, q)) => {
                let ends = a.iter().zip(b).all(|(a, b)| near(a.0, b.0) && near_colour(a.1, b.1));
                let corners = p.len() == q.len()
                    && p.iter().zip(q).all(|(p, q)| p.0 == q.0 && (p.1 - q.1).abs() < SLIVER);
                ends && (corners || near_all(p, q))
            }
            (Painted::Stroke(a, p), Painted::Stroke(b, q)) => a.is_like(b) && near_all(p, q),
            (Painted::Text(a, p, m), Painted::Text(b, q, n)) => {
                near_colour(*a, *b) && near(p.0, q.0) && near(p.1, q.1) && m == n
            }
            _ => false,
        }
    }
}

/// The first difference of two lists by more than slivers.
pub fn difference<'a>(
    theirs: &'a [Painted],
    ours: &'a [Painted],
) -> Option<(Option<&'a Painted>, Option<&'a Painted>)> {
    let (mut theirs, mut ours) = (theirs.iter().peekable(), ours.iter().peekable());
    loop {
        match (theirs.peek(), ours.peek()) {
            (None, None) => return None,
            (Some(want), Some(got)) if want.is_like(got) => {
                theirs.next();
                ours.next();
            }
            (Some(want), _) if want.is_sliver() => drop(theirs.next()),
            (_, Some(got)) if got.is_sliver() => drop(ours.next()),
            (want, got) => return Some((want.copied(), got.copied())),
        }
    }
}

impl Look {
    fn is_like(&self, other: &Look) -> bool {
        // cairo reduces the offset of dashes to one period.
        let pattern: f64 =
            self.dashes.iter().sum::<f64>() * if self.dashes.len() % 2 == 1 { 2.0 } else { 1.0 };
        let offset = |look: &Look| if pattern > 0.0 { look.offset.rem_euclid(pattern) } else { look.offset };
        near_colour(self.colour, other.colour)
            && (self.width - other.width).abs() < 1e-5
            && self.dashes.len() == other.dashes.len()
            && self.dashes.iter().zip(&other.dashes).all(|(a, b)| (a - b).abs() < 1e-5)
            && (offset(self) - offset(other)).abs() < 1e-5
            && (self.cap.as_str(), self.join.as_str(), self.closed) == (&other.cap, &other.join, other.closed)
    }
}

/// What is outside of a clip on all sides is not painted.
type Clip = Option<((f64, f64), (f64, f64))>;

struct List {
    items: Vec<Painted>,
    clip: Clip,
    /// The whole image.
    size: (f64, f64),
}

impl List {
    /// Adds a rectangle with a gradient, one item per column of pixels, from right to left: Debian joins columns that are
    /// almost level.
    fn columns(&mut self, ends: [(f64, [f64; 4]); 2], points: &[(f64, f64)]) {
        if points.len() != 4 {
            self.items.push(Painted::Gradient(ends, points.to_vec()));
            return;
        }
        let ((left, top), (right, bottom)) = (points[0], points[2]);
        for column in (left as i64..right as i64).rev() {
            let (left, right) = (column as f64, column as f64 + 1.0);
            let piece = vec![(left, top), (right, top), (right, bottom), (left, bottom)];
            self.items.push(Painted::Gradient(ends, piece));
        }
    }

    /// Whether any of `points`, with half a line width around it, is visible in the clip.
    fn shows(&self, points: &[(f64, f64)], around: f64) -> bool {
        let Some((from, to)) = self.clip else { return true };
        let (mut low, mut high) = ((f64::MAX, f64::MAX), (f64::MIN, f64::MIN));
        for point in points {
            low = (low.0.min(point.0 - around), low.1.min(point.1 - around));
            high = (high.0.max(point.0 + around), high.1.max(point.1 + around));
        }
        let to = (to.0.min(self.size.0), to.1.min(self.size.1));
        low.0 < to.0 && low.1 < to.1 && high.0 > from.0.max(0.0) && high.1 > from.1.max(0.0)
    }
}

impl List {
    /// The items without invisible ones. The grid comes last and is sorted: its lines have one colour, so their order is
    /// invisible.
    fn finish(mut self) -> Vec<Painted> {
        self.items.retain(|item| !item.is_nothing());
        let (mut grid, mut rest): (Vec<_>, Vec<_>) = self.items.into_iter().partition(Painted::is_grid);
        let key = |item: &Painted| match item {
            Painted::Stroke(look, points) => {
                let parts = points
                    .iter()
                    .flat_map(|point| [point.0, point.1])
                    .map(|part| (part * 32.0).round() as i64);
                (look.width > 0.5, look.dashes.is_empty(), parts.collect::<Vec<_>>())
            }
            _ => Default::default(),
        };
        grid.sort_by_cached_key(key);
        // The order of neighbouring columns with a gradient is invisible, too.
        for run in rest.chunk_by_mut(Painted::is_beside) {
            run.sort_by_key(|item| item.column());
        }
        rest.append(&mut grid);
        rest
    }
}

/// What Debian painted.
pub fn theirs(svg: &Svg) -> Vec<Painted> {
    let mut list = List { items: Vec::new(), clip: None, size: (svg.width, svg.height) };
    for item in &svg.items {
        match item {
            svg::Item::Fill { pieces, paint } => {
                for piece in pieces {
                    let points = outline(&piece.points, true);
                    match paint {
                        svg::Paint::Solid(colour) => list.items.push(Painted::Fill(*colour, points)),
                        svg::Paint::Gradient { from, to, stops } => {
                            list.columns([(from.1, stops[0].1), (to.1, stops[1].1)], &points);
                        }
                    }
                }
            }
            svg::Item::Stroke { pieces, colour, width, dashes, dash_offset, cap, join } => {
                for piece in pieces {
                    let look = Look {
                        colour: *colour,
                        width: *width,
                        dashes: dashes.clone(),
                        offset: *dash_offset,
                        cap: cap.clone(),
                        join: join.clone(),
                        closed: piece.closed,
                    };
                    list.items.push(Painted::Stroke(look, outline(&piece.points, piece.closed)));
                }
            }
            svg::Item::Text(text) => {
                if let Some(first) = text.glyphs.first() {
                    list.items.push(Painted::Text(text.colour, first.at, text.glyphs.len()));
                }
            }
            svg::Item::Clip { .. } | svg::Item::Unclip => {}
        }
    }
    list.finish()
}

/// What we paint.
pub fn ours(scene: &Scene) -> Vec<Painted> {
    let mut list = List { items: Vec::new(), clip: None, size: (scene.width, scene.height) };
    for item in &scene.items {
        match item {
            Item::Fill { path, paint } => {
                for points in pieces(path).filter(|points| list.shows(points, 0.0)).collect::<Vec<_>>() {
                    let points = outline(&points, true);
                    match paint {
                        Paint::Solid(colour) => list.items.push(Painted::Fill(four(*colour), points)),
                        Paint::Vertical { from_y, from, to_y, to } => {
                            list.columns([(*from_y, four(*from)), (*to_y, four(*to))], &points);
                        }
                    }
                }
            }
            Item::Stroke { path, colour, stroke } => {
                // Cairo checks whether the bounding box of all subpaths is visible.
                if !list.shows(&pieces(path).flatten().collect::<Vec<_>>(), stroke.width / 2.0) {
                    continue;
                }
                for points in pieces(path).collect::<Vec<_>>() {
                    let look = Look {
                        colour: four(*colour),
                        width: stroke.width,
                        dashes: stroke.dashes.clone(),
                        offset: stroke.dash_offset,
                        cap: format!("{:?}", stroke.cap).to_lowercase(),
                        join: format!("{:?}", stroke.join).to_lowercase(),
                        closed: path.closed,
                    };
                    list.items.push(Painted::Stroke(look, outline(&points, path.closed)));
                }
            }
            Item::Text { at, turned, layout, colour } => {
                let glyphs: Vec<_> = layout.runs.iter().flat_map(|run| &run.glyphs).collect();
                if let Some(first) = glyphs.first() {
                    let (sin, cos) = turned.to_radians().sin_cos();
                    let (x, y) = (first.x, first.y);
                    let place = (at.x + x * cos - y * sin, at.y + x * sin + y * cos);
                    list.items.push(Painted::Text(four(*colour), place, glyphs.len()));
                }
            }
            Item::Clip { from, to } => list.clip = Some(((from.x, from.y), (to.x, to.y))),
            Item::Unclip => list.clip = None,
        }
    }
    list.finish()
}

impl Painted {
    /// Whether both are columns with a gradient of the same colours.
    fn is_beside(&self, other: &Painted) -> bool {
        matches!((self, other), (Painted::Gradient(a, _), Painted::Gradient(b, _)) if a[0].1 == b[0].1 && a[1].1 == b[1].1)
    }

    /// Which column of pixels a column with a gradient is.
    fn column(&self) -> Option<i64> {
        match self {
            Painted::Gradient(_, points) => Some(points[0].0 as i64),
            _ => None,
        }
    }

    /// Lines of the grid; the axes are as thin.
    fn is_grid(&self) -> bool {
        matches!(self, Painted::Stroke(look, _) if look.width == 0.4 || look.width == 0.6)
    }

    fn is_sliver(&self) -> bool {
        matches!(self, Painted::Gradient(_, points) if points.len() == 4 && points[2].1 - points[0].1 < SLIVER)
    }

    /// An item that is too small for cairo's coordinates.
    fn is_nothing(&self) -> bool {
        match self {
            Painted::Fill(_, points) | Painted::Gradient(_, points) => points.len() < 3,
            Painted::Stroke(_, points) => points.len() < 2,
            Painted::Text(..) => false,
        }
    }
}

fn four(colour: Colour) -> [f64; 4] {
    [colour.red, colour.green, colour.blue, colour.alpha]
}

fn pieces(path: &Path) -> impl Iterator<Item = Vec<(f64, f64)>> + '_ {
    let mut from = 0;
    path.ends.iter().map(move |&end| {
        let piece = path.points[from..end].iter().map(|point| (point.x, point.y)).collect();
        from = end;
        piece
    })
}

/// The corners of a subpath; those of a closed one clockwise from its least point.
fn outline(points: &[(f64, f64)], closed: bool) -> Vec<(f64, f64)> {
    let mut corners: Vec<(f64, f64)> = Vec::new();
    let same = |a: (f64, f64), b: (f64, f64)| near(a.0, b.0) && near(a.1, b.1);
    for &point in points {
        if corners.last().is_some_and(|&last| same(last, point)) {
            continue;
        }
        while corners.len() > 1 && on_the_way(corners[corners.len() - 2], corners[corners.len() - 1], point) {
            corners.pop();
        }
        corners.push(point);
    }
    if !closed {
        return corners;
    }
    while corners.len() > 1 && same(corners[0], corners[corners.len() - 1]) {
        corners.pop();
    }
    while corners.len() > 2 && on_the_way(corners[corners.len() - 2], corners[corners.len() - 1], corners[0])
    {
        corners.pop();
    }
    while corners.len() > 2 && on_the_way(corners[corners.len() - 1], corners[0], corners[1]) {
        corners.remove(0);
    }
    let least = |corners: &[(f64, f64)]| {
        let key = |point: &(f64, f64)| ((point.0 * 100.0).round() as i64, (point.1 * 100.0).round() as i64);
        (0..corners.len()).min_by_key(|&index| key(&corners[index])).unwrap_or(0)
    };
    let area: f64 = (0..corners.len())
        .map(|at| {
            let (a, b) = (corners[at], corners[(at + 1) % corners.len()]);
            a.0 * b.1 - a.1 * b.0
        })
        .sum();
    if area < 0.0 {
        corners.reverse();
    }
    let start = least(&corners);
    corners.rotate_left(start);
    corners
}

/// Whether `b` lies between `a` and `c`, as far as cairo's coordinates tell.
fn on_the_way(a: (f64, f64), b: (f64, f64), c: (f64, f64)) -> bool {
    let (along, step) = ((c.0 - a.0, c.1 - a.1), (b.0 - a.0, b.1 - a.1));
    let length = along.0.hypot(along.1);
    let away = (along.0 * step.1 - along.1 * step.0).abs() / length.max(1e-9);
    let ahead = along.0 * step.0 + along.1 * step.1;
    away < CLOSE && ahead > 0.0 && ahead < length * length
}
