//! `rrd_create_r` and `rrd_create_r2`.

use std::ffi::{c_char, c_int, c_ulong};

use cli::verb::create::{CreateArgs, create};
use cli::{Failure, Result};
use rrd::when::Step;
use rrd_file::Existing;

use crate::boundary::{call, list, needed};
use crate::memory::bytes;

/// Creates an RRD as `rrdcreate(1)` does. `last_up` is in seconds since the epoch; 0 and -1 mean ten seconds ago.
/// `argv` has only definitions.
///
/// # Safety
/// `file` is a C string; `argv` is NULL or has `argc` C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_create_r(
    file: *const c_char,
    step: c_ulong,
    last_up: libc::time_t,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: `file` and `argv` are passed on under the same conditions; NULL sources and template are allowed.
    unsafe { rrd_create_r2(file, step, last_up, 0, std::ptr::null(), std::ptr::null(), argc, argv) }
}

/// As [`rrd_create_r`]. `no_overwrite` keeps an existing RRD, `sources` (ended by NULL) fill it, `template` describes it.
///
/// # Safety
/// As [`rrd_create_r`]; `sources` is NULL or ends with NULL, `template` is NULL or a C string.
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
        // SAFETY: by this function's contract `file` and `template` are C strings or NULL, `argv` has `argc` strings, and
        // `sources` ends with NULL, where `list` stops; all outlive the call.
        let (name, definitions, sources, template) = unsafe {
            (needed(file, "file name")?, list(argc, argv), list(c_int::MAX, sources), bytes(template))
        };
        let args = CreateArgs {
            name,
            start: start(last_up)?,
            step: (step > 0).then_some(Step { units: step, units_per_second: 1 }),
            decimal_step: None,
            sources,
            template,
            existing: if no_overwrite == 0 { Existing::Replace } else { Existing::Refuse },
            daemon: None,
            definitions,
        };
        tool.environment.daemon = None;
        create(tool, &args)?;
        Ok(0)
    })
}

/// Earliest start, as `rrdcreate(1)` has it: ten years after the epoch.
const START_MIN: i64 = 3600 * 24 * 365 * 10;

fn start(last_up: i64) -> Result<Option<i64>> {
    match last_up {
        0 | -1 => Ok(None),
        time if time < START_MIN => Err(Failure::new("the first entry to the RRD should be after 1980")),
        time => Ok(Some(time)),
    }
}
