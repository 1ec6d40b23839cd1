//! The paths of InfluxDB, OpenTelemetry and collectd.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderValue, Request, header};
use axum::routing::{any, get, post};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{collectd, influx, otlp};
use crate::http::query::Query;
use crate::ingest::routes::PUSH_BYTES_MAX;
use crate::service::Service;

/// Paths whose requests bring samples, and may be longer than others.
pub const PATHS: &[&str] = &[
    "/write",
    "/api/v2/write",
    "/influx/write",
    "/influx/api/v2/write",
    "/collectd",
    "/v1/metrics",
    "/otlp/v1/metrics",
    "/api/v1/otlp/v1/metrics",
];
/// Paths at which clients of InfluxDB may say who they are by `u` and `p`.
const WITH_PASSWORDS: &[&str] =
    &["/write", "/query", "/ping", "/influx/write", "/influx/query", "/influx/ping"];

/// The routes.
pub fn router(service: Arc<Service>) -> Router {
    let mut router = Router::new().route("/collectd", post(collectd::write));
    // As Prometheus' and Graphite's are under their names, too.
    for prefix in ["", "/influx"] {
        let at = |path: &str| format!("{prefix}{path}");
        router = router
            .route(&at("/write"), post(influx::write))
            .route(&at("/api/v2/write"), post(influx::write))
            .route(&at("/query"), any(influx::query))
            .route(&at("/ping"), get(influx::ping).post(influx::ping))
            .route(&at("/health"), get(influx::health));
    }
    for path in ["/v1/metrics", "/otlp/v1/metrics", "/api/v1/otlp/v1/metrics"] {
        router = router.route(path, post(otlp::metrics));
    }
    router.layer(DefaultBodyLimit::max(PUSH_BYTES_MAX)).with_state(service)
}

/// Says by a header what a client of InfluxDB says by the parameters `u` and `p`, unless it has a header.
pub fn take_password<B>(request: &mut Request<B>) {
    let has_header = request.headers().contains_key(header::AUTHORIZATION);
    if has_header || !WITH_PASSWORDS.contains(&request.uri().path()) {
        return;
    }
    let Some(Ok(mut query)) = request.uri().query().map(|query| Query::parse(query.as_bytes())) else {
        return;
    };
    let (Some(name), Some(password)) = (query.take("u"), query.take("p")) else { return };
    let both = STANDARD.encode([&name[..], b":", &password].concat());
    if let Ok(mut value) = HeaderValue::from_str(&format!("Basic {both}")) {
        value.set_sensitive(true);
        request.headers_mut().insert(header::AUTHORIZATION, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_of_parameters_are_those_of_a_header() {
        let check = |uri: &str, header: Option<&str>, want: Option<&str>| {
            let mut request = Request::builder().uri(uri);
            if let Some(header) = header {
                request = request.header(header::AUTHORIZATION, header);
            }
            let mut request = request.body(()).unwrap();
            take_password(&mut request);
            let found = request.headers().get(header::AUTHORIZATION).map(|value| value.to_str().unwrap());
            assert_eq!(found, want, "{uri}");
        };
        check("/write?u=Aladdin&p=open+sesame", None, Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
        check("/write?u=a&p=b", Some("Token x"), Some("Token x"));
        check("/write?u=a", None, None);
        check("/graph?u=a&p=b", None, None);
        check("/write", None, None);
    }
}
