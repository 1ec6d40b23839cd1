//! A datagram of gmond.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| collect::fuzzing::fuzz_gmond(data));
