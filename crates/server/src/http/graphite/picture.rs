//! Series as a picture: a graph by `rrdgraph`, in which each series is a line.

use std::error::Error;

use ::graph::picture::options::ImageFormat;
use ::graph::plan::{Request, Rows};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use graphite::Series;
use rrd::fetch::FetchRows;
use rrdgraph::{Graph, GraphContext, Limits};

use super::answer::{GraphiteRefusal, answer};
use super::{Graphite, whole_number};
use crate::http::api::of_graph;
use crate::http::query::Query;
use crate::http::rows::{Budget, VALUES_MAX};

/// The most pixels of a picture, as of `/graph`.
const PIXELS_MAX: f64 = 16_777_216.0;
/// Bytes of a pixel, while it is painted and encoded.
const PIXEL_BYTES: u64 = 8;
/// Bytes of one value of a line, as a point of the scene.
const POINT_BYTES: u64 = 16;
/// The most series in a picture: more lines than anyone can tell apart.
const LINES_MAX: usize = 1_000;
/// More series have no legend unless it is asked for, as in graphite-web.
const LEGEND_MAX: usize = 10;
/// Colours in their order, if none are said: graphite-web's, by name.
const COLORS: [&str; 12] =
    ["blue", "green", "red", "purple", "brown", "yellow", "aqua", "grey", "magenta", "pink", "gold", "rose"];
/// Colours by name.
const NAMED: [(&str, &str); 18] = [
    ("black", "000000"),
    ("white", "ffffff"),
    ("blue", "6464ff"),
    ("green", "00c800"),
    ("red", "c80032"),
    ("purple", "c864ff"),
    ("brown", "966432"),
    ("yellow", "c8c800"),
    ("aqua", "009696"),
    ("grey", "afafaf"),
    ("gray", "afafaf"),
    ("magenta", "ff00ff"),
    ("pink", "ff6464"),
    ("gold", "c8c800"),
    ("rose", "c896c8"),
    ("darkblue", "0000ff"),
    ("darkgreen", "00ff00"),
    ("darkred", "ff0000"),
];

/// A format of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureFormat {
    /// Pixels.
    Png,
    /// Shapes and texts.
    Svg,
}

impl PictureFormat {
    /// The format called `name`.
    pub fn from_name(name: &str) -> Option<PictureFormat> {
        match name {
            "png" => Some(PictureFormat::Png),
            "svg" => Some(PictureFormat::Svg),
            _ => None,
        }
    }
}

/// How a picture looks.
#[derive(Debug)]
pub struct Look {
    width: i64,
    height: i64,
    title: String,
    vertical_title: String,
    hides_legend: Option<bool>,
    least: Option<String>,
    most: Option<String>,
    is_filled: bool,
    is_stacked: bool,
    line_width: f64,
    colors: Vec<String>,
    background: Option<String>,
}

impl Look {
    /// Takes the parameters of the look.
    ///
    /// # Errors
    /// 400 for a size that is none.
    pub fn read(query: &mut Query) -> Result<Look, GraphiteRefusal> {
        let mut size = |key: &str, default: i64| match whole_number(query, key)?.unwrap_or(default) {
            size @ 10..=16_384 => Ok::<_, GraphiteRefusal>(size),
            _ => Err(GraphiteRefusal::bad(format!("{key}: give a number between 10 and 16384"))),
        };
        let (width, height) = (size("width", 330)?, size("height", 250)?);
        let number =
            |text: String| text.parse::<f64>().ok().filter(|it| it.is_finite()).map(|it| it.to_string());
        let area = query.text("areaMode").unwrap_or_default();
        let colors = query.text("colorList").unwrap_or_default();
        Ok(Look {
            width,
            height,
            title: query.text("title").unwrap_or_default(),
            vertical_title: query.text("vtitle").unwrap_or_default(),
            hides_legend: query.text("hideLegend").map(|text| text.eq_ignore_ascii_case("true")),
            least: query.text("yMin").and_then(number),
            most: query.text("yMax").and_then(number),
            is_filled: matches!(&*area, "all" | "stacked"),
            is_stacked: area == "stacked",
            line_width: query
                .text("lineWidth")
                .and_then(|text| text.parse().ok())
                .filter(|width| (0.0..=100.0).contains(width))
                .unwrap_or(1.2),
            colors: colors.split(',').filter_map(color).collect(),
            background: query.text("bgcolor").as_deref().and_then(color),
        })
    }
}

/// Six or eight digits of a colour.
fn color(text: &str) -> Option<String> {
    let text = text.trim();
    let digits = text.strip_prefix('#').unwrap_or(text);
    if matches!(digits.len(), 6 | 8) && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Some(digits.to_owned());
    }
    let lower = text.to_lowercase();
    NAMED.iter().find(|(name, _)| *name == lower).map(|(_, digits)| (*digits).to_owned())
}

