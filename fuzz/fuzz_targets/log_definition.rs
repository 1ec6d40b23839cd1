//! A definition in a log record.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| store::testing::log::fuzzing::fuzz_definition(data));
