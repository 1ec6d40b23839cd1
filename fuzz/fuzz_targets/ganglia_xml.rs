//! An answer of a gmond or gmetad.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| collect::fuzzing::fuzz_ganglia_xml(data));
