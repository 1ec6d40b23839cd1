//! Pictures against Debian's rrdtool, on random arguments: the items of its SVG one by one.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

#[path = "support/mono.rs"]
mod mono;
#[path = "support/painted.rs"]
mod painted;
mod support;

use mono::Mono;
use painted::{Painted, difference, ours, theirs};
use roundel_graph::picture::compose::{DrawInput, Picture, draw};
use roundel_graph::picture::options::{ColourTag, ImageFormat, Options, XGrid, YGrid};
use roundel_graph::picture::scene::{Colour, Item, Point};
use roundel_graph::plan::TimeRange;
use rrd::when::calendar::Utc;
use support::{EPOCH, UtcDates, make_rrds, run};
use testkit::RrdTool;
use testkit::random::{Random, seeds};
use testkit::svg::Svg;

/// One graph: arguments for Debian's rrdtool, and the same as options and elements for us.
struct Call {
    range: TimeRange,
    options: Options,
    words: String,
    arguments: Vec<String>,
}

impl Call {
    fn new(start: i64, end: i64, width: u32, height: u32) -> Call {
        let options = Options { width, height, format: ImageFormat::Svg, ..Options::default() };
        let range = TimeRange::new(start, end, 0, u64::from(width));
        let words = format!("-s {start} -e {end} -w {width} -h {height}");
        Call { range, options, words, arguments: Vec::new() }
    }

    fn say(&mut self, words: &str) {
        self.words += " ";
        self.words += words;
    }

    fn without_grid(&mut self, of_times: bool, of_values: bool) {
        if of_times {
            self.say("-x none");
            self.options.x_grid = XGrid::None;
        }
        if of_values {
            self.say("-y none");
            self.options.y_grid = YGrid::None;
        }
    }

    fn limits(&mut self, low: f64, high: f64) {
        self.say(&format!("-l {low} -u {high} -r"));
        self.options.lower_limit = Some(low);
        self.options.upper_limit = Some(high);
        self.options.rigid = true;
    }
}

fn random_call(random: &mut Random) -> Call {
    let start = EPOCH + 500 + random.below(28_000) as i64;
    let span = [20, 100, 500, 3000, 9000, 20_000][random.below(6) as usize];
    let end = start + 1 + random.below(span) as i64;
    let width = [10, 23, 40, 100, 150, 400][random.below(6) as usize];
    let height = [10, 31, 50, 100][random.below(4) as usize];
    let mut call = Call::new(start, end, width, height);
    if random.once_in(4) {
        let step = random.between(1, 700);
        call.say(&format!("-S {step}"));
        call.range = TimeRange::new(start, end, step, u64::from(width));
    }
    call.without_grid(random.once_in(2), random.once_in(2));
    if random.once_in(2) {
        call.limits(-(random.below(2000) as f64), random.between(1, 90_000) as f64);
    } else if random.once_in(3) {
        let low = random.between(1, 20_000) as f64;
        call.limits(low, low + random.between(1, 90_000) as f64);
    }
    looks(random, &mut call);
    call.arguments = elements(random, start, end);
    call
}

fn looks(random: &mut Random, call: &mut Call) {
    if random.once_in(3) {
        call.say("-E");
        call.options.slope = true;
    }
    // The lines of a logarithmic axis have their own test.
    let positive = call.options.lower_limit.is_none_or(|limit| limit > 0.0);
    if random.once_in(5) && positive && call.options.y_grid == YGrid::None {
        call.say("-o");
        call.options.logarithmic = true;
    }
    if random.once_in(6) {
        call.say("-j");
        call.options.only_graph = true;
    }
    if random.once_in(4) {
        let border = random.below(6) as i32;
        call.say(&format!("--border {border}"));
        call.options.border = border;
    }
    if random.once_in(5) {
        call.say("--grid-dash 3:2");
        call.options.grid_dash = (3.0, 2.0);
    }
    if random.once_in(5) {
        call.say("--right-axis 2:3");
        call.options.right_axis = Some((2.0, 3.0));
    }
    if random.once_in(5) {
        call.say("--dynamic-labels");
        call.options.dynamic_labels = true;
    }
    if random.once_in(5) {
        call.say("-g");
        call.options.legend = false;
    }
    for (tag, word) in [
        (ColourTag::Back, "BACK"),
        (ColourTag::Canvas, "CANVAS"),
        (ColourTag::ShadeA, "SHADEA"),
        (ColourTag::Grid, "GRID"),
        (ColourTag::MajorGrid, "MGRID"),
        (ColourTag::Axis, "AXIS"),
        (ColourTag::Arrow, "ARROW"),
        (ColourTag::Frame, "FRAME"),
    ] {
        if random.once_in(8) {
            let colour = random.below(1 << 32) as u32;
            let colour = if random.once_in(3) { colour & 0xffff_ff00 } else { colour };
            call.say(&format!("-c {word}#{colour:08x}"));
            call.options.colours[tag as usize] = Colour::new(colour);
        }
    }
}

