//! A datagram of SNMP version 3.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| snmp::fuzzing::fuzz_usm(data));
