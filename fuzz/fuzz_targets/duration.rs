//! Durations and steps.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rrd::fuzzing::fuzz_duration(data));
