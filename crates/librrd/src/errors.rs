//! The error text of each thread, and the functions of `rrd.h` about it.
//!
//! A failure leaves its text until the next one or until the caller clears it; a success changes nothing.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int};

use crate::memory;

/// Bytes of the text, with its end.
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

/// Keeps `text` for `rrd_get_error`; what does not fit is cut.
pub fn keep(text: &[u8]) {
    let length = text.len().min(TEXT_BYTES - 1);
    let context = context();
    // SAFETY: the context is this thread's own, no reference to it is held while C code runs, and `length`
    // leaves room for the end.
    unsafe {
        let out = (&raw mut (*context).text).cast::<u8>();
        std::ptr::copy(text.as_ptr(), out, length);
        *out.add(length) = 0;
    }
}

/// The text that is kept.
pub fn current() -> Vec<u8> {
    // SAFETY: as in `keep`; the text ends with NUL.
    unsafe { CStr::from_ptr((&raw const (*context()).text).cast()) }.to_bytes().to_vec()
}

/// Keeps a text for `rrd_get_error`: what `rrd_set_error` calls.
///
/// # Safety
/// `text` ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundel_keep_error(text: *const c_char) {
    // SAFETY: the caller's promise.
    keep(unsafe { CStr::from_ptr(text) }.to_bytes());
}

unsafe extern "C" {
    fn roundel_set_error();
    fn roundel_snprintf();
}

/// `void rrd_set_error(char *fmt, ...)`: the arguments go on to C as they are.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn rrd_set_error() {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!("jmp {}", sym roundel_set_error);
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!("b {}", sym roundel_set_error);
}

/// `int rrd_snprintf(char *, size_t, const char *, ...)`: the same.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn rrd_snprintf() {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!("jmp {}", sym roundel_snprintf);
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!("b {}", sym roundel_snprintf);
}

/// Forgets the error of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn rrd_clear_error() {
    keep(b"");
}

/// 1 when this thread has an error, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn rrd_test_error() -> c_int {
    // SAFETY: as in `keep`.
    c_int::from(unsafe { (*context()).text[0] != 0 })
}

/// The error of this thread; empty when there is none. Never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn rrd_get_error() -> *mut c_char {
    // SAFETY: the address of a field of this thread's context.
    unsafe { (&raw mut (*context()).text).cast() }
}

/// The context of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn rrd_get_context() -> *mut Context {
    context()
}

/// A context of its own, empty, for `rrd_free_context`.
#[unsafe(no_mangle)]
pub extern "C" fn rrd_new_context() -> *mut Context {
    memory::zeroed(1)
}

/// Frees what `rrd_new_context` gave.
///
/// # Safety
/// `context` came from there, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_free_context(context: *mut Context) {
    // SAFETY: the caller's promise.
    unsafe { libc::free(context.cast()) }
}

/// What the C library calls an error of the system.
#[unsafe(no_mangle)]
pub extern "C" fn rrd_strerror(number: c_int) -> *const c_char {
    let context = context();
    // SAFETY: the buffer is this thread's, of the length given, and ends with NUL whatever happens.
    unsafe {
        let system = (&raw mut (*context).system).cast::<c_char>();
        if libc::strerror_r(number, system, 256) != 0 {
            std::ptr::copy(c"Unknown error".as_ptr(), system, 14);
        }
        system
    }
}
