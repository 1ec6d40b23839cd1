//! What the kernel says about memory, pressure and disks.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pagecache::system::fuzz_counters(data));
