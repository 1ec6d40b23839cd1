//! What a daemon answers.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| protocol::fuzzing::fuzz_answer(data));
