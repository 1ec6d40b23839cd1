//! Reading an RRD's state: info, first, last, lastupdate, list.

use std::ffi::{c_char, c_int, c_ulong};
use std::io::{self, Write};

use cli::verb::first::first;
use cli::verb::info::info;
use cli::verb::last::last;
use cli::verb::lastupdate::lastupdate_here_first;
use cli::verb::list::list as list_directory;
use cli::{Result, Tool};

use crate::boundary::{call, call_by_words, give, needed};
use crate::info::{Info, List};
use crate::memory;

/// Arguments of a call that ends in `_r`: a name that cannot be taken for an option.
fn only(name: &[u8]) -> [&[u8]; 2] {
    [b"--", name]
}

/// `rrdinfo(1)`; NULL for an error.
///
/// # Safety
/// `argv` is NULL or has `argc` C strings, the first of which is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_info(argc: c_int, argv: *const *const c_char) -> *mut Info {
    // SAFETY: `argv` has `argc` C strings, by this function's contract.
    unsafe {
        call_by_words(std::ptr::null_mut(), argc, argv, |tool, words| {
            Ok(info(tool, "info", words)?.iter().collect::<List>().into_raw())
        })
    }
}

/// As [`rrd_info`], for `file`.
///
/// # Safety
/// `file` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_info_r(file: *const c_char) -> *mut Info {
    call(std::ptr::null_mut(), |tool| {
        // SAFETY: `file` is NULL or a C string, by this function's contract.
        let name = unsafe { needed(file, "file name")? };
        tool.environment.daemon = None;
        Ok(info(tool, "info", &only(name))?.iter().collect::<List>().into_raw())
    })
}

/// `rrdlast(1)`, in whole seconds, rounded down; -1 for an error.
///
/// # Safety
/// As [`rrd_info`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_last(argc: c_int, argv: *const *const c_char) -> libc::time_t {
    // SAFETY: `argv` has `argc` C strings, by this function's contract.
    unsafe { call_by_words(-1, argc, argv, |tool, words| Ok(last(tool, words)?.second())) }
}

/// As [`rrd_last`], for `file`.
///
/// # Safety
/// `file` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_last_r(file: *const c_char) -> libc::time_t {
    call(-1, |tool| {
        // SAFETY: `file` is NULL or a C string, by this function's contract.
        let name = unsafe { needed(file, "file name")? };
        tool.environment.daemon = None;
        Ok(last(tool, &only(name))?.second())
    })
}

/// `rrdfirst(1)`, in whole seconds, rounded down; -1 for an error.
///
/// # Safety
/// As [`rrd_info`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_first(argc: c_int, argv: *const *const c_char) -> libc::time_t {
    // SAFETY: `argv` has `argc` C strings, by this function's contract.
    unsafe { call_by_words(-1, argc, argv, |tool, words| Ok(first(tool, words)?.second())) }
}

/// As [`rrd_first`], for `file` and the archive with this index.
///
/// # Safety
/// `file` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_first_r(file: *const c_char, rra: c_int) -> libc::time_t {
    call(-1, |tool| {
        // SAFETY: `file` is NULL or a C string, by this function's contract.
        let name = unsafe { needed(file, "file name")? };
        tool.environment.daemon = None;
        let index = rra.to_string();
        Ok(first(tool, &[b"--rraindex", index.as_bytes(), b"--", name])?.second())
    })
}

/// `rrdlastupdate(1)` of `file`: its time, and the name and last reading of each data source, which the caller frees.
///
/// # Safety
/// `file` is NULL or a C string; the other pointers are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_lastupdate_r(
    file: *const c_char,
    time: *mut libc::time_t,
    count: *mut c_ulong,
    names: *mut *mut *mut c_char,
    readings: *mut *mut *mut c_char,
) -> c_int {
    // SAFETY: the output pointers are NULL or writable, by this function's contract; `give` skips NULL.
    unsafe {
        give(count, 0);
        give(names, std::ptr::null_mut());
        give(readings, std::ptr::null_mut());
    }
    call(-1, |tool| {
        // SAFETY: `file` is NULL or a C string, by this function's contract.
        let name = unsafe { needed(file, "file name")? };
        let last = lastupdate_here_first(tool, name)?;
        let (ds, texts): (Vec<String>, Vec<Vec<u8>>) = last.readings.into_iter().unzip();
        // SAFETY: as above, for the output pointers.
        unsafe {
            give(time, last.time.second());
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

/// `rrdlist(1)`: names separated by line feeds, which the caller frees; NULL for an error. A directory that cannot be
/// read is no error: it has no names, and standard error says why.
///
/// # Safety
/// As [`rrd_info`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_list(argc: c_int, argv: *const *const c_char) -> *mut c_char {
    // SAFETY: `argv` has `argc` C strings, by this function's contract.
    unsafe { call_by_words(std::ptr::null_mut(), argc, argv, names) }
}

/// As [`rrd_list`], for `directory` on this host.
///
/// # Safety
/// `directory` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_list_r(recursive: c_int, directory: *const c_char) -> *mut c_char {
    call(std::ptr::null_mut(), |tool| {
        // SAFETY: `directory` is NULL or a C string, by this function's contract.
        let directory = unsafe { needed(directory, "directory")? };
        tool.environment.daemon = None;
        let args: &[&[u8]] = if recursive == 0 { &[b"--", directory] } else { &[b"-r", b"--", directory] };
        names(tool, args)
    })
}

fn names(tool: &mut Tool, words: &[&[u8]]) -> Result<*mut c_char> {
    // Compat: nothing to list is no error, and the reason goes to standard error. RRDtool's library then returns NULL,
    // of which Perl's module makes a crash.
    let listed = list_directory(tool, words)?.unwrap_or_else(|error| {
        io::stderr().write_all(cli::failure::system_text(&error).as_bytes()).ok();
        Vec::new()
    });
    Ok(memory::text(&listed))
}
