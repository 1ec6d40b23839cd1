//! Prometheus' remote write, 1.0 and 2.0. `docs/ingest.md` says what is taken.
//!
//! What is good goes in, whatever else is in the request. The answer is 204 if everything is in the store; 400 with the first reasons if
//! something never will be; 503 or 429 if it may be later.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{PoisonError, RwLock};

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ingest::sample::{Kind, SERIES_BYTES_MAX, Samples, SeriesError};
use protocol::prometheus::{
    DecodeError, MetricType, SeriesFault, WritePart, WriteSeries, WriteVersion, decompress, length,
    visit_write,
};
use store::engine::StoreError;

use super::{PushOutcome, PushWay, SAMPLE_BYTES, SampleError};
use crate::budget::Share;
use crate::collectors::store_writer::WriteError;
use crate::service::Service;

/// What `/metrics` calls it.
const PROTOCOL: &str = "remote_write";
/// Bytes of a request that is no longer compressed.
const DECODED_BYTES_MAX: usize = 64 << 20;
/// Samples for which memory is asked for at once. A message may have nine in the bytes that one takes usually, and no value in any.
const SAMPLES_STEP: usize = 1024;
/// Requests of fewer bytes are read without leaving the thread to others: that takes as long as reading them.
const SHORT_BYTES: usize = 32 << 10;
/// Bytes of names of metrics whose types are remembered, with what each takes besides. Types of version 1.0 come in requests of their own.
const TYPES_BYTES_MAX: usize = 16 << 20;
/// Bytes that a metric's type takes besides its name.
const TYPE_BYTES: usize = 64;
/// Reasons in an answer.
const REASONS_MAX: usize = 5;
/// The label with the name of the metric.
const NAME: &str = "__name__";

/// What metrics are, as senders of version 1.0 have said.
#[derive(Debug, Default)]
pub(super) struct MetricTypes(RwLock<Types>);

/// Types by the names of metrics.
#[derive(Debug, Default)]
struct Types {
    known: HashMap<Box<str>, MetricType>,
    /// Memory that they take.
    bytes: usize,
}

/// What a request had in it.
#[derive(Default)]
struct Read {
    samples: Samples,
    histograms: u64,
    exemplars: u64,
    /// Samples of series that are none.
    faulty: u64,
    /// The first reasons, and how many there are besides.
    reasons: Vec<String>,
    more: u64,
    types: Vec<(Box<str>, MetricType)>,
    /// Samples for which there is memory.
    room: usize,
    /// Bytes of memory that were not to be had; then it was not read to its end.
    short_of: u64,
}

impl Read {
    fn reason(&mut self, text: impl FnOnce() -> String) {
        if self.reasons.len() < REASONS_MAX { self.reasons.push(text()) } else { self.more += 1 }
    }
}

/// `api/v1/write`
pub(super) async fn write(service: &Service, headers: &HeaderMap, body: Bytes) -> Response {
    let version = match version(headers) {
        Ok(version) => version,
        Err(text) => return (StatusCode::UNSUPPORTED_MEDIA_TYPE, text).into_response(),
    };
    let decoded = match length(&body) {
        Ok(length) if length > DECODED_BYTES_MAX => {
            let text = format!(
                "the request has {length} bytes when it is decompressed; at most {DECODED_BYTES_MAX}"
            );
            return (StatusCode::PAYLOAD_TOO_LARGE, text).into_response();
        }
        Ok(length) => length,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    };
    let mut share = service.memory.share();
    if !share.try_resize(decoded as u64) {
        return no_memory(&share, decoded as u64);
    }
    let mut read = || read(service, version, &body, decoded, &mut share);
    let read = if decoded < SHORT_BYTES { read() } else { tokio::task::block_in_place(read) };
    let mut read = match read {
        Ok(Read { short_of: needed @ 1.., .. }) => return no_memory(&share, needed),
        Ok(read) => read,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    };
    service.ingest.metric_types.note(std::mem::take(&mut read.types));
    let outcome = service.ingest.write(service, PushWay::http(PROTOCOL), &read.samples).await;
    let counts = &service.ingest.counts;
    counts.refuse(PROTOCOL, "bad_series", read.faulty);
    counts.refuse(PROTOCOL, "native_histogram", read.histograms);
    counts.refuse(PROTOCOL, "exemplar", read.exemplars);
    answer(version, read, &outcome)
}

