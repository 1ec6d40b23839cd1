//! The error text of each thread, and the functions of `rrd.h` about it.
//!
//! A failure's text stays until the next failure or until the caller clears it; a success changes nothing.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int};

use crate::memory;

/// Bytes of the text, including its NUL.
const TEXT_BYTES: usize = 4096;

/// `rrd_context_t`
#[repr(C)]
pub struct Context {
    system: [c_char; 256],
    text: [c_char; TEXT_BYTES],
}

impl Context {
    const EMPTY: Context = Context { system: [0; 256], text: [0; TEXT_BYTES] };
}

thread_local! {
    static CONTEXT: UnsafeCell<Context> = const { UnsafeCell::new(Context::EMPTY) };
}

fn context() -> *mut Context {
    CONTEXT.with(UnsafeCell::get)
}

/// Stores `text` for `rrd_get_error`, truncated if it does not fit.
pub fn keep(text: &[u8]) {
    let length = text.len().min(TEXT_BYTES - 1);
    let context = context();
    // SAFETY: the context belongs to this thread, no reference to it is held while C code runs, and `length` leaves
    // room for the NUL.
    unsafe {
        let out = (&raw mut (*context).text).cast::<u8>();
        std::ptr::copy(text.as_ptr(), out, length);
        *out.add(length) = 0;
    }
}

/// The stored text.
pub fn current() -> Vec<u8> {
    // SAFETY: as in `keep`; `keep` ends the text with a NUL.
    unsafe { CStr::from_ptr((&raw const (*context()).text).cast()) }.to_bytes().to_vec()
}

/// Stores a text for `rrd_get_error`; `rrd_set_error` calls it.
///
/// # Safety
/// `text` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundel_keep_error(text: *const c_char) {
    // SAFETY: `rrd_set_error`'s C half passes the buffer it has just formatted, which ends with a NUL.
    keep(unsafe { CStr::from_ptr(text) }.to_bytes());
}

unsafe extern "C" {
    fn roundel_set_error();
    fn roundel_snprintf();
}

/// `void rrd_set_error(char *fmt, ...)`: passes its arguments on to C unchanged.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn rrd_set_error() {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!("jmp {}", sym roundel_set_error);
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!("b {}", sym roundel_set_error);
}

/// `int rrd_snprintf(char *, size_t, const char *, ...)`: passes its arguments on to C unchanged.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn rrd_snprintf() {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!("jmp {}", sym roundel_snprintf);
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!("b {}", sym roundel_snprintf);
}

/// Clears this thread's error.
#[unsafe(no_mangle)]
pub extern "C" fn rrd_clear_error() {
    keep(b"");
}

/// 1 when this thread has an error, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn rrd_test_error() -> c_int {
    // SAFETY: as in `keep`.
    c_int::from(unsafe { (*context()).text[0] != 0 })
}

/// This thread's error text; empty when there is none. Never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn rrd_get_error() -> *mut c_char {
    // SAFETY: takes the address of a field of this thread's context, without reading it.
    unsafe { (&raw mut (*context()).text).cast() }
}

/// This thread's context.
#[unsafe(no_mangle)]
pub extern "C" fn rrd_get_context() -> *mut Context {
    context()
}

/// A new, empty context, to be freed with `rrd_free_context`.
#[unsafe(no_mangle)]
pub extern "C" fn rrd_new_context() -> *mut Context {
    memory::zeroed(1)
}

/// Frees a context from `rrd_new_context`.
///
/// # Safety
/// `context` came from `rrd_new_context`, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_free_context(context: *mut Context) {
    // SAFETY: `rrd_new_context` allocates with C's allocator, and `free` accepts NULL.
    unsafe { libc::free(context.cast()) }
}

/// The C library's text for a system error.
#[unsafe(no_mangle)]
pub extern "C" fn rrd_strerror(number: c_int) -> *const c_char {
    let context = context();
    // SAFETY: the buffer belongs to this thread, has the length that is passed, and always ends with a NUL.
    unsafe {
        let system = (&raw mut (*context).system).cast::<c_char>();
        if libc::strerror_r(number, system, 256) != 0 {
            std::ptr::copy(c"Unknown error".as_ptr(), system, 14);
        }
        system
    }
}
