//! `rrd_create_r` and `rrd_create_r2`.

use std::ffi::{c_char, c_int, c_ulong};

use rrd::when::Step;
use store::direct::Existing;
use tool::verb::create::{Wish, create};
use tool::{Done, Failure};

use crate::boundary::{call, list, needed};
use crate::memory::bytes;

/// Makes an RRD as `rrdcreate(1)` does. `last_up` is seconds since the epoch, 0 and -1 are ten seconds ago;
/// `argv` has only definitions.
///
/// # Safety
/// `file` ends with NUL; `argv` is NULL or has `argc` C texts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_create_r(
    file: *const c_char,
    step: c_ulong,
    last_up: libc::time_t,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { rrd_create_r2(file, step, last_up, 0, std::ptr::null(), std::ptr::null(), argc, argv) }
}

/// The same; `no_overwrite` keeps an RRD that is there, `sources` (NULL at its end) fill it, `template` describes it.
///
/// # Safety
/// As [`rrd_create_r`]; `sources` is NULL or ends with NULL, `template` is NULL or ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_create_r2(
    file: *const c_char,
    step: c_ulong,
    last_up: libc::time_t,
    no_overwrite: c_int,
    sources: *const *const c_char,
    template: *const c_char,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    call(-1, |tool| {
        // SAFETY: the caller's promise.
        let (name, definitions, sources, template) = unsafe {
            (needed(file, "file name")?, list(argc, argv), list(c_int::MAX, sources), bytes(template))
        };
        let wish = Wish {
            name,
            start: start(last_up)?,
            step: (step > 0).then_some(Step { units: step, units_per_second: 1 }),
            sources,
            template,
            existing: if no_overwrite == 0 { Existing::Replace } else { Existing::Refuse },
            daemon: None,
            definitions,
        };
        tool.surroundings.daemon = None;
        create(tool, &wish)?;
        Ok(0)
    })
}

/// Earliest start, as `rrdcreate(1)` has it: the end of 1980's first decade of nothing.
const START_MIN: i64 = 3600 * 24 * 365 * 10;

fn start(last_up: i64) -> Done<Option<i64>> {
    match last_up {
        0 | -1 => Ok(None),
        time if time < START_MIN => Err(Failure::new("the first entry to the RRD should be after 1980")),
        time => Ok(Some(time)),
    }
}
