//! Prometheus' HTTP API over the store's rows: queries in PromQL, labels, series. `docs/prometheus.md` says what an RRD is there.
//!
//! Every path is there under `/prometheus`, too. Unknown parameters are ignored, as Prometheus ignores them.

mod answer;
mod archive;
pub(super) mod index;
mod kept_labels;
mod label_values;
mod names;
mod params;
pub(super) mod pushed;
mod remote_read;
mod source;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use promql::ast::Type;
use promql::{Grid, Options, evaluate};
use suggest::MetricRules;

use self::answer::{ApiError, data, quoted, success};
use self::index::{Indexes, MetricIndex};
use self::params::Params;
use self::source::StoreSource;
use super::rows::Budget;
use super::work::Work;
use crate::grafana::PROMETHEUS_VERSION;
use crate::service::Service;

/// The most times of a query, as Prometheus has it: more than a screen has columns.
const POINTS_MAX: usize = 11_000;
/// The most rows that one query may read; as Prometheus has it, and the memory for clients counts before.
const VALUES_MAX: u64 = 50_000_000;

/// State of the endpoints.
#[derive(Clone)]
pub struct Prometheus {
    service: Arc<Service>,
    work: Arc<Work>,
    rules: Arc<MetricRules>,
    indexes: Arc<Indexes>,
}

impl Prometheus {
    fn index(&self) -> Result<Arc<MetricIndex>, ApiError> {
        Ok(self.indexes.current(&self.service, &self.rules)?)
    }
}

/// The routes.
pub fn router(
    service: Arc<Service>,
    work: Arc<Work>,
    rules: Arc<MetricRules>,
    indexes: Arc<Indexes>,
) -> Router {
    let state = Prometheus { service, work, rules, indexes };
    let mut router = Router::new();
    for prefix in ["/api/v1", "/prometheus/api/v1"] {
        let at = |path: &str| format!("{prefix}/{path}");
        router = router
            .route(&at("query"), any(query))
            .route(&at("query_range"), any(query_range))
            .route(&at("labels"), any(labels))
            .route(&at("label/{name}/values"), any(values))
            .route(&at("series"), any(series))
            .route(&at("metadata"), any(metadata))
            .route(&at("format_query"), any(format_query))
            .route(&at("read"), any(read))
            .route(&at("status/buildinfo"), any(build_info))
            .route(&at("query_exemplars"), any(exemplars))
            .route(&at("rules"), any(rules_of_alerts))
            .route(&at("alerts"), any(alerts));
    }
    // The server bounds bodies, and `Query` parameters, whose refusal has the form of this API.
    router.layer(DefaultBodyLimit::disable()).with_state(state)
}

/// Runs `answer` on a thread that may wait.
async fn run(state: &Prometheus, answer: impl FnOnce(&Prometheus) -> Result<Response, ApiError>) -> Response {
    match state.work.run(|| Ok(answer(state))).await {
        Ok(Ok(response)) => response,
        Ok(Err(refusal)) => refusal.into_response(),
        Err(failure) => ApiError::from(failure).into_response(),
    }
}

/// Runs `answer` with the parameters of a request.
async fn with_params(
    state: &Prometheus,
    uri: &Uri,
    body: &Bytes,
    answer: impl FnOnce(&Prometheus, Params) -> Result<Response, ApiError>,
) -> Response {
    match Params::read(uri, body) {
        Ok(params) => run(state, |state| answer(state, params)).await,
        Err(refusal) => refusal.into_response(),
    }
}

async fn query(State(state): State<Prometheus>, uri: Uri, body: Bytes) -> Response {
    with_params(&state, &uri, &body, |state, mut params| {
        let now = state.service.now().saturating_mul(1000);
        let time = params.time("time")?.unwrap_or(now);
        evaluated(state, params, Grid::at(time), None)
    })
    .await
}

async fn query_range(State(state): State<Prometheus>, uri: Uri, body: Bytes) -> Response {
    with_params(&state, &uri, &body, |state, mut params| {
        let (start, end) = (params.time_needed("start")?, params.time_needed("end")?);
        if end < start {
            return Err(ApiError::bad(
                "invalid parameter \"end\": end timestamp must not be before start time",
            ));
        }
        let step = params.duration("step")?.ok_or_else(|| {
            ApiError::bad("invalid parameter \"step\": cannot parse \"\" to a valid duration")
        })?;
        if step <= 0 {
            return Err(ApiError::bad(
                "invalid parameter \"step\": zero or negative query resolution step widths are not accepted. \
                 Try a positive integer",
            ));
        }
        let grid = Grid::new(start, end, step);
        if grid.count > POINTS_MAX {
            return Err(ApiError::bad(
                "exceeded maximum resolution of 11,000 points per timeseries. \
                 Try decreasing the query resolution (?step=XX)",
            ));
        }
        evaluated(state, params, grid, Some(end))
    })
    .await
}

