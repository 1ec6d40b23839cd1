//! Graphs as numbers, many in one request, for who draws them.

mod origin;

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use graph::eval::Data;
use graph::language::Element;
use graph::language::graphic::{Graphic, PlotValue, ShapeKind};
use graph::picture::scene::Colour;
use rrd::rpn::{Series, Symbol, Vdef};
use rrdgraph::{Graph, GraphContext, Limits};
use serde::{Deserialize, Serialize};

use origin::{Origin, Recording};

use super::rrds::JSON_HEADERS;
use super::xport::ARGUMENTS_MAX;
use super::{Api, of_graph};
use crate::http::failure::Failure;
use crate::http::rows::{Budget, Source, VALUES_MAX};
use crate::http::{packed, percent};
use crate::parallel::map_parts;

/// The most charts of one request: a wall of screens.
const CHARTS_MAX: usize = 200;
/// Charts that are worth a thread: each takes a tenth of a millisecond for a day of rows of 10 s.
const CHARTS_OF_THREAD: usize = 16;
/// The most columns of a chart.
const WIDTH_MAX: u32 = 10_000;
/// Bytes of a value in the text of the answer.
const VALUE_TEXT_BYTES: u64 = 24;

/// A request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    #[serde(default = "a_day_ago")]
    start: Moment,
    #[serde(default = "now")]
    end: Moment,
    #[serde(default = "width")]
    width: u32,
    charts: Vec<AskedChart>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedChart {
    arg: Vec<String>,
    #[serde(default)]
    since: Option<i64>,
}

/// Seconds since the epoch, or RRDtool's words.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Moment {
    Seconds(i64),
    Words(String),
}

fn a_day_ago() -> Moment {
    Moment::Words("end-1d".to_string())
}

fn now() -> Moment {
    Moment::Words("now".to_string())
}

fn width() -> u32 {
    800
}

impl Moment {
    fn into_words(self) -> String {
        match self {
            Moment::Seconds(seconds) => seconds.to_string(),
            Moment::Words(words) => words,
        }
    }
}

#[derive(Serialize)]
struct Answer {
    now: i64,
    charts: Vec<Outcome>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Outcome {
    Chart(Box<Chart>),
    Unchanged { unchanged: bool, newest: i64 },
    Failed { error: String },
}

/// A graph as numbers; `openapi.json` says what each member is.
#[derive(Serialize)]
struct Chart {
    start: i64,
    end: i64,
    step: u64,
    newest: Option<i64>,
    title: String,
    unit: String,
    base: u32,
    lower: Option<f64>,
    upper: Option<f64>,
    rigid: bool,
    logarithmic: bool,
    series: Vec<ChartSeries>,
    elements: Vec<Drawn>,
    numbers: Vec<Numbers>,
    texts: Vec<String>,
    sources: Vec<Origin>,
}

#[derive(Serialize)]
struct ChartSeries {
    name: String,
    start: i64,
    step: u64,
    values: Vec<f64>,
}

#[derive(Default, Serialize)]
struct Drawn {
    kind: &'static str,
    series: Option<usize>,
    value: Option<f64>,
    label: String,
    color: Option<String>,
    alpha: f64,
    width: f64,
    stack: bool,
    dashes: Option<Vec<f64>>,
}

#[derive(Serialize)]
struct Numbers {
    series: usize,
    last: f64,
    average: f64,
    minimum: f64,
    maximum: f64,
    percentile: f64,
    total: f64,
}

/// `POST /api/v1/charts`
///
/// # Errors
/// 4xx and 503, as in `openapi.json`.
pub async fn charts(State(api): State<Api>, headers: HeaderMap, body: Bytes) -> Result<Response, Failure> {
    let asked: Asked = serde_json::from_slice(&body)
        .map_err(|error| Failure::bad(format!("the body is not as /api/v1/openapi.json says: {error}")))?;
    if asked.charts.len() > CHARTS_MAX {
        return Err(Failure::too_much(format!("more than {CHARTS_MAX} charts")));
    }
    let width = asked.width.clamp(1, WIDTH_MAX);
    let (start, end) = (asked.start.into_words(), asked.end.into_words());
    let now = api.service.now();
    rrd::when::at::resolve_pair(&start, &end, now, &localtime::Local).map_err(Failure::bad)?;
    api.work
        .run(|| {
            let budget = Budget::new(&api.service.memory);
            let frame = Frame { api: &api, budget: &budget, now, start: &start, end: &end, width };
            let charts = frame.outcomes(&asked.charts)?;
            let text = serde_json::to_vec(&Answer { now, charts });
            let text =
                text.map_err(|error| Failure::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, error))?;
            Ok(packed::pack(&headers, JSON_HEADERS.into_response(), text))
        })
        .await
}

