//! `rrd_update_r` and its relatives, and the calls that list the rows they wrote.

use std::ffi::{c_char, c_int};

use store::direct::Locking;
use tool::verb::update::{Wish, update_here_first};
use tool::verb::updatev::{Written, apply, updatev};
use tool::{Done, Failure, Tool, Words};

use crate::boundary::{call, call_by_words, list, needed};
use crate::errors;
use crate::info::{Info, List};
use crate::memory::bytes;

/// Bit of `extra_flags`: updates that are too old are passed over.
const SKIP_PAST: c_int = 1;
/// Bits of `extra_flags` that name a way of locking (1.9): 0 = the environment's, then try, block, none.
const LOCKING_SHIFT: c_int = 7;

/// The wish of a call that ends in `_r`.
///
/// # Safety
/// `file` and `template` are NULL or end with NUL; `argv` is NULL or has `argc` C texts.
unsafe fn wish<'a>(
    file: *const c_char,
    template: *const c_char,
    flags: c_int,
    argc: c_int,
    argv: *const *const c_char,
) -> Done<Wish<'a>> {
    // SAFETY: the caller's promise.
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
    Ok(Wish { name, readings, template, skip_past: flags & SKIP_PAST != 0, locking, daemon: None })
}

/// Updates `file` with the readings of `argv` (`rrdupdate(1)`).
///
/// # Safety
/// `file` ends with NUL, `template` too or is NULL; `argv` is NULL or has `argc` C texts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_update_r(
    file: *const c_char,
    template: *const c_char,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { rrd_updatex_r(file, template, 0, argc, argv) }
}

/// The same with flags: 1 passes over updates that are too old.
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
        // SAFETY: the caller's promise.
        let wish = unsafe { wish(file, template, extra_flags, argc, argv)? };
        update_here_first(tool, &wish)?;
        Ok(0)
    })
}

/// `rrdupdate(1)` as updatev: the first item is `return_value`. NULL only for words that cannot be read.
///
/// # Safety
/// `argv` is NULL or has `argc` C texts, the first of which is not looked at.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_update_v(argc: c_int, argv: *const *const c_char) -> *mut Info {
    let run = |tool: &mut Tool, words: Words<'_>| {
        let written = updatev(tool, words)?;
        let mut list = List::new();
        list.add_integer("return_value", status(&written));
        written.items.iter().for_each(|item| list.add(item));
        Ok(list.into_raw())
    };
    // SAFETY: the caller's promise.
    unsafe { call_by_words(std::ptr::null_mut(), argc, argv, run) }
}

/// Updates `file` and appends the rows that were written behind `info`.
///
/// # Safety
/// As [`rrd_update_r`]; `info` is NULL or a list of ours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_update_v_r(
    file: *const c_char,
    template: *const c_char,
    argc: c_int,
    argv: *const *const c_char,
    info: *mut Info,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { rrd_updatex_v_r(file, template, 0, argc, argv, info) }
}

/// The same with flags.
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
        // SAFETY: the caller's promise.
        let wish = unsafe { wish(file, template, extra_flags, argc, argv)? };
        let written = apply(tool, &wish)?;
        if !info.is_null() {
            // SAFETY: the caller's promise.
            let mut list = unsafe { List::behind(info) };
            written.items.iter().for_each(|item| list.add(item));
        }
        Ok(status(&written))
    })
}

/// 0, or -1 with the failure kept.
fn status(written: &Written) -> c_int {
    match &written.failure {
        None => 0,
        Some(failure) => {
            errors::keep(failure.text());
            -1
        }
    }
}
