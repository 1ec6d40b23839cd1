//! What clients of InfluxDB ask for: both versions' writes, and what they look at before.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::ingest::fill::Filling;
use ::ingest::influx::{Precision, read_lines};
use ::ingest::refusal::Refusal;
use ::ingest::sample::Samples;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::encoding;
use crate::http::query::Query;
use crate::ingest::PushWay;
use crate::service::Service;

/// The name in `/metrics`.
const NAME: &str = "influx";
/// The version that clients find: the last whose writes are these.
const VERSION: &str = "1.8.10";
/// Lines and series that an answer names.
const NAMED_MAX: usize = 10;
/// Bytes of what is wrong that an answer repeats.
const SHOWN_BYTES_MAX: usize = 100;
/// Fields that are no numbers are left out and counted, and no reason to refuse a request: nearly all senders have some.
const QUIET: [&str; 2] = ["text", "boolean"];

/// What is wrong with a write.
#[derive(Default)]
struct Wrong {
    refused: BTreeMap<&'static str, u64>,
    named: Vec<String>,
    count: u64,
}

impl Wrong {
    fn name(&mut self, text: impl FnOnce() -> String) {
        self.count += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(text());
        }
    }

    fn refuse(&mut self, refusal: Refusal<'_>) {
        let label = refusal.fault.label();
        *self.refused.entry(label).or_default() += 1;
        if !QUIET.contains(&label) {
            self.name(|| {
                let shown = &refusal.text[..refusal.text.len().min(SHOWN_BYTES_MAX)];
                format!("line {}: {}: {}", refusal.line, refusal.fault, String::from_utf8_lossy(shown))
            });
        }
    }
}

/// `POST /write` and `/api/v2/write`: 204, or 400 with the lines that do not count while the others are stored.
pub(super) async fn write(
    State(service): State<Arc<Service>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut query = match Query::parse(uri.query().unwrap_or_default().as_bytes()) {
        Ok(query) => query,
        Err(error) => return failure(400, &error.to_string()),
    };
    let precision = query.text("precision").unwrap_or_default();
    let Some(precision) = Precision::of_name(&precision) else {
        return failure(400, &format!("precision={precision}: give ns, us, ms, s, m or h"));
    };
    let database = query.text("db").or_else(|| query.text("bucket")).unwrap_or_default();
    let mut samples = Samples::default();
    let mut wrong = Wrong::default();
    let read = tokio::task::block_in_place(|| {
        let (text, mut share) = encoding::decode(&service, &headers, &body)?;
        let mut refuse = |refusal: Refusal<'_>| wrong.refuse(refusal);
        let mut filling = Filling::new(&mut samples, &mut refuse);
        filling.extra = (!database.is_empty()).then_some(("db", database.as_str()));
        read_lines(&text, precision, &mut filling);
        encoding::hold_samples(&mut share, &samples)?;
        Ok::<_, encoding::BodyError>(share)
    });
    let _share = match read {
        Ok(share) => share,
        Err(error) => {
            let (status, text) = error.answer();
            return failure(status, &text);
        }
    };
    for (reason, count) in &wrong.refused {
        service.ingest.counts.refuse(NAME, reason, *count);
    }
    let outcome = service.ingest.write(&service, PushWay::http(NAME), &samples).await;
    if outcome.is_passing() {
        let error = outcome.failures.iter().find(|failure| failure.error.is_passing());
        let text = error.map_or_else(String::new, |failure| failure.error.to_string());
        return failure(503, &format!("{text}; send it again"));
    }
    for failure in &outcome.failures {
        let series = samples.samples()[failure.sample as usize].series;
        wrong.name(|| format!("{}: {}", samples.series(series), failure.error));
    }
    if wrong.count == 0 {
        return StatusCode::NO_CONTENT.into_response();
    }
    let more = if wrong.count > wrong.named.len() as u64 { "; and others" } else { "" };
    failure(400, &format!("partial write: {}{more}; dropped={}", wrong.named.join("; "), wrong.count))
}

