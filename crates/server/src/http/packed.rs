//! Answers compressed for clients that take that: pages, pictures and charts are a fifth of their size then.

use std::io::Write;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::Body as _;

/// Shorter answers are left as they are: they fit into one packet.
const BYTES_MIN: usize = 1_200;
/// zlib's own default.
const LEVEL: Compression = Compression::new(6);

/// Whether a client takes what is compressed as `encoding`, such as `gzip`.
pub fn takes(encoding: &str, headers: &HeaderMap) -> bool {
    let listed = headers.get_all(header::ACCEPT_ENCODING);
    listed.iter().filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').any(|one| {
            let (name, quality) = one.split_once(';').unwrap_or((one, ""));
            let refused = matches!(quality.trim().strip_prefix("q="), Some("0" | "0.0" | "0.00" | "0.000"));
            name.trim().eq_ignore_ascii_case(encoding) && !refused
        })
    })
}

/// `response`, whose body is `bytes`, compressed if the client of the request with these `headers` takes that.
pub fn pack(headers: &HeaderMap, mut response: Response, bytes: Vec<u8>) -> Response {
    debug_assert!(response.body().size_hint().exact() == Some(0), "the body is given apart");
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if bytes.len() < BYTES_MIN || !takes("gzip", headers) {
        *response.body_mut() = Body::from(bytes);
        return response;
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), LEVEL);
    // Writing to memory cannot fail.
    let packed = encoder.write_all(&bytes).and_then(|()| encoder.finish());
    match packed {
        Ok(packed) => {
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            *response.body_mut() = Body::from(packed);
        }
        Err(_) => *response.body_mut() = Body::from(bytes),
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_taken_unless_it_is_refused() {
        for (text, want) in [
            ("gzip, deflate, br", true),
            ("deflate, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("br", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_str(text).unwrap());
            assert_eq!(takes("gzip", &headers), want, "{text}");
        }
    }
}
