//! Calls that only succeed or fail: `int f(int argc, const char **argv)`, 0 or -1.

use std::ffi::{CStr, c_char, c_int};
use std::io::Write;

use tool::{Tool, Words};

use crate::boundary::{Stdout, call, call_by_words, list, needed};

/// Runs a verb.
///
/// # Safety
/// As [`list`].
unsafe fn run(verb: &CStr, argc: c_int, argv: *const *const c_char) -> c_int {
    let run = |tool: &mut Tool, words: Words<'_>| {
        tool.run(verb.to_bytes(), words, &mut Stdout)?;
        Stdout.flush().ok();
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { call_by_words(-1, argc, argv, run) }
}

macro_rules! verbs {
    ($($(#[$doc:meta])* $name:ident = $verb:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// `argv` is NULL or has `argc` C texts, the first of which is not looked at.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(argc: c_int, argv: *const *const c_char) -> c_int {
            // SAFETY: the caller's promise.
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

/// `rrdtune(1)` of `file` by the words of `argv`, all of which count.
///
/// # Safety
/// `file` ends with NUL; `argv` is NULL or has `argc` C texts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_tune_r(file: *const c_char, argc: c_int, argv: *const *const c_char) -> c_int {
    call(-1, |tool| {
        // SAFETY: the caller's promise.
        let (file, rest) = unsafe { (needed(file, "file name")?, list(argc, argv)) };
        let mut words = vec![file];
        words.extend(rest);
        tool.surroundings.daemon = None;
        tool.run(b"tune", &words, &mut Stdout)?;
        Ok(0)
    })
}
