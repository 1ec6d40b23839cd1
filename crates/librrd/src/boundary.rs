//! The boundary between C and the verbs: arguments in, failures out; no panic crosses it.

use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, Ordering};

use cli::daemon::Link;
use cli::{Args, Environment, Failure, Result, Tool};
use client::Daemons;

use crate::errors;
use crate::memory::bytes;
use crate::sanitizer::LookAway;

thread_local! {
    /// This thread's tool, and the process that made it: a forked child shares no connection with its parent.
    static TOOL: RefCell<Option<(u32, Tool)>> = const { RefCell::new(None) };
}

/// The connections of one process.
struct Connections {
    process: u32,
    daemons: Daemons,
    /// Those of the process it was forked from, reachable so that leak checkers find them.
    _parents: *const Connections,
}

static CONNECTIONS: AtomicPtr<Connections> = AtomicPtr::new(std::ptr::null_mut());

/// The connections of this process. A forked child gets its own and does not touch its parent's, which another of the
/// parent's threads may have been changing.
pub fn daemons() -> &'static Daemons {
    let process = std::process::id();
    let mut kept = CONNECTIONS.load(Ordering::Acquire);
    loop {
        // SAFETY: the pointer is NULL or came from `Box::into_raw` below, and is never freed once it is stored.
        if let Some(connections) = unsafe { kept.as_ref() }
            && connections.process == process
        {
            return &connections.daemons;
        }
        let new =
            Box::into_raw(Box::new(Connections { process, daemons: Daemons::default(), _parents: kept }));
        match CONNECTIONS.compare_exchange(kept, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => kept = new,
            Err(other) => {
                // SAFETY: `new` came from `Box::into_raw`, and as it was not stored, no other thread has seen it.
                drop(unsafe { Box::from_raw(new) });
                kept = other;
            }
        }
    }
}

/// Runs `body` with this thread's tool, as [`guard`] does.
///
/// `body` may call back into C, and C into the library: the inner call gets its own tool.
pub fn call<T>(failed: T, body: impl FnOnce(&mut Tool) -> Result<T>) -> T {
    guard(failed, || {
        let own = std::process::id();
        let kept = TOOL.take().filter(|(process, _)| *process == own);
        let mut tool = kept.map_or_else(new_tool, |(_, tool)| tool);
        // A program may change its environment between two calls.
        tool.environment = Environment::of_process();
        tool.callback = crate::callback::registered();
        let done = body(&mut tool);
        TOOL.replace(Some((own, tool)));
        done
    })
}

fn new_tool() -> Tool {
    let mut tool = Tool::new(Environment::of_process());
    tool.link = Link::sharing(daemons());
    tool
}

/// Runs `body`, which uses no tool. Returns `failed` when it fails or panics, with the text for `rrd_get_error`.
pub fn guard<T>(failed: T, body: impl FnOnce() -> Result<T>) -> T {
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

/// The arguments in `argv`, up to its first NULL.
///
/// # Safety
/// `argv` is NULL, or has `argc` C strings that outlive the result; it may end earlier with NULL.
pub unsafe fn list<'a>(argc: c_int, argv: *const *const c_char) -> Vec<&'a [u8]> {
    if argv.is_null() {
        return Vec::new();
    }
    // SAFETY: `argv` is not NULL here and has `argc` C strings or ends earlier with NULL, where `map_while` stops.
    (0..argc.max(0) as usize).map_while(|index| unsafe { bytes(*argv.add(index)) }).collect()
}

/// Runs `body` with the arguments in `argv`, like [`call`]. Compat: a call that a file has answered because the daemon
/// could not be reached succeeds, and leaves the reason; a usage text names the program by the first of `argv`.
///
/// # Safety
/// As [`list`].
pub unsafe fn call_by_words<T>(
    failed: T,
    argc: c_int,
    argv: *const *const c_char,
    body: impl FnOnce(&mut Tool, Args<'_>) -> Result<T>,
) -> T {
    call(failed, |tool| {
        // SAFETY: `argv` is as `list` requires, by this function's contract.
        let list = unsafe { list(argc, argv) };
        let (name, words) = list.split_first().map_or((&b""[..], &[][..]), |(name, words)| (*name, words));
        // A call that failed for another reason leaves its own.
        tool.link.complaint().ok();
        let value = body(tool, words).map_err(|failure| named(failure, name))?;
        if let Err(complaint) = tool.link.complaint() {
            errors::keep(complaint.text());
        }
        Ok(value)
    })
}

/// A usage text with another program name.
fn named(failure: Failure, name: &[u8]) -> Failure {
    for start in [&b"Usage: rrdtool "[..], b"usage rrdtool "] {
        if let Some(rest) = failure.text().strip_prefix(start) {
            let end = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
            return Failure::new([start, name, &rest[end..]].concat());
        }
    }
    failure
}

/// A required text.
///
/// # Errors
/// The text is NULL.
///
/// # Safety
/// `text` is NULL or a C string that outlives the result.
pub unsafe fn needed<'a>(text: *const c_char, what: &str) -> Result<&'a [u8]> {
    // SAFETY: `text` is NULL or a C string that outlives the result, by this function's contract.
    unsafe { bytes(text) }.ok_or_else(|| Failure::new(format!("no {what} given")))
}

/// Writes through `out` unless it is NULL.
///
/// # Safety
/// `out` is NULL or writable.
pub unsafe fn give<T>(out: *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: `out` is not NULL (checked above) and writable, by this function's contract.
        unsafe { out.write(value) }
    }
}

/// C's standard output: the program's own output stays in order with ours.
pub struct Stdout;

unsafe extern "C" {
    #[link_name = "stdout"]
    static C_STDOUT: *mut libc::FILE;
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: `stdout` is the C library's open stream, and `bytes` has the length that is passed.
        let written = unsafe { libc::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), C_STDOUT) };
        if written == 0 && !bytes.is_empty() { Err(io::Error::last_os_error()) } else { Ok(written) }
    }

    fn flush(&mut self) -> io::Result<()> {
        // SAFETY: `stdout` is the C library's open stream.
        if unsafe { libc::fflush(C_STDOUT) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
