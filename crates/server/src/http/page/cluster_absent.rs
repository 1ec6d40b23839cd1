//! In place of `cluster.rs` in a build without the feature `cluster`.

use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};

use super::{FailurePage, answer};
use crate::http::failure::Failure;

fn missing() -> Failure {
    Failure::missing("a cluster", "cluster")
}

/// `GET /cluster`
pub async fn cluster(headers: HeaderMap) -> Response {
    answer(&headers, Err::<FailurePage, _>(missing()))
}

/// `POST /cluster`
pub async fn change() -> Response {
    missing().into_response()
}

/// `GET /api/v1/cluster`
pub async fn json() -> Response {
    missing().into_response()
}
