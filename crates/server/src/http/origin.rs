//! Where a request comes from, and whether what a port hears is one.

use axum::http::{HeaderMap, header};

/// Whether a request came over TLS; an extension of requests.
#[derive(Clone, Copy, Debug)]
pub struct CameEncrypted(pub bool);

/// Whether a page of another site made a browser send this, which it says then.
pub fn is_foreign(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(header::HOST).unwrap_or_default();
    let origin = text(header::ORIGIN).map(|origin| origin.split_once("://").map_or(origin, |(_, host)| host));
    origin.is_some_and(|origin| !origin.eq_ignore_ascii_case(host))
}

/// What a request begins with that a page may have a browser send anywhere without asking before.
const REQUESTS: [&[u8]; 4] = [b"GET /", b"HEAD /", b"POST /", b"OPTIONS /"];

/// Whether a line, or the beginning of one that is too long, is the first one of a request of HTTP. A browser sends such to any port
/// that a page of any site tells it, and what the page says in the body of the request must not be taken for lines of another protocol.
pub fn is_http_request(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let has_version = line.ends_with(b" HTTP/1.1") || line.ends_with(b" HTTP/1.0");
    has_version || REQUESTS.iter().any(|start| line.starts_with(start))
}
