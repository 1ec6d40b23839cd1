//! Memory that callers free: from C's allocator, never Rust's. And the helpers of `rrd.h` for lists of pointers.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Room for `count` values, all zero. Without memory the process ends, as everywhere in Rust.
pub fn zeroed<T>(count: usize) -> *mut T {
    let layout = std::alloc::Layout::array::<T>(count.max(1));
    // SAFETY: `calloc` accepts any two numbers.
    let room = unsafe { libc::calloc(count.max(1), size_of::<T>().max(1)) };
    match layout {
        Ok(_) if !room.is_null() => room.cast(),
        Ok(layout) => std::alloc::handle_alloc_error(layout),
        Err(_) => std::alloc::handle_alloc_error(std::alloc::Layout::new::<T>()),
    }
}

/// A copy of `values`.
pub fn copy<T: Copy>(values: &[T]) -> *mut T {
    let room = zeroed::<T>(values.len());
    // SAFETY: `room` was just allocated for `values.len()` values.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), room, values.len()) };
    room
}

/// A copy of `text`, followed by a NUL; C sees it end at the first NUL.
pub fn text(text: &[u8]) -> *mut c_char {
    let room = zeroed::<u8>(text.len() + 1);
    // SAFETY: `room` was just allocated and is one byte longer than `text`.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), room, text.len()) };
    room.cast()
}

/// A list of copies of texts.
pub fn texts<T: AsRef<[u8]>>(list: &[T]) -> *mut *mut c_char {
    let pointers: Vec<*mut c_char> = list.iter().map(|item| text(item.as_ref())).collect();
    copy(&pointers)
}

/// The bytes of a C string; `None` for NULL.
///
/// # Safety
/// `text` is NULL or a C string that outlives the result.
pub unsafe fn bytes<'a>(text: *const c_char) -> Option<&'a [u8]> {
    // SAFETY: `text` is not NULL here, and a C string that outlives the result, by this function's contract.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// Frees memory that this library returned; NULL is allowed.
///
/// # Safety
/// `memory` came from this library and was not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_freemem(memory: *mut c_void) {
    // SAFETY: everything this library returns is from C's allocator, and `free` accepts NULL.
    unsafe { libc::free(memory) }
}

/// Appends `source` to a list that grows by `chunk`; `allocated` counts its capacity. Returns 1, or 0 without memory.
///
/// # Safety
/// The three pointers are NULL or valid; `*list` is NULL or has room for `*allocated` pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_add_ptr_chunk(
    list: *mut *mut *mut c_void,
    length: *mut usize,
    source: *mut c_void,
    allocated: *mut usize,
    chunk: usize,
) -> c_int {
    if list.is_null() || length.is_null() || allocated.is_null() {
        return 0;
    }
    // SAFETY: the pointers are not NULL (checked above) and valid, by this function's contract; the list grows before
    // anything is written beyond its capacity.
    unsafe {
        if *length >= *allocated || (*list).is_null() {
            let wanted = (*length).saturating_add(chunk.max(1));
            let Some(size) = wanted.checked_mul(size_of::<*mut c_void>()) else { return 0 };
            let room = libc::realloc((*list).cast(), size);
            if room.is_null() {
                return 0;
            }
            *list = room.cast();
            *allocated = wanted;
        }
        *(*list).add(*length) = source;
        *length += 1;
    }
    1
}

/// Appends `source` to a list. Returns 1, or 0 without memory.
///
/// # Safety
/// The two pointers are NULL or valid; `*list` is NULL or has room for `*length` pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_add_ptr(
    list: *mut *mut *mut c_void,
    length: *mut usize,
    source: *mut c_void,
) -> c_int {
    if length.is_null() {
        return 0;
    }
    // SAFETY: as for `rrd_add_ptr_chunk`, with a capacity of `*length`.
    unsafe {
        let mut allocated = *length;
        rrd_add_ptr_chunk(list, length, source, &raw mut allocated, 1)
    }
}

/// Appends a copy of a text to a list that grows by `chunk`. Returns 1, or 0 without memory.
///
/// # Safety
/// As [`rrd_add_ptr_chunk`]; `source` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_add_strdup_chunk(
    list: *mut *mut c_char,
    length: *mut usize,
    source: *mut c_char,
    allocated: *mut usize,
    chunk: usize,
) -> c_int {
    // SAFETY: `source` is NULL or a C string, and the rest as `rrd_add_ptr_chunk` requires, by this function's contract.
    unsafe {
        let Some(bytes) = bytes(source) else { return 0 };
        let copy = text(bytes);
        let done = rrd_add_ptr_chunk(list.cast(), length, copy.cast(), allocated, chunk);
        if done == 0 {
            libc::free(copy.cast());
        }
        done
    }
}

/// Appends a copy of a text to a list. Returns 1, or 0 without memory.
///
/// # Safety
/// As [`rrd_add_ptr`]; `source` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_add_strdup(
    list: *mut *mut c_char,
    length: *mut usize,
    source: *mut c_char,
) -> c_int {
    if length.is_null() {
        return 0;
    }
    // SAFETY: as for `rrd_add_strdup_chunk`, with a capacity of `*length`.
    unsafe {
        let mut allocated = *length;
        rrd_add_strdup_chunk(list, length, source, &raw mut allocated, 1)
    }
}

/// Frees all texts of a list, and the list.
///
/// # Safety
/// `*list` has `*length` pointers, each NULL or from C's allocator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_free_ptrs(list: *mut *mut *mut c_void, length: *mut usize) {
    if list.is_null() || length.is_null() {
        return;
    }
    // SAFETY: the pointers are not NULL (checked above), and `*list` has `*length` pointers that are NULL or from C's
    // allocator, by this function's contract.
    unsafe {
        for index in 0..*length {
            libc::free(*(*list).add(index));
        }
        libc::free((*list).cast());
        *list = std::ptr::null_mut();
        *length = 0;
    }
}

/// Makes a directory and its parents. Returns 0 when it exists then, or -1 with `errno`.
///
/// # Safety
/// `path` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_mkdir_p(path: *const c_char, mode: libc::mode_t) -> c_int {
    use std::os::unix::fs::DirBuilderExt;
    // SAFETY: `path` is NULL or a C string, by this function's contract, and outlives the call.
    let Some(path) = (unsafe { bytes(path) }) else { return -1 };
    let made =
        std::fs::DirBuilder::new().recursive(true).mode(mode).create(Path::new(OsStr::from_bytes(path)));
    match made {
        Ok(()) => 0,
        Err(error) => {
            // SAFETY: `__errno_location` returns the address of this thread's `errno`.
            unsafe { *libc::__errno_location() = error.raw_os_error().unwrap_or(libc::EIO) };
            -1
        }
    }
}
