//! What there is: names and values of labels, series, metrics.

use std::collections::{BTreeMap, BTreeSet};

use axum::response::Response;
use promql::{Labels, Matcher, NAME};
use suggest::{MetricKind, RRD_LABEL};

use super::answer::{labels as labels_json, quoted, success};
use super::index::{CF_LABEL, FoundSeries};
use super::params::{Params, decode_label};
use super::{ApiError, Prometheus};
use crate::http::failure::Failure;
use crate::http::rows::Budget;

/// The most selectors of a request: each looks through the index.
const SELECTORS_MAX: usize = 1_000;
/// The most series that are looked through.
const EXAMINED_MAX: usize = 5_000_000;
/// What an answer that was cut says.
const CUT: &str = "results truncated due to limit";

/// Selectors of which a series must match one, each once; none: all series.
fn selectors(params: &mut Params) -> Result<Vec<Vec<Matcher>>, ApiError> {
    let texts: BTreeSet<String> = params.texts("match[]").into_iter().collect();
    if texts.len() > SELECTORS_MAX {
        return Err(ApiError::bad(format!(
            "invalid parameter \"match[]\": more than {SELECTORS_MAX} selectors: ask for fewer at once"
        )));
    }
    let read = |text: &String| {
        promql::selector(text)
            .map_err(|error| ApiError::bad(format!("invalid parameter \"match[]\": {error}")))
    };
    texts.iter().map(read).collect()
}

/// Calls `each` with the labels of all series that any of `selectors` takes.
fn visit(
    state: &Prometheus,
    selectors: &[Vec<Matcher>],
    mut each: impl FnMut(&Labels) -> bool,
) -> Result<(), ApiError> {
    let budget = Budget::new(&state.service.memory);
    let index = state.index()?;
    let all = [Vec::new()];
    let mut examined = 0;
    for matchers in if selectors.is_empty() { &all[..] } else { selectors } {
        let cf: Vec<&Matcher> = matchers.iter().filter(|matcher| matcher.name == CF_LABEL).collect();
        index.matching(&state.service, &state.rules, matchers, |found| {
            examined += 1;
            if examined > EXAMINED_MAX {
                return Err(Failure::too_much(format!("more than {EXAMINED_MAX} series: select fewer")));
            }
            if examined % 1024 == 0 {
                budget.count(0)?;
            }
            if cf.is_empty() {
                return Ok(each(&found.labels));
            }
            Ok(with_cf(&found, &cf).iter().all(&mut each))
        })?;
    }
    Ok(())
}

/// The labels of a series for each consolidation function that conditions take.
fn with_cf(found: &FoundSeries, conditions: &[&Matcher]) -> Vec<Labels> {
    let mut names: Vec<&str> = found.status.definition.rra.iter().map(|rra| rra.cf.cf().name()).collect();
    names.sort_unstable();
    names.dedup();
    let taken = names.into_iter().filter(|name| conditions.iter().all(|matcher| matcher.matches(name)));
    taken.map(|name| found.labels.with(CF_LABEL, name)).collect()
}

/// A list of texts as an answer, cut at the limit.
fn list(texts: BTreeSet<String>, limit: usize) -> Response {
    let is_cut = texts.len() > limit;
    let texts: Vec<String> = texts.iter().take(limit).map(|text| quoted(text)).collect();
    let warnings = if is_cut { vec![CUT.to_owned()] } else { Vec::new() };
    success(&format!("[{}]", texts.join(",")), &warnings, &[])
}

/// `labels`
pub fn labels(state: &Prometheus, mut params: Params) -> Result<Response, ApiError> {
    let (selectors, limit) = (selectors(&mut params)?, params.limit()?);
    let mut names = BTreeSet::new();
    let index = state.index()?;
    if selectors.is_empty()
        && let Some(known) = index.label_values().names()
    {
        names.extend(known.map(str::to_owned));
        names.extend(index.metrics().next().map(|_| NAME.to_owned()));
        return Ok(list(names, limit));
    }
    visit(state, &selectors, |labels| {
        for (name, _) in labels.iter() {
            if !names.contains(name) {
                names.insert(name.to_owned());
            }
        }
        true
    })?;
    Ok(list(names, limit))
}

