//! Scenes for the tests: one like a graph, random ones, huge ones, hostile ones.

use graph::picture::scene::{Cap, Colour, Item, Join, Paint, Path, Point, Scene, Stroke};
use graph::picture::text::{Font, TextLayout, TextOptions, Typesetter};
use roundel_render::Fonts;
use testkit::random::Random;

/// A text in the embedded font.
pub fn set(fonts: &Fonts, text: &str, size: f64) -> TextLayout {
    let font = Font { size, description: b"DejaVu Sans Mono".to_vec() };
    fonts.set(text.as_bytes(), TextOptions { font: &font, tab_width: 40.0, markup: false })
}

pub fn point(x: f64, y: f64) -> Point {
    Point { x, y }
}

pub fn line(points: Vec<Point>, closed: bool) -> Path {
    Path { ends: vec![points.len()], points, closed }
}

pub fn hairline() -> Stroke {
    Stroke { width: 1.0, dashes: Vec::new(), dash_offset: 0.0, cap: Cap::Butt, join: Join::Miter }
}

pub fn text(fonts: &Fonts, at: Point, turned: f64, text: &str) -> Item {
    Item::Text { at, turned, layout: set(fonts, text, 8.0), colour: Colour::new(0x0000_00ff) }
}

/// An empty scene with a background.
pub fn empty(width: f64, height: f64) -> Scene {
    let ground = Path::rectangle(Point::default(), point(width, height));
    Scene {
        width,
        height,
        zoom: 1.0,
        smooth_lines: true,
        smooth_texts: true,
        title: "A graph <of> \"x\" & y".to_string(),
        description: "Two lines".to_string(),
        items: vec![Item::Fill { path: ground, paint: Paint::Solid(Colour::new(0xf3f3_f3ff)) }],
    }
}

/// A scene like a graph: canvas, stacked areas, a gradient, a translucent grid, a line, texts.
pub fn graph(fonts: &Fonts) -> Scene {
    let mut scene = empty(497.0, 168.0);
    let items = &mut scene.items;
    let canvas = Path::rectangle(point(67.0, 28.0), point(467.0, 128.0));
    items.push(Item::Fill { path: canvas, paint: Paint::Solid(Colour::new(0xffff_ffff)) });
    items.push(Item::Clip { from: point(67.0, 28.0), to: point(467.0, 128.0) });
    let wave = |phase: f64, base: f64| -> Vec<Point> {
        let height = |x: f64| base - 40.0 * (x / 30.0 + phase).sin();
        let mut points: Vec<Point> = (0..400)
            .flat_map(|x| [0.0, 1.0].map(|right| point(67.0 + f64::from(x) + right, height(f64::from(x)))))
            .collect();
        points.extend([point(467.0, 128.0), point(67.0, 128.0)]);
        points
    };
    let paints = [
        Paint::Solid(Colour::new(0x00cf_00ff)),
        Paint::Solid(Colour::new(0x0000_ff60)),
        Paint::Vertical {
            from_y: 50.0,
            from: Colour::new(0xff00_0080),
            to_y: 128.0,
            to: Colour::new(0xffff_0080),
        },
    ];
    for (number, paint) in paints.into_iter().enumerate() {
        let points = wave(number as f64 * 2.0, 80.0 + number as f64 * 10.0);
        items.push(Item::Fill { path: line(points, true), paint });
    }
    items.push(Item::Unclip);
    for number in 0..20 {
        let x = 67.5 + 20.0 * f64::from(number);
        items.push(Item::Stroke {
            path: line(vec![point(x, 26.0), point(x, 130.0)], false),
            colour: Colour::new(0x8f8f_8fbf),
            stroke: Stroke { dashes: vec![1.0, 1.0], ..hairline() },
        });
    }
    let mut points = wave(0.0, 80.0);
    points.truncate(800);
    items.push(Item::Stroke {
        path: line(points, false),
        colour: Colour::new(0xff00_00ff),
        stroke: Stroke { width: 1.5, cap: Cap::Round, join: Join::Round, ..hairline() },
    });
    for (x, y, words) in
        [(150.0, 5.0, "The title"), (80.0, 145.0, "Inbound   12.34 k"), (280.0, 145.0, "Outbound  0.10 M")]
    {
        items.push(text(fonts, point(x, y), 0.0, words));
    }
    items.push(text(fonts, point(10.0, 110.0), -90.0, "bits per second"));
    scene
}

fn colour(random: &mut Random, see_through: bool) -> Colour {
    let alpha = if see_through { random.between(64, 255) as u32 } else { 255 };
    Colour::new(((random.next() as u32) << 8) | alpha)
}

/// A coordinate within `limit`, in quarters of a pixel.
fn coordinate(random: &mut Random, limit: f64) -> f64 {
    random.below((limit * 4.0) as u64) as f64 / 4.0
}

fn somewhere(random: &mut Random) -> Point {
    point(coordinate(random, 300.0), coordinate(random, 200.0))
}

/// Areas, then translucent lines, then lines and texts: an order that every format can show.
pub fn random(fonts: &Fonts, random: &mut Random) -> Scene {
    let mut scene = empty(300.0, 200.0);
    scene.zoom = [1.0, 1.0, 1.5, 2.0][random.below(4) as usize];
    if random.once_in(2) {
        let (from, to) = (point(20.0, 20.0), point(280.0, 170.0));
        scene.items.push(Item::Clip { from, to });
    }
    for _ in 0..random.between(1, 4) {
        let path = if random.once_in(3) {
            Path::rectangle(somewhere(random), somewhere(random))
        } else {
            line((0..random.between(3, 8)).map(|_| somewhere(random)).collect(), true)
        };
        let paint = if random.once_in(4) {
            let from_y = coordinate(random, 150.0);
            let alpha = random.once_in(2);
            let (from, to) = (colour(random, alpha), colour(random, false));
            let to_y = from_y + 5.0 + coordinate(random, 100.0);
            Paint::Vertical { from_y, from, to_y, to: Colour { alpha: from.alpha, ..to } }
        } else {
            let alpha = random.once_in(2);
            Paint::Solid(colour(random, alpha))
        };
        scene.items.push(Item::Fill { path, paint });
    }
    for number in 0..random.between(1, 5) {
        let mut points: Vec<Point> = (0..random.between(2, 6)).map(|_| somewhere(random)).collect();
        if random.once_in(2) {
            let end = points[0];
            points = vec![end, point(end.x, coordinate(random, 200.0))];
        }
        let stroke = Stroke {
            width: random.between(2, 12) as f64 / 4.0,
            dashes: (0..random.below(2) * 2).map(|_| random.between(4, 40) as f64 / 4.0).collect(),
            dash_offset: random.below(20) as f64 / 4.0,
            cap: [Cap::Butt, Cap::Round, Cap::Square][random.below(3) as usize],
            join: [Join::Miter, Join::Round][random.below(2) as usize],
        };
        let path = line(points, random.once_in(4));
        scene.items.push(Item::Stroke { path, colour: colour(random, number == 0), stroke });
    }
    scene.items.push(Item::Unclip);
    for words in ["Max:  12.3", "ÄÖÜ €", "(a\\b)"] {
        let turned = [0.0, -90.0, 90.0, 30.0][random.below(4) as usize];
        let layout = set(fonts, words, random.between(16, 40) as f64 / 2.0);
        let at = point(50.0 + coordinate(random, 150.0), 70.0 + coordinate(random, 60.0));
        scene.items.push(Item::Text { at, turned, layout, colour: colour(random, false) });
    }
    scene
}
