//! A whole RRD in a log record, unpacked.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| store::log::fuzzing::fuzz_rrd(data));
