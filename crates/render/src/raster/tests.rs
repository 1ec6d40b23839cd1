use graph::picture::scene::{Cap, Join};

use super::*;

fn scene(items: Vec<Item>) -> Scene {
    Scene {
        width: 8.0,
        height: 6.0,
        zoom: 1.0,
        smooth_lines: true,
        smooth_texts: true,
        items,
        ..Scene::default()
    }
}

fn painted(items: Vec<Item>) -> Image {
    paint(&scene(items), &mut Glyphs::new()).unwrap()
}

fn path(points: &[(f64, f64)]) -> Path {
    let points: Vec<Point> = points.iter().map(|(x, y)| Point { x: *x, y: *y }).collect();
    Path { ends: vec![points.len()], points, closed: false }
}

fn box_of(left: f64, top: f64, right: f64, bottom: f64) -> Path {
    path(&[(left, top), (right, top), (right, bottom), (left, bottom)])
}

fn fill(path: Path, rgba: u32) -> Item {
    Item::Fill { path, paint: Paint::Solid(Colour::new(rgba)) }
}

/// The opacity of each pixel of a row, of 255.
fn row(image: &Image, y: u32) -> Vec<u32> {
    let start = (y * image.width) as usize;
    image.pixels[start..start + image.width as usize].iter().map(|pixel| pixel >> 24).collect()
}

#[test]
fn a_rectangle_is_where_it_says() {
    let image = painted(vec![fill(box_of(2.0, 1.0, 5.0, 3.0), 0x1020_30ff)]);
    for y in 0..6 {
        for x in 0..8 {
            let inside = (2..5).contains(&x) && (1..3).contains(&y);
            let want = if inside { u32::from_le_bytes([0x10, 0x20, 0x30, 0xff]) } else { 0 };
            assert_eq!(image.pixels[(y * 8 + x) as usize], want, "{x},{y}");
        }
    }
}

#[test]
fn a_rectangle_by_edges_is_the_rectangle_itself() {
    // A fifth point makes it take the path of any polygon.
    let five = path(&[(1.25, 0.5), (4.0, 0.5), (6.75, 0.5), (6.75, 3.75), (1.25, 3.75)]);
    let four = box_of(1.25, 0.5, 6.75, 3.75);
    assert_eq!(painted(vec![fill(five, 0xff)]), painted(vec![fill(four, 0xff)]));
}

#[test]
fn a_dashed_line_begins_with_a_dash() {
    let stroke =
        Stroke { width: 1.0, dashes: vec![2.0, 1.0], dash_offset: 0.0, cap: Cap::Butt, join: Join::Miter };
    let line = |path: Path| Item::Stroke { path, colour: Colour::new(0xff), stroke: stroke.clone() };
    let image = painted(vec![line(path(&[(0.0, 2.5), (8.0, 2.5)]))]);
    assert_eq!(row(&image, 2), [255, 255, 0, 255, 255, 0, 255, 255]);
    let image = painted(vec![line(path(&[(8.0, 2.5), (0.0, 2.5)]))]);
    assert_eq!(row(&image, 2), [255, 255, 0, 255, 255, 0, 255, 255]);
    // The same by outlines.
    let image = painted(vec![line(path(&[(0.0, 2.5), (4.0, 2.5), (8.0, 2.5)]))]);
    assert_eq!(row(&image, 2), [255, 255, 0, 255, 255, 0, 255, 255]);
    assert_eq!(row(&image, 1), [0; 8]);
}

#[test]
fn a_gradient_goes_from_end_to_end() {
    let paint = Paint::Vertical {
        from_y: 1.0,
        from: Colour::new(0xff00_00ff),
        to_y: 5.0,
        to: Colour::new(0x0000_ff00),
    };
    let image = painted(vec![Item::Fill { path: box_of(0.0, 0.0, 8.0, 6.0), paint }]);
    let column: Vec<[u8; 4]> = (0..6).map(|y| image.pixels[y * 8 + 3].to_le_bytes()).collect();
    assert_eq!(column[0], [255, 0, 0, 255]);
    assert_eq!(column[5], [0, 0, 0, 0]);
    // An eighth of the way at the first pixel's centre.
    assert_eq!(column[1], [195, 0, 28, 223]);
    assert!(column.windows(2).all(|pair| pair[0][3] >= pair[1][3]));
}

