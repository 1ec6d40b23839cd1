//! A `.rrd` file that the files layout writes updates into.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rrd_file::fuzzing::fuzz_write(data));
