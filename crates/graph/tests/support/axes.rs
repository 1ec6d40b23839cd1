//! Compares our axes with those that Debian's rrdtool draws.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use roundel_graph::picture::axis::horizontal::TimeAxis;
use roundel_graph::picture::axis::mapping::{CanvasRect, Mapping};
use roundel_graph::picture::axis::vertical::VerticalAxis;
use roundel_graph::picture::options::{
    AxisFormatter, AxisText, FontTag, Interval, Options, TimeUnit, XGrid, YGrid,
};
use roundel_graph::print::TimeFormat;
use testkit::RrdTool;
use testkit::svg::{Item, Letters, Svg};

/// The COMMENT from which the shapes of letters are learnt.
const LETTERS: &str =
    "!#$%&'()*+,-./0123456789;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~:";
/// The time range of graphs with data, which has one value in its first half and another in its second.
pub const SPAN: (i64, i64) = (1_700_000_000, 1_700_086_400);
/// Where cairo's coordinates end.
const FAR: f64 = 1e6;
/// Tolerance for the rounding of cairo's coordinates.
const NEAR: f64 = 0.006;

/// A graph.
#[derive(Debug)]
pub struct Case {
    /// Its options.
    pub options: Options,
    /// Its range of time.
    pub span: (i64, i64),
    /// The values that it shows; NaN where it shows none.
    pub data: (f64, f64),
}

impl Default for Case {
    fn default() -> Case {
        Case { options: Options::default(), span: SPAN, data: (f64::NAN, f64::NAN) }
    }
}

/// What was drawn of the axes.
#[derive(Debug)]
pub struct DrawnAxes {
    /// As `graphv` prints them.
    pub limits: (String, String),
    /// The canvas.
    pub rect: CanvasRect,
    /// Whether it belongs to the major grid, and its y.
    pub value_lines: Vec<(bool, f64)>,
    /// Text, and y of its baseline.
    pub left_labels: Vec<(String, f64)>,
    /// The same.
    pub right_labels: Vec<(String, f64)>,
    /// Whether it belongs to the major grid, and its x.
    pub time_lines: Vec<(bool, f64)>,
    /// Text, and x of its middle.
    pub time_labels: Vec<(String, f64)>,
}

/// Debian's rrdtool, and the shapes of its letters.
pub struct Debian {
    tool: RrdTool,
    letters: Letters,
    fonts: Vec<f64>,
}

impl Debian {
    /// Starts it in a time zone.
    pub fn start(zone: &str) -> Debian {
        let mut tool = RrdTool::start_at(zone, SPAN.1).unwrap();
        tool.run("create x.rrd --start 1600000000 --step 300 DS:a:GAUGE:600:U:U RRA:LAST:0.5:1:10").unwrap();
        Debian { tool, letters: Letters::default(), fonts: Vec::new() }
    }

    fn svg(&mut self, words: &str) -> Result<(String, Svg), String> {
        let told = self.tool.run(&format!("graphv x.svg --imgformat SVG {words}"))?;
        Ok((told, Svg::read(&std::fs::read_to_string(self.tool.path("x.svg")).unwrap())))
    }

    fn learn(&mut self, size: f64) {
        if !self.fonts.contains(&size) {
            self.fonts.push(size);
            let text = LETTERS.replace(':', "\\:");
            let words = format!(
                "--width {} --font LEGEND:{size}: --upper-limit 9 HRULE:1#000000 \"COMMENT:{text}\"",
                500 + size as i64 * 110
            );
            let (_, svg) = self.svg(&words).unwrap();
            self.letters.learn(&svg, LETTERS);
        }
    }

    /// Draws it.
    pub fn draw(&mut self, case: &Case) -> Result<DrawnAxes, String> {
        let size = case.options.font(FontTag::Axis).size;
        self.learn(size);
        let shape = match case.data.0.is_nan() {
            true => "HRULE:1#000000".to_string(),
            false => {
                let (low, high) = case.data;
                let half = i64::midpoint(case.span.0, case.span.1);
                format!("DEF:a=x.rrd:a:LAST CDEF:b=a,POP,TIME,{half},GT,{high:e},{low:e},IF LINE1:b#ff0000")
            }
        };
        let words = format!("--start {} --end {} {} {shape}", case.span.0, case.span.1, words(&case.options));
        let (told, svg) = self.svg(&words)?;
        Ok(self.read(&told, &svg))
    }

