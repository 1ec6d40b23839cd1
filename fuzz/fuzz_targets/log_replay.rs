//! A complete log file.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| store::testing::log::fuzzing::fuzz_replay(data));
