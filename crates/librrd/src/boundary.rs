//! Between C and the verbs: words in, failures out, and no panic across.

use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, Ordering};

use tool::daemon::Link;
use tool::daemon::group::Groups;
use tool::{Done, Failure, Surroundings, Tool, Words};

use crate::errors;
use crate::memory::bytes;
use crate::sanitizer::LookAway;

thread_local! {
    /// This thread's tool, and the process it was made in: a connection is not shared with a parent.
    static TOOL: RefCell<Option<(u32, Tool)>> = const { RefCell::new(None) };
}

/// The connections of one process.
struct Connections {
    process: u32,
    groups: Groups,
    /// Those of the process it was forked from: kept where tools that look for lost memory find them.
    _parents: *const Connections,
}

static CONNECTIONS: AtomicPtr<Connections> = AtomicPtr::new(std::ptr::null_mut());

/// The connections of this process. A child of a fork gets its own, and touches nothing of its parent's: another of
/// the parent's threads may have been in the middle of it.
pub fn groups() -> &'static Groups {
    let process = std::process::id();
    let mut kept = CONNECTIONS.load(Ordering::Acquire);
    loop {
        // SAFETY: what was put there is never freed.
        if let Some(connections) = unsafe { kept.as_ref() }
            && connections.process == process
        {
            return &connections.groups;
        }
        let new = Box::into_raw(Box::new(Connections { process, groups: Groups::default(), _parents: kept }));
        match CONNECTIONS.compare_exchange(kept, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => kept = new,
            Err(other) => {
                // SAFETY: nobody else has seen it.
                drop(unsafe { Box::from_raw(new) });
                kept = other;
            }
        }
    }
}

/// Runs `body` with this thread's tool, as [`guard`] does.
///
/// `body` may call back into C, and C into the library: the inner call gets a tool of its own.
pub fn call<T>(failed: T, body: impl FnOnce(&mut Tool) -> Done<T>) -> T {
    guard(failed, || {
        let own = std::process::id();
        let kept = TOOL.take().filter(|(process, _)| *process == own);
        let mut tool = kept.map_or_else(new_tool, |(_, tool)| tool);
        // A program may set the variables of its environment between two calls.
        tool.surroundings = Surroundings::of_process();
        tool.callback = crate::callback::registered();
        let done = body(&mut tool);
        TOOL.replace(Some((own, tool)));
        done
    })
}

fn new_tool() -> Tool {
    let mut tool = Tool::new(Surroundings::of_process());
    tool.link = Link::sharing(groups());
    tool
}

/// Runs `body`, which touches no tool; what it gives when it fails or panics is `failed`, with the text kept for
/// `rrd_get_error`.
pub fn guard<T>(failed: T, body: impl FnOnce() -> Done<T>) -> T {
    let _away = LookAway::begin();
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => return value,
        Ok(Err(failure)) => errors::keep(failure.text()),
        Err(_) => {
            errors::keep(b"librrd: a bug of Roundel stopped this call; please report what was asked for")
        }
    }
    failed
}

/// The words of `argv`, up to its first NULL.
///
/// # Safety
/// `argv` is NULL or has `argc` texts or NULLs that outlive the result.
pub unsafe fn list<'a>(argc: c_int, argv: *const *const c_char) -> Vec<&'a [u8]> {
    if argv.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller's promise.
    (0..argc.max(0) as usize).map_while(|index| unsafe { bytes(*argv.add(index)) }).collect()
}

/// Runs `body` with the words of `argv` as [`call`] does, and tells what the daemon could not. Compat: a usage text
/// calls the program by the first of `argv`.
///
/// # Safety
/// As [`list`].
pub unsafe fn call_by_words<T>(
    failed: T,
    argc: c_int,
    argv: *const *const c_char,
    body: impl FnOnce(&mut Tool, Words<'_>) -> Done<T>,
) -> T {
    call(failed, |tool| {
        // SAFETY: the caller's promise.
        let list = unsafe { list(argc, argv) };
        let (name, words) = list.split_first().map_or((&b""[..], &[][..]), |(name, words)| (*name, words));
        let value = body(tool, words).map_err(|failure| named(failure, name))?;
        tool.link.complaint()?;
        Ok(value)
    })
}

/// A usage text with another name of the program.
fn named(failure: Failure, name: &[u8]) -> Failure {
    for start in [&b"Usage: rrdtool "[..], b"usage rrdtool "] {
        if let Some(rest) = failure.text().strip_prefix(start) {
            let behind = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
            return Failure::new([start, name, &rest[behind..]].concat());
        }
    }
    failure
}

/// A text that has to be there.
///
/// # Errors
/// NULL.
///
/// # Safety
/// `text` is NULL or ends with NUL and outlives the result.
pub unsafe fn needed<'a>(text: *const c_char, what: &str) -> Done<&'a [u8]> {
    // SAFETY: the caller's promise.
    unsafe { bytes(text) }.ok_or_else(|| Failure::new(format!("no {what} given")))
}

/// Writes through `out` unless it is NULL.
///
/// # Safety
/// `out` is NULL or can be written.
pub unsafe fn give<T>(out: *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: the caller's promise.
        unsafe { out.write(value) }
    }
}

/// C's standard output: what a program prints itself stays in order with what we print.
pub struct Stdout;

unsafe extern "C" {
    #[link_name = "stdout"]
    static C_STDOUT: *mut libc::FILE;
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: the C library's own stream, and bytes of the length given.
        let written = unsafe { libc::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), C_STDOUT) };
        if written == 0 && !bytes.is_empty() { Err(io::Error::last_os_error()) } else { Ok(written) }
    }

    fn flush(&mut self) -> io::Result<()> {
        // SAFETY: the C library's own stream.
        if unsafe { libc::fflush(C_STDOUT) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
