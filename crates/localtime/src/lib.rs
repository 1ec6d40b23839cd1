//! The host's own calendar: local time by `TZ` and the C library, so that our dates are RRDtool's.
//!
//! RRDtool asks glibc, and glibc's answers at clock changes are its own: for a time of day that does not exist, or
//! exists twice, they depend on how `mktime` searches (and on what it was last asked). So we ask glibc too. This is
//! the only place with that state; everything else takes a [`Calendar`].

use std::ffi::{CString, OsStr};
use std::mem::MaybeUninit;
use std::sync::Once;

use rrd::when::calendar::{Calendar, Civil};

mod dump_times;
pub mod locale;

pub use dump_times::DumpTimes;

/// Longest text that [`strftime`] makes, in bytes. RRDtool's own buffers are shorter.
const TEXT_BYTES_MAX: usize = 4096;

/// Local time of this process: `TZ`, or the host's zone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Local;

impl Calendar for Local {
    fn local(&self, time: i64) -> Civil {
        civil(&broken_down(time))
    }

    fn time(&self, civil: &Civil) -> i64 {
        seconds(civil, -1)
    }

    fn time_as(&self, civil: &Civil, summer: bool) -> i64 {
        seconds(civil, i32::from(summer))
    }
}

/// Local time at `time` as text, by C's `strftime` in the current locale (C, unless [`locale::adopt`] was called).
/// `None` when the format contains a NUL byte or the text would be longer than 4 kB.
pub fn strftime(format: &OsStr, time: i64) -> Option<Vec<u8>> {
    text(format, &broken_down(time))
}

/// As [`strftime`], for universal time.
pub fn strftime_utc(format: &OsStr, time: i64) -> Option<Vec<u8>> {
    let mut tm = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: as in `broken_down`.
    let tm = unsafe {
        libc::gmtime_r(&time, tm.as_mut_ptr());
        tm.assume_init()
    };
    text(format, &tm)
}

fn text(format: &OsStr, tm: &libc::tm) -> Option<Vec<u8>> {
    // Both an empty text and one that does not fit return 0 bytes; a leading character tells them apart.
    let mut marked = Vec::with_capacity(format.len() + 1);
    marked.push(b'x');
    marked.extend_from_slice(format.as_encoded_bytes());
    let format = CString::new(marked).ok()?;
    let mut text = vec![0u8; TEXT_BYTES_MAX];
    // SAFETY: the buffer has the length that is passed, the format ends in a NUL, and `tm` was filled by `gmtime_r`
    // or `localtime_r`. Its zone name stays valid: the C library frees no name while its zone is in force, and
    // keeps the names that go out of use.
    let length = unsafe { libc::strftime(text.as_mut_ptr().cast(), text.len(), format.as_ptr(), tm) };
    if length == 0 {
        return None;
    }
    text.truncate(length);
    text.remove(0);
    Some(text)
}

/// Pins the host's current zone, unless `TZ` names one: otherwise C checks the zone's file for every text, 57 times
/// per graph. For a process that runs one command; call it before there are other threads.
pub fn keep_zone() {
    if std::env::var_os("TZ").is_none() {
        // SAFETY: the caller is the only thread, so nothing else reads or changes the environment meanwhile.
        unsafe { std::env::set_var("TZ", ":/etc/localtime") };
    }
}

unsafe extern "C" {
    // SAFETY: takes and returns nothing; glibc protects it with its own lock.
    /// Reads `TZ`; `localtime_r` need not do that itself.
    safe fn tzset();
}

/// Reads `TZ` once. We do not see later changes by this process.
fn read_zone() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tzset());
}

fn broken_down(time: i64) -> libc::tm {
    read_zone();
    let mut tm = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are to memory of the right type that lives through the call. All-zero bytes are a
    // valid `tm` (its pointer may be null), so it is initialised even when the year does not fit and C writes
    // nothing, or part of it.
    unsafe {
        libc::localtime_r(&time, tm.as_mut_ptr());
        tm.assume_init()
    }
}

fn seconds(civil: &Civil, summer: i32) -> i64 {
    read_zone();
    // SAFETY: all-zero bytes are a valid `tm`.
    let mut tm: libc::tm = unsafe { MaybeUninit::zeroed().assume_init() };
    tm.tm_sec = civil.second;
    tm.tm_min = civil.minute;
    tm.tm_hour = civil.hour;
    tm.tm_mday = civil.day;
    tm.tm_mon = civil.month;
    tm.tm_year = civil.year.wrapping_sub(1900);
    tm.tm_isdst = summer;
    // SAFETY: the pointer is to a `tm` that lives through the call.
    unsafe { libc::mktime(&mut tm) }
}

fn civil(tm: &libc::tm) -> Civil {
    Civil {
        second: tm.tm_sec,
        minute: tm.tm_min,
        hour: tm.tm_hour,
        day: tm.tm_mday,
        month: tm.tm_mon,
        year: tm.tm_year.wrapping_add(1900),
        weekday: tm.tm_wday,
        year_day: tm.tm_yday,
        utc_offset_seconds: tm.tm_gmtoff as i32,
        summer: tm.tm_isdst > 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rrd::when::calendar::Utc;

    #[test]
    fn there_and_back() {
        for time in (-5_000_000_000..5_000_000_000_i64).step_by(86_413 * 97) {
            let local = Local.local(time);
            assert_eq!(Local.time_as(&local, local.summer), time, "{local:?}");
            assert_eq!(Utc.time(&local) - i64::from(local.utc_offset_seconds), time, "{local:?}");
        }
    }

    #[test]
    fn texts() {
        fn check(format: &str, want: Option<&str>) {
            let got = strftime(OsStr::new(format), 1_000_000_000);
            assert_eq!(got.as_deref(), want.map(str::as_bytes), "{format:?}");
        }
        check("", Some(""));
        check("100%%", Some("100%"));
        check("%s", Some("1000000000"));
        check("a\0b", None);
        check(&"%s".repeat(1000), None);
        let utc = strftime_utc(OsStr::new("%Y-%m-%d %H:%M:%S"), 1_000_000_000);
        assert_eq!(utc.as_deref(), Some(&b"2001-09-09 01:46:40"[..]));
    }
}
