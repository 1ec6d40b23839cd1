//! Graphite's HTTP API over the store's rows: `/render`, finding paths, functions, tags. `docs/graphite.md` says what an RRD is there.
//!
//! Every path is there under `/graphite`, too, and with a slash at its end. Unknown parameters are ignored, as graphite-web ignores them.

mod answer;
mod find;
mod nodes;
mod picture;
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
use axum::routing::any;
use rrdgraph::Renderer;
use suggest::MetricRules;

use self::answer::{GraphiteRefusal, json};
use super::prometheus::index::Indexes;
use super::query::{QUERY_BYTES_MAX, Query};
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
                .route(&at("render"), any(render))
                .route(&at("metrics/find"), any(find_nodes))
                .route(&at("metrics/expand"), any(expand))
                .route(&at("metrics/index.json"), any(index))
                .route(&at("functions"), any(functions))
                .route(&at("functions/{name}"), any(one_function))
                .route(&at("version"), any(version))
                .route(&at("events/get_data"), any(events))
                .route(&at("tags/autoComplete/tags"), any(tag_names))
                .route(&at("tags/autoComplete/values"), any(tag_values))
                .route(&at("tags/findSeries"), any(tagged_series));
        }
    }
    router.layer(DefaultBodyLimit::max(QUERY_BYTES_MAX)).with_state(state)
}

/// Runs `answer` with the parameters of a request on a thread that may wait.
async fn run(
    state: &Graphite,
    (uri, headers, body): (Uri, HeaderMap, Bytes),
    answer: impl FnOnce(&Graphite, &HeaderMap, Query) -> Result<Response, GraphiteRefusal>,
) -> Response {
    let query = match Query::of_request(&uri, &body) {
        Ok(query) => query,
        Err(failure) => return GraphiteRefusal::from(failure).into_response(),
    };
    match state.work.run(|| Ok(answer(state, &headers, query))).await {
        Ok(Ok(response)) => response,
        Ok(Err(refusal)) => refusal.into_response(),
        Err(failure) => GraphiteRefusal::from(failure).into_response(),
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

async fn render(State(state): State<Graphite>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    run(&state, (uri, headers, body), render::render).await
}

async fn find_nodes(State(state): State<Graphite>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    run(&state, (uri, headers, body), find::find).await
}

async fn expand(State(state): State<Graphite>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    run(&state, (uri, headers, body), find::expand).await
}

async fn index(State(state): State<Graphite>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    run(&state, (uri, headers, body), find::index).await
}

async fn tag_names(State(state): State<Graphite>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    run(&state, (uri, headers, body), tags::tags).await
}

async fn tag_values(State(state): State<Graphite>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    run(&state, (uri, headers, body), tags::values).await
}

async fn tagged_series(State(state): State<Graphite>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    run(&state, (uri, headers, body), tags::find_series).await
}

async fn functions(State(state): State<Graphite>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    run(&state, (uri, headers, body), |_, headers, mut query| {
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
    })
    .await
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
