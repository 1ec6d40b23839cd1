//! What an RRD is and when it was updated: info, first, last, lastupdate, list.

use std::ffi::{c_char, c_int, c_ulong};

use tool::verb::first::first;
use tool::verb::info::info;
use tool::verb::last::last;
use tool::verb::lastupdate::lastupdate;
use tool::verb::list::list as list_directory;
use tool::{Done, Failure, Tool};

use crate::boundary::{call, call_by_words, give, needed};
use crate::info::{Info, List};
use crate::memory;

/// Words of a call that ends in `_r`: a name that no option can be.
fn only(name: &[u8]) -> [&[u8]; 2] {
    [b"--", name]
}

/// `rrdinfo(1)`; NULL when it fails.
///
/// # Safety
/// `argv` is NULL or has `argc` C texts, the first of which is not looked at.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_info(argc: c_int, argv: *const *const c_char) -> *mut Info {
    // SAFETY: the caller's promise.
    unsafe {
        call_by_words(std::ptr::null_mut(), argc, argv, |tool, words| {
            Ok(info(tool, "info", words)?.iter().collect::<List>().into_raw())
        })
    }
}

/// The same of `file`.
///
/// # Safety
/// `file` ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_info_r(file: *const c_char) -> *mut Info {
    call(std::ptr::null_mut(), |tool| {
        // SAFETY: the caller's promise.
        let name = unsafe { needed(file, "file name")? };
        tool.surroundings.daemon = None;
        Ok(info(tool, "info", &only(name))?.iter().collect::<List>().into_raw())
    })
}

/// `rrdlast(1)`; -1 when it fails.
///
/// # Safety
/// As [`rrd_info`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_last(argc: c_int, argv: *const *const c_char) -> libc::time_t {
    // SAFETY: the caller's promise.
    unsafe { call_by_words(-1, argc, argv, last) }
}

/// The same of `file`.
///
/// # Safety
/// `file` ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_last_r(file: *const c_char) -> libc::time_t {
    call(-1, |tool| {
        // SAFETY: the caller's promise.
        let name = unsafe { needed(file, "file name")? };
        tool.surroundings.daemon = None;
        last(tool, &only(name))
    })
}

/// `rrdfirst(1)`; -1 when it fails.
///
/// # Safety
/// As [`rrd_info`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_first(argc: c_int, argv: *const *const c_char) -> libc::time_t {
    // SAFETY: the caller's promise.
    unsafe { call_by_words(-1, argc, argv, first) }
}

/// The same of `file` and the archive of this index.
///
/// # Safety
/// `file` ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_first_r(file: *const c_char, rra: c_int) -> libc::time_t {
    call(-1, |tool| {
        // SAFETY: the caller's promise.
        let name = unsafe { needed(file, "file name")? };
        tool.surroundings.daemon = None;
        let index = rra.to_string();
        first(tool, &[b"--rraindex", index.as_bytes(), b"--", name])
    })
}

/// `rrdlastupdate(1)` of `file`: its time, and name and reading of each data source, the caller's to free.
///
/// # Safety
/// `file` ends with NUL; the other pointers can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_lastupdate_r(
    file: *const c_char,
    time: *mut libc::time_t,
    count: *mut c_ulong,
    names: *mut *mut *mut c_char,
    readings: *mut *mut *mut c_char,
) -> c_int {
    // SAFETY: the caller's promise. As `Slots::clear`.
    unsafe {
        give(count, 0);
        give(names, std::ptr::null_mut());
        give(readings, std::ptr::null_mut());
    }
    call(-1, |tool| {
        // SAFETY: the caller's promise.
        let name = unsafe { needed(file, "file name")? };
        tool.surroundings.daemon = None;
        let last = lastupdate(tool, &only(name))?;
        let (ds, texts): (Vec<String>, Vec<Vec<u8>>) = last.readings.into_iter().unzip();
        // SAFETY: the caller's promise.
        unsafe {
            give(time, last.time);
            give(count, ds.len() as c_ulong);
            if !names.is_null() {
                names.write(memory::texts(&ds));
            }
            if !readings.is_null() {
                readings.write(memory::texts(&texts));
            }
        }
        Ok(0)
    })
}

/// `rrdlist(1)`: names with line feeds between them, the caller's to free; NULL when it fails.
///
/// # Safety
/// As [`rrd_info`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_list(argc: c_int, argv: *const *const c_char) -> *mut c_char {
    // SAFETY: the caller's promise.
    unsafe { call_by_words(std::ptr::null_mut(), argc, argv, names) }
}

/// The same of `directory` on this host.
///
/// # Safety
/// `directory` ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_list_r(recursive: c_int, directory: *const c_char) -> *mut c_char {
    call(std::ptr::null_mut(), |tool| {
        // SAFETY: the caller's promise.
        let directory = unsafe { needed(directory, "directory")? };
        tool.surroundings.daemon = None;
        let words: &[&[u8]] = if recursive == 0 { &[b"--", directory] } else { &[b"-r", b"--", directory] };
        names(tool, words)
    })
}

fn names(tool: &mut Tool, words: &[&[u8]]) -> Done<*mut c_char> {
    let listed = list_directory(tool, words)?;
    let listed = listed.map_err(|error| Failure::new(tool::failure::system_text(&error)))?;
    Ok(memory::text(&listed))
}
