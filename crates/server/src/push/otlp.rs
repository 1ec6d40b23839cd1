//! OpenTelemetry's metrics over HTTP, as protobuf and as JSON; the answer is of the same kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::ingest::fill::Filling;
use ::ingest::otlp::{OtlpAnswer, error_json, error_protobuf, read_json, read_protobuf};
use ::ingest::refusal::Refusal;
use ::ingest::sample::Samples;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::encoding;
use crate::ingest::PushWay;
use crate::service::Service;

/// The name in `/metrics`.
const NAME: &str = "otlp";
/// Bytes of a metric's name that an answer repeats.
const SHOWN_BYTES_MAX: usize = 100;

/// How a request is written, and its answer.
#[derive(Clone, Copy)]
enum Form {
    Protobuf,
    Json,
}

impl Form {
    fn of(headers: &HeaderMap) -> Option<Form> {
        let kind = headers.get(header::CONTENT_TYPE)?.as_bytes();
        let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        match kind.to_ascii_lowercase().as_slice() {
            b"application/x-protobuf" => Some(Form::Protobuf),
            b"application/json" => Some(Form::Json),
            _ => None,
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Form::Protobuf => "application/x-protobuf",
            Form::Json => "application/json",
        }
    }

    fn failure(self, status: u16, text: &str) -> Response {
        let body = match self {
            Form::Protobuf => error_protobuf(text),
            Form::Json => error_json(text).into_bytes(),
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, [(header::CONTENT_TYPE, self.content_type())], body).into_response();
        if matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }

    fn success(self, answer: &OtlpAnswer) -> Response {
        let body = match self {
            Form::Protobuf => answer.to_protobuf(),
            Form::Json => answer.to_json().into_bytes(),
        };
        ([(header::CONTENT_TYPE, self.content_type())], body).into_response()
    }
}

/// Why a request is not taken at all.
struct Refused {
    status: u16,
    text: String,
}

/// `POST /v1/metrics`: 200, with a partial success where not every point counts.
pub(super) async fn metrics(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Some(form) = Form::of(&headers) else {
        return Form::Json.failure(415, "send application/x-protobuf or application/json");
    };
    let mut samples = Samples::default();
    let mut refused: BTreeMap<&str, u64> = BTreeMap::new();
    let mut first_fault = None;
    let read = tokio::task::block_in_place(|| {
        let refused_body = |error: encoding::BodyError| {
            let (status, text) = error.answer();
            Refused { status, text }
        };
        let (body, mut share) = encoding::decode(&service, &headers, &body).map_err(refused_body)?;
        let mut refuse = |refusal: Refusal<'_>| {
            *refused.entry(refusal.fault.label()).or_default() += 1;
            first_fault.get_or_insert_with(|| {
                let shown = &refusal.text[..refusal.text.len().min(SHOWN_BYTES_MAX)];
                (String::from_utf8_lossy(shown).into_owned(), refusal.fault)
            });
        };
        let mut filling = Filling::new(&mut samples, &mut refuse);
        let answer = match form {
            Form::Protobuf => read_protobuf(&body, &mut filling),
            Form::Json => read_json(&body, &mut filling),
        };
        let answer = answer.map_err(|error| Refused { status: 400, text: error.to_string() })?;
        encoding::hold_samples(&mut share, &samples).map_err(refused_body)?;
        Ok((answer, share))
    });
    let (mut answer, _share) = match read {
        Ok(read) => read,
        Err(Refused { status, text }) => return form.failure(status, &text),
    };
    // Not only points that the parser refuses: whether a series can be one is only known where samples are made.
    answer.rejected = refused.values().sum();
    answer.first_fault = first_fault;
    for (reason, count) in refused {
        service.ingest.counts.refuse(NAME, reason, count);
    }
    service.ingest.counts.refuse(NAME, "buckets", answer.without_buckets);
    let outcome = service.ingest.write(&service, PushWay::http(NAME), &samples).await;
    if outcome.is_passing() {
        let error = outcome.failures.iter().find(|failure| failure.error.is_passing());
        let text = error.map_or_else(String::new, |failure| failure.error.to_string());
        return form.failure(503, &text);
    }
    if let Some(first) = outcome.failures.first() {
        let series = samples.series(samples.samples()[first.sample as usize].series);
        let count = outcome.failures.len();
        answer.rejected += count as u64;
        answer.note = Some(format!("{count} samples are not stored, first one of {series}: {}", first.error));
    }
    form.success(&answer)
}
