//! Requests of remote write, both versions, no longer compressed.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| protocol::prometheus::fuzz_remote_write(data));
