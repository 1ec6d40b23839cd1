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
    // A fifth point takes the way of any path.
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
