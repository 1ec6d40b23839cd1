//! Blends translucent colours, for a format without opacity.
//!
//! Every filled area under a later translucent item is a layer, with its shape and its colours. A translucent item is
//! painted once for each layer under it, clipped to that layer, in the blended colour; the last layer to cover a point
//! wins, as it does for the eye. A translucent area makes new layers in turn.
//!
//! Exact for areas over areas and lines over areas, including gradients of one direction. Lines and texts, and areas
//! beyond [`LAYERS_MAX`], do not show through.

use graph::picture::scene::{Colour, Item, Paint, Path, Point, Scene};
use graph::picture::text::TextLayout;

/// Most layers, older ones first: each translucent area over others may double them. Guessed.
const LAYERS_MAX: usize = 64;

/// A rectangle: left, top, right, bottom.
pub(super) type Area = [f64; 4];

/// The empty rectangle.
const NOWHERE: Area = [f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY];
/// The whole plane.
const EVERYWHERE: Area = [f64::NEG_INFINITY, f64::NEG_INFINITY, f64::INFINITY, f64::INFINITY];

/// A part of an item and its paint.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    /// Its colour, opaque.
    pub paint: Paint,
    /// Names of the areas that it is clipped to.
    pub clips: Vec<String>,
}

/// An area that is painted.
struct Layer {
    seen: Seen,
    area: Area,
    /// Whether it fills all of `area`.
    full: bool,
}

/// The layers painted so far.
pub(super) struct Layers {
    layers: Vec<Layer>,
    /// For each item of the scene, the area of later translucent items.
    later: Vec<Area>,
    /// The area that everything is clipped to now, and its name.
    clip: Option<(String, Area)>,
}

impl Layers {
    /// For a scene of which nothing is painted yet.
    pub(super) fn of(scene: &Scene) -> Layers {
        let mut later = vec![NOWHERE; scene.items.len()];
        let mut all = NOWHERE;
        for (slot, item) in later.iter_mut().zip(&scene.items).rev() {
            *slot = all;
            all = around(all, see_through(item));
        }
        let white = Paint::Solid(Colour::new(0xffff_ffff));
        let paper = Layer { seen: Seen { paint: white, clips: Vec::new() }, area: EVERYWHERE, full: true };
        Layers { layers: vec![paper], later, clip: None }
    }

    /// Clips following items to this area; `None` ends the clip.
    pub(super) fn clip(&mut self, clip: Option<(String, Area)>) {
        self.clip = clip;
    }

    /// The visible part of an area.
    pub(super) fn shown(&self, area: Area) -> Area {
        self.clip.as_ref().map_or(area, |(_, clip)| common(area, *clip))
    }

    /// Whether a later translucent item is over the area of this item.
    pub(super) fn wanted(&self, item: usize, area: Area) -> bool {
        self.later.get(item).is_some_and(|&later| touch(later, area))
    }

    /// The blended parts of an item in this area, each over those before it.
    pub(super) fn under(&self, area: Area, paint: &Paint) -> Vec<Seen> {
        if opaque(paint) {
            return vec![Seen { paint: paint.clone(), clips: Vec::new() }];
        }
        let first = self.layers.iter().rposition(|layer| layer.full && covers(layer.area, area)).unwrap_or(0);
        let mut parts = Vec::new();
        for (number, layer) in self.layers.iter().enumerate().skip(first) {
            if number == first || touch(layer.area, area) {
                let clips = if number == first { Vec::new() } else { layer.seen.clips.clone() };
                parts.push(Seen { paint: over(paint, &layer.seen.paint), clips });
            }
        }
        parts
    }

    /// The colour of a text, blended with whatever is under its middle.
    pub(super) fn at(&self, middle: Point, colour: Colour) -> Colour {
        let point = [middle.x, middle.y, middle.x, middle.y];
        let below = self.layers.iter().rev().find(|layer| layer.full && covers(layer.area, point));
        let below = below.map_or(Paint::Solid(Colour::new(0xffff_ffff)), |layer| layer.seen.paint.clone());
        mean(&over(&Paint::Solid(colour), &below))
    }