/// What all charts of a request share.
struct Frame<'a> {
    api: &'a Api,
    budget: &'a Budget,
    now: i64,
    start: &'a str,
    end: &'a str,
    width: u32,
}

impl Frame<'_> {
    /// All charts of a request. Many are shared among the cores.
    ///
    /// # Errors
    /// As [`Frame::outcome`].
    fn outcomes(&self, asked: &[AskedChart]) -> Result<Vec<Outcome>, Failure> {
        let in_turn = |part: &[AskedChart]| -> Result<Vec<Outcome>, Failure> {
            part.iter().map(|chart| self.outcome(chart)).collect()
        };
        let parts: Result<Vec<_>, Failure> =
            map_parts(asked, CHARTS_OF_THREAD, in_turn).into_iter().collect();
        Ok(parts?.into_iter().flatten().collect())
    }

    /// A chart, or what is wrong with it.
    ///
    /// # Errors
    /// A limit of the whole request.
    fn outcome(&self, asked: &AskedChart) -> Result<Outcome, Failure> {
        match self.chart(asked) {
            Ok(chart) => Ok(match (asked.since, chart.newest) {
                (Some(since), Some(newest)) if newest <= since => {
                    Outcome::Unchanged { unchanged: true, newest }
                }
                (Some(since), None) => Outcome::Unchanged { unchanged: true, newest: since },
                (since, _) => {
                    let mut chart = chart;
                    if let Some(since) = since {
                        chart.series.iter_mut().for_each(|series| series.leave_out(since));
                    }
                    Outcome::Chart(Box::new(chart))
                }
            }),
            Err(failure) if failure.is_limit() => Err(failure),
            Err(failure) => Ok(Outcome::Failed { error: failure.to_string() }),
        }
    }

    fn chart(&self, asked: &AskedChart) -> Result<Chart, Failure> {
        if asked.arg.len() > ARGUMENTS_MAX {
            return Err(Failure::too_much(format!("more than {ARGUMENTS_MAX} arguments")));
        }
        let width = self.width.to_string();
        let options = ["-", "--start", self.start, "--end", self.end, "--width", &width];
        let words: Vec<&[u8]> =
            options.into_iter().chain(asked.arg.iter().map(String::as_str)).map(str::as_bytes).collect();
        let limits =
            Limits { values_max: VALUES_MAX, pixels_max: None, deadline: Some(self.budget.deadline()) };
        let graph = Graph::parse(&words, GraphContext::at(self.now), limits).map_err(of_graph)?;
        let source = Source { service: &self.api.service, budget: self.budget };
        let mut rows = Recording { source, row_seconds: BTreeMap::new() };
        let data = graph.evaluate(&mut rows).map_err(of_graph)?;
        let chart = Reader { graph: &graph, data: &data }.chart(&rows)?;
        let values: usize = chart.series.iter().map(|series| series.values.len()).sum();
        self.budget.hold((values as u64).saturating_mul(8 + VALUE_TEXT_BYTES))?;
        Ok(chart)
    }
}

/// A computed graph.
struct Reader<'a> {
    graph: &'a Graph<'a>,
    data: &'a Data,
}