#[test]
fn nothing_shows_outside_a_clip() {
    let clip = Item::Clip { from: Point { x: 2.0, y: 1.5 }, to: Point { x: 5.0, y: 4.0 } };
    let shapes = [box_of(0.0, 0.0, 8.0, 6.0), path(&[(-3.0, -9.0), (40.0, 3.0), (-3.0, 15.0)])];
    for shape in shapes {
        let image = painted(vec![clip.clone(), fill(shape.clone(), 0xff), Item::Unclip]);
        let inside = [0, 0, 255, 255, 255, 0, 0, 0];
        assert_eq!(row(&image, 0), [0; 8], "{shape:?}");
        assert_eq!(row(&image, 1), inside.map(|it| if it == 255 { 128 } else { 0 }), "{shape:?}");
        assert_eq!(row(&image, 2), inside, "{shape:?}");
        assert_eq!(row(&image, 3), inside, "{shape:?}");
        assert_eq!(row(&image, 4), [0; 8], "{shape:?}");
        assert_eq!(painted(vec![clip.clone(), Item::Unclip, fill(shape, 0xff)]).pixels[2 * 8 + 1] >> 24, 255);
    }
}

#[test]
fn areas_of_slanted_shapes_are_exact() {
    // Half of every pixel on the diagonal.
    let image = painted(vec![fill(path(&[(0.0, 0.0), (6.0, 6.0), (0.0, 6.0)]), 0xff)]);
    for y in 0..6 {
        let want: Vec<u32> = (0..8)
            .map(|x: u32| match x.cmp(&y) {
                std::cmp::Ordering::Less => 255,
                std::cmp::Ordering::Equal => 128,
                std::cmp::Ordering::Greater => 0,
            })
            .collect();
        assert_eq!(row(&image, y), want);
    }
}

#[test]
fn a_hole_is_wound_around_the_other_way() {
    let mut ring = box_of(0.0, 0.0, 6.0, 6.0);
    ring.points.extend(box_of(2.0, 2.0, 4.0, 4.0).points.into_iter().rev());
    ring.ends.push(8);
    assert_eq!(row(&painted(vec![fill(ring, 0xff)]), 3), [255, 255, 0, 0, 255, 255, 0, 0]);
    let mut twice = box_of(0.0, 0.0, 6.0, 6.0);
    twice.points.extend(box_of(2.0, 2.0, 4.0, 4.0).points);
    twice.ends.push(8);
    assert_eq!(row(&painted(vec![fill(twice, 0xff)]), 3), [255, 255, 255, 255, 255, 255, 0, 0]);
}

#[test]
fn without_smoothing_a_pixel_is_painted_or_not() {
    let mut scene = scene(vec![fill(path(&[(0.3, 0.2), (7.7, 2.9), (1.1, 5.6)]), 0xff)]);
    scene.smooth_lines = false;
    scene.items.push(fill(box_of(6.6, 4.4, 7.6, 5.6), 0xff));
    let image = paint(&scene, &mut Glyphs::new()).unwrap();
    assert!(image.pixels.iter().all(|pixel| *pixel == 0 || *pixel == 0xff00_0000));
    assert_eq!(image.pixels[5 * 8 + 7], 0xff00_0000);
    assert_eq!(image.pixels[5 * 8 + 6], 0, "its centre is outside");
    assert_eq!(row(&image, 2)[1..6], [255; 5]);
}

#[test]
fn a_line_has_its_width_corners_and_ends() {
    let corner = path(&[(1.5, 5.5), (1.5, 1.5), (6.5, 1.5)]);
    let stroke = |cap: Cap, join: Join| {
        let stroke = Stroke { width: 1.0, dashes: vec![], dash_offset: 0.0, cap, join };
        painted(vec![Item::Stroke { path: corner.clone(), colour: Colour::new(0xff), stroke }])
    };
    let image = stroke(Cap::Butt, Join::Miter);
    assert_eq!(row(&image, 0), [0; 8]);
    assert_eq!(row(&image, 1), [0, 255, 255, 255, 255, 255, 128, 0]);
    assert_eq!(row(&image, 2), [0, 255, 0, 0, 0, 0, 0, 0]);
    assert_eq!(row(&image, 5), [0, 128, 0, 0, 0, 0, 0, 0]);
    let image = stroke(Cap::Square, Join::Miter);
    assert_eq!(row(&image, 1), [0, 255, 255, 255, 255, 255, 255, 0]);
    let image = stroke(Cap::Round, Join::Round);
    let (corner, end) = (row(&image, 1)[1], row(&image, 1)[6]);
    // A half and an eighth of pi. In the corner the two bars' areas add up, where three quarters and a sixteenth of
    // pi were exact (241).
    assert!(corner >= 241 && end.abs_diff(228) <= 8, "{corner} {end}");
}

#[test]
fn zoom_makes_everything_bigger() {
    let mut small = scene(vec![fill(box_of(1.0, 1.0, 3.0, 2.0), 0xff)]);
    small.zoom = 2.0;
    let image = paint(&small, &mut Glyphs::new()).unwrap();
    assert_eq!((image.width, image.height), (16, 12));
    assert_eq!(image.pixels.iter().filter(|pixel| **pixel != 0).count(), 8);
    assert_eq!(row(&image, 2)[2..6], [255; 4]);
}