fn elements(random: &mut Random, start: i64, end: i64) -> Vec<String> {
    let mut all = vec![];
    let mut series = vec![];
    for name in ["e", "f"] {
        let file = random.pick(&["a", "a", "b", "c", "d"]);
        let cf = random.pick(&["AVERAGE", "AVERAGE", "MAX"]);
        let cf = if *file == *"b" { "AVERAGE" } else { cf };
        all.push(format!("DEF:{name}={file}.rrd:in:{cf}"));
        series.push(name.to_string());
    }
    for name in ["g", "h", "i"] {
        let of = random.pick(&["e", "f"]);
        let expression = match random.below(9) {
            0 => format!("{of},UN,0,{of},IF"),
            1 => format!("{of},50000,GT,UNKN,{of},IF"),
            2 => format!("{of},COUNT,{},%,0,EQ,UNKN,0,IF,+", random.between(2, 5)),
            3 => format!("{of},POP,TIME,100,%,100,*"),
            4 => format!("{of},-1,*"),
            5 => format!("{of},POP,COUNT,7,%,5,-,0,MAX"),
            6 => format!("{of},POP,COUNT,5,%,0,EQ,INF,{of},IF"),
            7 => format!("{of},POP,COUNT,5,%,0,EQ,NEGINF,1000,IF"),
            _ => format!("{of},0.5,*"),
        };
        all.push(format!("CDEF:{name}={expression}"));
        series.push(name.to_string());
    }
    all.push("VDEF:v=e,MAXIMUM".to_string());
    all.push("VDEF:w=f,AVERAGE".to_string());
    for _ in 0..random.between(1, 5) {
        let element = element(random, &series, start, end);
        all.push(element);
    }
    all
}

fn element(random: &mut Random, series: &[String], start: i64, end: i64) -> String {
    let colour = |random: &mut Random| match random.below(4) {
        0 => format!("#{:08x}", random.below(1 << 32) | 1),
        _ => format!("#{:06x}", random.below(1 << 24)),
    };
    let name = &series[random.below(series.len() as u64) as usize];
    let value = match random.below(8) {
        0 => random.below(60_000).to_string(),
        1 => random.pick(&["v", "w"]).to_string(),
        _ => name.clone(),
    };
    let dashes = match random.below(6) {
        0 => ":dashes",
        1 => ":dashes=4,2,1,3:dash-offset=5",
        _ => "",
    };
    let flags = random.pick(&["", "", "", "::STACK", "::skipscale", "::STACK"]);
    match random.below(12) {
        0..4 => {
            let width = random.pick(&["", "1", "1", "2", "3", "0.5", "1.7"]);
            let colour = if random.once_in(8) { String::new() } else { colour(random) };
            format!("LINE{width}:{value}{colour}{}{dashes}", if !colour.is_empty() { flags } else { "" })
        }
        4..8 => {
            let second = if random.once_in(4) { colour(random) } else { String::new() };
            let height = if second.is_empty() {
                ""
            } else {
                random.pick(&["", ":gradheight=0", ":gradheight=-20", ":gradheight=7.5"])
            };
            format!("AREA:{value}{}{second}{flags}{height}", colour(random))
        }
        8 => format!("TICK:{name}{}:{}", colour(random), random.pick(&["0.1", "-0.2", "1", "-3", "0"])),
        9 => {
            let value = if random.once_in(3) { "v".to_string() } else { random.below(60_000).to_string() };
            format!("HRULE:{value}{}:legend{dashes}", colour(random))
        }
        10 => {
            let time = start - 5 + random.below((end - start + 10) as u64) as i64;
            let time = if random.once_in(3) { "v".to_string() } else { time.to_string() };
            format!("VRULE:{time}{}{dashes}", colour(random))
        }
        _ => format!("SHIFT:{name}:{}", random.below(300) as i64 - 100),
    }
}

/// Our picture of a call.
fn picture(directory: &std::path::Path, call: &Call) -> Result<Picture, String> {
    let (script, data) = run(directory, call.range, &call.arguments)?;
    let input = DrawInput {
        script: &script,
        range: call.range,
        data: &data,
        options: &call.options,
        typesetter: &Mono,
        times: &UtcDates,
        calendar: &Utc,
        first_weekday: 0,
        painted: true,
    };
    draw(&input).map_err(|error| error.to_string())
}

