//! The frames of an agent's session.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| protocol::fuzzing::fuzz_agent_frames(data));