/// Answers a query at the times of `grid`; `end` is that of a range.
fn evaluated(
    state: &Prometheus,
    mut params: Params,
    grid: Grid,
    end: Option<i64>,
) -> Result<Response, ApiError> {
    let is_range = end.is_some();
    let text = params.text("query");
    let limit = params.limit()?;
    let mut options = Options::default();
    if let Some(lookback) = params.duration("lookback_delta")? {
        options.lookback = lookback.max(1);
    }
    options.series_max = source::SERIES_MAX;
    options.end = end;
    let row_max = params.duration("max_source_resolution").ok().flatten().filter(|row| *row > 0);
    let expr = promql::parse(&text)
        .map_err(|error| ApiError::bad(format!("invalid parameter \"query\": {error}")))?;
    let kind = expr.value_type();
    if is_range && !matches!(kind, Type::Scalar | Type::Vector) {
        return Err(ApiError::bad(format!(
            "invalid parameter \"query\": invalid expression type {:?} for range query, must be Scalar or instant Vector",
            kind.name()
        )));
    }
    let budget = Budget::of(&state.service.memory, VALUES_MAX);
    let index = match expr.selectors().is_empty() {
        // `1+1` needs no store.
        true => Arc::new(MetricIndex::empty(&state.service)),
        false => state.index()?,
    };
    let mut source =
        StoreSource { service: &state.service, rules: &state.rules, index, budget: &budget, row_max };
    let answer = evaluate(&expr, grid, is_range, &options, &mut source)?;
    let (data, is_all) = data(&answer, is_range, limit);
    budget.hold(data.len() as u64)?;
    let mut warnings = answer.notes.warnings(&text);
    if !is_all {
        warnings.push("results truncated due to limit".to_owned());
    }
    Ok(success(&data, &warnings, &answer.notes.infos(&text)))
}

async fn labels(State(state): State<Prometheus>, uri: Uri, body: Bytes) -> Response {
    with_params(&state, &uri, &body, names::labels).await
}

async fn values(
    State(state): State<Prometheus>,
    name: Result<Path<String>, PathRejection>,
    uri: Uri,
    body: Bytes,
) -> Response {
    let Ok(Path(name)) = name else {
        return ApiError::bad("invalid parameter \"name\": it is not UTF-8").into_response();
    };
    with_params(&state, &uri, &body, |state, params| names::values(state, &name, params)).await
}

async fn series(State(state): State<Prometheus>, uri: Uri, body: Bytes) -> Response {
    with_params(&state, &uri, &body, names::series).await
}

async fn metadata(State(state): State<Prometheus>, uri: Uri, body: Bytes) -> Response {
    with_params(&state, &uri, &body, names::metadata).await
}

async fn format_query(State(state): State<Prometheus>, uri: Uri, body: Bytes) -> Response {
    with_params(&state, &uri, &body, |_, mut params| {
        let expr = promql::parse(&params.text("query"))
            .map_err(|error| ApiError::bad(format!("invalid parameter \"query\": {error}")))?;
        Ok(success(&quoted(&promql::pretty(&expr)), &[], &[]))
    })
    .await
}

async fn read(State(state): State<Prometheus>, body: Bytes) -> Response {
    run(&state, |state| remote_read::read(state, &body)).await
}

/// The version whose rules hold. It has no features: clients would take it for a server with a ruler.
async fn build_info() -> Response {
    let data = serde_json::json!({
        "version": PROMETHEUS_VERSION,
        "revision": concat!("roundel-", env!("CARGO_PKG_VERSION")),
        "branch": "", "buildUser": "", "buildDate": "", "goVersion": "",
    });
    success(&data.to_string(), &[], &[])
}

async fn exemplars() -> Response {
    success("[]", &[], &[])
}

async fn rules_of_alerts() -> Response {
    success("{\"groups\":[]}", &[], &[])
}

async fn alerts() -> Response {
    success("{\"alerts\":[]}", &[], &[])
}
