//! Why a request was not done: a status and a text that says what to do about it.

use std::fmt;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use store::engine::StoreError;

/// See the module. On the wire it is `{"error": "text"}`.
#[derive(Debug)]
pub struct Failure {
    status: StatusCode,
    text: String,
}

impl Failure {
    /// `text` with `status`.
    pub fn new(status: StatusCode, text: impl fmt::Display) -> Failure {
        Failure { status, text: text.to_string() }
    }

    /// 400: the request cannot be understood.
    pub fn bad(text: impl fmt::Display) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, text)
    }

    /// 422: it is understood, and refused.
    pub fn refused(text: impl fmt::Display) -> Failure {
        Failure::new(StatusCode::UNPROCESSABLE_ENTITY, text)
    }

    /// 413: it asks for more than one request may.
    pub fn too_much(text: impl fmt::Display) -> Failure {
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, text)
    }

    /// What the store said about the RRD called `name`.
    pub fn of_store(name: &[u8], error: &StoreError) -> Failure {
        let name = String::from_utf8_lossy(name);
        Failure::new(status(error), format!("{name}: {error}"))
    }
}

/// The status that goes with a refusal of the store.
pub fn status(error: &StoreError) -> StatusCode {
    match error {
        StoreError::NoSuchRrd(_) => StatusCode::NOT_FOUND,
        StoreError::Exists(_) => StatusCode::CONFLICT,
        StoreError::Update(_)
        | StoreError::Fetch(_)
        | StoreError::Tune(_)
        | StoreError::Refused(_)
        | StoreError::Unsupported(_) => StatusCode::UNPROCESSABLE_ENTITY,
        StoreError::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "error": self.text }).to_string() + "\n";
        let mut response = (self.status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
        }
        response
    }
}
