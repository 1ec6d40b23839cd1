//! The paths of HTTP to which samples are pushed, and what was left out of them.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::counts;
use crate::service::Service;

/// Bytes of a request that pushes samples: vmagent sends up to 8 MiB, 32 MiB no longer compressed.
pub const PUSH_BYTES_MAX: usize = 16 << 20;
/// The paths to which samples are pushed: their requests may be longer than others.
const PUSH_PATHS: &[&str] = &[];

/// Whether requests to this path push samples, and may have [`PUSH_BYTES_MAX`].
pub fn is_push(path: &str) -> bool {
    PUSH_PATHS.contains(&path)
}

/// The routes. Each protocol adds its own here, and its paths to those above.
pub fn router(service: Arc<Service>) -> Router {
    Router::new()
        .route("/api/v1/ingest", get(report))
        .layer(DefaultBodyLimit::max(PUSH_BYTES_MAX))
        .with_state(service)
}

/// What was pushed, and which series got no RRD.
async fn report(State(service): State<Arc<Service>>) -> Response {
    let text = counts::report(&service.ingest).to_string();
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}
