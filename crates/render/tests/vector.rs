//! SVG, PDF and EPS, painted by other programs, compared with our raster of the same scene.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

#[path = "vector/pixels.rs"]
mod pixels;
#[path = "vector/scenes.rs"]
mod scenes;

use graph::picture::scene::{Colour, Item, Paint, Path, Point, Scene, Stroke};
use pixels::{Pixels, through};
use quick_xml::events::Event;
use roundel_render::{Fonts, PdfError};
use testkit::random::{Random, seeds};

/// Squares of pixels whose colours differ by more are counted.
const FAR: f64 = 0.2;
/// The part of them that may be. Measured over 120 seeds: up to 0.0125, where large texts cover most of a small PDF.
const FAR_MAX: f64 = 0.015;

/// Asserts that every format shows what the raster shows. Measured over 20 seeds: means up to 0.003 (SVG), 0.006
/// (PDF) and 0.009 (EPS), which smooth edges and glyphs in their own ways.
fn check(name: &str, scene: &Scene) {
    let raster = Pixels::of_scene(scene);
    let (width, height) = (raster.width, raster.height);
    let formats = [
        ("svg", Pixels::of_svg(&roundel_render::svg(scene), width, height), 0.008),
        ("pdf", Pixels::of_pdf(&roundel_render::pdf(scene).unwrap()), 0.012),
        ("eps", Pixels::of_eps(&roundel_render::eps(scene)), 0.016),
    ];
    for (format, pixels, mean_max) in formats {
        let (mean, far) = raster.distance(&pixels, FAR);
        println!("{name} {format} {mean:.4} {far:.4}");
        assert!(mean <= mean_max && far <= FAR_MAX, "{name} as {format}: mean {mean:.4}, far {far:.4}");
    }
}

#[test]
fn a_graph_looks_the_same_in_every_format() {
    check("graph", &scenes::graph(&Fonts::new()));
}

#[test]
fn random_scenes_look_the_same_in_every_format() {
    let fonts = Fonts::new();
    for seed in seeds(12) {
        check(&format!("seed {seed}"), &scenes::random(&fonts, &mut Random::new(seed)));
    }
}

#[test]
fn a_picture_that_misses_something_is_told_from_one_that_does_not() {
    let whole = scenes::graph(&Fonts::new());
    let raster = Pixels::of_scene(&whole);
    // The second area, and the line.
    for number in [4, 27] {
        let mut part = whole.clone();
        part.items.remove(number);
        let (mean, far) = raster.distance(&Pixels::of_scene(&part), FAR);
        assert!(mean > 0.012 || far > FAR_MAX, "item {number}: mean {mean:.4}, far {far:.4}");
    }
}

#[test]
fn texts_are_found_in_a_pdf_and_in_a_pdf_made_of_an_eps() {
    let scene = scenes::graph(&Fonts::new());
    let pdf = roundel_render::pdf(&scene).unwrap();
    let distill =
        ["-q", "-dNOPAUSE", "-dBATCH", "-dSAFER", "-sDEVICE=pdfwrite", "-dEPSCrop", "-sOutputFile=-", "-"];
    let distilled = through("gs", &distill, &roundel_render::eps(&scene));
    for (of, file) in [("pdf", pdf), ("eps", distilled)] {
        let text = String::from_utf8(through("pdftotext", &["-", "-"], &file)).unwrap();
        let words: Vec<&str> = text.split_whitespace().collect();
        for want in ["The title", "Inbound 12.34 k", "Outbound 0.10 M", "bits per second"] {
            let want: Vec<&str> = want.split(' ').collect();
            assert!(words.windows(want.len()).any(|some| some == want), "{of}: {want:?} in {words:?}");
        }
    }
}