impl Reader<'_> {
    fn chart(&self, rows: &Recording<'_>) -> Result<Chart, Failure> {
        let evaluator = self.graph.evaluator();
        let options = self.graph.options();
        // Only what is drawn: its number in the data, in the order of the answer.
        let mut shown: Vec<usize> = Vec::new();
        let elements: Vec<Drawn> = evaluator
            .script
            .elements
            .iter()
            .filter_map(|element| match element {
                Element::Graphic(graphic) => self.drawn(graphic, &mut shown),
                _ => None,
            })
            .collect();
        let series: Vec<ChartSeries> = shown.iter().map(|&number| self.series(number)).collect();
        let printed =
            evaluator.print(self.data, options.base).map_err(|error| Failure::refused(error.to_string()))?;
        let text = |text: &Option<Vec<u8>>| text.as_deref().map(lossy).unwrap_or_default();
        let range = self.graph.range();
        Ok(Chart {
            start: range.start,
            end: range.end,
            step: range.step,
            newest: series.iter().filter_map(ChartSeries::newest).max(),
            title: text(&options.title),
            unit: text(&options.vertical_label),
            base: options.base,
            lower: options.lower_limit,
            upper: options.upper_limit,
            rigid: options.rigid,
            logarithmic: options.logarithmic,
            numbers: shown.iter().enumerate().map(|(index, &number)| self.numbers(index, number)).collect(),
            series,
            elements,
            texts: printed.inside.iter().map(|text| lossy(text)).collect(),
            sources: self.origins(&shown, rows),
        })
    }

    fn drawn(&self, graphic: &Graphic, shown: &mut Vec<usize>) -> Option<Drawn> {
        let (kind, value, colour, legend) = match graphic {
            Graphic::Shape(shape) => {
                let kind = if matches!(shape.kind, ShapeKind::Line { .. }) { "line" } else { "area" };
                (kind, shape.value, shape.colour, &shape.legend)
            }
            Graphic::Tick(tick) => ("tick", tick.value, Some(tick.colour), &tick.legend),
            Graphic::Rule(rule) if rule.vertical => ("vrule", rule.value, Some(rule.colour), &rule.legend),
            Graphic::Rule(rule) => ("hrule", rule.value, Some(rule.colour), &rule.legend),
            Graphic::Shift(_) => return None,
        };
        let mut drawn = Drawn {
            kind,
            label: lossy(legend).trim().to_string(),
            color: colour.map(hexadecimal),
            alpha: colour.map_or(0.0, |colour| colour.alpha),
            ..Drawn::default()
        };
        match value {
            PlotValue::Series(number) => {
                let known = shown.iter().position(|&one| one == number);
                drawn.series = Some(known.unwrap_or_else(|| {
                    shown.push(number);
                    shown.len() - 1
                }));
            }
            PlotValue::Scalar(number) => drawn.value = Some(self.data.scalars[number].value),
            PlotValue::Number(number) => drawn.value = Some(number),
        }
        match graphic {
            Graphic::Shape(shape) => {
                drawn.stack = shape.stack;
                if let ShapeKind::Line { width, dashes } = &shape.kind {
                    drawn.width = *width;
                    drawn.dashes = Some(dashes.lengths.clone()).filter(|lengths| !lengths.is_empty());
                }
            }
            Graphic::Rule(rule) => {
                // The time of a VDEF is where its line stands.
                if let (true, PlotValue::Scalar(number)) = (rule.vertical, rule.value) {
                    drawn.value = self.data.scalars[number].time.map(|time| time as f64);
                }
                drawn.dashes = Some(rule.dashes.lengths.clone()).filter(|lengths| !lengths.is_empty());
            }
            Graphic::Tick(tick) => drawn.width = tick.fraction,
            Graphic::Shift(_) => {}
        }
        Some(drawn)
    }

    fn series(&self, number: usize) -> ChartSeries {
        let Series { start, step, values } = &self.data.series[number];
        let name = lossy(self.graph.evaluator().name(number));
        ChartSeries { name, start: start.saturating_add_unsigned(*step), step: *step, values: values.clone() }
    }

    fn numbers(&self, index: usize, number: usize) -> Numbers {
        let series = &self.data.series[number];
        let value = |function: &str| {
            let vdef = Vdef::parse("n", &format!("v,{function}"), |_| Some(Symbol::Series(0)));
            vdef.map_or(f64::NAN, |vdef| vdef.evaluate(series).value)
        };
        Numbers {
            series: index,
            last: value("LAST"),
            average: value("AVERAGE"),
            minimum: value("MINIMUM"),
            maximum: value("MAXIMUM"),
            percentile: value("95,PERCENTNAN"),
            total: value("TOTAL"),
        }
    }

    /// Where the series that are shown come from: their own DEF, or those that their CDEF reads.
    fn origins(&self, shown: &[usize], rows: &Recording<'_>) -> Vec<Origin> {
        let mut origins = Vec::new();
        let elements = &self.graph.evaluator().script.elements;
        for (index, &number) in shown.iter().enumerate() {
            let read = self.read_by(number);
            for element in elements {
                let Element::Def(def) = element else { continue };
                if !read.contains(&def.series) {
                    continue;
                }
                let key = (def.file.clone(), def.cf.name());
                let row_seconds = rows.row_seconds.get(&key).copied().unwrap_or(f64::NAN);
                origins.push(Origin {
                    series: index,
                    rrd: lossy(&def.file),
                    path: percent::encode(&def.file),
                    ds: lossy(&def.ds),
                    cf: def.cf.name(),
                    row_seconds,
                    reach: rows.reach(&def.file, &def.ds, def.cf, row_seconds),
                });
            }
        }
        origins
    }

    /// The numbers of a series and of all series that it is computed from.
    fn read_by(&self, number: usize) -> Vec<usize> {
        let mut read = vec![number];
        let mut next = 0;
        while let Some(&one) = read.get(next) {
            next += 1;
            let is_it = |element: &&Element| matches!(element, Element::Cdef(cdef) if cdef.series == one);
            if let Some(Element::Cdef(cdef)) = self.graph.evaluator().script.elements.iter().find(is_it) {
                for symbol in cdef.expression.symbols() {
                    if let Symbol::Series(input) = *symbol
                        && !read.contains(&input)
                    {
                        read.push(input);
                    }
                }
            }
        }
        read
    }
}

