//! A Prometheus as a target: remote write 1.0, which is a snappy block of a protobuf message in a POST.
//!
//! A receiver takes a request whole or not at all. When it refuses one for what is in it, each half is sent alone, down to
//! the samples that it does not want: those are counted and not sent again, and all others arrive.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use client::daemon::ClientIdentity;
use ingest::table::CreateTable;
use protocol::prometheus::{Samples, compress, write_request};
use reqwest::{Client, Response, StatusCode, Url};
use rrd::time::Timestamp;
use store::engine::Engine;
use tokio::runtime::Runtime;

use super::batch::ForwardBatch;
use super::sources::SourceNames;
use super::target::{Away, ForwardRefusal, ForwardTarget, RefusalReason, check_stop};
use crate::ingest::Ingest;

/// How long a request may take, and so a stop of this daemon.
const PATIENCE: Duration = Duration::from_secs(10);
/// Samples in a request: as many as Prometheus itself sends.
const SAMPLES_MAX: usize = 2000;
/// Bytes of an answer's text that are read.
const TEXT_BYTES: usize = 500;

/// A remote-write receiver.
pub struct PrometheusTarget {
    url: Url,
    client: Client,
    runtime: Runtime,
    token_file: Option<std::path::PathBuf>,
    names: SourceNames,
    /// What series RRDs are that were pushed: they go on as those.
    ingest: Arc<Ingest>,
    stop: Arc<AtomicBool>,
}

/// One value on its way.
struct SampleOut<'a> {
    name: &'a [u8],
    source: String,
    /// Its RRD has no other source, so it may be that of a series that was pushed.
    is_only: bool,
    value: f64,
    time_ms: i64,
}

/// What a receiver says that does not take a request.
enum NotTaken {
    /// It may later.
    Later(Away),
    /// It never will, for what is in it.
    Never(RefusalReason, String),
}

impl PrometheusTarget {
    /// The receiver at a URL.
    ///
    /// # Errors
    /// What is wrong with the URL or the files of TLS.
    pub fn new(
        url: &str,
        identity: &ClientIdentity,
        (engine, ingest): (Arc<dyn Engine>, Arc<Ingest>),
        stop: Arc<AtomicBool>,
    ) -> Result<Self, String> {
        let url = Url::parse(url).map_err(|error| error.to_string())?;
        // An error means that it is there already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder =
            Client::builder().timeout(PATIENCE).redirect(reqwest::redirect::Policy::none()).no_proxy();
        if url.scheme() == "https" {
            let mut tls = rustls::ClientConfig::clone(&*identity.tls.config()?);
            tls.alpn_protocols = vec![b"http/1.1".to_vec()];
            builder = builder.tls_backend_preconfigured(tls);
        }
        let client = builder.build().map_err(|error| error.to_string())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let token_file = identity.token_file.clone();
        Ok(PrometheusTarget {
            url,
            client,
            runtime,
            token_file,
            names: SourceNames::new(engine),
            ingest,
            stop,
        })
    }

