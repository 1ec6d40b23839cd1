//! `/api/v1`: RRDs and their rows for programs. `openapi.json` describes it, and tests compare the two.

mod charts;
pub(super) mod graphs;
pub(super) mod names;
mod rrds;
pub(super) mod top;
pub(super) mod views;
mod xport;

pub(super) use xport::{arguments, of_graph, xport as export};

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use rrd::when::at::resolve_pair;
use suggest::Presets;

use super::failure::Failure;
use super::query::{QUERY_BYTES_MAX, Query};
use super::views::Views;
use super::work::Work;
use crate::service::Service;

/// The description (OpenAPI 3.1).
const DESCRIPTION: &str = include_str!("openapi.json");

/// State shared by the endpoints.
#[derive(Clone)]
pub struct Api {
    /// The store.
    pub service: Arc<Service>,
    /// The queue for long requests.
    pub work: Arc<Work>,
    /// What producers mean by their data sources.
    pub presets: Arc<Presets>,
    /// Saved pages of graphs.
    pub views: Arc<Views>,
}

/// The routes.
pub fn router(api: Api) -> Router {
    Router::new()
        .route("/api/v1/openapi.json", get(description))
        .route("/api/v1/list", get(rrds::list))
        .route("/api/v1/list/{*directory}", get(rrds::list))
        .route("/api/v1/tree", get(names::tree))
        .route("/api/v1/tree/{*directory}", get(names::tree))
        .route("/api/v1/search", get(names::search))
        .route("/api/v1/graphs", get(graphs::graphs))
        .route("/api/v1/top", get(top::top))
        .route("/api/v1/views", get(views::list))
        .route("/api/v1/views/{view}", get(views::one).put(views::put).post(views::post))
        .route("/api/v1/charts", post(charts::charts))
        .route("/api/v1/info/{*name}", get(rrds::info))
        .route("/api/v1/fetch/{*name}", get(rrds::fetch))
        .route("/api/v1/xport", get(xport_by_query).post(xport_by_form))
        .layer(DefaultBodyLimit::max(QUERY_BYTES_MAX))
        .with_state(api)
}

async fn description() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], DESCRIPTION).into_response()
}

async fn xport_by_query(State(api): State<Api>, uri: Uri) -> Result<Response, Failure> {
    xport::xport(&api, query(&uri)?).await
}

async fn xport_by_form(State(api): State<Api>, body: Bytes) -> Result<Response, Failure> {
    xport::xport(&api, Query::parse(&body)?).await
}

/// The parameters of a request.
pub(super) fn query(uri: &Uri) -> Result<Query, Failure> {
    Query::parse(uri.query().unwrap_or("").as_bytes())
}

/// The path after the endpoint's own three parts, such as `/api/v1/list/`.
fn path_rest(uri: &Uri) -> Result<Vec<u8>, Failure> {
    let encoded = uri.path().splitn(5, '/').nth(4).unwrap_or("");
    super::percent::decode(encoded.as_bytes()).ok_or_else(|| Failure::bad("the name is not percent-encoded"))
}

/// `start` and `end` in seconds since the epoch, each given in any of RRDtool's formats (`rrdfetch(1)`).
pub(super) fn range(query: &mut Query, now: i64) -> Result<(i64, i64), Failure> {
    let start = query.text("start").unwrap_or_else(|| "end-1d".to_string());
    let end = query.text("end").unwrap_or_else(|| "now".to_string());
    let (start, end) = resolve_pair(&start, &end, now, &localtime::Local).map_err(Failure::bad)?;
    if end < start {
        return Err(Failure::bad(format!("start ({start}) is after end ({end})")));
    }
    Ok((start, end))
}
