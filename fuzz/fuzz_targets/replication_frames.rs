//! The frames of a follower's session.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| protocol::fuzzing::fuzz_replication_frames(data));
