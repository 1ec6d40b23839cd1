//! A complete RRD in a log record, decompressed.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| store::testing::log::fuzzing::fuzz_rrd(data));