/// Refuses a request that takes so many bytes of memory.
fn no_memory(share: &Share, needed: u64) -> Response {
    if needed > share.budget_bytes() {
        let text = format!(
            "the request takes {needed} bytes of memory, more than clients have in all ([limits] memory)"
        );
        return (StatusCode::PAYLOAD_TOO_LARGE, text).into_response();
    }
    let text = "there is no memory for the request; send it again";
    (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")], text).into_response()
}

/// The message of a request, by its headers; or what is wrong with them, for an answer of 415.
fn version(headers: &HeaderMap) -> Result<WriteVersion, String> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?").trim());
    let refuse = Err::<WriteVersion, String>;
    // Without it, some senders mean snappy, as all of them must.
    let encoding = text(header::CONTENT_ENCODING).unwrap_or("snappy");
    if !encoding.eq_ignore_ascii_case("snappy") {
        return refuse(format!("Content-Encoding: {encoding:?} is not taken; send snappy"));
    }
    let Some(content) = text(header::CONTENT_TYPE) else { return Ok(WriteVersion::One) };
    let mut parts = content.split(';').map(str::trim);
    if !parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/x-protobuf")) {
        return refuse(format!("Content-Type: {content:?} is not taken; send application/x-protobuf"));
    }
    let proto = parts.find_map(|part| part.strip_prefix("proto="));
    match proto.map(|proto| proto.trim_matches('"')) {
        None | Some("prometheus.WriteRequest") => Ok(WriteVersion::One),
        Some("io.prometheus.write.v2.Request") => Ok(WriteVersion::Two),
        Some(proto) => refuse(format!(
            "proto={proto:?} is not known; send prometheus.WriteRequest or io.prometheus.write.v2.Request"
        )),
    }
}

/// Reads a request of so many bytes when it is decompressed.
fn read(
    service: &Service,
    version: WriteVersion,
    body: &[u8],
    decoded: usize,
    share: &mut Share,
) -> Result<Read, DecodeError> {
    let bytes = decompress(body, decoded)?;
    let mut read = Read::default();
    // Requests are read beside each other.
    let types = service.ingest.metric_types.0.read().unwrap_or_else(PoisonError::into_inner);
    let types = &types.known;
    visit_write(version, &bytes, |part| match part {
        // The rest is only counted: what never fits must not be sent again.
        WritePart::Series(series) if read.short_of > 0 => {
            read.short_of += (series.samples.len() * SAMPLE_BYTES) as u64;
        }
        WritePart::Series(series) => {
            let samples = read.samples.samples().len() + series.samples.len();
            if samples >= read.room {
                read.room = samples + SAMPLES_STEP;
                let needed = (decoded + read.room * SAMPLE_BYTES) as u64;
                if !share.try_resize(needed) {
                    read.short_of = needed;
                    return;
                }
            }
            take(&mut read, series, types);
        }
        WritePart::Metadata(name, metric_type) => {
            // A request may have more of them than are remembered.
            let is_some = !name.is_empty() && name.len() <= SERIES_BYTES_MAX;
            let has_room = read.types.len() < TYPES_BYTES_MAX / TYPE_BYTES;
            if is_some && has_room && types.get(name) != Some(&metric_type) {
                read.types.push((name.into(), metric_type));
            }
        }
    })?;
    Ok(read)
}

