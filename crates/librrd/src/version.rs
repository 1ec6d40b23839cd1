//! The RRDtool version that we claim to programs that ask.

use std::ffi::{c_char, c_double};

/// `rrd_version` of 1.9.0: major number, plus minor / 10, plus patch / 10,000.
const NUMBER: c_double = 1.9;

/// The version as a number.
#[unsafe(no_mangle)]
pub extern "C" fn rrd_version() -> c_double {
    NUMBER
}

/// The version as a text, not to be freed. Programs compare it as a number, so it is RRDtool's.
#[unsafe(no_mangle)]
pub extern "C" fn rrd_strversion() -> *mut c_char {
    c"1.9.0".as_ptr().cast_mut()
}
