//! A `.rrd` file: decoded, encoded again, updated, fetched from.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rrd::fuzzing::fuzz_file(data));
