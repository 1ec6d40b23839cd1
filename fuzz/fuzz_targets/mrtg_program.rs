//! What a program of MRTG says.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| collect::fuzzing::fuzz_mrtg_program(data));
