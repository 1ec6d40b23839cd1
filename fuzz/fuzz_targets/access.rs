//! Patterns of names, and files of tokens.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| access::fuzzing::fuzz_access(data));
