//! Arguments of `create`, separated by line feeds.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rrd::fuzzing::fuzz_create(data));