/// The bounding box of all that is painted: left, top, right, bottom.
fn ink(image: &Image) -> (u32, u32, u32, u32) {
    let mut found = (u32::MAX, u32::MAX, 0, 0);
    for (at, _) in image.pixels.iter().enumerate().filter(|(_, pixel)| **pixel != 0) {
        let (x, y) = (at as u32 % image.width, at as u32 / image.width);
        found = (found.0.min(x), found.1.min(y), found.2.max(x + 1), found.3.max(y + 1));
    }
    found
}

fn text_scene(text: &str, size: f64, turned: f64) -> Scene {
    use graph::picture::text::{Font, TextOptions, Typesetter};
    let font = Font { size, description: b"DejaVu Sans Mono".to_vec() };
    let setting = TextOptions { font: &font, tab_width: 40.0, markup: false };
    let layout = crate::Fonts::new().set(text.as_bytes(), setting);
    let at = Point { x: 50.0, y: 50.0 };
    let item = Item::Text { at, turned, layout, colour: Colour::new(0xff) };
    Scene { width: 100.0, height: 100.0, ..scene(vec![item]) }
}

#[test]
fn a_text_is_inked_inside_its_box() {
    let mut glyphs = Glyphs::new();
    let image = paint(&text_scene("HMH", 8.0, 0.0), &mut glyphs).unwrap();
    // Three letters of seven pixels; capitals are eight high and stand on the baseline, eleven below the top.
    let (left, top, right, bottom) = ink(&image);
    assert_eq!((top, bottom), (53, 61));
    assert!((50..=51).contains(&left) && (70..=71).contains(&right), "{left} {right}");
    assert_eq!(image, paint(&text_scene("HMH", 8.0, 0.0), &mut glyphs).unwrap(), "kept glyphs are the same");
    // Upright stems are dark, not smeared over two pixels.
    assert!(image.pixels.iter().any(|pixel| pixel >> 24 > 200));
}

#[test]
fn a_turned_text_is_the_same_text() {
    let mut glyphs = Glyphs::new();
    let upright = paint(&text_scene("Lq7", 9.0, 0.0), &mut glyphs).unwrap();
    for (turned, place) in [
        (90.0, (|x, y| (99 - y, x)) as fn(usize, usize) -> (usize, usize)),
        (180.0, |x, y| (99 - x, 99 - y)),
        (270.0, |x, y| (y, 99 - x)),
        (-90.0, |x, y| (y, 99 - x)),
    ] {
        let image = paint(&text_scene("Lq7", 9.0, turned), &mut glyphs).unwrap();
        for y in 0..100 {
            for x in 0..100 {
                let (to_x, to_y) = place(x, y);
                assert_eq!(upright.pixels[y * 100 + x], image.pixels[to_y * 100 + to_x], "{turned} {x},{y}");
            }
        }
    }
    let slanted = ink(&paint(&text_scene("Lq7", 9.0, 30.0), &mut glyphs).unwrap());
    assert!(slanted.3 > 60 && slanted.2 > 60, "{slanted:?}");
}

#[test]
fn huge_images_are_refused_and_tall_ones_painted() {
    for (width, height) in [(1e5, 100.0), (20_000.0, 20_000.0), (f64::INFINITY, 1.0), (f64::NAN, 1e9)] {
        let big = Scene { width, height, ..scene(vec![]) };
        assert!(paint(&big, &mut Glyphs::new()).is_err(), "{width}x{height}");
    }
    // More than one band of coverage.
    let tall = Scene {
        height: 3_000.0,
        ..scene(vec![fill(path(&[(0.0, 0.0), (8.0, 3_000.0), (0.0, 3_000.0)]), 0xff)])
    };
    let image = paint(&tall, &mut Glyphs::new()).unwrap();
    let inked = image.pixels.iter().map(|pixel| u64::from(pixel >> 24)).sum::<u64>() as f64 / 255.0;
    assert!((inked - 12_000.0).abs() < 12.0, "{inked}");
}