    fn read(&self, told: &str, svg: &Svg) -> DrawnAxes {
        let key = |name: &str| {
            let line = told.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim_start_matches(" = ").to_string()
        };
        let number = |name: &str| key(name).parse::<f64>().unwrap();
        let rect = CanvasRect {
            left: number("graph_left"),
            top: number("graph_top"),
            width: number("graph_width"),
            height: number("graph_height"),
        };
        let mut drawn = DrawnAxes {
            limits: (key("value_min"), key("value_max")),
            rect,
            value_lines: Vec::new(),
            left_labels: Vec::new(),
            right_labels: Vec::new(),
            time_lines: Vec::new(),
            time_labels: Vec::new(),
        };
        for item in &svg.items {
            if let Item::Stroke { pieces, dashes, width, .. } = item
                && *dashes == [1.0, 1.0]
                && let [from, to] = pieces[0].points[..]
            {
                let major = *width == 0.6;
                match from.1 == to.1 {
                    true => drawn.value_lines.push((major, from.1)),
                    false => drawn.time_lines.push((major, from.0)),
                }
            }
        }
        for text in svg.texts() {
            let (first, last) = (text.glyphs[0].at, text.glyphs[text.glyphs.len() - 1].at);
            if text.colour[3] < 1.0 || text.glyphs.len() > 1 && first.0 == last.0 {
                continue;
            }
            let read = self.letters.read(text);
            let advance = match text.glyphs.len() {
                1 => 0.0,
                more => (last.0 - first.0) / (more - 1) as f64,
            };
            let (left, right) = (first.0, last.0 + advance);
            if right < rect.left {
                drawn.left_labels.push((read, first.1));
            } else if left > rect.left + rect.width {
                drawn.right_labels.push((read, first.1));
            } else if first.1 > rect.top + rect.height {
                drawn.time_labels.push((read, (left + right) / 2.0));
            }
        }
        drawn
    }
}

/// The arguments for these options.
pub fn words(options: &Options) -> String {
    let mut words = format!("--width {} --height {}", options.width, options.height);
    let mut word = |on: bool, word: &str| {
        if on {
            words += " ";
            words += word;
        }
    };
    word(options.rigid, "--rigid");
    word(options.allow_shrink, "--allow-shrink");
    word(options.alt_autoscale, "--alt-autoscale");
    word(options.alt_autoscale_min, "--alt-autoscale-min");
    word(options.alt_autoscale_max, "--alt-autoscale-max");
    word(options.alt_y_grid, "--alt-y-grid");
    word(options.logarithmic, "--logarithmic");
    word(options.units_si, "--units=si");
    word(options.base != 1000, &format!("--base {}", options.base));
    word(
        options.font(FontTag::Axis).size != 7.0,
        &format!("--font AXIS:{}:", options.font(FontTag::Axis).size),
    );
    for (name, limit) in [("lower", options.lower_limit), ("upper", options.upper_limit)] {
        word(limit.is_some(), &format!("--{name}-limit {:e}", limit.unwrap_or_default()));
    }
    let exponent = options.units_exponent;
    word(exponent.is_some(), &format!("--units-exponent {}", exponent.unwrap_or_default()));
    let (scale, shift) = options.right_axis.unwrap_or_default();
    word(options.right_axis.is_some(), &format!("--right-axis {scale}:{shift}"));
    for (side, AxisText { formatter, format }) in
        [("left", &options.left_axis), ("right", &options.right_axis_text)]
    {
        word(*formatter == AxisFormatter::Timestamp, &format!("--{side}-axis-formatter timestamp"));
        word(*formatter == AxisFormatter::Duration, &format!("--{side}-axis-formatter duration"));
        let text = String::from_utf8(format.clone().unwrap_or_default()).unwrap();
        word(format.is_some(), &format!("--{side}-axis-format \"{text}\""));
    }
    match options.y_grid {
        YGrid::Auto => {}
        YGrid::None => word(true, "--y-grid none"),
        YGrid::Custom { step, label_factor } => word(true, &format!("--y-grid {step:e}:{label_factor}")),
    }
    match &options.x_grid {
        XGrid::Auto => {}
        XGrid::None => word(true, "--x-grid none"),
        XGrid::Custom { grid, major, label, precision, format } => {
            let every = |every: &Interval| format!("{}:{}", unit(every.unit), every.count);
            let format = String::from_utf8(format.clone()).unwrap();
            let spec = format!("{}:{}:{}:{precision}:{format}", every(grid), every(major), every(label));
            word(true, &format!("--x-grid \"{spec}\""));
        }
    }
    let week = String::from_utf8(options.week_format.clone()).unwrap();
    // Always, as Debian's rrdtool keeps the options of an earlier picture.
    word(true, &format!("--week-fmt \"{week}\""));
    words
}

