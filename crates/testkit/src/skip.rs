//! The one place that decides about skipping a test.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

/// Reports why this test is skipped: it needs something that this machine or user lacks (root, IPv6, a peer). The caller
/// then returns.
///
/// The line "test: reason" is added to the file that `ROUNDEL_SKIPS` names, else to `skipped.txt` in cargo's target directory and
/// to stderr, which cargo-nextest hides for a test that passes.
///
/// # Panics
/// When `ROUNDEL_NO_SKIP` is 1, as in CI, or anything else but 0 or nothing: nothing may be skipped there.
pub fn skip(reason: &str) {
    // cargo-nextest names the test program; a test in the main thread has no name of its own.
    let thread = std::thread::current();
    let usual = || crate::peer::target().join("skipped.txt");
    report(thread.name().unwrap_or("a thread"), reason, |name| std::env::var_os(name), usual);
}

/// Reports a skip as the variables of the environment say, by default in the file `usual`.
fn report(
    test: &str,
    reason: &str,
    variable: impl Fn(&str) -> Option<OsString>,
    usual: impl FnOnce() -> PathBuf,
) {
    let is_refused = variable("ROUNDEL_NO_SKIP").is_some_and(|value| !value.is_empty() && value != "0");
    assert!(!is_refused, "ROUNDEL_NO_SKIP is set, but this test would be skipped: {reason}");
    let program =
        variable("NEXTEST_BINARY_ID").map_or_else(String::new, |id| id.to_string_lossy().into_owned() + " ");
    let line = format!("{program}{test}: {reason}\n");
    let named = variable("ROUNDEL_SKIPS").map(PathBuf::from);
    let is_named = named.is_some();
    let path = named.unwrap_or_else(usual);
    let file = File::options().append(true).create(true).open(path);
    // A single write, so that tests that run side by side do not mix their lines.
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    if written.is_err() || !is_named {
        // stderr itself, past the capture of libtest.
        io::stderr().write_all(format!("skipped: {line}").as_bytes()).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::report;

    #[test]
    fn a_skip_is_a_line_in_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("skips");
        let variable = |name: &str| match name {
            "ROUNDEL_SKIPS" => Some(file.clone().into_os_string()),
            "NEXTEST_BINARY_ID" => Some("x::y".into()),
            _ => None,
        };
        let usual = || unreachable!("the variable names another file");
        report("a_test", "there is no moon", variable, usual);
        report("another", "there is no sun", variable, usual);
        let lines = "x::y a_test: there is no moon\nx::y another: there is no sun\n";
        assert_eq!(std::fs::read_to_string(file).unwrap(), lines);
    }

    #[test]
    fn a_skip_is_a_line_in_the_usual_file_without_another() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("skipped.txt");
        report("a_test", "there is no moon", |_| None, || file.clone());
        assert_eq!(std::fs::read_to_string(file).unwrap(), "a_test: there is no moon\n");
    }

    #[test]
    #[should_panic(expected = "ROUNDEL_NO_SKIP is set, but this test would be skipped: there is no moon")]
    fn a_skip_fails_where_nothing_may_be_skipped() {
        let variable = |name: &str| (name == "ROUNDEL_NO_SKIP").then(|| "yes".into());
        report("a_test", "there is no moon", variable, || unreachable!("nothing is written"));
    }
}
