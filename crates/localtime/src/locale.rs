//! The locale of the environment (`LC_ALL`, `LC_NUMERIC`, `LC_TIME`, `LC_MESSAGES`, `LANG`), as C knows it.
//!
//! Owns what RRDtool's command line takes from it. A process is in the C locale until [`adopt`] is called;
//! after that the system's messages and [`strftime`](crate::strftime) are in its language, too.

use std::ffi::CStr;

/// glibc's number for the first day of the week (its `langinfo.h`), which the crate `libc` does not have.
const TIME_FIRST_WEEKDAY: libc::nl_item = 0x2_0068;

/// Takes over the locale of the environment; an unknown one leaves the C locale. To be called before there
/// are other threads.
pub fn adopt() {
    // Each costs a file, so only those that are made use of.
    for category in [libc::LC_CTYPE, libc::LC_NUMERIC, libc::LC_TIME, libc::LC_MESSAGES] {
        // SAFETY: the text ends in a NUL. Nobody else reads or changes the locale meanwhile: the caller is the
        // only thread.
        unsafe { libc::setlocale(category, c"".as_ptr()) };
    }
}

/// What stands between a whole number and its decimals.
pub fn decimal_point() -> String {
    // SAFETY: for a known item C answers a text that ends in a NUL and stays until the locale is changed,
    // which is before there are other threads.
    let text = unsafe { CStr::from_ptr(libc::nl_langinfo(libc::RADIXCHAR)) };
    let text = text.to_string_lossy().into_owned();
    if text.is_empty() { ".".to_string() } else { text }
}

/// The first day of the week, counted from Sunday = 0.
pub fn first_weekday() -> u32 {
    // SAFETY: as in `decimal_point`; the answer has one byte at least, the number of the day from 1 on.
    let day = unsafe { *libc::nl_langinfo(TIME_FIRST_WEEKDAY).cast::<u8>() };
    match day {
        1..=7 => u32::from(day - 1),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn nobody_has_set_a_locale() {
        assert_eq!(super::decimal_point(), ".");
        assert_eq!(super::first_weekday(), 0);
    }
}
