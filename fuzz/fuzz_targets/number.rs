//! Numbers and differences of counters as RRDtool reads them.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rrd::fuzzing::fuzz_number(data));
