//! Where a request comes from.

use axum::http::{HeaderMap, header};

/// Whether a page of another site made a browser send this, which it says then.
pub fn is_foreign(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(header::HOST).unwrap_or_default();
    let origin = text(header::ORIGIN).map(|origin| origin.split_once("://").map_or(origin, |(_, host)| host));
    origin.is_some_and(|origin| !origin.eq_ignore_ascii_case(host))
}
