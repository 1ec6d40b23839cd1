//! MRTG's `.log` files.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| collect::fuzzing::fuzz_mrtg_log(data));
