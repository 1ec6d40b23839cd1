//! Entry points of the fuzz targets, which `cargo test -p roundel-ingest random` drives by seeds: any bytes may be given, and a panic is a finding.

use crate::carbon_schemas::CarbonSchemas;
use crate::refusal::{Refusal, Sink};
use crate::sample::Sample;
use crate::{graphite, pickle};

/// Looks at what every sample promises.
#[derive(Default)]
struct Checked {
    count: usize,
}

impl Sink for Checked {
    fn sample(&mut self, sample: &Sample<'_>) {
        assert!(sample.value.is_finite(), "{sample:?}");
        assert!(!sample.name.is_empty(), "{sample:?}");
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
