//! The body of an update record.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| store::testing::log::fuzzing::fuzz_updates(data));
