//! Requests of Prometheus' remote read.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| protocol::prometheus::fuzz_remote_read(data));
