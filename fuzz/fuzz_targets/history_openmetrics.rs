//! History of other tools: openmetrics.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| exchange::history::fuzzing::fuzz_openmetrics(data));