/// Adds the samples of a series.
fn take(read: &mut Read, series: &WriteSeries<'_>, types: &HashMap<Box<str>, MetricType>) {
    read.histograms += series.histograms;
    read.exemplars += series.exemplars;
    let name = series.labels.iter().find(|(label, _)| *label == NAME).map_or("", |(_, value)| value);
    if series.histograms > 0 {
        let count = series.histograms;
        read.reason(|| format!("{}: an RRD holds no native histogram ({count})", beginning(name)));
    }
    if let Err(fault) = add(read, series, name, types) {
        read.faulty += series.samples.len().max(1) as u64;
        read.reason(|| format!("{}: {fault}", if name.is_empty() { "a series" } else { beginning(name) }));
    }
}

/// Why a series is none.
enum Fault {
    Message(SeriesFault),
    Series(SeriesError),
    /// It has its name twice.
    Names,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Message(fault) => fault.fmt(f),
            Fault::Series(error) => error.fmt(f),
            Fault::Names => f.write_str("a series has the label __name__ twice"),
        }
    }
}

fn add(
    read: &mut Read,
    series: &WriteSeries<'_>,
    name: &str,
    types: &HashMap<Box<str>, MetricType>,
) -> Result<(), Fault> {
    if let Some(fault) = series.fault {
        return Err(Fault::Message(fault));
    }
    if series.labels.iter().filter(|(label, _)| *label == NAME).count() > 1 {
        return Err(Fault::Names);
    }
    let said = match series.metric_type {
        MetricType::Unknown => types.get(name).copied().unwrap_or_default(),
        known => known,
    };
    let mut writer = read.samples.begin(name);
    for (label, value) in series.labels.iter().filter(|(label, _)| *label != NAME) {
        writer.label(label, value);
    }
    let number = writer.end(kind(name, said)).map_err(Fault::Series)?;
    for (time, value) in &series.samples {
        read.samples.push(number, Some(*time), *value);
    }
    Ok(())
}

/// What the values of a metric are.
fn kind(name: &str, said: MetricType) -> Kind {
    let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| name.ends_with(suffix));
    let is_counter = match said {
        MetricType::Counter => true,
        MetricType::Gauge => false,
        MetricType::Distribution => ends(&["_count", "_sum", "_bucket"]),
        MetricType::Unknown => ends(&["_total", "_count", "_sum", "_bucket"]),
    };
    if is_counter { Kind::Counter } else { Kind::Gauge }
}

impl MetricTypes {
    /// Remembers types. When there are too many, all are forgotten: senders say theirs every minute.
    fn note(&self, types: Vec<(Box<str>, MetricType)>) {
        if types.is_empty() {
            return;
        }
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // The name of a series is no longer than this.
        for (name, metric_type) in types.into_iter().filter(|(name, _)| name.len() <= SERIES_BYTES_MAX) {
            let bytes = name.len() + TYPE_BYTES;
            if all.bytes + bytes > TYPES_BYTES_MAX {
                *all = Types::default();
            }
            if all.known.insert(name, metric_type).is_none() {
                all.bytes += bytes;
            }
        }
    }
}

