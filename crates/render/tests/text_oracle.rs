//! Widths and heights of texts, compared with those of Debian's rrdtool in its legend.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

use graph::picture::text::{Font, TextLayout, TextOptions, Typesetter};
use roundel_render::Fonts;
use testkit::RrdTool;
use testkit::random::Random;

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

    /// Width and height of each text, set in a line of its own.
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
    fonts.set(text.as_bytes(), TextOptions { font: &font, tab_width: 40.0, markup })
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
                // In some of RRDtool's texts a percent sign begins a format and a backslash a control code.
                (0..1 + random.below(12))
                    .map(|_| letter(&mut random))
                    .map(|it| if matches!(it, '%' | '\\' | ':' | '\'' | '"') { 'x' } else { it })
                    .collect()
            })
            .collect();
        check(&mut legend, &fonts, font, size, "", &texts);
    }
}

#[test]
fn boxes_of_marked_up_texts_are_debians() {
    let (mut legend, fonts) = (Legend::start(), Fonts::new());
    let texts = texts(&[
        "<b>x</b>y",
        "a<big>b</big>",
        "a<small>b</small>",
        "a<sub>b</sub>",
        "a<sup>b</sup>",
        "<tt>ab</tt>",
        "<i>i</i> <u>u</u> <s>s</s>",
        "<span size=\"20000\">ab</span>",
        "<span size=\"x-large\">ab</span>",
        "<span size=\"larger\">ab</span>",
        "<span size=\"12pt\">ab</span>",
        "<span size=\"150%\">ab</span>",
        "<span font_desc=\"DejaVu Sans 12\">ab</span>",
        "<span rise=\"5000\">ab</span>a",
        "<span letter_spacing=\"2000\">abc</span>",
        "<span foreground=\"#ff0000\" weight=\"bold\">ab</span>",
        "a &amp; b &#65; &lt;",
    ]);
    for size in [7.0, 8.0, 20.0] {
        check(&mut legend, &fonts, "DejaVu Sans Mono", size, "--pango-markup", &texts);
        check(&mut legend, &fonts, "DejaVu Sans", size, "--pango-markup", &texts);
    }
}

#[test]
fn boxes_of_other_scripts_are_debians() {
    let (mut legend, fonts) = (Legend::start(), Fonts::new());
    let texts =
        texts(&["שלום", "שלום abc", "السلام", "a\u{301}e", "ﬁ", "a\u{200d}b", "a\u{200b}b", "x (عربي) y"]);
    for size in [5.5, 7.0, 8.0, 9.0, 12.0, 20.0] {
        check(&mut legend, &fonts, "DejaVu Sans Mono", size, "", &texts);
        check(&mut legend, &fonts, "DejaVu Sans", size, "", &texts);
    }
}

/// With Debian's fonts-wqy-microhei, which no text asks for by name. Heights may be a pixel less: see
/// `docs/compatibility.md`.
#[test]
fn chinese_japanese_and_korean_texts_are_as_wide_as_debians() {
    let (mut legend, fonts) = (Legend::start(), Fonts::new());
    let alone = texts(&["流量", "日本語テキスト", "한국어", "（全角）"]);
    let mixed = texts(&["流量", "輸入 12.3 k", "日本語テキスト", "ab 中文 c"]);
    for size in [7.0, 8.0, 9.0, 12.0, 20.0] {
        for (font, texts) in [("DejaVu Sans Mono", &mixed), ("DejaVu Sans", &alone), ("Serif", &alone)] {
            let want = legend.boxes(font, size, "", texts);
            for (text, want) in texts.iter().zip(want) {
                let layout = set(&fonts, font, size, false, text);
                assert_eq!(layout.width.ceil(), want.0, "{text:?} in {font:?} at {size}");
                let lower = want.1 - layout.height.ceil();
                assert!((0.0..=1.0).contains(&lower), "{lower} lower: {text:?} in {font:?} at {size}");
                let glyphs = layout.runs.iter().flat_map(|run| &run.glyphs);
                assert!(glyphs.clone().count() > 0 && glyphs.clone().all(|glyph| glyph.id != 0), "{text}");
            }
        }
    }
}

#[test]
fn broken_markup_is_a_text() {
    let fonts = Fonts::new();
    for text in
        ["<b>x", "<foo>x</foo>", "a & b", "<b>x</i>", "<span foo=\"1\">x</span>", "<", "<!DOCTYPE a>", "</b>"]
    {
        let layout = set(&fonts, "DejaVu Sans Mono", 8.0, true, text);
        assert_eq!(layout.text, text);
        assert_eq!(layout.width, 7.0 * text.len() as f64);
    }
}

#[test]
fn any_bytes_are_a_text() {
    let fonts = Fonts::new();
    let mut random = Random::new(5);
    for _ in 0..2_000 {
        let pieces: [&[u8]; 12] = [
            b"a",
            b"\n",
            b"\r\n",
            b"\t",
            b"\xff",
            b"\0",
            "\u{202e}".as_bytes(),
            "ש".as_bytes(),
            "\u{301}".as_bytes(),
            b"<b>",
            b"</b>",
            "\u{2029}".as_bytes(),
        ];
        let text: Vec<u8> =
            (0..random.below(20)).flat_map(|_| pieces[random.below(12) as usize].to_vec()).collect();
        let size = [8.0, 0.0, -3.0, f64::NAN, 1e9][random.below(5) as usize];
        let font = Font { size, description: b"DejaVu Sans Mono".to_vec() };
        let tab_width = [40.0, 0.0, -1.0, f64::NAN, 1e-9][random.below(5) as usize];
        let layout = fonts.set(&text, TextOptions { font: &font, tab_width, markup: random.once_in(2) });
        assert!(layout.width.is_finite() && layout.height.is_finite(), "{text:?}");
    }
}

#[test]
fn lines_stand_below_each_other_and_tabs_stop() {
    let fonts = Fonts::new();
    let layout = set(&fonts, "DejaVu Sans Mono", 8.0, false, "ab\ncde\r\n\nf");
    assert_eq!((layout.width, layout.height, layout.baseline), (21.0, 56.0, 11.0));
    let last = layout.runs.last().unwrap().glyphs[0];
    assert_eq!((last.x, last.y, last.cluster), (0.0, 53.0, 9));
    let layout = set(&fonts, "DejaVu Sans Mono", 8.0, false, "a\tb\t\tc");
    assert_eq!(layout.width, 127.0);
    let from_the_right = set(&fonts, "DejaVu Sans Mono", 8.0, false, "אב");
    assert!(from_the_right.runs[0].glyphs[0].cluster > from_the_right.runs[0].glyphs[1].cluster);
}

#[test]
fn plain_text_from_the_table_is_as_shaped() {
    // An invisible character takes the other code path.
    let fonts = Fonts::new();
    let all: String = (0x20..0x7f).map(char::from).collect();
    for size in [5.5, 7.0, 8.0, 9.0, 10.0, 13.3] {
        let table = set(&fonts, "DejaVu Sans Mono", size, false, &all);
        let shaped = set(&fonts, "DejaVu Sans Mono", size, false, &format!("{all}\n"));
        assert_eq!(table.runs, shaped.runs);
        assert_eq!((table.width, 2.0 * table.height), (shaped.width, shaped.height));
    }
}
