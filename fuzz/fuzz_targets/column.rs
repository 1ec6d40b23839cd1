//! A compressed column.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| store::segment::fuzzing::fuzz_column(data));
