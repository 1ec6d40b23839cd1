//! Entry points of the fuzz targets, which the tests called random drive by seeds: any bytes may be given, and a panic is a finding.

mod pushed;

pub use pushed::{fuzz_carbon_schemas, fuzz_graphite, fuzz_influx, fuzz_otlp, fuzz_pickle, fuzz_statsd};
