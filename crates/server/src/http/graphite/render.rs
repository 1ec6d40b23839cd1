//! `/render`: series as JSON, CSV, raw text, MessagePack, pickle, or as a picture.

use axum::http::HeaderMap;
use axum::response::Response;
use graphite::output::{self, items};
use graphite::{Context, Evaluator, Series, limit_points, time};
use localtime::Local;
use rrd::when::calendar::{Calendar, Utc};

use super::answer::{GraphiteRefusal, answer};
use super::picture::{self, PictureFormat};
use super::source::GraphiteSource;
use super::{Graphite, refuse_jsonp, whole_number};
use crate::http::query::Query;
use crate::http::rows::Budget;

/// The most rows that a request may read; the memory for clients counts before.
const VALUES_MAX: u64 = 50_000_000;
/// The most targets of a request.
const TARGETS_MAX: usize = 2_000;
/// Bytes of a point in an answer, with its time.
const POINT_BYTES: u64 = 40;

/// What is asked for.
struct RenderRequest {
    targets: Vec<String>,
    from: i64,
    until: i64,
    now: i64,
    xff: f64,
    points_max: Option<usize>,
    skips_unknown: bool,
    is_pretty: bool,
    templates: Vec<(String, String)>,
}

/// The zone that is named; this host's for any but UTC.
fn calendar(name: Option<String>) -> &'static dyn Calendar {
    match name.as_deref() {
        Some("UTC" | "Etc/UTC" | "GMT" | "Etc/GMT") => &Utc,
        _ => &Local,
    }
}

impl RenderRequest {
    fn read(query: &mut Query, now: i64, calendar: &dyn Calendar) -> Result<RenderRequest, GraphiteRefusal> {
        let mut targets = query.take_all("target");
        if targets.is_empty() {
            targets = query.take_all("target[]");
        }
        if targets.len() > TARGETS_MAX {
            return Err(GraphiteRefusal::bad(format!(
                "more than {TARGETS_MAX} targets: ask for fewer at once"
            )));
        }
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let mut at = |key: &str, default: &str, now: i64| {
            let text = query.text(key).unwrap_or_else(|| default.to_owned());
            time::parse(&text, now, calendar).map_err(|error| GraphiteRefusal::bad(format!("{key}: {error}")))
        };
        let now = at("now", "now", now)?;
        let (until, from) = (at("until", "now", now)?, at("from", "-1d", now)?);
        if from == until {
            return Err(GraphiteRefusal::bad("Invalid empty time range: from and until are equal"));
        }
        let xff = query.text("xFilesFactor").map_or(Ok(0.0), |text| text.trim().parse::<f64>());
        let xff = xff.map_err(|_| GraphiteRefusal::bad("xFilesFactor: give a number between 0 and 1"))?;
        let points_max = query.text("maxDataPoints").and_then(|text| text.parse::<usize>().ok());
        if points_max == Some(0) {
            return Err(GraphiteRefusal::bad("maxDataPoints: give 1 or more"));
        }
        let skips_unknown = query.text("noNullPoints").is_some();
        let is_pretty = query.text("pretty").is_some_and(|text| !text.is_empty());
        Ok(RenderRequest {
            targets: targets.into_iter().map(text).collect(),
            from: from.min(until),
            until: from.max(until),
            now,
            xff,
            points_max,
            skips_unknown,
            is_pretty,
            templates: Vec::new(),
        })
    }
}

/// The format, which three parameters may say.
fn format(query: &mut Query) -> String {
    let (pickle, raw) = (query.text("pickle").is_some(), query.text("rawData").is_some());
    let default = match (pickle, raw) {
        (_, true) => "raw",
        (true, false) => "pickle",
        (false, false) => "png",
    };
    query.text("format").unwrap_or_else(|| default.to_owned())
}

/// `/render`
pub fn render(state: &Graphite, headers: &HeaderMap, mut query: Query) -> Result<Response, GraphiteRefusal> {
    refuse_jsonp(&mut query)?;
    if query.text("graphType").is_some_and(|kind| kind != "line") {
        return Err(GraphiteRefusal::bad("graphType: only line is supported"));
    }
    let calendar = calendar(query.text("tz"));
    let mut request = RenderRequest::read(&mut query, state.service.now(), calendar)?;
    let format = format(&mut query);
    let picture = PictureFormat::from_name(&format);
    let look = picture::Look::read(&mut query)?;
    let _ = whole_number(&mut query, "cacheTimeout")?;
    request.templates = templates(query);
    let budget = Budget::of(&state.service.memory, VALUES_MAX);
    let mut all = evaluated(state, &request, calendar, &budget)?;
    if let (Some(points_max), "json") = (request.points_max, &*format) {
        limit_points(&mut all, points_max);
    }
    if let Some(format) = picture {
        return picture::draw(state, headers, &budget, &all, (request.from, request.until), (&look, format));
    }
    let points: usize =
        all.iter().map(|series| series.values.len() / series.values_per_point.max(1) + 8).sum();
    budget.hold(points as u64 * POINT_BYTES)?;
    Ok(match &*format {
        "json" => {
            let text = output::json(&all, request.skips_unknown, request.is_pretty);
            answer(headers, "application/json", text.into_bytes())
        }
        "csv" => answer(headers, "text/csv", output::csv(&all, calendar).into_bytes()),
        "raw" => answer(headers, "text/plain", output::raw(&all).into_bytes()),
        "msgpack" => answer(headers, "application/x-msgpack", output::msgpack(&items(&all))),
        "pickle" => answer(headers, "application/pickle", output::pickle(&items(&all))),
        other => {
            return Err(GraphiteRefusal::bad(format!(
                "format={other}: give json, csv, raw, msgpack, pickle, png or svg"
            )));
        }
    })
}

/// Values for templates: `template[name]=value`.
fn templates(query: Query) -> Vec<(String, String)> {
    let one = |(key, value): (String, Vec<u8>)| {
        let name = key.strip_prefix("template[")?.strip_suffix(']')?;
        Some((name.to_owned(), String::from_utf8_lossy(&value).into_owned()))
    };
    query.into_pairs().into_iter().filter_map(one).collect()
}

fn evaluated(
    state: &Graphite,
    request: &RenderRequest,
    calendar: &dyn Calendar,
    budget: &Budget,
) -> Result<Vec<Series>, GraphiteRefusal> {
    let mut source = GraphiteSource::new(&state.service, &state.rules, &state.indexes, budget);
    let evaluator = Evaluator::new(&mut source, calendar, request.now);
    let mut evaluator = evaluator.with_templates(request.templates.clone());
    // What setXFilesFactor says holds for the targets after it, too.
    let mut context = Context::new(request.from, request.until, request.xff);
    let mut all = Vec::new();
    for target in &request.targets {
        all.extend(evaluator.target(target, &mut context)?);
    }
    Ok(all)
}