/// The beginning of a name that may be long.
fn beginning(text: &str) -> &str {
    let mut end = text.len().min(200);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn answer(version: WriteVersion, mut read: Read, outcome: &PushOutcome) -> Response {
    for failure in &outcome.failures {
        let Read { samples, reasons, .. } = &read;
        if reasons.len() < REASONS_MAX {
            let series = samples.series(samples.samples()[failure.sample as usize].series).to_string();
            let text = format!("{}: {}", beginning(&series), failure.error);
            read.reasons.push(text);
        } else {
            read.more += 1;
        }
    }
    let status = status(&read, outcome);
    let mut headers = HeaderMap::new();
    if version == WriteVersion::Two {
        for (name, count) in [("samples", outcome.stored), ("histograms", 0), ("exemplars", 0)] {
            let name = HeaderName::from_bytes(format!("x-prometheus-remote-write-{name}-written").as_bytes());
            if let Ok(name) = name {
                headers.insert(name, count.into());
            }
        }
    }
    if status == StatusCode::NO_CONTENT {
        return (status, headers).into_response();
    }
    if status != StatusCode::BAD_REQUEST {
        headers.insert(header::RETRY_AFTER, 5.into());
    }
    let mut text = format!("{} samples were stored, these were not:\n", outcome.stored);
    for reason in &read.reasons {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{reason}");
    }
    if read.more > 0 {
        let _ = writeln!(text, "and {} more", read.more);
    }
    (status, headers, text).into_response()
}

fn status(read: &Read, outcome: &PushOutcome) -> StatusCode {
    let is_too_fast =
        |error: &SampleError| matches!(error, SampleError::Write(WriteError::Store(StoreError::TooFast(_))));
    match () {
        () if outcome.failures.iter().any(|failure| is_too_fast(&failure.error)) => {
            StatusCode::TOO_MANY_REQUESTS
        }
        () if outcome.is_passing() => StatusCode::SERVICE_UNAVAILABLE,
        () if !outcome.failures.is_empty() || read.faulty > 0 || read.histograms > 0 => {
            StatusCode::BAD_REQUEST
        }
        () => StatusCode::NO_CONTENT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_the_version() {
        let check = |content: Option<&str>, encoding: Option<&str>, want: Result<WriteVersion, ()>| {
            let mut headers = HeaderMap::new();
            content.map(|content| headers.insert(header::CONTENT_TYPE, content.parse().unwrap()));
            encoding.map(|encoding| headers.insert(header::CONTENT_ENCODING, encoding.parse().unwrap()));
            assert_eq!(version(&headers).map_err(drop), want, "{content:?}");
        };
        let (one, two) = (Ok(WriteVersion::One), Ok(WriteVersion::Two));
        check(None, None, one);
        check(Some("application/x-protobuf"), Some("snappy"), one);
        check(Some("application/x-protobuf;proto=prometheus.WriteRequest"), Some("Snappy"), one);
        check(Some("application/x-protobuf; proto=io.prometheus.write.v2.Request"), Some("snappy"), two);
        check(Some("application/x-protobuf;proto=x"), Some("snappy"), Err(()));
        check(Some("application/json"), Some("snappy"), Err(()));
        for encoding in ["gzip", "deflate", "zstd"] {
            check(Some("application/x-protobuf"), Some(encoding), Err(()));
        }
    }

    #[test]
    fn types_take_no_more_memory_than_they_may() {
        let types = MetricTypes::default();
        types.note(vec![("x".into(), MetricType::Gauge), ("y".repeat(10 << 20).into(), MetricType::Gauge)]);
        assert_eq!(types.0.read().unwrap().known.len(), 1);
        // Some are said again, which takes nothing more.
        for number in (0..5_000).map(|number| number / 2) {
            types.note(vec![(format!("{number:08000}").into(), MetricType::Counter)]);
            let types = types.0.read().unwrap();
            assert!(types.bytes <= TYPES_BYTES_MAX, "{number}");
            assert_eq!(types.bytes, types.known.keys().map(|name| name.len() + TYPE_BYTES).sum::<usize>());
        }
        assert!(!types.0.read().unwrap().known.contains_key("x"), "the oldest are forgotten");
        types.note(vec![("x".into(), MetricType::Counter)]);
        assert_eq!(types.0.read().unwrap().known.get("x"), Some(&MetricType::Counter));
    }

    #[test]
    fn types_follow_from_metadata_or_suffixes() {
        assert_eq!(kind("x_total", MetricType::Unknown), Kind::Counter);
        assert_eq!(kind("x_total", MetricType::Gauge), Kind::Gauge);
        assert_eq!(kind("x", MetricType::Counter), Kind::Counter);
        assert_eq!(kind("x", MetricType::Distribution), Kind::Gauge);
        assert_eq!(kind("x_bucket", MetricType::Distribution), Kind::Counter);
        assert_eq!(kind("x", MetricType::Unknown), Kind::Gauge);
    }
}