#[test]
fn sizes_are_a_point_a_pixel_with_zoom() {
    let mut scene = scenes::graph(&Fonts::new());
    for (zoom, width, height) in [(1.0, "497", "168"), (2.0, "994", "336")] {
        scene.zoom = zoom;
        let svg = String::from_utf8(roundel_render::svg(&scene)).unwrap();
        let head = format!("width=\"{width}pt\" height=\"{height}pt\" viewBox=\"0 0 {width} {height}\"");
        assert!(svg.contains(&head), "{}", &svg[..300]);
        let eps = String::from_utf8(roundel_render::eps(&scene)).unwrap();
        assert!(eps.contains(&format!("%%BoundingBox: 0 0 {width} {height}\n")), "{}", &eps[..200]);
        let info = through("pdfinfo", &["-"], &roundel_render::pdf(&scene).unwrap());
        let info = String::from_utf8(info).unwrap();
        assert!(info.contains(&format!("{width} x {height} pts")), "{info}");
    }
}

#[test]
fn nothing_depends_on_time_or_chance() {
    let scene = scenes::graph(&Fonts::new());
    let again = scenes::graph(&Fonts::new());
    assert_eq!(roundel_render::svg(&scene), roundel_render::svg(&again));
    assert_eq!(roundel_render::eps(&scene), roundel_render::eps(&again));
    let pdf = roundel_render::pdf(&scene).unwrap();
    assert_eq!(pdf, roundel_render::pdf(&again).unwrap());
    let text = String::from_utf8_lossy(&pdf);
    assert!(!text.contains("CreationDate") && !text.contains("ModDate"));
}

