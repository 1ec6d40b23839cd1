//! CDEFs and VDEFs, parsed and evaluated.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rrd::fuzzing::fuzz_expression(data));
