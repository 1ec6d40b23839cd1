//! The personalities `rrdtool`, `rrdupdate`, `rrdinfo` and `rrdcreate`.
//!
//! Scripts start them thousands of times, so nothing is set up before the words are looked at: no runtime,
//! no log, no parser of our own options.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use tool::process::{self, Single};

/// Runs what the executable was called by; `None` when that is none of them.
pub fn run(program: &[u8], words: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if program == b"rrdtool" {
        return Some(rrdtool(words.collect()));
    }
    let single = Single::find(program)?;
    let words: Vec<OsString> = words.collect();
    Some(ExitCode::from(process::single(single, &bytes(&words))))
}

/// Runs rrdtool with these words.
pub fn rrdtool(words: Vec<OsString>) -> ExitCode {
    ExitCode::from(process::rrdtool(&bytes(&words)))
}

fn bytes(words: &[OsString]) -> Vec<&[u8]> {
    words.iter().map(|word| word.as_bytes()).collect()
}
