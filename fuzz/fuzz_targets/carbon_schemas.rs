//! Carbon's two files.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ingest::fuzzing::fuzz_carbon_schemas(data));
