//! Files of collectd: types.db, users, collectd.conf.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| collect::fuzzing::fuzz_collectd_files(data));
