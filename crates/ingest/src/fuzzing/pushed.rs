//! Those of the protocols that push.

use crate::carbon_schemas::CarbonSchemas;
use crate::influx::{self, InfluxField, InfluxSink};
use crate::pushed::Pushed;
use crate::refusal::{Refusal, Sink};
use crate::statsd::aggregate::{Adding, StatsdAggregator, StatsdOptions};
use crate::{collectd_json, graphite, otlp, pickle, statsd};

/// Looks at what every sample promises.
#[derive(Default)]
struct Checked {
    count: usize,
}

impl Sink for Checked {
    fn pushed(&mut self, pushed: &Pushed<'_>) {
        assert!(pushed.value.is_finite(), "{pushed:?}");
        assert!(!pushed.name.is_empty(), "{pushed:?}");
        self.count += 1;
    }

    fn refused(&mut self, refusal: Refusal<'_>) {
        assert!(refusal.line > 0 && !refusal.fault.to_string().is_empty());
        self.count += 1;
    }
}

/// Lines of Graphite's.
pub fn fuzz_graphite(bytes: &[u8]) {
    let mut sink = Checked::default();
    graphite::read_lines(bytes, 1, &mut sink);
    assert!(sink.count <= bytes.iter().filter(|byte| **byte == b'\n').count() + 1);
}

/// A message of Graphite's pickle protocol.
pub fn fuzz_pickle(bytes: &[u8]) {
    let mut sink = Checked::default();
    match graphite::read_pickle(bytes, &mut sink) {
        Ok(()) => assert!(sink.count <= pickle::ITEMS_MAX),
        Err(error) => assert!(sink.count == 0 && !error.to_string().is_empty()),
    }
}

/// Carbon's two files, both of the same text.
pub fn fuzz_carbon_schemas(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut faults = 0;
    let read = CarbonSchemas::parse(&text, Some(&text), &mut |_, fault| {
        assert!(fault.line > 0 && !fault.to_string().is_empty());
        faults += 1;
    });
    let layout = read.layout("a.b.c");
    assert!((0.0..1.0).contains(&layout.xff) && !layout.retentions.is_empty());
    assert!(layout.retentions.iter().all(|archive| archive.seconds > 0 && archive.rows > 0));
}

impl InfluxSink for Checked {
    fn field(&mut self, field: &InfluxField<'_>) {
        assert!(field.value.is_finite() && !field.measurement.is_empty() && !field.field.is_empty());
        assert!(field.tags.iter().all(|(key, value)| !key.is_empty() && !value.is_empty()));
        self.count += 1;
    }

    fn refused(&mut self, refusal: Refusal<'_>) {
        Sink::refused(self, refusal);
    }
}

/// Lines of InfluxDB's.
pub fn fuzz_influx(bytes: &[u8]) {
    let mut sink = Checked::default();
    influx::read_lines(bytes, influx::Precision::Milliseconds, &mut sink);
    assert!(sink.count <= bytes.len());
}

/// statsd's lines, and what they add up to.
pub fn fuzz_statsd(bytes: &[u8]) {
    let mut aggregator =
        StatsdAggregator::new(StatsdOptions { series_max: 1_000, ..StatsdOptions::default() });
    let mut refused = |refusal: Refusal<'_>| assert!(!refusal.fault.to_string().is_empty());
    statsd::read_lines(bytes, 1, &mut Adding { aggregator: &mut aggregator, sink: &mut refused });
    let mut sink = Checked::default();
    for time in 0..2 {
        aggregator.flush(time, 10.0, &mut sink);
    }
    assert!(sink.count <= aggregator.len() * 28);
}

/// A request of OTLP, as protobuf and as JSON.
pub fn fuzz_otlp(bytes: &[u8]) {
    for read in [otlp::read_protobuf, otlp::read_json] {
        let mut sink = Checked::default();
        match read(bytes, &mut sink) {
            Ok(answer) => {
                assert!(answer.to_json().starts_with('{') && answer.rejected <= sink.count as u64);
                assert_eq!(answer.to_protobuf().is_empty(), answer.message().is_empty());
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// What collectd's write_http sends.
pub fn fuzz_collectd_json(bytes: &[u8]) {
    let mut sink = Checked::default();
    if let Err(error) = collectd_json::read(bytes, &mut sink) {
        assert!(sink.count == 0 && !error.is_empty());
    }
}
