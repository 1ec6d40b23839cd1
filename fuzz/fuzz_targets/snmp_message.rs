//! A datagram from an SNMP agent.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| snmp::fuzzing::fuzz_message(data));
