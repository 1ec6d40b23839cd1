//! statsd's lines, and what they add up to.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ingest::fuzzing::fuzz_statsd(data));
