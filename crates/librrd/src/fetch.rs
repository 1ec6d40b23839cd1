//! Reading rows: `rrd_fetch`, `rrd_fetch_r`, `rrd_xport`.

use std::ffi::{c_char, c_double, c_int, c_ulong};
use std::io::Write;

use cli::verb::fetch::{fetch, fetch_here_first};
use cli::verb::xport;
use cli::{Args, Failure, Result, Tool};
use rrd::definition::Cf;
use rrd::fetch::{FetchRequest, FetchRows};
use rrd::when::Step;

use crate::boundary::{Stdout, call, call_by_words, give, needed};
use crate::memory;

/// The outputs of a fetch.
pub struct Slots {
    /// Start of the first row.
    pub start: *mut libc::time_t,
    /// End of the last row.
    pub end: *mut libc::time_t,
    /// Seconds per row.
    pub step: *mut c_ulong,
    /// Number of names.
    pub count: *mut c_ulong,
    /// The names.
    pub names: *mut *mut *mut c_char,
    /// The values, row by row.
    pub data: *mut *mut c_double,
}

impl Slots {
    /// Sets the outputs to no rows. Compat: Python and Lua free the outputs even after a failed call, where RRDtool's
    /// library leaves the previous content.
    ///
    /// # Safety
    /// Each slot is NULL or writable.
    pub unsafe fn clear(&self) {
        // SAFETY: each slot is NULL or writable, by this function's contract; `give` skips NULL.
        unsafe {
            give(self.count, 0);
            give(self.names, std::ptr::null_mut());
            give(self.data, std::ptr::null_mut());
        }
    }

    /// Writes the rows to the slots.
    ///
    /// # Errors
    /// Rows shorter than a second, which these functions cannot express.
    ///
    /// # Safety
    /// Each slot is NULL or writable.
    pub unsafe fn fill(&self, rows: FetchRows) -> Result {
        if !rows.is_in_seconds() {
            let step = Step { units: rows.step, units_per_second: rows.units_per_second };
            return Err(Failure::new(format!(
                "cannot give rows of {step} s through this function, which counts whole seconds; ask for the \
                 resolution of an archive with rows of whole seconds, or use rrd_xport"
            )));
        }
        let mut rows = rows;
        // Compat: bindings read one row more than there are, so there is room for it.
        rows.values.extend(std::iter::repeat_n(f64::NAN, rows.ds_names.len()));
        // SAFETY: each slot is NULL or writable, by this function's contract; `give` skips NULL.
        unsafe {
            give(self.start, rows.start);
            give(self.end, rows.end);
            give(self.step, rows.step);
            give(self.count, rows.ds_names.len() as c_ulong);
            if !self.names.is_null() {
                self.names.write(memory::texts(&rows.ds_names));
            }
            if !self.data.is_null() {
                self.data.write(memory::copy(&rows.values));
            }
        }
        Ok(())
    }
}

/// `rrdfetch(1)`; the caller frees names and values.
///
/// # Safety
/// `argv` is NULL or has `argc` C strings; the other pointers are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_fetch(
    argc: c_int,
    argv: *const *const c_char,
    start: *mut libc::time_t,
    end: *mut libc::time_t,
    step: *mut c_ulong,
    count: *mut c_ulong,
    names: *mut *mut *mut c_char,
    data: *mut *mut c_double,
) -> c_int {
    let slots = Slots { start, end, step, count, names, data };
    // SAFETY: `argv` has `argc` C strings and each slot is NULL or writable, by this function's contract.
    unsafe {
        slots.clear();
        call_by_words(-1, argc, argv, |tool, words| {
            let rows = fetch(tool, words)?;
            slots.fill(rows)?;
            Ok(0)
        })
    }
}

/// Rows of `file` between `*start` and `*end`, with the resolution nearest to `*step`.
///
/// # Safety
/// `file` and `cf` are NULL or C strings; `start`, `end` and `step` are NULL or readable and writable, the others NULL
/// or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_fetch_r(
    file: *const c_char,
    cf: *const c_char,
    start: *mut libc::time_t,
    end: *mut libc::time_t,
    step: *mut c_ulong,
    count: *mut c_ulong,
    names: *mut *mut *mut c_char,
    data: *mut *mut c_double,
) -> c_int {
    let slots = Slots { start, end, step, count, names, data };
    // SAFETY: each slot is NULL or writable, by this function's contract.
    unsafe { slots.clear() };
    call(-1, |tool| {
        // SAFETY: `file` and `cf` are NULL or C strings, and the others NULL or readable, by this function's contract.
        let (name, request) = unsafe { (needed(file, "file name")?, request(cf, start, end, step)?) };
        let rows = fetch_here_first(tool, name, &request)?;
        // SAFETY: each slot is NULL or writable, by this function's contract.
        unsafe { slots.fill(rows)? };
        Ok(0)
    })
}

/// The request that the pointers of a fetch describe.
///
/// # Safety
/// `cf` is NULL or a C string, the others are NULL or readable.
pub unsafe fn request(
    cf: *const c_char,
    start: *const libc::time_t,
    end: *const libc::time_t,
    step: *const c_ulong,
) -> Result<FetchRequest> {
    // SAFETY: `cf` is NULL or a C string, by this function's contract.
    let cf = unsafe { needed(cf, "consolidation function")? };
    let found = std::str::from_utf8(cf).ok().and_then(Cf::from_name);
    let cf = found.ok_or_else(|| Failure::of_name("unknown consolidation function '", cf, "'"))?;
    if start.is_null() || end.is_null() || step.is_null() {
        return Err(Failure::new("no place for start, end and step given"));
    }
    // SAFETY: none of them is NULL (checked above), and they are readable, by this function's contract.
    let (start, end, step) = unsafe { (*start, *end, *step) };
    Ok(FetchRequest::new(cf, start, end, step.max(1)))
}

/// `rrdxport(1)`; the caller frees legends and values. When `xsize` is NULL the export is also printed.
///
/// # Safety
/// `argv` is NULL or has `argc` C strings; `xsize` is not written, the other pointers are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_xport(
    argc: c_int,
    argv: *const *const c_char,
    xsize: *mut c_int,
    start: *mut libc::time_t,
    end: *mut libc::time_t,
    step: *mut c_ulong,
    count: *mut c_ulong,
    legends: *mut *mut *mut c_char,
    data: *mut *mut c_double,
) -> c_int {
    let slots = Slots { start, end, step, count, names: legends, data };
    let export = |tool: &mut Tool, args: Args<'_>| {
        let export = xport::Export::make(tool, args)?;
        if xsize.is_null() {
            export.write(&mut Stdout)?;
            Stdout.flush().ok();
        }
        let table = export.table()?;
        let rows = FetchRows {
            start: table.start,
            end: table.end,
            step: table.step,
            units_per_second: 1,
            ds_names: table
                .legends
                .iter()
                .map(|legend| String::from_utf8_lossy(legend).into_owned())
                .collect(),
            values: (0..table.rows()).flat_map(|index| table.row(table.time(index))).collect(),
        };
        // SAFETY: each slot is NULL or writable, by this function's contract.
        unsafe { slots.fill(rows)? };
        Ok(0)
    };
    // SAFETY: `argv` has `argc` C strings and each slot is NULL or writable, by this function's contract.
    unsafe {
        slots.clear();
        call_by_words(-1, argc, argv, export)
    }
}
