//! What is known of pushed samples: for `/metrics` and the list of what was left out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::{Ingest, PushOutcome};

/// Samples of a protocol.
#[derive(Clone, Debug, Default)]
struct OfProtocol {
    stored: u64,
    again: u64,
    created: u64,
    refused: BTreeMap<&'static str, u64>,
}

/// Samples by protocol.
#[derive(Debug, Default)]
pub struct Counts(Mutex<BTreeMap<&'static str, OfProtocol>>);

impl Counts {
    /// Counts what became of some samples.
    pub fn add(&self, protocol: &'static str, written: &PushOutcome) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = all.entry(protocol).or_default();
        counts.stored += written.stored;
        counts.again += written.again;
        counts.created += written.created;
        for failure in &written.failures {
            *counts.refused.entry(failure.error.reason()).or_default() += 1;
        }
    }

    /// Counts samples that a protocol has itself refused: `reason` is a word of few.
    pub fn refuse(&self, protocol: &'static str, reason: &'static str, count: u64) {
        if count > 0 {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *all.entry(protocol).or_default().refused.entry(reason).or_default() += count;
        }
    }

    fn all(&self) -> BTreeMap<&'static str, OfProtocol> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The counters of [`Ingest`] in `/metrics`.
#[derive(Debug)]
pub struct IngestCollector(pub Arc<Ingest>);

impl Collector for IngestCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let all = self.0.counts.all();
        if all.is_empty() {
            return Ok(());
        }
        type Of = fn(&OfProtocol) -> u64;
        let counters: [(&str, &str, Of); 3] = [
            ("ingest_samples", "Pushed samples stored, by protocol", |counts| counts.stored),
            ("ingest_samples_again", "Those of them that were there already", |counts| counts.again),
            ("ingest_rrds_created", "RRDs made for series that were pushed", |counts| counts.created),
        ];
        for (name, help, of) in counters {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (protocol, counts) in &all {
                let labels = [("protocol", *protocol)];
                ConstCounter::new(of(counts)).encode(family.encode_family(&labels)?)?;
            }
        }
        let help = "Pushed samples not stored, by protocol and reason";
        let mut family = encoder.encode_descriptor("ingest_refused", help, None, MetricType::Counter)?;
        for (protocol, counts) in &all {
            for (reason, count) in &counts.refused {
                let labels = [("protocol", *protocol), ("reason", *reason)];
                ConstCounter::new(*count).encode(family.encode_family(&labels)?)?;
            }
        }
        let (listed, known) = (self.0.with_left(|left| left.len()), self.0.series_known());
        for (name, help, value) in [
            ("ingest_series", "Series whose RRDs are in memory", known),
            ("ingest_series_left_out", "Series listed that got no RRD (/api/v1/ingest)", listed),
        ] {
            let metric = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)?;
        }
        Ok(())
    }
}

/// What `/api/v1/ingest` says.
pub(super) fn report(ingest: &Ingest) -> serde_json::Value {
    let protocols: serde_json::Map<String, serde_json::Value> = ingest
        .counts
        .all()
        .into_iter()
        .map(|(protocol, counts)| {
            let numbers = serde_json::json!({
                "stored": counts.stored, "again": counts.again, "created": counts.created, "refused": counts.refused,
            });
            (protocol.to_owned(), numbers)
        })
        .collect();
    let (left, others) = ingest.with_left(|left| (left.list(), left.others()));
    let left: Vec<_> = left
        .into_iter()
        .map(|one| serde_json::json!({ "series": one.series, "cause": one.cause, "samples": one.samples }))
        .collect();
    serde_json::json!({
        "protocols": protocols,
        "series": ingest.series_known(),
        "left_out": left,
        "left_out_others": others,
    })
}
