//! Legend and layout against Debian's rrdtool, on random arguments: the report of `graphv`, and the texts and boxes of
//! its SVG.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

#[path = "support/mono.rs"]
mod mono;
mod support;

use mono::Mono;
use roundel_graph::eval::Data;
use roundel_graph::language::{Element, Script};
use roundel_graph::picture::layout::{Layout, PlacedText, arrange};
use roundel_graph::picture::legend::entries::{LegendInput, entries};
use roundel_graph::picture::legend::{MarkShape, PlacedMark};
use roundel_graph::picture::options::{FontTag, LegendDirection, LegendPosition, Options, XGrid, YGrid};
use roundel_graph::picture::report::{ReportInput, report};
use roundel_graph::plan::TimeRange;
use roundel_graph::print::Printer;
use rrd::info::push_text;
use support::{EPOCH, UtcDates, make_rrds, run};
use testkit::RrdTool;
use testkit::random::{Random, seeds};
use testkit::svg::{Item, Svg};

/// Start and end of all graphs.
const SPAN: (i64, i64) = (EPOCH + 5000, EPOCH + 9000);
/// Variables of all graphs.
const VARIABLES: [&str; 5] = [
    "DEF:a=a.rrd:in:AVERAGE",
    "CDEF:none=a,UNKN,*",
    "CDEF:t=a,UN,5,5,IF",
    "VDEF:last=t,LAST",
    "VDEF:unknown=none,MAXIMUM",
];
const FONTS: [(FontTag, &str); 5] = [
    (FontTag::Title, "TITLE"),
    (FontTag::Axis, "AXIS"),
    (FontTag::Unit, "UNIT"),
    (FontTag::Legend, "LEGEND"),
    (FontTag::Watermark, "WATERMARK"),
];

/// A graph: its options as arguments and as types, and its elements.
#[derive(Default)]
struct Case {
    words: Vec<String>,
    options: Options,
    elements: Vec<String>,
}

impl Case {
    fn option(&mut self, words: &[&str], set: impl FnOnce(&mut Options)) {
        self.words.extend(words.iter().map(|word| word.to_string()));
        set(&mut self.options);
    }

    fn elements(elements: &[&str]) -> Case {
        // Without an element that draws there is no picture.
        let elements =
            VARIABLES.iter().chain(&["AREA:a#cccccc"]).chain(elements).map(|word| word.to_string()).collect();
        Case { elements, ..Case::default() }
    }
}

fn quoted(words: &[String]) -> String {
    words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ")
}

fn random_sizes(random: &mut Random, case: &mut Case) {
    if random.once_in(2) {
        let width = random.between(10, 600) as u32;
        case.option(&["-w", &width.to_string()], |options| options.width = width);
    }
    if random.once_in(2) {
        let height = random.between(10, 300) as u32;
        case.option(&["-h", &height.to_string()], |options| options.height = height);
    }
    if random.once_in(4) {
        case.option(&["-D"], |options| options.full_size = true);
    }
    if random.once_in(6) {
        let zoom = [0.5, 0.7, 1.7, 2.0, 3.0][random.below(5) as usize];
        case.option(&["-m", &zoom.to_string()], |options| options.zoom = zoom);
    }
    if random.once_in(12) {
        case.option(&["-j"], |options| options.only_graph = true);
    }
    if random.once_in(6) {
        case.option(&["-x", "none"], |options| options.x_grid = XGrid::None);
    }
    if random.once_in(6) {
        case.option(&["-y", "none"], |options| options.y_grid = YGrid::None);
    }
    if random.once_in(6) {
        let length = random.below(25) as i32;
        case.option(&["-L", &length.to_string()], |options| options.units_length = Some(length));
    }
    for (tag, name) in FONTS {
        if random.once_in(6) {
            let least = if tag == FontTag::Title { 3.0 } else { 0.3 };
            let size = [least, 3.0, 5.5, 6.3, 7.0, 8.2, 9.0, 10.0, 11.0, 12.0, 15.7, 20.0, 33.0]
                [random.below(13) as usize];
            case.option(&["-n", &format!("{name}:{size}:")], |options| {
                options.fonts[tag as usize].size = size
            });
        }
    }
}

