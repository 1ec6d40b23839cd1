//! What nodes of a cluster ask each other, and answer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cluster::wire::fuzzing::fuzz(data));
