//! Rows that a program supplies itself (`rrd_fetch_cb_register`, for `DEF:x=cb//...`), and `rrd_reduce_data`.

use std::ffi::{CString, c_char, c_double, c_int, c_ulong};
use std::sync::Mutex;
use std::sync::PoisonError;

use cli::{Failure, Result};
use graph::plan::Request;
use graph::reduce::reduce;
use rrd::definition::Cf;
use rrd::fetch::{FetchRequest, FetchRows};
use rrd::rpn::Series;

use crate::boundary::guard;
use crate::errors;
use crate::memory::bytes;
use crate::sanitizer;

/// `rrd_fetch_cb_t`: (file, cf, start, end, step, count, names, values); returns -1 for an error.
type FetchCallback = extern "C" fn(
    *const c_char,
    c_int,
    *mut libc::time_t,
    *mut libc::time_t,
    *mut c_ulong,
    *mut c_ulong,
    *mut *mut *mut c_char,
    *mut *mut c_double,
) -> c_int;

static REGISTERED: Mutex<Option<FetchCallback>> = Mutex::new(None);
/// Most values taken from a callback; more can only be a mistake.
const VALUES_MAX: u64 = 1 << 27;

/// Makes `callback` supply the rows of DEFs whose file begins with `cb//`; NULL ends that. Compat: returns 1.
#[unsafe(no_mangle)]
pub extern "C" fn rrd_fetch_cb_register(callback: Option<FetchCallback>) -> c_int {
    *REGISTERED.lock().unwrap_or_else(PoisonError::into_inner) = callback;
    1
}

/// The source of rows for a tool, if the program has registered a callback.
pub fn registered() -> Option<cli::Callback> {
    let is_there = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).is_some();
    is_there.then_some(fetch as cli::Callback)
}

fn fetch(request: &Request) -> Result<FetchRows> {
    let callback = *REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    let callback = callback.ok_or_else(|| Failure::new("no function to fetch with is registered"))?;
    let file = CString::new(request.file.clone())
        .map_err(|_| Failure::of_name("'", &request.file, "' has a NUL in it"))?;
    let FetchRequest { cf, mut start, mut end, mut step, .. } = request.fetch;
    let cf = Cf::ALL.iter().position(|known| *known == cf).unwrap_or(0);
    let mut count = 0;
    let mut names: *mut *mut c_char = std::ptr::null_mut();
    let mut data: *mut c_double = std::ptr::null_mut();
    let status = sanitizer::seen(|| {
        callback(
            file.as_ptr(),
            cf as c_int,
            &raw mut start,
            &raw mut end,
            &raw mut step,
            &raw mut count,
            &raw mut names,
            &raw mut data,
        )
    });
    // Compat: a callback that failed before it set a step is reported by the step; otherwise it has set an error
    // itself, or there is none.
    if step == 0 {
        return Err(Failure::new("Your callback returns a step of 0"));
    }
    if start > end {
        let text = format!("Your callback returns a start after end. start: {start} end: {end}");
        return Err(Failure::new(text));
    }
    if status == -1 {
        let own = errors::current();
        let failed = || Failure::of_name("the function registered for '", &request.file, "' has failed");
        return Err(if own.is_empty() { failed() } else { Failure::new(own) });
    }
    let rows = (end - start) as u64 / step;
    let bad = rows.saturating_mul(count) > VALUES_MAX || names.is_null() || data.is_null();
    // SAFETY: as `rrd.h` requires of a callback, `names` has `count` texts and `data` has `count` values per row, in
    // memory from C's allocator. The rows are not read when their number makes no sense (`bad`).
    unsafe {
        let name = |index| String::from_utf8_lossy(bytes(*names.add(index)).unwrap_or_default()).into_owned();
        let fetched = (!bad).then(|| FetchRows {
            start,
            end: start + (rows * step) as i64,
            step,
            units_per_second: 1,
            ds_names: (0..count as usize).map(name).collect(),
            values: std::slice::from_raw_parts(data, (rows * count) as usize).to_vec(),
        });
        if !names.is_null() {
            (0..count as usize).for_each(|index| libc::free((*names.add(index)).cast()));
            libc::free(names.cast());
        }
        libc::free(data.cast());
        fetched
            .ok_or_else(|| Failure::of_name("the function registered for '", &request.file, "' gave no rows"))
    }
}

/// Consolidates the rows of `*data` in place to at least `*step` seconds. Returns 1, or 0 for an error.
///
/// # Safety
/// All pointers are valid; `*data` has `*count` values for each row between `*start` and `*end`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_reduce_data(
    cf: c_int,
    current_step: c_ulong,
    start: *mut libc::time_t,
    end: *mut libc::time_t,
    step: *mut c_ulong,
    count: *mut c_ulong,
    data: *mut *mut c_double,
) -> c_int {
    guard(0, || {
        let nothing = || Failure::new("no rows to reduce given");
        if [start.is_null(), end.is_null(), step.is_null(), count.is_null(), data.is_null()].contains(&true) {
            return Err(nothing());
        }
        let cf = usize::try_from(cf).ok().and_then(|cf| Cf::ALL.get(cf)).copied().ok_or_else(nothing)?;
        // SAFETY: the pointers are not NULL (checked above) and valid, as this function requires of C.
        unsafe {
            let (from, columns) = (*start, *count as usize);
            let rows = ((*end - from).max(0) as u64).checked_div(current_step).ok_or_else(nothing)? as usize;
            let values = std::slice::from_raw_parts_mut(*data, rows * columns);
            for column in 0..columns {
                let own = values.iter().skip(column).step_by(columns).copied().collect();
                let series = Series { start: from, step: current_step, values: own };
                let reduced = reduce(series, *step, cf).map_err(|error| Failure::new(error.to_string()))?;
                for (row, value) in reduced.values.iter().enumerate().take(rows) {
                    values[row * columns + column] = *value;
                }
                if column + 1 == columns {
                    *start = reduced.start;
                    *end = reduced.start + reduced.values.len() as i64 * reduced.step as i64;
                    *step = reduced.step;
                }
            }
        }
        Ok(1)
    })
}