fn random_texts(random: &mut Random, case: &mut Case) {
    if random.once_in(3) {
        let title = random.pick(&[
            "T",
            "A title",
            "Two<br/>lines",
            "Three\\nof<br>them\\n",
            "<br/>",
            "A <b>bold</b> one",
        ]);
        case.option(&["-t", title], |options| options.title = Some(title.into()));
    }
    if random.once_in(3) {
        let label = random.pick(&["V", "bits per second", "a<br/>b"]);
        case.option(&["-v", label], |options| options.vertical_label = Some(label.into()));
    }
    if random.once_in(4) {
        case.option(&["--right-axis", "2:0"], |options| options.right_axis = Some((2.0, 0.0)));
    }
    if random.once_in(4) {
        let label = random.pick(&["R", "a right label"]);
        case.option(&["--right-axis-label", label], |options| options.right_axis_label = Some(label.into()));
    }
    if random.once_in(4) {
        let text = random.pick(&["W", "marked\\nwith water"]);
        case.option(&["-W", text], |options| options.watermark = Some(text.into()));
    }
    if random.once_in(10) {
        case.option(&["-g"], |options| options.legend = false);
    }
    if random.once_in(6) {
        case.option(&["-F"], |options| options.force_rules_legend = true);
    }
    if random.once_in(4) {
        case.option(&["--dynamic-labels"], |options| options.dynamic_labels = true);
    }
    let positions =
        [LegendPosition::North, LegendPosition::West, LegendPosition::South, LegendPosition::East];
    if random.once_in(2) {
        let at = random.below(4) as usize;
        let word = format!("--legend-position={}", ["north", "west", "south", "east"][at]);
        case.option(&[&word], |options| options.legend_position = positions[at]);
    }
    let directions = [LegendDirection::BottomUp, LegendDirection::BottomUp2];
    if random.once_in(3) {
        let at = random.below(2) as usize;
        let word = format!("--legend-direction={}", ["bottomup", "bottomup2"][at]);
        case.option(&[&word], |options| options.legend_direction = directions[at]);
    }
    if random.once_in(8) {
        case.option(&["-u", "90000"], |options| options.upper_limit = Some(90_000.0));
    }
    if random.once_in(8) {
        case.option(&["-l", "-3"], |options| options.lower_limit = Some(-3.0));
    }
}

/// A random legend, with control codes at its end.
fn random_legend(random: &mut Random) -> String {
    let mut text = match random.below(8) {
        0 => String::new(),
        1 => " ".repeat(random.between(1, 3) as usize),
        2 => "x".repeat(random.between(1, 70) as usize),
        3 => format!("word{}", " ".repeat(random.between(0, 4) as usize)),
        4 => random.pick(&["é ü", "back\\slash", "a\\lb", "100 %", "x\\"]).to_string(),
        _ => format!("{:.*}", random.between(1, 20) as usize, "a legend of some size"),
    };
    let escapes = ["\\l", "\\r", "\\c", "\\j", "\\n", "\\g", "\\s", "\\u", "\\j", "\\.", "\\l\\g", "\\x"];
    match random.below(14) as usize {
        // Rarely an unknown one.
        11 if random.once_in(6) => text += escapes[11],
        at @ 0..11 => text += escapes[at],
        _ => {}
    }
    text
}

fn random_elements(random: &mut Random) -> Vec<String> {
    let mut elements: Vec<String> = VARIABLES.map(str::to_string).to_vec();
    for _ in 0..random.below(14) {
        let legend = random_legend(random);
        let element = match random.below(16) {
            0..4 => format!("COMMENT:{legend}"),
            4 => format!("LINE{}:a#ff0000:{legend}", random.pick(&["1", "2.5", "0.3"])),
            5 => format!("LINE1:a#0000ff80:{legend}:dashes=5,2"),
            6 => format!("AREA:a{}:{legend}", random.pick(&["#00ff00", "#00ff00#0000ff", "", "#f00"])),
            7 => format!("TICK:a#ff00ff:0.3:{legend}"),
            8 => {
                let value = random.pick(&["50000", "90000", "90001", "-3", "-4", "unknown", "last"]);
                format!("HRULE:{value}#123456:{legend}{}", random.pick(&["", ":dashes"]))
            }
            9 => {
                let (start, end) = SPAN;
                let times = [start, end, start - 1, end + 1, 5, start + 100];
                format!("VRULE:{}#654321:{legend}", times[random.below(6) as usize])
            }
            10 => format!("VRULE:{}#654321:{legend}", random.pick(&["last", "unknown"])),
            11 => format!("GPRINT:last:{legend}%1.0lf{}", random.pick(&["\\l", "\\r", "", "", "\\g", " "])),
            12 => format!("GPRINT:last:%H{legend}:strftime"),
            13 => format!("PRINT:last:%lf{legend}"),
            _ => format!("TEXTALIGN:{}", random.pick(&["left", "right", "center", "justified"])),
        };
        elements.push(element);
    }
    elements.push("AREA:a#cccccc".to_string());
    elements
}

