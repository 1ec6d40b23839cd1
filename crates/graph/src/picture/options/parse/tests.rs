#![allow(clippy::unwrap_used, reason = "a test may stop")]

use rrd::when::calendar::Utc;

use super::*;
use crate::picture::options::{ColourTag, FontTag, ImageFormat, Interval, TimeUnit, XGrid, YGrid};
use crate::picture::scene::Colour;

const FIXED: Clock<'_> = Clock { now: 1_000_000_000, calendar: &Utc };

/// Words with a bar between.
fn read(words: &str) -> Result<Options, String> {
    let words: Vec<&[u8]> = words.split('|').map(str::as_bytes).collect();
    parse(&words, FIXED, None).map(|asked| asked.options).map_err(|error| error.to_string())
}

#[test]
fn words_are_file_options_and_elements() {
    let words: Vec<&[u8]> =
        vec![b"x.png", b"-s", b"999990000", b"LINE:5", b"-S", b"60", b"--daemon=a", b"-w20"];
    let asked = parse(&words, FIXED, Some(b"Vera")).unwrap();
    assert_eq!((asked.file, asked.elements), (&b"x.png"[..], vec![&b"LINE:5"[..]]));
    assert_eq!((asked.start, asked.end, asked.step), (999_990_000, 1_000_000_000, 60));
    assert_eq!((asked.daemon, asked.options.width), (Some(&b"a"[..]), 20));
    assert!(asked.options.fonts.iter().all(|font| font.description == b"Vera"));
}

#[test]
fn options_are_typed() {
    let all = read(
        "x|-t|title|-v||-D|-u|1e3|-l|nan|-Y|-X|3|-L|x|--units=si|-g|--legend-position|east|-m|2.5|-R|mono|-G|mono|\
         -a|SVG|-b|1024|--disable-rrdtool-tag|-I|--border|-3|--right-axis|2:-5x|--grid-dash|1.5:0|-f||--theme|dark",
    )
    .unwrap();
    assert_eq!(
        (all.title, all.vertical_label, all.image_info),
        (Some(b"title".to_vec()), None, Some(Vec::new()))
    );
    assert_eq!((all.full_size, all.alt_y_grid, all.units_si, all.legend), (true, true, true, false));
    assert_eq!((all.upper_limit, all.lower_limit), (Some(1000.0), None));
    assert_eq!((all.units_exponent, all.units_length, all.border), (Some(3), Some(0), -3));
    assert_eq!((all.legend_position, all.font_render), (LegendPosition::East, FontRender::Mono));
    assert_eq!((all.zoom, all.smooth_lines, all.format, all.base), (2.5, false, ImageFormat::Svg, 1024));
    assert_eq!((all.rrdtool_tag, all.minor_grid, all.theme), (false, false, Theme::Dark));
    assert_eq!((all.right_axis, all.grid_dash), (Some((2.0, -5.0)), (1.5, 0.0)));
}

#[test]
fn what_is_given_beside_a_theme_counts_wherever_it_stands() {
    let canvas = |options: &Options| options.colour(ColourTag::Canvas);
    let white = Colour::new(0xffff_ffff);
    for words in ["x|-c|CANVAS#ffffff|--border|3|--theme|dark", "x|--theme|dark|-c|CANVAS#ffffff|--border|3"]
    {
        let options = read(words).unwrap();
        assert_eq!((canvas(&options), options.border), (white, 3), "{words}");
        let dark = Theme::Dark.options(None);
        assert_eq!(options.colour(ColourTag::Font), dark.colour(ColourTag::Font), "{words}");
    }
    assert_eq!(read("x|--theme|dark|--theme|classic").unwrap(), Options::default());
    assert!(read("x|--theme|blue").is_err());
}

