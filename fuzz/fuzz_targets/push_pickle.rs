//! Messages of Graphite's pickle protocol.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ingest::fuzzing::fuzz_pickle(data));