/// Our result of a case: the layout and its report, or the error.
fn ours(tool: &RrdTool, case: &Case) -> Result<(Layout, String), String> {
    let range = TimeRange { start: SPAN.0, end: SPAN.1, step: 10 };
    let (script, data) = run(tool.directory(), range, &case.elements)?;
    let (printed, inside) = prints(&script, &data)?;
    let source = LegendInput { script: &script, data: &data, printed: &inside, span: SPAN };
    let entries = entries(source, &case.options);
    let layout = arrange(&case.options, &entries, &Mono).map_err(|error| error.to_string())?;
    let told = ReportInput { printed: &printed, layout: Some(&layout), span: SPAN, limits: Some((0.0, 0.0)) };
    let text = without_limits(&said(told));
    Ok((layout, text))
}

type Texts = Vec<Vec<u8>>;

/// The texts of PRINTs, and those of GPRINTs.
fn prints(script: &Script, data: &Data) -> Result<(Texts, Texts), String> {
    let mut printer = Printer::new(&UtcDates, 1000.0);
    let (mut printed, mut inside) = (Vec::new(), Vec::new());
    for element in &script.elements {
        let Element::Print(print) = element else { continue };
        let text = printer.print(print, data).map_err(|error| error.to_string())?;
        if print.inside { inside.push(text) } else { printed.push(text) }
    }
    Ok((printed, inside))
}

/// The limits of values are another test's.
fn without_limits(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with("value_")).map(|line| format!("{line}\n")).collect()
}

fn check(tool: &mut RrdTool, name: &str, case: &Case) {
    let (start, end) = SPAN;
    let line = format!("{} {}", quoted(&case.words), quoted(&case.elements));
    let theirs = tool.run(&format!("graphv x.svg -a SVG -s {start} -e {end} {line}"));
    let ours = ours(tool, case);
    match (ours, theirs) {
        (Ok((layout, report)), Ok(theirs)) => {
            assert_eq!(report, without_limits(&theirs), "{name}: {line}");
            let svg = Svg::read(&std::fs::read_to_string(tool.path("x.svg")).unwrap());
            check_picture(&layout, &svg, &case.options, &format!("{name}: {line}"));
        }
        (Err(ours), Err(theirs)) => assert_eq!(ours, theirs, "{name}: {line}"),
        (ours, theirs) => {
            panic!("{name}: {line}\nours {:?}\ntheirs {theirs:?}", ours.map(|(_, report)| report))
        }
    }
}

/// Asserts that texts and boxes of Debian's picture, scaled back, are where ours are.
fn check_picture(layout: &Layout, svg: &Svg, options: &Options, name: &str) {
    let zoom = options.zoom;
    let small = |at: (f64, f64)| (at.0 / zoom, at.1 / zoom);
    let starts: Vec<(f64, f64)> =
        svg.texts().filter_map(|text| Some(small(text.glyphs.first()?.at))).collect();
    let inside =
        |at: (f64, f64)| (0.0..svg.width / zoom).contains(&at.0) && (0.0..svg.height / zoom).contains(&at.1);
    let check = |placed: &PlacedText, slack: f64, what: &str| {
        let baseline = placed.layout.baseline;
        let at = match placed.turned {
            0.0 => (placed.at.x, placed.at.y + baseline),
            -90.0 => (placed.at.x + baseline, placed.at.y),
            _ => (placed.at.x - baseline, placed.at.y),
        };
        // cairo leaves out what is outside of the image.
        if inside(at) && inside((at.0 + placed.layout.width, at.1)) {
            assert!(
                starts.iter().any(|start| near(*start, at, slack)),
                "{name}\n{what} at {at:?} is not in {starts:?}"
            );
        }
    };
    // Debian centres the first text of a zoomed picture as if it were not zoomed. Mostly that is a label of an axis, but
    // not on a canvas too small for one.
    let bare = options.x_grid == XGrid::None && options.y_grid == YGrid::None;
    let slack = match zoom {
        1.0 => 0.01,
        _ if bare => 50.0,
        _ => 1.01,
    };
    layout.title.iter().for_each(|placed| check(placed, slack, "title"));
    layout.vertical_label.iter().for_each(|placed| check(placed, slack, "vertical label"));
    layout.right_axis_label.iter().for_each(|placed| check(placed, slack, "right label"));
    layout.watermark.iter().for_each(|placed| check(placed, slack, "watermark"));
    layout.signature.iter().for_each(|placed| check(placed, 0.01, "signature"));
    for entry in &layout.legend {
        // Spaces alone are not painted, nor is anything before a tab then.
        let start = entry.text.split(|byte| *byte == b'\t').next().unwrap_or_default();
        if start.iter().any(|byte| *byte != b' ') {
            check(&PlacedText { layout: entry.layout.clone(), at: entry.at, turned: 0.0 }, 0.01, "legend");
        }
        let seen = |placed: &&PlacedMark| {
            placed.to.x > placed.from.x
                && inside((placed.from.x - 1.0, placed.from.y - 1.0))
                && inside((placed.to.x + 1.0, placed.to.y + 1.0))
        };
        if let Some(placed) = entry.mark.as_ref().filter(seen) {
            assert!(svg.items.iter().any(|item| is_mark(item, zoom, placed)), "{name}\nno {placed:?}");
        }
    }
}

