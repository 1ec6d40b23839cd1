//! Calls that only succeed or fail: `int f(int argc, const char **argv)` returns 0 or -1.

use std::ffi::{CStr, c_char, c_int};
use std::io::Write;

use cli::{Args, Tool};

use crate::boundary::{Stdout, call, call_by_words, list, needed};

/// Runs a verb.
///
/// # Safety
/// As [`list`].
unsafe fn run(verb: &CStr, argc: c_int, argv: *const *const c_char) -> c_int {
    let run = |tool: &mut Tool, args: Args<'_>| {
        tool.run(verb.to_bytes(), args, &mut Stdout)?;
        Stdout.flush().ok();
        Ok(0)
    };
    // SAFETY: `argv` is as `list` requires, by this function's contract.
    unsafe { call_by_words(-1, argc, argv, run) }
}

macro_rules! verbs {
    ($($(#[$doc:meta])* $name:ident = $verb:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// `argv` is NULL or has `argc` C strings, the first of which is ignored.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(argc: c_int, argv: *const *const c_char) -> c_int {
            // SAFETY: `argv` has `argc` C strings, by this function's contract.
            unsafe { run($verb, argc, argv) }
        }
    )*};
}

verbs! {
    /// `rrdcreate(1)`
    rrd_create = c"create";
    /// `rrdupdate(1)`
    rrd_update = c"update";
    /// `rrdrestore(1)`
    rrd_restore = c"restore";
    /// `rrdtune(1)`
    rrd_tune = c"tune";
    /// `rrdresize(1)`
    rrd_resize = c"resize";
    /// `rrdflushcached(1)`
    rrd_flushcached = c"flushcached";
    /// `rrdlastupdate(1)`, printed
    rrd_lastupdate = c"lastupdate";
}

/// `rrdtune(1)` of `file` by the arguments in `argv`, including the first.
///
/// # Safety
/// `file` is NULL or a C string; `argv` is NULL or has `argc` C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_tune_r(file: *const c_char, argc: c_int, argv: *const *const c_char) -> c_int {
    call(-1, |tool| {
        // SAFETY: `file` is NULL or a C string and `argv` has `argc` C strings, by this function's contract.
        let (file, rest) = unsafe { (needed(file, "file name")?, list(argc, argv)) };
        let mut args = vec![file];
        args.extend(rest);
        tool.environment.daemon = None;
        tool.run(b"tune", &args, &mut Stdout)?;
        Ok(0)
    })
}
