//! Sizes and legends of graphs in the fonts of this host, compared with Debian's rrdtool: the width of a text moves
//! everything around it.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

use graph::picture::layout::arrange;
use graph::picture::legend::Entry;
use graph::picture::options::{FontTag, LegendPosition, Options};
use graph::picture::report::{ReportInput, report};
use roundel_render::Fonts;
use testkit::RrdTool;
use testkit::random::{Random, seeds};

const FONTS: [(FontTag, &str); 5] = [
    (FontTag::Title, "TITLE"),
    (FontTag::Axis, "AXIS"),
    (FontTag::Unit, "UNIT"),
    (FontTag::Legend, "LEGEND"),
    (FontTag::Watermark, "WATERMARK"),
];
/// Families that Debian's fonts-dejavu-core has.
const FAMILIES: [&str; 5] =
    ["DejaVu Sans Mono", "DejaVu Sans", "DejaVu Sans Bold", "DejaVu Serif", "DejaVu Serif Bold"];
const TEXTS: [&str; 6] = ["Total", "in  ", "AVERAGE fi", "éñ ß", "100 % WAVE", "a\\tb"];
/// Start and end of all graphs.
const SPAN: (i64, i64) = (1_000_000_000, 1_000_003_000);

/// Our report of `graphv`, without the limits of values.
fn ours(fonts: &Fonts, options: &Options, texts: &[String]) -> String {
    let entry = |text: &String| Entry::Text { text: text.clone().into_bytes(), mark: None, comment: true };
    let layout = arrange(options, &texts.iter().map(entry).collect::<Vec<_>>(), fonts).unwrap();
    let input = ReportInput { printed: &[], layout: Some(&layout), span: SPAN, limits: Some((0.0, 0.0)) };
    let mut out = Vec::new();
    for item in report(input) {
        out.extend_from_slice(item.key.as_bytes());
        out.extend_from_slice(b" = ");
        item.value.push(&mut out);
        out.push(b'\n');
    }
    comparable(&String::from_utf8(out).unwrap())
}

/// Without quotes and the limits of values.
fn comparable(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("value_"));
    lines.map(|line| line.replace('"', "") + "\n").collect()
}

#[test]
fn legends_in_any_font_stand_as_debians_do() {
    let mut tool = RrdTool::start().unwrap();
    let fonts = Fonts::new();
    let positions =
        [LegendPosition::North, LegendPosition::West, LegendPosition::South, LegendPosition::East];
    for seed in seeds(120) {
        let mut random = Random::new(seed);
        let mut options = Options::default();
        let mut words = String::new();
        for (tag, name) in FONTS {
            let size = [5.5, 7.0, 8.0, 8.2, 9.0, 10.0, 12.5, 15.7, 20.0][random.below(9) as usize];
            let family = random.pick(&FAMILIES);
            options.fonts[tag as usize].size = size;
            options.fonts[tag as usize].description = family.into();
            words += &format!(" -n '{name}:{size}:{family}'");
        }
        let position = random.below(4) as usize;
        options.legend_position = positions[position];
        words += &format!(" --legend-position={}", ["north", "west", "south", "east"][position]);
        if random.once_in(3) {
            options.full_size = true;
            (options.width, options.height) = (600, 300);
            words += " -D -w 600 -h 300";
        }
        if random.once_in(3) {
            options.zoom = [0.7, 1.5, 2.0][random.below(3) as usize];
            words += &format!(" -m {}", options.zoom);
        }
        let text = |_| {
            let text = random.pick(&TEXTS).repeat(random.between(1, 3) as usize);
            text + random.pick(&["", "", "\\l", "\\r", "\\c", "\\g", "\\s"])
        };
        let texts: Vec<String> = (0..8).map(text).collect();
        let comments: String = texts.iter().map(|text| format!(" 'COMMENT:{text}'")).collect();
        let (start, end) = SPAN;
        let line = format!("graphv x.png -s {start} -e {end}{words} LINE1:1#ff0000{comments}");
        let theirs = comparable(&tool.run(&line).unwrap());
        assert_eq!(ours(&fonts, &options, &texts), theirs, "ROUNDEL_SEED={seed}: {line}");
    }
}
