//! Memory that callers free: C's, never Rust's; and the helpers of `rrd.h` about lists of pointers.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Room for `count` values, all zero; the process ends when there is none, as Rust does everywhere.
pub fn zeroed<T>(count: usize) -> *mut T {
    let layout = std::alloc::Layout::array::<T>(count.max(1));
    // SAFETY: calloc takes any two numbers.
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
    // SAFETY: the room is new and large enough.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), room, values.len()) };
    room
}

/// A copy of `text` with a NUL behind it; it ends at a NUL of its own.
pub fn text(text: &[u8]) -> *mut c_char {
    let room = zeroed::<u8>(text.len() + 1);
    // SAFETY: the room is new and one byte longer.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), room, text.len()) };
    room.cast()
}

/// A list of copies of texts.
pub fn texts<T: AsRef<[u8]>>(list: &[T]) -> *mut *mut c_char {
    let pointers: Vec<*mut c_char> = list.iter().map(|item| text(item.as_ref())).collect();
    copy(&pointers)
}

/// The bytes of a C text; `None` for NULL.
///
/// # Safety
/// `text` is NULL or ends with NUL and outlives the result.
pub unsafe fn bytes<'a>(text: *const c_char) -> Option<&'a [u8]> {
    // SAFETY: the caller's promise.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// Frees what a function of this library gave; NULL is nothing.
///
/// # Safety
/// `memory` came from there and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_freemem(memory: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { libc::free(memory) }
}

/// Appends `source` to a list that grows by `chunk`; `allocated` counts its room. 1 = good, 0 = no memory.
///
/// # Safety
/// The three pointers are good; `*list` is NULL or has room for `*allocated`.
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
    // SAFETY: the caller's promise; the room is made before it is written.
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

/// Appends `source` to a list. 1 = good, 0 = no memory.
///
/// # Safety
/// The two pointers are good; `*list` is NULL or has room for `*length`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_add_ptr(
    list: *mut *mut *mut c_void,
    length: *mut usize,
    source: *mut c_void,
) -> c_int {
    if length.is_null() {
        return 0;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let mut allocated = *length;
        rrd_add_ptr_chunk(list, length, source, &raw mut allocated, 1)
    }
}

/// Appends a copy of a text to a list that grows by `chunk`. 1 = good, 0 = no memory.
///
/// # Safety
/// As [`rrd_add_ptr_chunk`]; `source` ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_add_strdup_chunk(
    list: *mut *mut c_char,
    length: *mut usize,
    source: *mut c_char,
    allocated: *mut usize,
    chunk: usize,
) -> c_int {
    // SAFETY: the caller's promise.
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

/// Appends a copy of a text to a list. 1 = good, 0 = no memory.
///
/// # Safety
/// As [`rrd_add_ptr`]; `source` ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_add_strdup(
    list: *mut *mut c_char,
    length: *mut usize,
    source: *mut c_char,
) -> c_int {
    if length.is_null() {
        return 0;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let mut allocated = *length;
        rrd_add_strdup_chunk(list, length, source, &raw mut allocated, 1)
    }
}

/// Frees all texts of a list and the list.
///
/// # Safety
/// `*list` has `*length` pointers, each NULL or from C's allocator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_free_ptrs(list: *mut *mut *mut c_void, length: *mut usize) {
    if list.is_null() || length.is_null() {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        for index in 0..*length {
            libc::free(*(*list).add(index));
        }
        libc::free((*list).cast());
        *list = std::ptr::null_mut();
        *length = 0;
    }
}

/// Makes a directory and those above it. 0 = good or there already, -1 = not (`errno`).
///
/// # Safety
/// `path` ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_mkdir_p(path: *const c_char, mode: libc::mode_t) -> c_int {
    use std::os::unix::fs::DirBuilderExt;
    // SAFETY: the caller's promise.
    let Some(path) = (unsafe { bytes(path) }) else { return -1 };
    let made =
        std::fs::DirBuilder::new().recursive(true).mode(mode).create(Path::new(OsStr::from_bytes(path)));
    match made {
        Ok(()) => 0,
        Err(error) => {
            // SAFETY: the address of this thread's errno.
            unsafe { *libc::__errno_location() = error.raw_os_error().unwrap_or(libc::EIO) };
            -1
        }
    }
}