/// `label/NAME/values`
pub fn values(state: &Prometheus, name: &str, mut params: Params) -> Result<Response, ApiError> {
    let name = decode_label(name);
    let (selectors, limit) = (selectors(&mut params)?, params.limit()?);
    let mut values = BTreeSet::new();
    if name == NAME && selectors.is_empty() {
        values.extend(state.index()?.metrics().map(|(metric, _)| metric.to_owned()));
        return Ok(list(values, limit));
    }
    if name == CF_LABEL {
        let all = rrd::definition::Cf::ALL.iter().map(|cf| cf.name());
        values.extend(all.filter(|name| !name.contains("SEASONAL")).map(str::to_owned));
        return Ok(list(values, limit));
    }
    if selectors.is_empty()
        && let Some(known) = state.index()?.label_values().of(&name)
    {
        values.extend(known.map(str::to_owned));
        return Ok(list(values, limit));
    }
    visit(state, &selectors, |labels| {
        let value = labels.get(&name);
        if !value.is_empty() && !values.contains(value) {
            values.insert(value.to_owned());
        }
        // One more than the limit says that there are more; the order needs all of them, unless they are paths, which are in order.
        name != RRD_LABEL || selectors.len() > 1 || values.len() <= limit
    })?;
    Ok(list(values, limit))
}

/// `series`
pub fn series(state: &Prometheus, mut params: Params) -> Result<Response, ApiError> {
    let (selectors, limit) = (selectors(&mut params)?, params.limit()?);
    if selectors.is_empty() {
        return Err(ApiError::bad("no match[] parameter provided"));
    }
    let mut all = BTreeSet::new();
    visit(state, &selectors, |labels| {
        all.insert(labels.clone());
        all.len() <= limit
    })?;
    let is_cut = all.len() > limit;
    let mut data = String::from("[");
    for (index, labels) in all.iter().take(limit).enumerate() {
        if index > 0 {
            data.push(',');
        }
        labels_json(&mut data, labels);
    }
    data.push(']');
    let warnings = if is_cut { vec![CUT.to_owned()] } else { Vec::new() };
    Ok(success(&data, &warnings, &[]))
}

/// `metadata`
pub fn metadata(state: &Prometheus, mut params: Params) -> Result<Response, ApiError> {
    let (limit, wanted) = (params.limit()?, params.text("metric"));
    let index = state.index()?;
    let mut all = BTreeMap::new();
    let metrics = index.metrics().filter(|(metric, _)| wanted.is_empty() || *metric == wanted);
    for (metric, entry) in metrics.take(limit) {
        let matcher = [Matcher::equal(NAME, metric)];
        let mut kind = MetricKind::Gauge;
        let mut ds = String::new();
        index.matching(&state.service, &state.rules, &matcher, |found| {
            if let Some(source) = found.status.definition.ds.get(usize::from(entry.ds)) {
                kind = MetricKind::of(&source.kind);
                source.name.clone_into(&mut ds);
            }
            Ok(false)
        })?;
        let (kind, help) = match (entry.is_counter, kind) {
            (true, _) => ("counter", format!("What the rates of the data source {ds} add up to.")),
            (false, MetricKind::Rate) => ("gauge", format!("Rate per second of the data source {ds}.")),
            (false, MetricKind::Gauge) => ("gauge", format!("Values of the data source {ds}.")),
        };
        all.insert(metric.to_owned(), serde_json::json!([{ "type": kind, "help": help, "unit": "" }]));
    }
    Ok(success(&serde_json::to_string(&all).unwrap_or_default(), &[], &[]))
}
