//! Widths and heights of texts beside those that Debian's rrdtool lays its legend out with.

use graph::picture::text::{Font, Setting, TextLayout, Typesetter};
use oracle::RrdTool;
use oracle::random::Random;
use paint::Fonts;

/// Families that Debian's fonts-dejavu-core has, and styles of them.
const FAMILIES: &[&str] = &[
    "DejaVu Sans Mono,Bitstream Vera Sans Mono,monospace,Courier",
    "DejaVu Sans Mono",
    "DejaVu Sans Mono Bold",
    "DejaVu Sans Mono Italic",
    "DejaVu Sans",
    "DejaVu Sans Bold Oblique",
    "DejaVu Serif",
    "dejavu serif bold italic",
    "Sans",
    "Serif Bold",
    "monospace",
    "Courier",
    "Helvetica,Arial",
    "no such family",
];

/// Debian's legend.
struct Legend {
    rrdtool: RrdTool,
}

impl Legend {
    fn start() -> Legend {
        let mut rrdtool = RrdTool::start().unwrap();
        rrdtool.run("create t.rrd -s 300 -b 1000000000 DS:a:GAUGE:600:U:U RRA:AVERAGE:0.5:1:10").unwrap();
        Legend { rrdtool }
    }

    /// Width and height of each text, a line of its own each.
    fn boxes(&mut self, font: &str, size: f64, options: &str, texts: &[String]) -> Vec<(f64, f64)> {
        let mut line = format!(
            "graphv x.png -s 1000000000 -e 1000003000 {options} -n 'LEGEND:{size}:{font}' \
             DEF:a=t.rrd:a:AVERAGE LINE1:a#ff0000"
        );
        for text in texts {
            let text = text.replace('\\', "\\\\").replace(':', "\\:").replace('\'', "'\\''");
            line.push_str(&format!(" 'COMMENT:{text}\\l'"));
        }
        let answer = self.rrdtool.run(&line).unwrap();
        let found: Vec<(f64, f64)> = answer
            .lines()
            .filter(|line| line.starts_with("coords["))
            .map(|line| {
                let numbers: Vec<f64> =
                    line.split('"').nth(1).unwrap().split(',').map(|it| it.parse().unwrap()).collect();
                (numbers[2] - numbers[0], numbers[3] - numbers[1])
            })
            .collect();
        assert_eq!(found.len(), texts.len(), "{line}\n{answer}");
        found
    }
}

fn set(fonts: &Fonts, font: &str, size: f64, markup: bool, text: &str) -> TextLayout {
    let font = Font { size, description: font.as_bytes().to_vec() };
    fonts.set(text.as_bytes(), Setting { font: &font, tab_width: 40.0, markup })
}

fn check(legend: &mut Legend, fonts: &Fonts, font: &str, size: f64, options: &str, texts: &[String]) {
    let want = legend.boxes(font, size, options, texts);
    let markup = options.contains("--pango-markup");
    for (text, want) in texts.iter().zip(want) {
        let layout = set(fonts, font, size, markup, text);
        assert_eq!((layout.width.ceil(), layout.height.ceil()), want, "{text:?} in {font:?} at {size}");
    }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

#[test]
fn boxes_are_debians_in_every_family_and_size() {
    let (mut legend, fonts) = (Legend::start(), Fonts::new());
    let texts = texts(&["M", "HelloWorld 12.34 k", "AVAVAVA To fi WA ffl", "iiiillll||", "ąé€ß→ Ωλ Жя"]);
    for font in FAMILIES {
        for half in 10..=40 {
            check(&mut legend, &fonts, font, f64::from(half) / 2.0, "", &texts);
        }
    }
}

#[test]
fn boxes_are_the_same_in_every_mode() {
    let (mut legend, fonts) = (Legend::start(), Fonts::new());
    let texts = texts(&["HelloWorld 12.34 k"]);
    for options in ["-R light", "-R mono", "-a SVG", "-a PDF"] {
        for size in [5.5, 7.0, 8.0, 9.0, 13.0] {
            check(&mut legend, &fonts, "DejaVu Sans Mono", size, options, &texts);
        }
    }
}

#[test]
fn boxes_of_random_ascii_are_debians() {
    let (mut legend, fonts) = (Legend::start(), Fonts::new());
    let mut random = Random::new(4);
    for round in 0..60 {
        let font = FAMILIES[round % FAMILIES.len()];
        let size = (50 + random.below(150)) as f64 / 10.0;
        let texts: Vec<String> = (0..6)
            .map(|_| {
                let letter = |random: &mut Random| char::from(0x21 + random.below(0x5e) as u8);
                // A percent sign would ask for a number in some of RRDtool's texts, a backslash for an escape.
                (0..1 + random.below(12))
                    .map(|_| letter(&mut random))
                    .map(|it| if matches!(it, '%' | '\\' | ':' | '\'' | '"') { 'x' } else { it })
                    .collect()
            })
            .collect();
        check(&mut legend, &fonts, font, size, "", &texts);
    }
}
