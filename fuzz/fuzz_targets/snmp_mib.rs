//! A MIB file.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| snmp::fuzzing::fuzz_mib(data));