/// Both pictures of a call, texts left out; `None` where Debian draws none.
fn both(tool: &mut RrdTool, call: &Call) -> Option<(Vec<Painted>, Vec<Painted>)> {
    let file = tool.path("x.svg");
    std::fs::remove_file(&file).ok();
    let words = format!("graph x.svg -a SVG {} {}", call.words, call.arguments.join(" "));
    let answer = tool.run(&words);
    let result = picture(tool.directory(), call);
    if answer.is_err() || result.is_err() {
        assert_eq!(answer.is_err(), result.is_err(), "{answer:?} {words}");
        return None;
    }
    let picture = result.unwrap();
    let text = std::fs::read_to_string(file).ok();
    assert_eq!(text.is_some(), picture.scene.is_some(), "{words}");
    let is_text = |item: &Painted| matches!(item, Painted::Text(..));
    let lists = (theirs(&Svg::read(&text?)), ours(&picture.scene?));
    Some((
        lists.0.into_iter().filter(|item| !is_text(item)).collect(),
        lists.1.into_iter().filter(|item| !is_text(item)).collect(),
    ))
}

fn check(tool: &mut RrdTool, call: &Call, case: &str) -> bool {
    let Some((want, got)) = both(tool, call) else { return false };
    let words = format!("{case}: {} {}", call.words, call.arguments.join(" "));
    if let Some((want, got)) = difference(&want, &got) {
        panic!("{words}\ntheirs: {want:?}\n  ours: {got:?}");
    }
    true
}

#[test]
fn random_shapes_are_painted_as_debian_paints_them() {
    let mut tool = RrdTool::start().unwrap();
    make_rrds(&mut tool);
    let mut drawn = 0;
    for seed in seeds(1200) {
        let call = random_call(&mut Random::new(seed));
        drawn += usize::from(check(&mut tool, &call, &format!("seed {seed}")));
    }
    assert!(drawn > 0, "nothing was drawn");
}

/// Every point of a picture.
fn points(picture: &Picture) -> Vec<Point> {
    let scene = picture.scene.as_ref().expect("a picture");
    let all = scene.items.iter().flat_map(|item| match item {
        Item::Fill { path, .. } | Item::Stroke { path, .. } => path.points.clone(),
        Item::Text { at, .. } => vec![*at],
        Item::Clip { from, to } => vec![*from, *to],
        Item::Unclip => Vec::new(),
    });
    all.collect()
}

#[test]
fn odd_graphs_have_a_picture_with_all_its_points_near_it() {
    let mut tool = RrdTool::start().unwrap();
    make_rrds(&mut tool);
    let (start, end) = (EPOCH + 5000, EPOCH + 9000);
    let def = "DEF:a=a.rrd:in:AVERAGE".to_string();
    let check = |change: fn(&mut Call), arguments: &[&str]| {
        let mut call = Call::new(start, end, 100, 50);
        change(&mut call);
        call.arguments =
            [def.clone()].into_iter().chain(arguments.iter().map(|text| text.to_string())).collect();
        let picture = picture(tool.directory(), &call).unwrap();
        let far = 20.0 * f64::from(call.options.width.max(call.options.height)) + 1000.0;
        let lost = points(&picture).into_iter().find(|at| !(at.x.abs() < far && at.y.abs() < far));
        assert_eq!(lost, None, "{} {arguments:?}", call.words);
    };
    let shapes = [
        "CDEF:b=a,POP,INF",
        "CDEF:c=a,POP,NEGINF",
        "CDEF:d=a,POP,UNKN",
        "CDEF:e=a,1e300,*",
        "AREA:b#00ff00",
        "LINE1:c#0000ff",
        "LINE1:d#0000ff",
        "AREA:e#00ff00#0000ff",
        "TICK:e#ff0000:-7e300",
        "HRULE:1e308#000000",
        "VRULE:9e18#000000",
        "LINE1:1e308#000000::STACK",
    ];
    check(|_| {}, &shapes);
    check(|call| call.options.slope = true, &shapes);
    check(|call| call.options.logarithmic = true, &shapes);
    check(|call| call.options.zoom = 3.7, &shapes);
    check(|call| call.limits(5.0, 5.0), &shapes);
    check(|call| call.limits(9.0, -9.0), &shapes);
    check(|call| call.limits(1e307, 1.7e308), &shapes);
    check(
        |call| call.range = TimeRange::new(EPOCH + 5000, EPOCH + 5000, 0, 100),
        &["AREA:a#00ff00", "LINE1:a#0000ff", "VRULE:1000005000#000000"],
    );
    check(|call| call.options.width = 30_000, &["AREA:a#00ff00#0000ff", "LINE1:a#0000ff::STACK"]);
    check(|call| call.options.height = 1_000_000, &["AREA:a#00ff00#0000ff", "LINE1:a#0000ff::STACK"]);
    let thousand = vec!["AREA:a#00ff00::STACK"; 1000];
    check(|_| {}, &thousand);
}