/// An error in the words of both versions.
fn failure(status: u16, text: &str) -> Response {
    let code = match status {
        400 => "invalid",
        413 => "request too large",
        503 => "unavailable",
        _ => "internal error",
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = json!({ "code": code, "message": text, "error": text });
    let mut response = answer(status, &body);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
    }
    response
}

fn answer(status: StatusCode, body: &serde_json::Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), VERSION_HEADER];
    (status, headers, body.to_string() + "\n").into_response()
}

const VERSION_HEADER: (header::HeaderName, &str) =
    (header::HeaderName::from_static("x-influxdb-version"), VERSION);

/// `/ping`: 204, or the version with `verbose`.
pub(super) async fn ping(uri: Uri) -> Response {
    let query = Query::parse(uri.query().unwrap_or_default().as_bytes());
    let is_verbose = query.is_ok_and(|mut query| query.text("verbose").is_some_and(|text| text != "false"));
    match is_verbose {
        true => answer(StatusCode::OK, &json!({ "version": VERSION })),
        false => (StatusCode::NO_CONTENT, [VERSION_HEADER]).into_response(),
    }
}

/// `/health`: whether writes are taken.
pub(super) async fn health(State(service): State<Arc<Service>>) -> Response {
    let is_good = service.engine.stats().read_only == 0;
    let (status, word, message) = match is_good {
        true => (StatusCode::OK, "pass", "ready for queries and writes"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "fail", "the store takes no updates; see the log"),
    };
    let body = json!({
        "name": "influxdb", "message": message, "status": word, "checks": [], "version": VERSION,
    });
    answer(status, &body)
}

/// `/query`: what clients ask before they write. A database is only a label here, so each is there as soon as it is named.
pub(super) async fn query(uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let is_form = headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/x-www-form"));
    let mut text = uri.query().unwrap_or_default().as_bytes().to_vec();
    if is_form {
        text.push(b'&');
        text.extend_from_slice(&body);
    }
    let mut query = match Query::parse(&text) {
        Ok(query) => query,
        Err(error) => return failure(400, &error.to_string()),
    };
    let database = query.text("db").filter(|name| !name.is_empty());
    let Some(statements) = query.text("q").filter(|text| !text.trim().is_empty()) else {
        return failure(400, "missing required parameter \"q\"");
    };
    let results: Vec<_> = statements
        .split(';')
        .filter(|statement| !statement.trim().is_empty())
        .enumerate()
        .map(|(number, statement)| result(number, statement, database.as_deref()))
        .collect();
    answer(StatusCode::OK, &json!({ "results": results }))
}

/// The result of a statement.
fn result(number: usize, statement: &str, database: Option<&str>) -> serde_json::Value {
    let words: Vec<String> = statement.split_whitespace().take(3).map(str::to_ascii_uppercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        // Of data there is nothing to be made, changed or removed by them.
        ["CREATE" | "ALTER", "DATABASE" | "RETENTION", ..] => json!({ "statement_id": number }),
        ["SHOW", "DATABASES", ..] => {
            let name = database.unwrap_or("roundel");
            let series = json!([{ "name": "databases", "columns": ["name"], "values": [[name]] }]);
            json!({ "statement_id": number, "series": series })
        }
        ["SHOW", "RETENTION", "POLICIES"] => {
            let columns = ["name", "duration", "shardGroupDuration", "replicaN", "default"];
            let series = json!([{ "columns": columns, "values": [["autogen", "0s", "168h0m0s", 1, true]] }]);
            json!({ "statement_id": number, "series": series })
        }
        _ => {
            let text = "InfluxQL is not spoken here: /api/v1/query takes PromQL, /api/v1/fetch and /graph RRDtool's words";
            json!({ "statement_id": number, "error": text })
        }
    }
}
