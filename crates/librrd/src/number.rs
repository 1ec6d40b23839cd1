//! The functions of `rrd.h` for numbers.

use std::ffi::{c_char, c_double, c_int, c_long, c_uint};

use rrd::definition::Cf;

use crate::boundary::guard;
use crate::errors;
use crate::memory::bytes;

/// The NaN for unknown.
#[unsafe(no_mangle)]
pub extern "C" fn rrd_set_to_DNAN() -> c_double {
    rrd::live::UNKNOWN
}

/// Positive infinity.
#[unsafe(no_mangle)]
pub extern "C" fn rrd_set_to_DINF() -> c_double {
    f64::INFINITY
}

/// The number that the digits at the start of a text make, and their length.
fn digits(text: &[u8]) -> Option<(f64, usize)> {
    rrd::number::parse_digits(text).map(|(value, rest)| (value, text.len() - rest.len()))
}

/// The number that `text` starts with; sets `*end` to what follows it. Ignores the locale.
/// Compat: without a number (`nan` and `inf` are none here) it returns 0 and leaves `*end` as it is.
///
/// # Safety
/// `text` is NULL or a C string; `end` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_strtod(text: *const c_char, end: *mut *mut c_char) -> c_double {
    // SAFETY: `text` is NULL or a C string, by this function's contract.
    let Some((value, length)) = digits(unsafe { bytes(text) }.unwrap_or_default()) else { return 0.0 };
    if !end.is_null() {
        // SAFETY: `end` is writable and `length` is at most the length of `text`.
        unsafe { end.write(text.add(length).cast_mut()) };
    }
    value
}

/// Puts the number that `text` starts with into `*value`. Returns 2 when it is the complete text, 1 when more follows,
/// 0 when there is none; sets `*end` to what follows the number. Without 2 it sets an error, prefixed with `message` unless
/// that is NULL. Compat: `nan` and `inf` are complete texts, whatever follows them, and `*end` is then the start of the text.
///
/// # Safety
/// As [`rrd_strtod`]; `value` is NULL or writable; `message` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_strtodbl(
    text: *const c_char,
    end: *mut *mut c_char,
    value: *mut c_double,
    message: *const c_char,
) -> c_uint {
    // SAFETY: `text` and `message` are NULL or C strings, and `value` is NULL or writable, by this function's contract.
    unsafe {
        let all = bytes(text).unwrap_or_default();
        let word = rrd::number::parse_word(all);
        let (number, length) = word.map(|word| (word, 0)).or_else(|| digits(all)).unwrap_or_default();
        if !value.is_null() {
            value.write(number);
        }
        if !end.is_null() && !text.is_null() {
            end.write(text.add(length).cast_mut());
        }
        let status = match length {
            _ if word.is_some() => 2,
            0 => 0,
            length if length == all.len() => 2,
            _ => 1,
        };
        if let (true, Some(message)) = (status < 2, bytes(message)) {
            let kept = String::from_utf8_lossy(message);
            let shown = String::from_utf8_lossy(all);
            let text = match status {
                1 => {
                    let rest = String::from_utf8_lossy(&all[length..]);
                    format!("{kept} - Converted '{shown}' to {number:.6}, but cannot convert '{rest}'")
                }
                _ => format!("{kept} - Cannot convert '{shown}' to float"),
            };
            errors::keep(text.as_bytes());
        }
        status
    }
}

unsafe extern "C" {
    fn random() -> c_long;
}

/// A random number that is not negative.
#[unsafe(no_mangle)]
pub extern "C" fn rrd_random() -> c_long {
    // SAFETY: `random` has no preconditions.
    unsafe { random() }
}

/// The greatest common divisor of the numbers before the first 0.
///
/// # Safety
/// `numbers` is NULL or ends with 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_lcd(numbers: *mut c_long) -> c_long {
    if numbers.is_null() {
        return 0;
    }
    let mut divisor: c_long = 0;
    let mut at = numbers;
    // SAFETY: `numbers` is not NULL (checked above) and ends with 0, by this function's contract; the loop stops there.
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

/// The number of a consolidation function (`enum cf_en`); -1 with an error for an unknown name.
///
/// # Safety
/// `name` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_cf_conv(name: *const c_char) -> c_int {
    guard(-1, || {
        // SAFETY: `name` is NULL or a C string, by this function's contract.
        let name = unsafe { crate::boundary::needed(name, "consolidation function")? };
        let found = Cf::ALL.iter().position(|known| known.name().as_bytes() == name);
        found
            .map(|index| index as c_int)
            .ok_or_else(|| cli::Failure::of_name("unknown consolidation function '", name, "'"))
    })
}
