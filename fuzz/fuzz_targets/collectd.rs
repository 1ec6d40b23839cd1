//! A packet of collectd's network protocol.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| collect::fuzzing::fuzz_collectd(data));