    /// The path `name` was filled and looked like `parts`; `full` = it is a rectangle.
    pub(super) fn add(&mut self, name: String, area: Area, full: bool, parts: Vec<Seen>) {
        if full && parts.len() == 1 {
            self.layers.retain(|layer| layer.area == EVERYWHERE || !covers(area, layer.area));
        }
        for Seen { paint, mut clips } in parts {
            if self.layers.len() >= LAYERS_MAX {
                return;
            }
            let full = full && clips.is_empty();
            clips.push(name.clone());
            clips.extend(self.clip.iter().map(|(name, _)| name.clone()));
            self.layers.push(Layer { seen: Seen { paint, clips }, area, full });
        }
    }
}

/// The area in which an item is translucent.
fn see_through(item: &Item) -> Area {
    match item {
        Item::Fill { path, paint } if !opaque(paint) => bounds(path, 0.0),
        Item::Stroke { path, colour, stroke } if colour.alpha < 1.0 => bounds(path, stroke.width),
        Item::Text { at, turned, layout, colour }
            if colour.alpha < 1.0
                || layout.runs.iter().any(|run| run.colour.is_some_and(|own| own.alpha < 1.0)) =>
        {
            let Point { x, y } = middle(*at, *turned, layout);
            [x, y, x, y]
        }
        _ => NOWHERE,
    }
}

/// The middle of a text's box.
pub(super) fn middle(at: Point, turned: f64, layout: &TextLayout) -> Point {
    let (sine, cosine) = turned.to_radians().sin_cos();
    let (x, y) = (layout.width / 2.0, layout.height / 2.0);
    Point { x: at.x + x * cosine - y * sine, y: at.y + x * sine + y * cosine }
}

/// The bounding box of a path, including mitred corners of a line of this width.
pub(super) fn bounds(path: &Path, width: f64) -> Area {
    let area = path.points.iter().fold(NOWHERE, |area, &Point { x, y }| around(area, [x, y, x, y]));
    let room = width * 5.0;
    [area[0] - room, area[1] - room, area[2] + room, area[3] + room]
}

/// Whether a path is one rectangle along the axes.
pub(super) fn rectangle(path: &Path) -> bool {
    let [a, b, c, d] = path.points[..] else { return false };
    path.ends == [4]
        && ((a.x == b.x && b.y == c.y && c.x == d.x && d.y == a.y)
            || (a.y == b.y && b.x == c.x && c.y == d.y && d.x == a.x))
}

fn around(a: Area, b: Area) -> Area {
    [a[0].min(b[0]), a[1].min(b[1]), a[2].max(b[2]), a[3].max(b[3])]
}

fn common(a: Area, b: Area) -> Area {
    [a[0].max(b[0]), a[1].max(b[1]), a[2].min(b[2]), a[3].min(b[3])]
}

fn touch(a: Area, b: Area) -> bool {
    let both = common(a, b);
    both[0] <= both[2] && both[1] <= both[3]
}

fn covers(outer: Area, inner: Area) -> bool {
    outer[0] <= inner[0] && outer[1] <= inner[1] && outer[2] >= inner[2] && outer[3] >= inner[3]
}

fn opaque(paint: &Paint) -> bool {
    match paint {
        Paint::Solid(colour) => colour.alpha >= 1.0,
        Paint::Vertical { from, to, .. } => from.alpha >= 1.0 && to.alpha >= 1.0,
    }
}

/// Blends `upper` over the opaque `lower`.
fn over(upper: &Paint, lower: &Paint) -> Paint {
    match (upper, lower) {
        (Paint::Solid(upper), Paint::Solid(lower)) => Paint::Solid(blend(*upper, *lower)),
        (Paint::Solid(upper), Paint::Vertical { from_y, from, to_y, to }) => Paint::Vertical {
            from_y: *from_y,
            from: blend(*upper, *from),
            to_y: *to_y,
            to: blend(*upper, *to),
        },
        (Paint::Vertical { from_y, from, to_y, to }, lower) => {
            let lower = mean(lower);
            Paint::Vertical { from_y: *from_y, from: blend(*from, lower), to_y: *to_y, to: blend(*to, lower) }
        }
    }
}