#[test]
fn nothing_in_a_scene_breaks_painting() {
    use testkit::random::Random;
    let strange =
        [f64::NAN, f64::INFINITY, -f64::INFINITY, 1e300, -1e300, 0.0, -0.0, 1e-300, 32_768.0, 4.5, 7.0];
    let mut random = Random::new(8);
    let number = |random: &mut Random| strange[random.below(strange.len() as u64) as usize];
    let mut glyphs = Glyphs::new();
    for _ in 0..2_000 {
        let points: Vec<Point> =
            (0..random.below(6)).map(|_| Point { x: number(&mut random), y: number(&mut random) }).collect();
        let path = Path { ends: vec![points.len() / 2, points.len()], points, closed: random.once_in(2) };
        let stroke = Stroke {
            width: number(&mut random),
            dashes: (0..random.below(4)).map(|_| number(&mut random)).collect(),
            dash_offset: number(&mut random),
            cap: [Cap::Butt, Cap::Round, Cap::Square][random.below(3) as usize],
            join: [Join::Miter, Join::Round][random.below(2) as usize],
        };
        let (from_y, to_y) = (number(&mut random), number(&mut random));
        let (from, to) = (Colour::new(random.next() as u32), Colour::new(random.next() as u32));
        let corner = |random: &mut Random| Point { x: number(random), y: number(random) };
        let mut items = vec![
            Item::Clip { from: corner(&mut random), to: corner(&mut random) },
            Item::Fill { path: path.clone(), paint: Paint::Vertical { from_y, from, to_y, to } },
            Item::Stroke { path, colour: from, stroke },
        ];
        if random.once_in(50) {
            let mut text = text_scene("x\u{301}", 8.0, number(&mut random)).items;
            if let Some(Item::Text { at, .. }) = text.first_mut() {
                *at = corner(&mut random);
            }
            items.append(&mut text);
        }
        let mut scene = scene(items);
        scene.smooth_lines = random.once_in(2);
        scene.zoom = [1.0, 0.3, 2.5, f64::NAN][random.below(4) as usize];
        paint(&scene, &mut glyphs).unwrap();
    }
}

fn blank(width: u32, height: u32) -> Canvas {
    Canvas::new(width, height, 0, Default::default())
}

/// Stairs from left to right in subpaths, at `shift` from whole pixels.
fn stairs(seed: u32, shift: f64) -> Path {
    let mut state = seed;
    let mut below = |limit: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from((state >> 8) % limit)
    };
    let mut path = Path::default();
    let mut x = shift - 3.0;
    while x < 60.0 {
        let mut y = below(40) + shift;
        path.points.push(Point { x, y });
        for _ in 0..=below(6) as u32 {
            x += 1.0 + below(5);
            path.points.push(Point { x, y });
            y = below(40) + shift;
            if path.points.last() != Some(&Point { x, y }) {
                path.points.push(Point { x, y });
            }
        }
        path.ends.push(path.points.len());
        x += 2.0 + below(4);
    }
    path
}

#[test]
fn stairs_are_painted_as_their_outlines_are() {
    let clip = Area { left: 2.0, top: 1.0, right: 57.0, bottom: 36.0 };
    let ink = Ink::solid(Colour::new(0x1080_f0ff));
    // Where corners are nearer to each other than the line is wide, their partial pixels are not added up.
    for (width, far) in [(1.0, 0), (2.0, 64), (3.0, 64)] {
        for seed in 0..50 {
            let path = stairs(seed, width / 2.0);
            let stroke =
                Stroke { width, dashes: vec![], dash_offset: 0.0, cap: Cap::Round, join: Join::Round };
            let (mut quick, mut thorough) = (blank(60, 40), blank(60, 40));
            let (pixels, opaque) = (clip.pixels().unwrap(), ink.opaque().unwrap());
            assert!(Stairs::default().paint(&mut quick, pixels, (&path, &stroke, 1.0), opaque));
            let mut outline = Path::default();
            stroke::outline(&path, &stroke, 1.0, &mut outline);
            thorough.path(&outline, clip, &ink, true);
            let pairs = quick.finish().0.pixels.into_iter().zip(thorough.finish().0.pixels);
            let worst = pairs.map(|(a, b)| (a >> 24).abs_diff(b >> 24)).max().unwrap();
            assert!(worst <= far, "{worst} of 255: a line of {width} pixels, seed {seed}");
        }
    }
}

#[test]
fn what_is_no_stairs_is_left_to_outlines() {
    let clip = [0, 0, 8, 6];
    let check = |points: &[(f64, f64)], width: f64, want: bool| {
        let stroke = Stroke { width, dashes: vec![], dash_offset: 0.0, cap: Cap::Round, join: Join::Round };
        let mut canvas = blank(8, 6);
        let done = Stairs::default().paint(&mut canvas, clip, (&path(points), &stroke, 1.0), 0xff00_0000);
        let painted = canvas.finish().0.pixels.iter().any(|pixel| *pixel != 0);
        assert_eq!((done, painted), (want, want), "{points:?} {width}");
    };
    check(&[(1.5, 2.5), (4.5, 2.5), (4.5, 4.5)], 1.0, true);
    check(&[(1.5, 2.5), (4.5, 3.5)], 1.0, false);
    check(&[(1.5, 2.25), (4.5, 2.25)], 1.0, false);
    check(&[(1.5, 2.5), (4.5, 2.5)], 2.0, false);
    check(&[(1.5, 2.5), (4.5, 2.5)], 1.5, false);
    check(&[(1.5, 2.5), (f64::NAN, 2.5)], 1.0, false);
    check(&[(1.5, 2.5), (1e300, 2.5)], 1.0, false);
}
