//! OpenTelemetry's requests, as protobuf and as JSON.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ingest::fuzzing::fuzz_otlp(data));