impl ChartSeries {
    /// When the newest known row ends.
    fn newest(&self) -> Option<i64> {
        let last = self.values.iter().rposition(|value| !value.is_nan())?;
        Some(self.start.saturating_add_unsigned(self.step.saturating_mul(last as u64)))
    }

    /// Leaves out the rows that end at `since` or before.
    fn leave_out(&mut self, since: i64) {
        let step = self.step.max(1);
        let old = (since.saturating_sub(self.start).max(-1) + 1) as u64;
        let count = (old.div_ceil(step) as usize).min(self.values.len());
        self.values.drain(..count);
        self.start = self.start.saturating_add_unsigned(step.saturating_mul(count as u64));
    }
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

fn hexadecimal(colour: Colour) -> String {
    let byte = |part: f64| (part * 255.0).round() as u8;
    format!("#{:02x}{:02x}{:02x}", byte(colour.red), byte(colour.green), byte(colour.blue))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_known_are_left_out() {
        let series =
            || ChartSeries { name: String::new(), start: 110, step: 10, values: vec![1.0, 2.0, f64::NAN] };
        assert_eq!(series().newest(), Some(120));
        for (since, start, count) in
            [(0, 110, 3), (109, 110, 3), (110, 120, 2), (115, 120, 2), (120, 130, 1), (900, 140, 0)]
        {
            let mut left = series();
            left.leave_out(since);
            assert_eq!((left.start, left.values.len()), (start, count), "{since}");
        }
    }
}
