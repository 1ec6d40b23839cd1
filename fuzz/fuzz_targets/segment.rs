//! A segment file.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| store::testing::segment::fuzzing::fuzz_segment(data));
