//! `rrd_update_r` and its relatives, and the calls that list the rows written.

use std::ffi::{c_char, c_int};

use cli::verb::update::{UpdateArgs, update_here_first};
use cli::verb::updatev::{Written, apply, updatev};
use cli::{Args, Failure, Result, Tool};
use rrd_file::Locking;

use crate::boundary::{call, call_by_words, list, needed};
use crate::errors;
use crate::info::{Info, List};
use crate::memory::bytes;

/// Bit of `extra_flags`: skip updates that are too old.
const SKIP_PAST: c_int = 1;
/// Bits of `extra_flags` for locking (1.9): 0 = the environment's, then try, block, none.
const LOCKING_SHIFT: c_int = 7;

/// The arguments of a call that ends in `_r`.
///
/// # Safety
/// `file` and `template` are NULL or C strings; `argv` is NULL or has `argc` C strings. All outlive the result.
unsafe fn update_args<'a>(
    file: *const c_char,
    template: *const c_char,
    flags: c_int,
    argc: c_int,
    argv: *const *const c_char,
) -> Result<UpdateArgs<'a>> {
    // SAFETY: by this function's contract.
    let (name, template, readings) =
        unsafe { (needed(file, "file name")?, bytes(template), list(argc, argv)) };
    if readings.is_empty() {
        return Err(Failure::new("Not enough arguments"));
    }
    let locking = match (flags >> LOCKING_SHIFT) & 3 {
        1 => Some(Locking::Try),
        2 => Some(Locking::Block),
        3 => Some(Locking::None),
        _ => None,
    };
    Ok(UpdateArgs { name, readings, template, skip_past: flags & SKIP_PAST != 0, locking, daemon: None })
}

/// Updates `file` with the readings of `argv` (`rrdupdate(1)`).
///
/// # Safety
/// `file` is NULL or a C string, `template` too; `argv` is NULL or has `argc` C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_update_r(
    file: *const c_char,
    template: *const c_char,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: the same conditions hold for all arguments.
    unsafe { rrd_updatex_r(file, template, 0, argc, argv) }
}

/// As [`rrd_update_r`], with flags: 1 skips updates that are too old.
///
/// # Safety
/// As [`rrd_update_r`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_updatex_r(
    file: *const c_char,
    template: *const c_char,
    extra_flags: c_int,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    call(-1, |tool| {
        // SAFETY: `file`, `template` and `argv` are as `update_args` requires, by this function's contract.
        let args = unsafe { update_args(file, template, extra_flags, argc, argv)? };
        update_here_first(tool, &args)?;
        Ok(0)
    })
}

/// `rrdupdate(1)` as updatev: the first item is `return_value`. NULL only for arguments that cannot be parsed.
///
/// # Safety
/// `argv` is NULL or has `argc` C strings, the first of which is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_update_v(argc: c_int, argv: *const *const c_char) -> *mut Info {
    let run = |tool: &mut Tool, args: Args<'_>| {
        let written = updatev(tool, args)?;
        let mut list = List::new();
        list.add_integer("return_value", status(&written));
        written.items.iter().for_each(|item| list.add(item));
        Ok(list.into_raw())
    };
    // SAFETY: `argv` has `argc` C strings, by this function's contract.
    unsafe { call_by_words(std::ptr::null_mut(), argc, argv, run) }
}

/// Updates `file` and appends the rows written to `info`.
///
/// # Safety
/// As [`rrd_update_r`]; `info` is NULL or one of our lists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_update_v_r(
    file: *const c_char,
    template: *const c_char,
    argc: c_int,
    argv: *const *const c_char,
    info: *mut Info,
) -> c_int {
    // SAFETY: the same conditions hold for all arguments.
    unsafe { rrd_updatex_v_r(file, template, 0, argc, argv, info) }
}

/// As [`rrd_update_v_r`], with flags.
///
/// # Safety
/// As [`rrd_update_v_r`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_updatex_v_r(
    file: *const c_char,
    template: *const c_char,
    extra_flags: c_int,
    argc: c_int,
    argv: *const *const c_char,
    info: *mut Info,
) -> c_int {
    call(-1, |tool: &mut Tool| {
        // SAFETY: `file`, `template` and `argv` are as `update_args` requires, by this function's contract.
        let args = unsafe { update_args(file, template, extra_flags, argc, argv)? };
        let written = apply(tool, &args)?;
        if !info.is_null() {
            // SAFETY: `info` is NULL or one of our lists, by this function's contract.
            let mut list = unsafe { List::behind(info) };
            written.items.iter().for_each(|item| list.add(item));
        }
        Ok(status(&written))
    })
}

/// 0, or -1 after storing the failure.
fn status(written: &Written) -> c_int {
    match &written.failure {
        None => 0,
        Some(failure) => {
            errors::keep(failure.text());
            -1
        }
    }
}
