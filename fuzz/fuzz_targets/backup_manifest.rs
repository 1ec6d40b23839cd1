//! A manifest of a backup.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| backup::fuzzing::fuzz_manifest(data));
