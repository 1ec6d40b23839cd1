//! Where a request comes from, and whether what a port hears is one.

use std::net::IpAddr;

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

/// Whether a request's `Host` is an address or localhost, and not a name that any site may give to this address.
pub fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
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
