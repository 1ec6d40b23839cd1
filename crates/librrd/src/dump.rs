//! `rrd_dump_r` and its relatives.

use std::ffi::{c_char, c_int, c_void};
use std::io::{self, Write};

use cli::verb::dump::dump;
use cli::{Args, Result, Tool};

use crate::boundary::{Stdout, call, call_by_words, needed};
use crate::memory::bytes;

/// Receives the XML in parts: bytes, their count, and `user`. Returns how many bytes it took.
type Sink = extern "C" fn(*const c_void, usize, *mut c_void) -> usize;

/// `rrddump(1)`
///
/// # Safety
/// `argv` is NULL or has `argc` C strings, the first of which is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_dump(argc: c_int, argv: *const *const c_char) -> c_int {
    // SAFETY: `argv` has `argc` C strings, by this function's contract.
    unsafe { call_by_words(-1, argc, argv, run) }
}

/// Dumps. For C, a file that could not be created is a failure.
fn run(tool: &mut Tool, args: Args<'_>) -> Result<c_int> {
    let unmade = dump(tool, args, &mut Stdout)?;
    Stdout.flush().ok();
    unmade.map_or(Ok(0), Err)
}

/// Dumps `file` to the file `out`, or to standard output when that is NULL. Compat: without a header.
///
/// # Safety
/// `file` is a C string, `out` too or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_dump_r(file: *const c_char, out: *mut c_char) -> c_int {
    // SAFETY: the same conditions hold for `file` and `out`.
    unsafe { rrd_dump_opt_r(file, out, 0) }
}

/// As [`rrd_dump_r`]; `header` is 0 for none, 1 for a DTD, 2 for an XSD.
///
/// # Safety
/// As [`rrd_dump_r`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_dump_opt_r(file: *const c_char, out: *const c_char, header: c_int) -> c_int {
    call(-1, |tool| {
        // SAFETY: `file` and `out` are C strings or NULL, by this function's contract, and outlive the call.
        let (name, out) = unsafe { (needed(file, "file name")?, bytes(out)) };
        tool.environment.daemon = None;
        let mut words: Vec<&[u8]> = vec![b"--header", word(header), b"--", name];
        words.extend(out);
        run(tool, &words)
    })
}

/// As [`rrd_dump_opt_r`], to a function of the caller's.
///
/// # Safety
/// `file` is a C string; `sink` accepts `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_dump_cb_r(
    file: *const c_char,
    header: c_int,
    sink: Option<Sink>,
    user: *mut c_void,
) -> c_int {
    call(-1, |tool| {
        // SAFETY: `file` is a C string or NULL, by this function's contract, and outlives the call.
        let name = unsafe { needed(file, "file name")? };
        let sink = sink.ok_or_else(|| cli::Failure::new("no function to dump to given"))?;
        tool.environment.daemon = None;
        tool.run(b"dump", &[b"--header", word(header), b"--", name], &mut ToSink { sink, user })?;
        Ok(0)
    })
}

fn word(header: c_int) -> &'static [u8] {
    match header {
        0 => b"none",
        2 => b"xsd",
        _ => b"dtd",
    }
}

struct ToSink {
    sink: Sink,
    user: *mut c_void,
}

impl Write for ToSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = (self.sink)(bytes.as_ptr().cast(), bytes.len(), self.user);
        if taken == bytes.len() { Ok(taken) } else { Err(io::Error::other("the caller takes no more")) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
