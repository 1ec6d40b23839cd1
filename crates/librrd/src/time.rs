//! The functions of `rrd.h` for times: AT-style texts in a structure that the caller owns.

use std::ffi::{c_char, c_int, c_ulong};

use cli::Failure;
use rrd::when::at::{Parts, TimeSpec, range};
use rrd::when::calendar::Civil;
use rrd::when::{DurationError, DurationScale, parse_duration};

use crate::boundary::{give, guard};
use crate::memory::bytes;

/// Year 0 of C's `struct tm`.
const YEAR_BASE: i32 = 1900;

/// `rrd_time_value_t`
#[repr(C)]
pub struct TimeValue {
    /// 0 = absolute, 1 = from the start, 2 = from the end, 3 = from the epoch.
    kind: c_int,
    /// Seconds to add.
    offset: libc::c_long,
    /// A date, or what to add to one.
    date: libc::tm,
}

impl TimeValue {
    fn of(spec: &TimeSpec) -> TimeValue {
        let Parts { reference, offset, civil, summer } = spec.parts();
        // SAFETY: all-zero bytes are a valid `tm`.
        let mut date: libc::tm = unsafe { std::mem::zeroed() };
        (date.tm_sec, date.tm_min, date.tm_hour) = (civil.second, civil.minute, civil.hour);
        (date.tm_mday, date.tm_mon) = (civil.day, civil.month);
        date.tm_year = civil.year.wrapping_sub(YEAR_BASE);
        date.tm_isdst = summer.map_or(-1, c_int::from);
        TimeValue { kind: c_int::from(reference), offset, date }
    }

    fn spec(&self) -> TimeSpec {
        let date = &self.date;
        let civil = Civil {
            second: date.tm_sec,
            minute: date.tm_min,
            hour: date.tm_hour,
            day: date.tm_mday,
            month: date.tm_mon,
            year: date.tm_year.wrapping_add(YEAR_BASE),
            ..Civil::default()
        };
        let summer = if date.tm_isdst < 0 { None } else { Some(date.tm_isdst > 0) };
        let reference = u8::try_from(self.kind).unwrap_or(0);
        TimeSpec::from_parts(&Parts { reference, offset: self.offset, civil, summer })
    }
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as i64)
}

thread_local! {
    /// The last text that [`rrd_parsetime`] returned.
    static TEXT: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Parses a time (`rrdfetch(1)`) into `*value`. Returns NULL, or a message that is valid until this thread's next call.
///
/// # Safety
/// `text` is NULL or a C string; `value` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_parsetime(text: *const c_char, value: *mut TimeValue) -> *mut c_char {
    // SAFETY: `text` is NULL or a C string, by this function's contract.
    let text = unsafe { bytes(text) }.unwrap_or_default();
    let calendar = &localtime::Local;
    let done = std::panic::catch_unwind(|| TimeSpec::parse(&String::from_utf8_lossy(text), now(), calendar));
    let message = match done {
        Ok(Ok(spec)) => {
            // SAFETY: `value` is NULL or writable, by this function's contract; `give` skips NULL.
            unsafe { give(value, TimeValue::of(&spec)) };
            return std::ptr::null_mut();
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => "a bug of Roundel".to_string(),
    };
    TEXT.with_borrow_mut(|stored| {
        *stored = message.into_bytes();
        stored.push(0);
        stored.as_mut_ptr().cast()
    })
}

/// Start and end, in seconds, of two times that may refer to each other. Returns 0, or -1 with an error.
///
/// # Safety
/// All pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_proc_start_end(
    start_value: *mut TimeValue,
    end_value: *mut TimeValue,
    start: *mut libc::time_t,
    end: *mut libc::time_t,
) -> c_int {
    guard(-1, || {
        if start_value.is_null() || end_value.is_null() {
            return Err(Failure::new("no start and end given"));
        }
        // SAFETY: both are not NULL (checked above) and valid, by this function's contract.
        let (first, last) = unsafe { ((*start_value).spec(), (*end_value).spec()) };
        let (from, to) =
            range(&first, &last, &localtime::Local).map_err(|error| Failure::new(error.to_string()))?;
        // SAFETY: both are NULL or writable, by this function's contract; `give` skips NULL.
        unsafe {
            give(start, from);
            give(end, to);
        }
        Ok(0)
    })
}

/// Puts a duration such as `300s` or `1d` into `*value`, in units of `divisor` seconds. Returns NULL, or a message.
///
/// # Safety
/// `text` is NULL or a C string; `value` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_scaled_duration(
    text: *const c_char,
    divisor: c_ulong,
    value: *mut c_ulong,
) -> *const c_char {
    // SAFETY: `text` is NULL or a C string, by this function's contract.
    let text = unsafe { bytes(text) }.unwrap_or_default();
    let scale = DurationScale { divisor, ..DurationScale::SECONDS };
    let parsed =
        std::str::from_utf8(text).map_or(Err(DurationError::NotNumber), |text| parse_duration(text, scale));
    let message = match parsed {
        Ok(units) => {
            // SAFETY: `value` is NULL or writable, by this function's contract; `give` skips NULL.
            unsafe { give(value, units) };
            return std::ptr::null();
        }
        Err(DurationError::NotNumber) => c"value must be (suffixed) positive number",
        Err(DurationError::Zero) => c"value must be positive",
        Err(DurationError::Trailing) => c"value has trailing garbage",
        Err(DurationError::Truncates) => c"value would truncate when scaled",
    };
    message.as_ptr()
}
