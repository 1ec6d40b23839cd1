//! Answers and refusals as clients of Graphite expect them.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use graphite::EvalError;

use crate::http::failure::Failure;
use crate::http::packed;

/// A refusal: a status, and a text that is the whole answer, as graphite-web's.
#[derive(Debug)]
pub struct GraphiteRefusal(Failure);

impl GraphiteRefusal {
    /// 400.
    pub fn bad(text: impl std::fmt::Display) -> GraphiteRefusal {
        GraphiteRefusal(Failure::bad(text))
    }

    /// 404.
    pub fn missing(text: impl std::fmt::Display) -> GraphiteRefusal {
        GraphiteRefusal(Failure::new(StatusCode::NOT_FOUND, text))
    }
}

impl From<Failure> for GraphiteRefusal {
    fn from(failure: Failure) -> Self {
        GraphiteRefusal(failure)
    }
}

impl From<EvalError> for GraphiteRefusal {
    fn from(error: EvalError) -> Self {
        match error {
            EvalError::Source(error) => match error.downcast::<Failure>() {
                Ok(failure) => GraphiteRefusal(*failure),
                Err(error) => GraphiteRefusal::bad(error),
            },
            error => GraphiteRefusal::bad(error),
        }
    }
}

impl IntoResponse for GraphiteRefusal {
    fn into_response(self) -> Response {
        // What is too much is the request's fault here: Grafana shows the text of a 400.
        let status = match self.0.status() {
            StatusCode::NOT_FOUND => StatusCode::NOT_FOUND,
            status if status.is_client_error() => StatusCode::BAD_REQUEST,
            status => status,
        };
        let content = [
            (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        let mut response = (status, content, format!("{}\n", self.0)).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// An answer of this kind, compressed if the client takes that.
pub fn answer(headers: &HeaderMap, content: &'static str, bytes: Vec<u8>) -> Response {
    let mut response = Body::empty().into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content));
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    packed::pack(headers, response, bytes)
}

/// JSON that no cache keeps.
pub fn json(headers: &HeaderMap, text: String) -> Response {
    let mut response = answer(headers, "application/json", text.into_bytes());
    for name in [header::CACHE_CONTROL, header::PRAGMA] {
        response.headers_mut().insert(name, HeaderValue::from_static("no-cache"));
    }
    response
}

/// Whether JSON is to be ASCII: unless a client says that it takes other kinds of answers, too, as graphite-web decides it.
pub fn wants_ascii(headers: &HeaderMap) -> bool {
    headers.get(header::ACCEPT).is_none_or(|accept| accept.as_bytes() == b"application/json")
}

/// Texts as an array of JSON.
pub fn texts<'a>(all: impl IntoIterator<Item = &'a str>, is_ascii: bool) -> String {
    let mut out = String::from("[");
    for (index, text) in all.into_iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        graphite::output::push_text(&mut out, text, is_ascii);
    }
    out.push(']');
    out
}
