//! The file of a node's spool.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cluster::spool::fuzzing::fuzz(data));
