//! Expressions of COMPUTE sources.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rrd::fuzzing::fuzz_compute(data));