/// Whether `item` is the line of a colour box, or around it.
fn is_mark(item: &Item, zoom: f64, placed: &PlacedMark) -> bool {
    let Item::Stroke { pieces, width, dashes, .. } = item else { return false };
    let (left, top, right, bottom) = (placed.from.x, placed.from.y, placed.to.x, placed.to.y);
    let (middle, centre) = ((left + right) / 2.0, (top + bottom) / 2.0);
    let (points, wide, dash): (Vec<(f64, f64)>, f64, &[f64]) = match placed.mark.shape {
        MarkShape::Box { dashed } => {
            let corners = vec![(left, bottom), (right, bottom), (right, top), (left, top)];
            (corners, 1.0, if dashed { &[3.0] } else { &[] })
        }
        MarkShape::Rising { width } => (vec![(left, bottom), (right, top)], width, &[]),
        MarkShape::Level => (vec![(left, centre), (right, centre)], 1.0, &[]),
        MarkShape::Upright => (vec![(middle, bottom), (middle, top)], 1.0, &[]),
    };
    let same = pieces[0].points.len() == points.len()
        && pieces[0].points.iter().zip(points).all(|(a, b)| near((a.0 / zoom, a.1 / zoom), b, 0.01));
    let close = |large: f64, small: f64| (large / zoom - small).abs() < 1e-6;
    let dashed =
        dashes.len() == dash.len() && dashes.iter().zip(dash).all(|(large, small)| close(*large, *small));
    same && close(*width, wide) && dashed
}

/// cairo writes positions in 256ths of a pixel.
fn near(a: (f64, f64), b: (f64, f64), slack: f64) -> bool {
    (a.0 - b.0).abs() < slack && (a.1 - b.1).abs() < slack
}

#[test]
fn random_graphs_are_laid_out_as_debian_does() {
    let mut tool = RrdTool::start().unwrap();
    make_rrds(&mut tool);
    for seed in seeds(400) {
        let mut random = Random::new(seed);
        let mut case = Case::default();
        random_sizes(&mut random, &mut case);
        random_texts(&mut random, &mut case);
        case.elements = random_elements(&mut random);
        check(&mut tool, &format!("ROUNDEL_SEED={seed}"), &case);
    }
}

