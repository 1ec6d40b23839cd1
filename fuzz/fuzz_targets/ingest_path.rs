//! Series as names of RRDs and back, and templates of names.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ingest::fuzzing::fuzz_path(data));
