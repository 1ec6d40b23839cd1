//! Numbers as `rrd.h` has them.

use std::ffi::{c_char, c_double, c_int, c_long, c_uint};

use rrd::definition::Cf;

use crate::boundary::guard;
use crate::errors;
use crate::memory::bytes;

/// What stands for unknown.
#[unsafe(no_mangle)]
pub extern "C" fn rrd_set_to_DNAN() -> c_double {
    rrd::live::UNKNOWN
}

/// Positive infinity.
#[unsafe(no_mangle)]
pub extern "C" fn rrd_set_to_DINF() -> c_double {
    f64::INFINITY
}

/// The number at the start of a text, and its length; 0 and 0 when there is none.
fn prefix(text: &[u8]) -> (f64, usize) {
    rrd::number::parse_prefix(text).map_or((0.0, 0), |(value, rest)| (value, text.len() - rest.len()))
}

/// The number that `text` begins with; `*end` becomes where it ends. Never heeds the locale.
///
/// # Safety
/// `text` ends with NUL; `end` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_strtod(text: *const c_char, end: *mut *mut c_char) -> c_double {
    // SAFETY: the caller's promise.
    let (value, length) = prefix(unsafe { bytes(text) }.unwrap_or_default());
    if !end.is_null() && !text.is_null() {
        // SAFETY: the number is part of the text.
        unsafe { end.write(text.add(length).cast_mut()) };
    }
    value
}

/// The number that `text` begins with, in `*value`: 2 = it is all of the text, 1 = more stands behind it, 0 = there
/// is none. What is not 2 leaves an error, `message` before it, unless that is NULL.
///
/// # Safety
/// As [`rrd_strtod`]; `value` can be written; `message` is NULL or ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_strtodbl(
    text: *const c_char,
    end: *mut *mut c_char,
    value: *mut c_double,
    message: *const c_char,
) -> c_uint {
    // SAFETY: the caller's promise.
    unsafe {
        let all = bytes(text).unwrap_or_default();
        let (number, length) = prefix(all);
        if !value.is_null() {
            value.write(number);
        }
        if !end.is_null() && !text.is_null() {
            end.write(text.add(length).cast_mut());
        }
        let status = match length {
            0 => 0,
            length if length == all.len() => 2,
            _ => 1,
        };
        if let (true, Some(message)) = (status < 2, bytes(message)) {
            let kept = String::from_utf8_lossy(message);
            let shown = String::from_utf8_lossy(all);
            errors::keep(format!("{kept} - Cannot convert '{shown}' to float").as_bytes());
        }
        status
    }
}

unsafe extern "C" {
    fn random() -> c_long;
}

/// A random number, not negative.
#[unsafe(no_mangle)]
pub extern "C" fn rrd_random() -> c_long {
    // SAFETY: no precondition.
    unsafe { random() }
}

/// The greatest common divisor of numbers up to the first 0.
///
/// # Safety
/// `numbers` has a 0 at its end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_lcd(numbers: *mut c_long) -> c_long {
    if numbers.is_null() {
        return 0;
    }
    let mut divisor: c_long = 0;
    let mut at = numbers;
    // SAFETY: the caller's promise.
    unsafe {
        while *at != 0 {
            let (mut a, mut b) = (divisor, *at);
            while b != 0 {
                (a, b) = (b, a.wrapping_rem(b));
            }
            divisor = a.wrapping_abs();
            at = at.add(1);
        }
    }
    divisor
}

/// The number of a consolidation function (`enum cf_en`); -1 with an error when there is none of the name.
///
/// # Safety
/// `name` ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_cf_conv(name: *const c_char) -> c_int {
    guard(-1, || {
        // SAFETY: the caller's promise.
        let name = unsafe { crate::boundary::needed(name, "consolidation function")? };
        let found = Cf::ALL.iter().position(|known| known.name().as_bytes() == name);
        found
            .map(|index| index as c_int)
            .ok_or_else(|| tool::Failure::of_name("unknown consolidation function '", name, "'"))
    })
}
