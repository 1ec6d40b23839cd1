//! A placeholder.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| store::files::fuzzing::fuzz_placeholder(data));
