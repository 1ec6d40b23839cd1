//! Graphite's HTTP API over the store's rows: `/render`, finding paths, functions, tags. `docs/graphite.md` says what an RRD is there.
//!
//! Every path is there under `/graphite`, too, and with a slash at its end. Unknown parameters are ignored, as graphite-web ignores them.

mod answer;
mod find;
mod nodes;
mod picture;
mod pushed;
mod render;
mod source;
mod tags;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any};
use rrdgraph::Renderer;
use suggest::MetricRules;

use self::answer::{GraphiteRefusal, json};
use super::prometheus::index::Indexes;
use super::query::Query;
use super::work::Work;
use crate::service::Service;

/// What clients that look at Graphite's version find: the one whose answers these are.
const VERSION: &str = "1.1.10";

/// State of the endpoints.
#[derive(Clone)]
pub struct Graphite {
    /// The part of the store that a client sees.
    pub service: Arc<Service>,
    /// The queue for long requests.
    pub work: Arc<Work>,
    /// What RRDs are called as metrics.
    pub rules: Arc<MetricRules>,
    /// The index of metrics and their labels.
    pub indexes: Arc<Indexes>,
    /// Fonts and glyphs for pictures.
    pub renderer: Arc<Renderer>,
}

/// The routes.
pub fn router(state: Graphite) -> Router {
    let mut router = Router::new();
    for prefix in ["", "/graphite"] {
        for slash in ["", "/"] {
            let at = |path: &str| format!("{prefix}/{path}{slash}");
            router = router
                .route(&at("render"), answered(render::render))
                .route(&at("metrics/find"), answered(find::find))
                .route(&at("metrics/expand"), answered(find::expand))
                .route(&at("metrics/index.json"), answered(find::index))
                .route(&at("functions"), answered(functions))
                .route(&at("functions/{name}"), any(one_function))
                .route(&at("version"), any(version))
                .route(&at("events/get_data"), any(events))
                .route(&at("tags/autoComplete/tags"), answered(tags::tags))
                .route(&at("tags/autoComplete/values"), answered(tags::values))
                .route(&at("tags/findSeries"), answered(tags::find_series));
        }
    }
    // The server bounds bodies, and `Query` parameters, whose refusal has the form of this API.
    router.layer(DefaultBodyLimit::disable()).with_state(state)
}

/// What answers a request, by its parameters.
type Answer = fn(&Graphite, &HeaderMap, Query) -> Result<Response, GraphiteRefusal>;

/// A route to `answer`.
fn answered(answer: Answer) -> MethodRouter<Graphite> {
    any(move |State(state): State<Graphite>, uri: Uri, headers: HeaderMap, body: Bytes| async move {
        run(&state, (uri, headers, body), answer).await
    })
}

/// Runs `answer` with the parameters of a request on a thread that may wait.
async fn run(
    state: &Graphite,
    (uri, headers, body): (Uri, HeaderMap, Bytes),
    answer: impl FnOnce(&Graphite, &HeaderMap, Query) -> Result<Response, GraphiteRefusal>,
) -> Response {
    let query = match form_of(&headers, &body).and_then(|form| Ok(Query::of_request(&uri, form)?)) {
        Ok(query) => query,
        Err(refusal) => return refusal.into_response(),
    };
    match state.work.run(|| Ok(answer(state, &headers, query))).await {
        Ok(Ok(response)) => response,
        Ok(Err(refusal)) => refusal.into_response(),
        Err(failure) => GraphiteRefusal::from(failure).into_response(),
    }
}

/// The body, which has parameters. One of another kind has none that could be found, and would be answered by an empty picture.
fn form_of<'a>(headers: &HeaderMap, body: &'a Bytes) -> Result<&'a [u8], GraphiteRefusal> {
    let kind = headers.get(header::CONTENT_TYPE).map(|kind| kind.as_bytes().to_ascii_lowercase());
    match kind {
        Some(kind) if kind.starts_with(b"multipart/") || kind.starts_with(b"application/json") => {
            Err(GraphiteRefusal::bad(
                "send the parameters as application/x-www-form-urlencoded (curl -d), or in the URL",
            ))
        }
        _ => Ok(body),
    }
}

/// A whole number, if it is there.
fn whole_number(query: &mut Query, key: &str) -> Result<Option<i64>, GraphiteRefusal> {
    let Some(text) = query.text(key) else { return Ok(None) };
    text.trim()
        .parse()
        .map(Some)
        .map_err(|_| GraphiteRefusal::bad(format!("Invalid int value {text:?} for param {key}")))
}

/// JSONP lets pages of others read answers with their reader's rights.
fn refuse_jsonp(query: &mut Query) -> Result<(), GraphiteRefusal> {
    match query.text("jsonp") {
        None => Ok(()),
        Some(_) => {
            Err(GraphiteRefusal::bad("jsonp is not supported: ask for format=json from the same origin"))
        }
    }
}

fn functions(_: &Graphite, headers: &HeaderMap, mut query: Query) -> Result<Response, GraphiteRefusal> {
    let is_grouped = query.text("grouped").is_some_and(|text| matches!(&*text, "1" | "true"));
    let wanted = query.text("group");
    let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for function in graphite::functions() {
        if wanted.as_ref().is_none_or(|group| group == function.group) {
            let group = if is_grouped { function.group } else { "" };
            let text = format!("\"{}\": {}", function.name, graphite::describe(function));
            groups.entry(group).or_default().push(text);
        }
    }
    let object = |all: &Vec<String>| format!("{{{}}}", all.join(", "));
    let text = match is_grouped {
        true => {
            let all = groups.iter().map(|(group, all)| format!("\"{group}\": {}", object(all)));
            format!("{{{}}}", all.collect::<Vec<_>>().join(", "))
        }
        false => object(groups.get("").unwrap_or(&Vec::new())),
    };
    Ok(json(headers, text))
}

async fn one_function(
    State(state): State<Graphite>,
    Path(name): Path<String>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    run(&state, (uri, headers, body), |_, headers, _| {
        let function = graphite::function(&name);
        let function =
            function.ok_or_else(|| GraphiteRefusal::missing(format!("Function not found: {name}")))?;
        Ok(json(headers, graphite::describe(function)))
    })
    .await
}

async fn version() -> Response {
    ([(header::CONTENT_TYPE, "text/plain")], VERSION).into_response()
}

/// There are no events.
async fn events() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], "[]").into_response()
}
