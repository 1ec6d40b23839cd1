//! The bodies of create, tune, delete, rename, import and the two checks.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| store::testing::log::fuzzing::fuzz_catalogue(data));
