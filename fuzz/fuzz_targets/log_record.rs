//! An envelope of the log with its body.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| store::testing::log::fuzzing::fuzz_record(data));
