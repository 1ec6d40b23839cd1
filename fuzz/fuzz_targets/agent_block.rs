//! The content of an agent's block.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| protocol::fuzzing::fuzz_agent_block(data));