/// Every element and every text of a document; fails where it is not well-formed.
fn parsed(svg: &[u8]) -> (Vec<String>, Vec<String>) {
    let text = std::str::from_utf8(svg).unwrap();
    let allowed = |c: char| matches!(c, '\n' | ' '..='\u{7e}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..);
    assert!(text.chars().all(allowed), "characters that XML does not have");
    let mut reader = quick_xml::Reader::from_str(text);
    reader.config_mut().check_end_names = true;
    let (mut elements, mut texts, mut depth) = (Vec::new(), Vec::new(), 0);
    loop {
        match reader.read_event().unwrap() {
            Event::Start(start) => {
                depth += 1;
                for attribute in start.attributes() {
                    attribute.unwrap();
                }
                elements.push(start.name().as_ref().to_string());
                texts.push(String::new());
            }
            Event::Empty(empty) => {
                for attribute in empty.attributes() {
                    attribute.unwrap();
                }
                elements.push(empty.name().as_ref().to_string());
            }
            Event::End(_) => depth -= 1,
            Event::Text(text) => texts.last_mut().into_iter().for_each(|last| *last += &text),
            Event::GeneralRef(name) => {
                let sign = match &*name {
                    "lt" => '<',
                    "gt" => '>',
                    "amp" => '&',
                    "quot" => '"',
                    other => panic!("&{other};"),
                };
                texts.last_mut().into_iter().for_each(|last| last.push(sign));
            }
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(depth, 0);
    (elements, texts)
}

#[test]
fn hostile_texts_are_texts_in_every_format() {
    let fonts = Fonts::new();
    let words = [
        "</text><script>alert(1)</script>",
        "<![CDATA[ ]]> <!-- --> &amp; &#0; \" '",
        "\u{0}\u{1}\u{b}\u{1b}[31m\u{7f}\u{85}\u{fffe}\u{ffff}",
        "(a) ) \\ %!PS\nquit\r%%EOF",
        "\u{202e}evil\u{202c} \u{200b} e\u{301}\u{301}\u{301}",
        "\u{1f600} \u{10ffff} \u{e000}",
        "  \t \t  ",
        "",
    ];
    let mut scene = scenes::empty(400.0, 200.0);
    (scene.title, scene.description) = (words.concat(), words.concat());
    for (number, word) in words.iter().enumerate() {
        let at = scenes::point(10.0, 20.0 * number as f64);
        scene.items.push(scenes::text(&fonts, at, if number % 2 == 0 { 0.0 } else { -30.0 }, word));
    }
    let svg = roundel_render::svg(&scene);
    let (elements, texts) = parsed(&svg);
    let known = ["svg", "title", "desc", "g", "path", "text", "tspan"];
    assert!(elements.iter().all(|element| known.contains(&element.as_str())), "{elements:?}");
    assert!(texts.iter().any(|text| text.trim_end() == words[0]), "{texts:?}");
    Pixels::of_svg(&svg, 400, 200);
    Pixels::of_pdf(&roundel_render::pdf(&scene).unwrap());
    let eps = roundel_render::eps(&scene);
    assert!(eps.iter().all(|byte| matches!(byte, b'\n' | b' '..=b'~')), "seven bits");
    let ends = eps.split(|&byte| byte == b'\n').filter(|line| line.starts_with(b"%%EOF"));
    assert_eq!(ends.count(), 1);
    Pixels::of_eps(&eps);
}

#[test]
fn huge_scenes_are_written_and_small() {
    let mut scene = scenes::empty(100_000.0, 1_000.0);
    let points: Vec<Point> =
        (0..200_000).map(|n| scenes::point(f64::from(n / 2), 500.0 + f64::from(n % 7) * 50.0)).collect();
    let end = points.len();
    let stairs = Path { points, ends: vec![end], closed: false };
    scene.items.push(Item::Fill { path: stairs.clone(), paint: Paint::Solid(Colour::new(0x00ff_00ff)) });
    scene.items.push(Item::Fill { path: stairs.clone(), paint: Paint::Solid(Colour::new(0x0000_ff80)) });
    let stroke = scenes::hairline();
    scene.items.push(Item::Stroke { path: stairs, colour: Colour::new(0xff00_00ff), stroke });
    let svg = roundel_render::svg(&scene);
    parsed(&svg);
    // Three paths of 200,000 points, some five bytes each.
    assert!(svg.len() < 4_000_000, "{}", svg.len());
    assert!(roundel_render::pdf(&scene).unwrap().starts_with(b"%PDF-"));
    let eps = roundel_render::eps(&scene);
    // Two fills, one translucent over the other: two procedures of several parts.
    assert!(eps.len() < 16_000_000, "{}", eps.len());
}

#[test]
fn what_cannot_be_drawn_is_left_out_and_breaks_nothing() {
    let mut scene = scenes::empty(100.0, 100.0);
    let lost = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300, 0.0];
    let points: Vec<Point> = lost.iter().flat_map(|&x| lost.iter().map(move |&y| Point { x, y })).collect();
    let path = Path { ends: vec![points.len(), 99, 3], points, closed: true };
    let red = Colour::new(0xff00_0080);
    for paint in [Paint::Solid(red), Paint::Vertical { from_y: 5.0, from: red, to_y: 5.0, to: red }] {
        scene.items.push(Item::Fill { path: path.clone(), paint: paint.clone() });
        scene.items.push(Item::Fill { path: Path::default(), paint });
    }
    for width in [-1.0, 0.0, f64::NAN, 1e300] {
        let stroke = Stroke { width, dashes: vec![-1.0, f64::NAN, 0.0], ..scenes::hairline() };
        scene.items.push(Item::Stroke { path: path.clone(), colour: red, stroke });
    }
    scene.items.push(Item::Clip { from: scenes::point(50.0, 50.0), to: scenes::point(f64::NAN, 20.0) });
    scene.items.push(Item::Clip { from: scenes::point(50.0, 50.0), to: scenes::point(50.0, 50.0) });
    parsed(&roundel_render::svg(&scene));
    assert!(roundel_render::pdf(&scene).is_ok());
    let eps = String::from_utf8(roundel_render::eps(&scene)).unwrap();
    assert!(!eps.contains("NaN") && !eps.contains("inf"));
    assert!(matches!(roundel_render::pdf(&Scene { width: 0.0, ..scene.clone() }), Err(PdfError::Size(_))));
    assert!(matches!(roundel_render::pdf(&Scene { width: f64::NAN, ..scene }), Err(PdfError::Size(_))));
}
