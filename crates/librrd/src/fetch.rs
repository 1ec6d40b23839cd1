//! Rows: `rrd_fetch`, `rrd_fetch_r`, `rrd_xport`.

use std::ffi::{c_char, c_double, c_int, c_ulong};
use std::io::Write;

use rrd::definition::Cf;
use tool::verb::fetch::{Rows, Wish, fetch, fetch_here_first};
use tool::verb::xport;
use tool::{Done, Failure, Tool, Words};

use crate::boundary::{Stdout, call, call_by_words, give, needed};
use crate::memory;

/// Where the rows of a fetch go.
pub struct Slots {
    /// Start of the first row.
    pub start: *mut libc::time_t,
    /// End of the last one.
    pub end: *mut libc::time_t,
    /// Seconds in a row.
    pub step: *mut c_ulong,
    /// How many names.
    pub count: *mut c_ulong,
    /// The names.
    pub names: *mut *mut *mut c_char,
    /// The values, row after row.
    pub data: *mut *mut c_double,
}

impl Slots {
    /// Says that there are no rows. Compat: Python and Lua free what stands there when a call has failed, too, and
    /// RRDtool's library leaves there what it was given.
    ///
    /// # Safety
    /// Each slot is NULL or can be written.
    pub unsafe fn clear(&self) {
        // SAFETY: the caller's promise.
        unsafe {
            give(self.count, 0);
            give(self.names, std::ptr::null_mut());
            give(self.data, std::ptr::null_mut());
        }
    }

    /// Hands the rows over.
    ///
    /// # Errors
    /// Rows of less than a second, which these functions cannot say.
    ///
    /// # Safety
    /// Each slot is NULL or can be written.
    pub unsafe fn fill(&self, rows: &Rows) -> Done {
        let unit = u64::from(rows.units_per_second.max(1));
        if !rows.step.is_multiple_of(unit) {
            return Err(Failure::new("cannot fetch rows of less than a second; ask for whole seconds"));
        }
        // Compat: there is room for one row more than there are.
        let mut values = rows.values.clone();
        values.extend(std::iter::repeat_n(f64::NAN, rows.names.len()));
        // SAFETY: the caller's promise.
        unsafe {
            give(self.start, rows.start.div_euclid(unit as i64));
            give(self.end, rows.end.div_euclid(unit as i64));
            give(self.step, rows.step / unit);
            give(self.count, rows.names.len() as c_ulong);
            if !self.names.is_null() {
                self.names.write(memory::texts(&rows.names));
            }
            if !self.data.is_null() {
                self.data.write(memory::copy(&values));
            }
        }
        Ok(())
    }
}

/// `rrdfetch(1)`; names and values are the caller's to free.
///
/// # Safety
/// `argv` is NULL or has `argc` C texts; the other pointers can be written.
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
    // SAFETY: the caller's promise.
    unsafe {
        slots.clear();
        call_by_words(-1, argc, argv, |tool, words| {
            let rows = fetch(tool, words)?;
            slots.fill(&rows)?;
            Ok(0)
        })
    }
}

/// Rows of `file` between `*start` and `*end`, as near to `*step` as there are.
///
/// # Safety
/// `file` and `cf` end with NUL; `start`, `end` and `step` can be read and written, the others written.
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
    // SAFETY: the caller's promise.
    unsafe { slots.clear() };
    call(-1, |tool| {
        // SAFETY: the caller's promise.
        let (name, wish) = unsafe { (needed(file, "file name")?, wish(cf, start, end, step)?) };
        let rows = fetch_here_first(tool, name, wish)?;
        // SAFETY: the caller's promise.
        unsafe { slots.fill(&rows)? };
        Ok(0)
    })
}

/// What a fetch by pointers asks for.
///
/// # Safety
/// `cf` is NULL or ends with NUL, the others are NULL or can be read.
pub unsafe fn wish(
    cf: *const c_char,
    start: *const libc::time_t,
    end: *const libc::time_t,
    step: *const c_ulong,
) -> Done<Wish> {
    // SAFETY: the caller's promise.
    let cf = unsafe { needed(cf, "consolidation function")? };
    let found = std::str::from_utf8(cf).ok().and_then(Cf::from_name);
    let cf = found.ok_or_else(|| Failure::of_name("unknown consolidation function '", cf, "'"))?;
    if start.is_null() || end.is_null() || step.is_null() {
        return Err(Failure::new("no place for start, end and step given"));
    }
    // SAFETY: the caller's promise.
    let (start, end, step) = unsafe { (*start, *end, *step) };
    Ok(Wish { cf, start, end, step: step.max(1) })
}

/// `rrdxport(1)`; legends and values are the caller's to free. Where `xsize` is NULL the export is printed, too.
///
/// # Safety
/// `argv` is NULL or has `argc` C texts; the other pointers but `xsize` can be written.
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
    let export = |tool: &mut Tool, words: Words<'_>| {
        let export = xport::Export::make(tool, words)?;
        if xsize.is_null() {
            export.write(&mut Stdout)?;
            Stdout.flush().ok();
        }
        let table = export.table()?;
        let rows = Rows {
            start: table.start,
            end: table.end,
            step: table.step,
            units_per_second: 1,
            names: table.legends.iter().map(|legend| String::from_utf8_lossy(legend).into_owned()).collect(),
            values: (0..table.rows()).flat_map(|index| table.row(table.time(index))).collect(),
        };
        // SAFETY: the caller's promise.
        unsafe { slots.fill(&rows)? };
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe {
        slots.clear();
        call_by_words(-1, argc, argv, export)
    }
}