fn blend(upper: Colour, lower: Colour) -> Colour {
    let alpha = upper.alpha.clamp(0.0, 1.0);
    let mix = |upper: f64, lower: f64| upper * alpha + lower * (1.0 - alpha);
    Colour {
        red: mix(upper.red, lower.red),
        green: mix(upper.green, lower.green),
        blue: mix(upper.blue, lower.blue),
        alpha: 1.0,
    }
}

/// One colour for a paint: itself, or the middle of a gradient.
fn mean(paint: &Paint) -> Colour {
    match *paint {
        Paint::Solid(colour) => colour,
        Paint::Vertical { from, to, .. } => blend(Colour { alpha: 0.5, ..from }, to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF_RED: Paint = Paint::Solid(Colour { red: 1.0, green: 0.0, blue: 0.0, alpha: 0.5 });

    fn solid(rgba: u32) -> Paint {
        Paint::Solid(Colour::new(rgba))
    }

    fn layers() -> Layers {
        Layers::of(&Scene::default())
    }

    #[test]
    fn what_is_opaque_hides_all() {
        let mut layers = layers();
        layers.add("a".to_string(), [0.0, 0.0, 9.0, 9.0], true, layers.under(EVERYWHERE, &solid(0x00ff00ff)));
        let parts = layers.under([1.0, 1.0, 2.0, 2.0], &solid(0x0000ffff));
        assert_eq!(parts, [Seen { paint: solid(0x0000ffff), clips: Vec::new() }]);
    }

    #[test]
    fn paper_shines_through() {
        let parts = layers().under([1.0, 1.0, 2.0, 2.0], &HALF_RED);
        let pink = Colour { red: 1.0, green: 0.5, blue: 0.5, alpha: 1.0 };
        assert_eq!(parts, [Seen { paint: Paint::Solid(pink), clips: Vec::new() }]);
    }

    #[test]
    fn each_area_below_is_a_part() {
        let mut layers = layers();
        let black = layers.under(EVERYWHERE, &solid(0x0000_00ff));
        layers.add("a".to_string(), [0.0, 0.0, 5.0, 5.0], false, black);
        let parts = layers.under([4.0, 4.0, 9.0, 9.0], &HALF_RED);
        let clips: Vec<&[String]> = parts.iter().map(|part| part.clips.as_slice()).collect();
        assert_eq!(clips, [&[][..], &["a".to_string()][..]]);
        let dark = Colour { red: 0.5, green: 0.0, blue: 0.0, alpha: 1.0 };
        assert_eq!(parts[1].paint, Paint::Solid(dark));
        // Elsewhere the paper is white.
        assert_eq!(layers.under([6.0, 6.0, 9.0, 9.0], &HALF_RED).len(), 1);
    }

    #[test]
    fn a_see_through_area_is_seen_through_in_turn() {
        let mut layers = layers();
        let area = [0.0, 0.0, 5.0, 5.0];
        let black = layers.under(area, &solid(0x0000_00ff));
        layers.add("a".to_string(), area, false, black);
        let red = layers.under(area, &HALF_RED);
        layers.add("b".to_string(), area, false, red);
        let parts = layers.under(area, &HALF_RED);
        let clips: Vec<String> = parts.iter().map(|part| part.clips.join(" ")).collect();
        assert_eq!(clips, ["", "a", "b", "a b"]);
    }

    #[test]
    fn a_rectangle_covers_what_is_below_it() {
        let mut layers = layers();
        for name in ["a", "b", "c"] {
            let parts = layers.under(EVERYWHERE, &solid(0x0000_00ff));
            layers.add(name.to_string(), [0.0, 0.0, 5.0, 5.0], true, parts);
        }
        assert_eq!(layers.layers.len(), 2);
        let parts = layers.under([1.0, 1.0, 2.0, 2.0], &HALF_RED);
        assert_eq!(parts.len(), 1);
        assert!(parts[0].clips.is_empty());
    }

    #[test]
    fn layers_end_somewhere() {
        let mut layers = layers();
        for number in 0..100 {
            let parts = layers.under([0.0, 0.0, 5.0, 5.0], &HALF_RED);
            layers.add(format!("p{number}"), [0.0, 0.0, 5.0, 5.0], false, parts);
        }
        assert_eq!(layers.layers.len(), LAYERS_MAX);
    }
}