fn unit(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "SECOND",
        TimeUnit::Minute => "MINUTE",
        TimeUnit::Hour => "HOUR",
        TimeUnit::Day => "DAY",
        TimeUnit::Week => "WEEK",
        TimeUnit::Month => "MONTH",
        TimeUnit::Year => "YEAR",
    }
}

/// Dates by the C library.
pub struct Times;

impl TimeFormat for Times {
    fn strftime(&self, format: &[u8], time: i64) -> Vec<u8> {
        localtime::strftime(OsStr::from_bytes(format), time).unwrap_or_default()
    }

    fn strftime_utc(&self, format: &[u8], time: i64) -> Vec<u8> {
        localtime::strftime_utc(OsStr::from_bytes(format), time).unwrap_or_default()
    }
}

/// C's `%0.10e`.
pub fn c_exponent(value: f64) -> String {
    let text = format!("{value:.10e}");
    let (digits, exponent) = text.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// Whether both are the same, each within cairo's precision.
fn same<A: PartialEq + std::fmt::Debug>(
    what: &str,
    ours: &[(A, f64)],
    drawn: &[(A, f64)],
) -> Result<(), String> {
    let like = |(a, b): (&(A, f64), &(A, f64))| a.0 == b.0 && (a.1 - b.1).abs() <= NEAR;
    match ours.len() == drawn.len() && ours.iter().zip(drawn).all(like) {
        true => Ok(()),
        false => {
            let at =
                ours.iter().zip(drawn).position(|pair| !like(pair)).unwrap_or(ours.len().min(drawn.len()));
            let (ours_there, drawn_there) = (ours.get(at), drawn.get(at));
            let (ours, drawn) = (ours.len(), drawn.len());
            Err(format!("{what}: {ours}, want {drawn}; at {at} {ours_there:?}, want {drawn_there:?}"))
        }
    }
}

/// Compares a vertical axis.
pub fn same_values(
    axis: &VerticalAxis,
    case: &Case,
    limits: (f64, f64),
    drawn: &DrawnAxes,
) -> Result<(), String> {
    let mapping = Mapping::new(drawn.rect, case.span, limits, case.options.logarithmic);
    let y = |value: f64| mapping.to_y(value).clamp(-FAR, FAR);
    let lines: Vec<_> = axis.lines.iter().map(|line| (line.major, y(line.value))).collect();
    same("lines", &lines, &drawn.value_lines)?;
    // The offset of texts from their line depends on the typesetter; it is the same for all.
    let hang = |labels: Vec<(String, f64)>, drawn: &[(String, f64)]| {
        let by = labels.first().zip(drawn.first()).map_or(0.0, |(ours, drawn)| drawn.1 - ours.1);
        labels.into_iter().map(|(text, y)| (text, y + by)).collect::<Vec<_>>()
    };
    let text = |label: &Option<Vec<u8>>, value: f64| {
        label.as_ref().map(|label| (String::from_utf8_lossy(label).into_owned(), y(value)))
    };
    let left = axis.lines.iter().filter_map(|line| text(&line.label, line.value)).collect();
    same("left labels", &hang(left, &drawn.left_labels), &drawn.left_labels)?;
    let right = axis.lines.iter().filter_map(|line| text(&line.right_label, line.value)).collect();
    same("right labels", &hang(right, &drawn.right_labels), &drawn.right_labels)
}

/// Compares a horizontal axis.
pub fn same_times(axis: &TimeAxis, case: &Case, drawn: &DrawnAxes) -> Result<(), String> {
    let mapping = Mapping::new(drawn.rect, case.span, (0.0, 1.0), false);
    let lines: Vec<_> = axis.lines.iter().map(|line| (line.major, mapping.to_x(line.time))).collect();
    same("lines", &lines, &drawn.time_lines)?;
    let labels = axis
        .labels
        .iter()
        .map(|label| (String::from_utf8_lossy(&label.text).into_owned(), mapping.to_x(label.time)));
    same("labels", &labels.collect::<Vec<_>>(), &drawn.time_labels)
}
