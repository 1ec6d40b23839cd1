//! What collectd's write_http sends.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ingest::fuzzing::fuzz_collectd_json(data));
