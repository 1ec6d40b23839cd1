//! A placeholder.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rrd_file::fuzzing::fuzz_placeholder(data));