    /// Sends samples; when they are refused for what is in them, each half alone.
    fn send_samples(
        &self,
        samples: &[SampleOut<'_>],
        refused: &mut dyn FnMut(ForwardRefusal<'_>),
    ) -> Result<(), Away> {
        match self.post(&request(self.ingest.table(), samples)) {
            Ok(()) => Ok(()),
            Err(NotTaken::Later(away)) => Err(away),
            Err(NotTaken::Never(reason, text)) => match samples {
                [] => Ok(()),
                [one] => {
                    refused(ForwardRefusal { reason, name: one.name, count: 1, text: &text });
                    Ok(())
                }
                _ => {
                    let (first, second) = samples.split_at(samples.len() / 2);
                    self.send_samples(first, refused)?;
                    self.send_samples(second, refused)
                }
            },
        }
    }

    fn post(&self, message: &[u8]) -> Result<(), NotTaken> {
        check_stop(&self.stop).map_err(NotTaken::Later)?;
        let later = |why: &dyn std::fmt::Display| NotTaken::Later(Away(format!("{}: {why}", self.url)));
        let mut request = self
            .client
            .post(self.url.clone())
            .header("Content-Type", "application/x-protobuf")
            .header("Content-Encoding", "snappy")
            .header("X-Prometheus-Remote-Write-Version", "0.1.0")
            .body(compress(message));
        if let Some(file) = &self.token_file {
            request = request.bearer_auth(client::token::from_file(file).map_err(|error| later(&error))?);
        }
        let answered = self.runtime.block_on(async {
            let answer = request.send().await?;
            let status = answer.status();
            let text = if status.is_success() { String::new() } else { beginning(answer).await? };
            Ok::<_, reqwest::Error>((status, text))
        });
        let (status, text) = answered.map_err(|error| later(&innermost(&error)))?;
        match status {
            status if status.is_success() => Ok(()),
            // The last one is Thanos' word for samples that it has already.
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY | StatusCode::CONFLICT => {
                Err(NotTaken::Never(reason_of(&text), text))
            }
            // Too large is no reason to lose it: halves are smaller.
            StatusCode::PAYLOAD_TOO_LARGE => Err(NotTaken::Never(RefusalReason::Other, text)),
            status => Err(later(&format!("{status} {text}"))),
        }
    }
}

impl ForwardTarget for PrometheusTarget {
    /// Only a request tells.
    fn reach(&mut self) -> Result<(), Away> {
        Ok(())
    }

    fn send(
        &mut self,
        batch: &ForwardBatch,
        refused: &mut dyn FnMut(ForwardRefusal<'_>),
    ) -> Result<u64, Away> {
        let mut samples = Vec::new();
        self.names.visit(batch, refused, &mut |reading, source, (_, value)| {
            let (source, time_ms) = (source.to_owned(), milliseconds(reading.time));
            let is_only = !reading.values.contains(&b':');
            samples.push(SampleOut { name: reading.name, source, is_only, value, time_ms });
        });
        for samples in samples.chunks(SAMPLES_MAX) {
            self.send_samples(samples, refused)?;
        }
        Ok(0)
    }

    fn forget(&mut self) {
        self.names.forget();
    }
}

/// The beginning of an answer's text.
async fn beginning(mut answer: Response) -> Result<String, reqwest::Error> {
    let mut bytes = Vec::new();
    while bytes.len() < TEXT_BYTES
        && let Some(more) = answer.chunk().await?
    {
        bytes.extend_from_slice(&more);
    }
    bytes.truncate(TEXT_BYTES);
    Ok(String::from_utf8_lossy(bytes.trim_ascii()).into_owned())
}

/// Seconds since the epoch with their fraction, as a number of milliseconds.
fn milliseconds(time: Timestamp) -> i64 {
    time.whole.saturating_mul(1000).saturating_add(i64::from(time.micros / 1000))
}

/// A receiver says in words why it does not want a sample.
fn reason_of(text: &str) -> RefusalReason {
    let not_newer = ["out of order", "out of bounds", "duplicate sample", "too old"];
    match not_newer.iter().any(|words| text.contains(words)) {
        true => RefusalReason::NotNewer,
        false => RefusalReason::Other,
    }
}

/// What an error is about, without the layers around it.
fn innermost(error: &reqwest::Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

/// A request with samples, by series and within each in their order.
fn request(table: &CreateTable, samples: &[SampleOut<'_>]) -> Vec<u8> {
    // By RRD and source, and whether it has no other.
    type BySource<'a> = BTreeMap<(&'a [u8], &'a str, bool), Vec<(i64, f64)>>;
    let mut series = BySource::new();
    for SampleOut { name, source, is_only, value, time_ms } in samples {
        series.entry((name, source, *is_only)).or_default().push((*time_ms, *value));
    }
    let labels_of = |name: &[u8], source: &str, is_only: bool| match is_only {
        true => pushed_labels(name, table).unwrap_or_else(|| labels(name, source)),
        false => labels(name, source),
    };
    let series: Vec<Samples> = series
        .into_iter()
        .map(|((name, source, is_only), samples)| Samples {
            labels: labels_of(name, source, is_only),
            samples,
        })
        .collect();
    write_request(&series)
}

/// The labels that a series was pushed with, in the order of their names; `None` if the RRD is not of one.
fn pushed_labels(name: &[u8], table: &CreateTable) -> Option<Vec<(String, String)>> {
    let mut owner = ingest::sample::Samples::default();
    let found = table.owner(std::str::from_utf8(name).ok()?.strip_suffix(".rrd")?, &mut owner)?;
    let series = owner.series(found);
    let text = |(label, value): (&str, &str)| (label.to_owned(), value.to_owned());
    let mut labels: Vec<_> =
        std::iter::once(("__name__", series.name())).chain(series.labels()).map(text).collect();
    labels.sort();
    Some(labels)
}

/// The labels of a source, in the order of their names, as the protocol wants them.
fn labels(name: &[u8], source: &str) -> Vec<(String, String)> {
    let label = |name: &str, value: String| (name.to_owned(), value);
    let letter = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let metric: String = source.chars().map(letter).collect();
    let rrd = String::from_utf8_lossy(name.strip_suffix(b".rrd").unwrap_or(name)).into_owned();
    vec![label("__name__", format!("rrd_{metric}")), label("ds", source.to_owned()), label("rrd", rrd)]
}

#[cfg(test)]
mod tests {
    use protocol::prometheus::{WritePart, WriteVersion, visit_write};

    use super::*;

    #[test]
    fn a_request_has_these_bytes() {
        let sample = |source: &str, value, time_ms| SampleOut {
            name: b"net/sw1.rrd",
            source: source.to_owned(),
            is_only: false,
            value,
            time_ms,
        };
        let table = CreateTable::default();
        let message = request(
            &table,
            &[sample("in-octets", 1.5, 1000), sample("x", 2.0, 1000), sample("in-octets", 3.0, 2000)],
        );
        // Fields 1 (labels), 2 (samples) of TimeSeries, 1 of WriteRequest; a double and a varint in a sample.
        let mut parts = Vec::new();
        visit_write(WriteVersion::One, &message, |part| {
            let WritePart::Series(series) = part else { return };
            parts.push(format!("{:?} {:?}", series.labels, series.samples));
        })
        .unwrap();
        let labels = |metric: &str, ds: &str| {
            format!("[(\"__name__\", \"{metric}\"), (\"ds\", \"{ds}\"), (\"rrd\", \"net/sw1\")]")
        };
        let want = [
            labels("rrd_in_octets", "in-octets") + " [(1000, 1.5), (2000, 3.0)]",
            labels("rrd_x", "x") + " [(1000, 2.0)]",
        ];
        assert_eq!(parts, want);
        let second: &[u8] = b"\x0a\x3a\
            \x0a\x11\x0a\x08__name__\x12\x05rrd_x\
            \x0a\x07\x0a\x02ds\x12\x01x\
            \x0a\x0e\x0a\x03rrd\x12\x07net/sw1\
            \x12\x0c\x09\0\0\0\0\0\0\0\x40\x10\xe8\x07";
        assert!(message.ends_with(second));
    }

    #[test]
    fn series_that_were_pushed_keep_their_labels() {
        let table = CreateTable::default();
        let labels = pushed_labels(b"instances/a:1/up,Job=b%20c.rrd", &table).unwrap();
        let labels: Vec<_> = labels.iter().map(|(label, value)| (label.as_str(), value.as_str())).collect();
        assert_eq!(labels, [("Job", "b c"), ("__name__", "up"), ("instance", "a:1")]);
        assert_eq!(pushed_labels(b"net/sw1.rrd", &table), None);
    }

    #[test]
    fn what_a_receiver_has_already_is_no_other_trouble() {
        assert_eq!(reason_of("out of order sample"), RefusalReason::NotNewer);
        assert_eq!(reason_of("label name \"\" is invalid"), RefusalReason::Other);
    }
}
