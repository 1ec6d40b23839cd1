//! What collectd's `write_http` sends as JSON.

use std::sync::Arc;

use ::ingest::collectd_json;
use ::ingest::fill::Filling;
use ::ingest::refusal::Refusal;
use ::ingest::sample::Samples;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::encoding;
use crate::http::failure::Failure;
use crate::ingest::PushWay;
use crate::service::Service;

/// The name in `/metrics`.
const NAME: &str = "collectd_http";

/// `POST /collectd`: 204, or 422 with the first that is refused, while the others are stored.
pub(super) async fn write(State(service): State<Arc<Service>>, headers: HeaderMap, body: Bytes) -> Response {
    match take(&service, &headers, &body).await {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(failure) => failure.into_response(),
    }
}

async fn take(service: &Service, headers: &HeaderMap, body: &[u8]) -> Result<(), Failure> {
    let mut samples = Samples::default();
    let mut first = None;
    let _share = tokio::task::block_in_place(|| {
        let refused_body = |error: encoding::BodyError| {
            let (status, text) = error.answer();
            Failure::new(StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST), text)
        };
        let (body, mut share) = encoding::decode(service, headers, body).map_err(refused_body)?;
        let mut refuse = |refusal: Refusal<'_>| {
            service.ingest.counts.refuse(NAME, refusal.fault.label(), 1);
            let text = String::from_utf8_lossy(refusal.text);
            first.get_or_insert_with(|| format!("entry {} ({text}): {}", refusal.line, refusal.fault));
        };
        collectd_json::read(&body, &mut Filling::new(&mut samples, &mut refuse)).map_err(Failure::bad)?;
        encoding::hold_samples(&mut share, &samples).map_err(refused_body)?;
        Ok::<_, Failure>(share)
    })?;
    let outcome = service.ingest.write(service, PushWay::http(NAME), &samples).await;
    if let Some(failure) = outcome.failures.first() {
        let series = samples.series(samples.samples()[failure.sample as usize].series);
        first.get_or_insert_with(|| format!("{series}: {}", failure.error));
    }
    match first {
        None => Ok(()),
        Some(text) if outcome.is_passing() => Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, text)),
        Some(text) => Err(Failure::refused(text)),
    }
}