/// Every oddity found so far.
#[test]
fn odd_legends_stand_as_debians_do() {
    let mut tool = RrdTool::start().unwrap();
    make_rrds(&mut tool);
    let long = |count: usize, end: &str| format!("COMMENT:{}{end}", "x".repeat(count));
    let odd: [&[&str]; 32] = [
        // The line's width lacks the space after the first text, so glue moves texts that it does not touch.
        &["COMMENT:a\\g", "COMMENT:b", "COMMENT:c"],
        &["COMMENT:a", "COMMENT:b\\g", "COMMENT:c"],
        &["COMMENT:a", "COMMENT:b", "COMMENT:c\\g"],
        &["COMMENT:a\\g", "COMMENT:b\\r"],
        &["COMMENT:a\\g", "COMMENT:\\g", "COMMENT:b"],
        // Heights are truncated to whole pixels: a step up is not as long as one down.
        &["COMMENT:a\\u", "COMMENT:b\\u", "COMMENT:c"],
        &["COMMENT:a\\s", "COMMENT:b\\s", "COMMENT:c\\u", "COMMENT:d\\u", "COMMENT:e\\u"],
        &["COMMENT:\\u", "COMMENT:\\u", "COMMENT:a\\l", "COMMENT:b"],
        &["COMMENT:\\s", "COMMENT:\\s", "COMMENT:a"],
        // Empty lines have a height if they are aligned right or centred.
        &["COMMENT:\\r", "COMMENT:\\c", "COMMENT:\\l", "COMMENT:\\j", "COMMENT:a"],
        &["COMMENT:a\\l", "TEXTALIGN:center"],
        &["TEXTALIGN:right", "COMMENT:a\\l", "VRULE:5#ff0000:hidden\\l"],
        &["TEXTALIGN:right", "COMMENT:a\\l", "PRINT:last:%lf"],
        &["TEXTALIGN:right", "COMMENT:a\\s"],
        // The control code of a hidden rule is not even checked.
        &["VRULE:5#ff0000:hidden\\x", "COMMENT:a"],
        &["LINE1:a#ff0000:a\\J"],
        &["COMMENT:\\\\"],
        // A box without a text beside it.
        &["LINE1:a#ff0000:\\r", "COMMENT:b"],
        &["TICK:a#ff0000:0.1:\\r", "COMMENT:b"],
        &["AREA:a:invisible", "TICK:a#ff0000:0.1:tick"],
        &["COMMENT:a  \\g", "COMMENT:b  \\l", "COMMENT:c  \\r"],
        &["GPRINT:last:%%l%lf%%", "GPRINT:last:\\l%lf", "COMMENT:%lf%%"],
        &["HRULE:nan#ff0000:no number", "VRULE:nan#ff0000:no time", "HRULE:unknown#ff0000:unknown"],
        &["VRULE:last#ff0000:where it is", "VRULE:unknown#ff0000:nowhere"],
        // Long texts are cut.
        &[&long(220, "\\r"), "COMMENT:b"],
        &["GPRINT:last:%250lf", "COMMENT:b"],
        // Tabs, of 40 pixels and the legend's border.
        &["COMMENT:a\tb\\l", "COMMENT:\t\td\\l", "COMMENT:a", "COMMENT:b\\t", "COMMENT:c\\r"],
        &["COMMENT:a\\tb\\tc\\l", "GPRINT:last:a\\t%lf", "PRINT:last:a\\t%lf", "COMMENT:\\\\tx"],
        &["COMMENT:x\\\\t"],
        &["LINE1:a#ff0000:\\t", "TICK:a#ff0000:0.1:\\t\\l", "COMMENT:\\g\\l"],
        // A text that goes to the next line is parsed again, without its control code.
        &[&long(30, ""), &long(41, "\\r\\g")],
        &[&long(30, ""), "COMMENT:b", &long(41, "\\g"), "COMMENT:d\\r"],
    ];
    for elements in odd {
        check(&mut tool, "odd", &Case::elements(elements));
    }
    for count in 28..36 {
        check(&mut tool, "wrap", &Case::elements(&[&long(30, ""), &long(count, ""), "COMMENT:c\\l"]));
        check(&mut tool, "wrap", &Case::elements(&[&long(30, "\\g"), &long(count, "\\g"), "COMMENT:c"]));
    }
    for count in 63..66 {
        check(&mut tool, "alone", &Case::elements(&[&long(count, ""), "COMMENT:\\r", "COMMENT:c"]));
        check(
            &mut tool,
            "alone",
            &Case::elements(&["TEXTALIGN:right", &long(count, "\\g"), "AREA:a#ff0000"]),
        );
    }
}

/// The report of an existing picture has only its size; without a picture it has only the texts of PRINT.
#[test]
fn what_is_not_drawn_is_told_as_debian_tells_it() {
    let mut tool = RrdTool::start().unwrap();
    make_rrds(&mut tool);
    let (start, end) = SPAN;
    let case = Case::elements(&["LINE1:a#ff0000:a line", "PRINT:last:%lf", "COMMENT:a comment\\c"]);
    let line = format!("graphv x.png -z -s {start} -e {end} {}", quoted(&case.elements));
    let (layout, _) = ours(&tool, &case).unwrap();
    let printed = [b"5.000000".to_vec()];
    let mut told = ReportInput { printed: &printed, layout: Some(&layout), span: SPAN, limits: None };
    tool.run(&line).unwrap();
    assert_eq!(said(told), tool.run(&line).unwrap());
    told.layout = None;
    let elements = VARIABLES.iter().chain(&["PRINT:last:%lf", "COMMENT:a"]).map(|word| word.to_string());
    let line = format!("graphv y.png -s {start} -e {end} {}", quoted(&elements.collect::<Vec<_>>()));
    assert_eq!(said(told), tool.run(&line).unwrap());
}

fn said(told: ReportInput<'_>) -> String {
    let mut text = Vec::new();
    push_text(&mut text, &report(told));
    String::from_utf8_lossy(&text).into_owned()
}
