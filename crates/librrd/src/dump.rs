//! `rrd_dump_r` and its relatives.

use std::ffi::{c_char, c_int, c_void};
use std::io::{self, Write};

use tool::verb::dump::dump;
use tool::{Done, Tool, Words};

use crate::boundary::{Stdout, call, call_by_words, needed};
use crate::memory::bytes;

/// What gets the XML, piece by piece: bytes, how many, and `user`; it gives how many it took.
type Sink = extern "C" fn(*const c_void, usize, *mut c_void) -> usize;

/// `rrddump(1)`
///
/// # Safety
/// `argv` is NULL or has `argc` C texts, the first of which is not looked at.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_dump(argc: c_int, argv: *const *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call_by_words(-1, argc, argv, run) }
}

/// Dumps; to C a file that could not be made is a failure.
fn run(tool: &mut Tool, words: Words<'_>) -> Done<c_int> {
    let unmade = dump(tool, words, &mut Stdout)?;
    Stdout.flush().ok();
    unmade.map_or(Ok(0), Err)
}

/// Dumps `file` to the file `out`, or to standard output where that is NULL. Compat: without a header.
///
/// # Safety
/// `file` ends with NUL, `out` too or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_dump_r(file: *const c_char, out: *mut c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { rrd_dump_opt_r(file, out, 0) }
}

/// The same; `header` is 0 for none, 1 for a DTD, 2 for an XSD.
///
/// # Safety
/// As [`rrd_dump_r`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_dump_opt_r(file: *const c_char, out: *const c_char, header: c_int) -> c_int {
    call(-1, |tool| {
        // SAFETY: the caller's promise.
        let (name, out) = unsafe { (needed(file, "file name")?, bytes(out)) };
        tool.surroundings.daemon = None;
        let mut words: Vec<&[u8]> = vec![b"--header", word(header), b"--", name];
        words.extend(out);
        run(tool, &words)
    })
}

/// The same to a function of the caller's.
///
/// # Safety
/// `file` ends with NUL; `sink` takes `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_dump_cb_r(
    file: *const c_char,
    header: c_int,
    sink: Option<Sink>,
    user: *mut c_void,
) -> c_int {
    call(-1, |tool| {
        // SAFETY: the caller's promise.
        let name = unsafe { needed(file, "file name")? };
        let sink = sink.ok_or_else(|| tool::Failure::new("no function to dump to given"))?;
        tool.surroundings.daemon = None;
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
