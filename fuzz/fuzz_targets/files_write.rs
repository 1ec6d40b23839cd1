//! A `.rrd` file that the files layout writes updates into.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| store::files::fuzzing::fuzz_write(data));
