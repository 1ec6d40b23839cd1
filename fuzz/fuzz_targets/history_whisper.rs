//! History of other tools: whisper.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| exchange::history::fuzzing::fuzz_whisper(data));
