//! The locale of the environment (`LC_ALL`, `LC_NUMERIC`, `LC_TIME`, `LC_MESSAGES`, `LANG`), as C reads it.
//!
//! Owns what RRDtool's command line takes from it. A process is in the C locale until it calls [`adopt`]; after
//! that the system's messages and [`strftime`](crate::strftime) use its language, too.

use std::env;
use std::ffi::CStr;

/// glibc's number for the first day of the week (its `langinfo.h`), which the crate `libc` does not have.
const TIME_FIRST_WEEKDAY: libc::nl_item = 0x2_0068;

/// Adopts the locale of the environment; an unknown one leaves the C locale. Call it before there are other
/// threads.
pub fn adopt() {
    // Each category costs a file, so only those in use.
    let categories: [(libc::c_int, &str); 4] = [
        (libc::LC_CTYPE, "LC_CTYPE"),
        (libc::LC_NUMERIC, "LC_NUMERIC"),
        (libc::LC_TIME, "LC_TIME"),
        (libc::LC_MESSAGES, "LC_MESSAGES"),
    ];
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    // The files of C.UTF-8 say what C has without any. They take 0.1 ms, a tenth of what a short command lives for.
    let is_c = |name: &str| {
        let locale = variable("LC_ALL").or_else(|| variable(name)).or_else(|| variable("LANG"));
        locale.is_none_or(|locale| ["C", "POSIX", "C.UTF-8", "C.utf8"].iter().any(|c| locale == *c))
    };
    if variable("LANGUAGE").is_none() && categories.iter().all(|(_, name)| is_c(name)) {
        return;
    }
    for (category, _) in categories {
        // SAFETY: the text ends in a NUL. The caller is the only thread, so nothing else reads or changes the locale
        // meanwhile.
        unsafe { libc::setlocale(category, c"".as_ptr()) };
    }
}

/// What separates a whole number from its decimals.
pub fn decimal_point() -> String {
    // SAFETY: for a known item C returns a text that ends in a NUL and stays valid until the locale changes, which
    // only happens before there are other threads.
    let text = unsafe { CStr::from_ptr(libc::nl_langinfo(libc::RADIXCHAR)) };
    let text = text.to_string_lossy().into_owned();
    if text.is_empty() { ".".to_string() } else { text }
}

/// The first day of the week, counted from Sunday = 0.
pub fn first_weekday() -> u32 {
    // SAFETY: as in `decimal_point`; the result has at least one byte, the number of the day counted from 1.
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
