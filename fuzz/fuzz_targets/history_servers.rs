//! History of other tools: servers.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| exchange::history::fuzzing::fuzz_servers(data));
