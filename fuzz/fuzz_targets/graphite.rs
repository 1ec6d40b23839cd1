//! Queries of PromQL, from text to answer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| graphite::fuzzing::fuzz_graphite(data));