/// Draws series between two times.
///
/// # Errors
/// 400 for too many series, or what `/graph` refuses.
pub fn draw(
    state: &Graphite,
    headers: &HeaderMap,
    budget: &Budget,
    all: &[Series],
    range: (i64, i64),
    (look, format): (&Look, PictureFormat),
) -> Result<Response, GraphiteRefusal> {
    if all.len() > LINES_MAX {
        return Err(GraphiteRefusal::bad(format!(
            "{} series, more than {LINES_MAX} in a picture: draw fewer",
            all.len()
        )));
    }
    let words = arguments(all, range, look, format);
    let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    let limits =
        Limits { values_max: VALUES_MAX, pixels_max: Some(PIXELS_MAX), deadline: Some(budget.deadline()) };
    let graph = Graph::parse(&words, GraphContext::at(state.service.now()), limits).map_err(of_graph)?;
    let data = graph.evaluate(&mut SeriesRows { all, budget }).map_err(of_graph)?;
    budget.hold(graph.value_count().saturating_mul(POINT_BYTES))?;
    let picture = graph.draw(&data, &state.renderer, true).map_err(of_graph)?;
    let scene = picture.scene.as_ref().ok_or_else(|| GraphiteRefusal::bad("nothing to draw"))?;
    let (image, content) = match format {
        PictureFormat::Png => (ImageFormat::Png, "image/png"),
        PictureFormat::Svg => (ImageFormat::Svg, "image/svg+xml"),
    };
    if format == PictureFormat::Png {
        budget.hold((scene.width * scene.height) as u64 * PIXEL_BYTES)?;
    }
    let bytes = state.renderer.paint(scene, image).map_err(|error| of_graph(error.into()))?;
    let mut response = answer(headers, content, bytes);
    // As of `/graph`: names may contain markup.
    let safety = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'");
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, safety);
    Ok(response)
}

/// A text within an element.
fn escaped(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).take(300).collect();
    text.replace('\\', "\\\\").replace(':', "\\:")
}

fn arguments(all: &[Series], (from, until): (i64, i64), look: &Look, format: PictureFormat) -> Vec<String> {
    let image = if format == PictureFormat::Svg { "SVG" } else { "PNG" };
    let mut words = vec![
        "-".to_owned(),
        format!("--start={from}"),
        format!("--end={until}"),
        format!("--width={}", look.width),
        format!("--height={}", look.height),
        "--full-size-mode".to_owned(),
        format!("--imgformat={image}"),
    ];
    let mut option = |name: &str, value: &str| {
        if !value.is_empty() {
            words.push(format!("--{name}={value}"));
        }
    };
    option("title", &look.title.replace(char::is_control, " "));
    option("vertical-label", &look.vertical_title.replace(char::is_control, " "));
    option("lower-limit", look.least.as_deref().unwrap_or(""));
    option("upper-limit", look.most.as_deref().unwrap_or(""));
    if let Some(background) = &look.background {
        option("color", &format!("BACK#{background}"));
    }
    if look.hides_legend.unwrap_or(all.len() > LEGEND_MAX) {
        words.push("--no-legend".to_owned());
    }
    let shown: Vec<(usize, &Series)> =
        all.iter().enumerate().filter(|(_, series)| !series.style.is_hidden).collect();
    if shown.is_empty() {
        words.extend(["DEF:v0=none:v:AVERAGE".to_owned(), "LINE1:v0#ffffff00:No data".to_owned()]);
    }
    for (place, (index, series)) in shown.into_iter().enumerate() {
        words.push(format!("DEF:v{index}={index}:v:AVERAGE"));
        words.push(element(index, place, series, look));
    }
    words
}

/// The line or area of a series.
fn element(index: usize, place: usize, series: &Series, look: &Look) -> String {
    let own = series.style.color.as_deref().and_then(color);
    let usual = match &look.colors[..] {
        [] => color(COLORS[place % COLORS.len()]),
        colors => colors.get(place % colors.len()).cloned(),
    };
    let mut color = own.or(usual).unwrap_or_else(|| "000000".to_owned());
    if let (Some(alpha), 6) = (series.style.alpha, color.len()) {
        color.push_str(&format!("{:02x}", (alpha.clamp(0.0, 1.0) * 255.0) as u8));
    }
    let is_stacked = look.is_stacked || series.style.is_stacked;
    let stack = if is_stacked && place > 0 { ":STACK" } else { "" };
    let legend = escaped(&series.name);
    if look.is_filled || is_stacked {
        return format!("AREA:v{index}#{color}:{legend}{stack}");
    }
    let width = series.style.width.filter(|width| (0.0..=100.0).contains(width)).unwrap_or(look.line_width);
    let dashes = series.style.dashes.filter(|length| (1.0..=1000.0).contains(length));
    let dashes = dashes.map_or(String::new(), |length| format!(":dashes={length}"));
    format!("LINE{width}:v{index}#{color}:{legend}{dashes}")
}

/// Series as rows of files that are called by their places.
struct SeriesRows<'a> {
    all: &'a [Series],
    budget: &'a Budget,
}

impl Rows for SeriesRows<'_> {
    fn fetch(&mut self, request: &Request) -> Result<FetchRows, Box<dyn Error + Send + Sync>> {
        let index = std::str::from_utf8(&request.file).ok().and_then(|name| name.parse::<usize>().ok());
        let series = index.and_then(|index| self.all.get(index));
        let (from, until) = (request.fetch.start, request.fetch.end);
        let step = series.map_or((until - from).max(1), |series| series.step.max(1));
        // Rows lie on multiples of their step; a value holds from its time on.
        let start = from - from.rem_euclid(step);
        let end = until - until.rem_euclid(step) + step;
        let count = (end - start) / step;
        self.budget.take(count as u64)?;
        let value = |row: i64| {
            let series = series?;
            let place = (start + (row + 1) * step - 1 - series.start).div_euclid(step);
            series.values.get(usize::try_from(place).ok()?).copied()
        };
        Ok(FetchRows {
            start,
            end,
            step: step as u64,
            units_per_second: 1,
            ds_names: vec!["v".to_owned()],
            values: (0..count).map(|row| value(row).unwrap_or(f64::NAN)).collect(),
        })
    }

    fn reserve(&mut self, values: u64) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(self.budget.take(values)?)
    }
}