#[test]
fn grids_colours_and_fonts_are_read_as_scanf_reads_them() {
    let every = |unit, count| Interval { unit, count };
    let format = b"%H:%M".to_vec();
    let own = XGrid::Custom {
        grid: every(TimeUnit::Minute, 10),
        major: every(TimeUnit::Hour, 1),
        label: every(TimeUnit::Week, 4),
        precision: -5,
        format,
    };
    assert_eq!(read("x|-x|MINUTE: 10:HOUR:1:WEEK:4:-5:%H:%M").unwrap().x_grid, own);
    assert_eq!(read("x|-x|none").unwrap().x_grid, XGrid::None);
    assert_eq!(read("x|--left-axis-format|").unwrap().left_axis.format, Some(Vec::new()));
    assert_eq!(read("x|-y|1e3:2x").unwrap().y_grid, YGrid::Custom { step: 1000.0, label_factor: 2 });
    let back = |word: &str| read(&format!("x|-c|BACK#{word}")).unwrap().colour(ColourTag::Back);
    for (word, want) in [
        ("fa0", 0xffaa_00ff_u32),
        ("abc4", 0xaabb_cc44),
        ("ff0000x", 0xff00_00ff),
        ("11223344f", 0x1122_3344),
        ("0xff00", 0x00ff_00ff),
        (" f0000", 0x0f00_00ff),
        ("-f0000", 0xf100_00ff),
    ] {
        assert_eq!(back(word), Colour::new(want), "{word}");
    }
    let fonts = read("x|-n|DEFAULT:10:Times New|-n|TITLE:0:Vera:Bold|-n|AXIS:7.5|-n|UNIT:-3:T").unwrap();
    let of = |tag| (fonts.font(tag).size, String::from_utf8(fonts.font(tag).description.clone()).unwrap());
    assert_eq!(of(FontTag::Default), (10.0, "Times New".to_string()));
    assert_eq!(of(FontTag::Title), (10.0, "Vera:Bold".to_string()));
    assert_eq!(of(FontTag::Axis), (7.5, "Times New".to_string()));
    assert_eq!(of(FontTag::Unit), (10.0, "Times New".to_string()));
    assert_eq!(read("x|-n|TITLE:1e400").unwrap().font(FontTag::Title).size, 1e6);
}

#[test]
fn errors_are_those_of_rrdtool() {
    fn check(words: &str, want: &str) {
        assert_eq!(read(words).unwrap_err(), want, "{words}");
    }
    const NUMBER: &str =
        "(should match '^(?:[^%]+|%%)*%[-+ 0#]?[0-9]*(?:[.][0-9]+)?l[eEfFgG](?:[^%]+|%%)*$')";
    check("-f|foo", "missing filename");
    check("x|-w|9", "width below 10 pixels");
    check("x|-h|", "height below 10 pixels");
    check("x|-b|1e3", "the only sensible value for base apart from 1000 is 1024");
    check("x|-m|0", "zoom factor must be > 0");
    check("x|-u|x", "option -u - Cannot convert 'x' to float");
    check("x|-l|5x", "option -l - Converted '5x' to 5.000000, but cannot convert 'x'");
    check("x|-o|-l|0|-e|5", "for a logarithmic yaxis you must specify a lower-limit > 0");
    check("x|-o|-l|0|--left-axis-format|%d", &format!("invalid format string '%d' {NUMBER}"));
    check("x|--right-axis-format|%lf%s|-s|5", &format!("invalid format string '%lf%s' {NUMBER}"));
    check("x|--left-axis-formatter|x", "Unknown left axis formatter");
    check("x|-x|HOUR", "invalid x-grid format");
    check("x|-x|HOUR:0:HOUR:1:HOUR:1:0:%H", "invalid x-grid format");
    check("x|-x|HOUR:1:FOO:1:HOUR:1:0:%H", "unknown keyword FOO");
    check("x|-y|1.2.3:2", "option -y - Converted '1.2.3' to 1.200000, but cannot convert '.3'");
    check("x|-y|0:0", "grid step must be > 0");
    check("x|-y|1:0", "label factor must be > 0");
    check("x|-c|BACK", "invalid color def format");
    check("x|-c|FOO#ff", "the color format is #RRGGBB[AA]");
    check("x|-c|FOO#ff0", "invalid color name 'FOO'");
    check("x|-n|FOO:10", "invalid fonttag 'FOO'");
    check("x|-n|TITLE:x", "invalid text property format");
    check("x|-n|TITLE:10xyz", "expected : after font size in 'TITLE:10xyz'");
    check("x|--grid-dash|1.2.3:2", "expected grid-dash format float:float");
    check("x|--grid-dash|1", "invalid grid-dash format");
    check("x|--right-axis|0:1", "the second_axis_scale  must not be 0");
    check("x|--right-axis|1", "invalid right-axis format expected scale:shift");
    check("x|--units=si|--units=x", "--units can only be used once!");
    check("x|--units=x", "invalid argument for --units: x");
    check("x|-d||-d|x", "You cannot specify --daemon more than once.");
    check("x|--legend-direction|up", "unknown legend-position 'up'");
    check("x|-a|png", "unsupported graphics format 'png'");
    check("x|--graph-type|time", "unsupported graphics type 'time'");
    check("x|-s|5000000000", "start (5000000000) should be less than end (1000000000)");
    check("x|-s|zz|-w|5", "start time: unparsable time: zz");
    check("x|--nope", "invalid option -- 'nope'");
}
