//! The paths of HTTP to which samples are pushed, and what was left out of them.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use super::{counts, remote_write};
use crate::service::Service;

/// Bytes of a request that pushes samples: vmagent sends up to 8 MiB, 32 MiB no longer compressed.
pub const PUSH_BYTES_MAX: usize = 16 << 20;
/// The paths of remote write, as Prometheus, VictoriaMetrics, and Cortex and Mimir have them.
const REMOTE_WRITE: &[&str] = &["/api/v1/write", "/prometheus/api/v1/write", "/api/v1/push"];

/// Whether requests to this path push samples: they may be longer than others.
pub fn is_push(path: &str) -> bool {
    REMOTE_WRITE.contains(&path) || crate::push::http::PATHS.contains(&path)
}

/// The routes.
pub fn router(service: Arc<Service>) -> Router {
    let mut router = Router::new().route("/api/v1/ingest", get(report));
    for path in REMOTE_WRITE {
        router = router.route(path, post(remote_written));
    }
    router.layer(DefaultBodyLimit::max(PUSH_BYTES_MAX)).with_state(service)
}

async fn remote_written(State(service): State<Arc<Service>>, headers: HeaderMap, body: Bytes) -> Response {
    remote_write::write(&service, &headers, body).await
}

/// What was pushed, and which series got no RRD.
async fn report(State(service): State<Arc<Service>>) -> Response {
    let text = counts::report(&service.ingest).to_string();
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}
