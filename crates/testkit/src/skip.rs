//! The one place that decides about skipping a test.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};

/// Reports why this test is skipped: it needs something that this machine or user lacks (root, IPv6, a peer). The caller
/// then returns.
///
/// The line "test: reason" goes to the file that `ROUNDEL_SKIPS` names, else to stderr.
///
/// # Panics
/// When `ROUNDEL_NO_SKIP` is 1, as in CI: nothing may be skipped there.
pub fn skip(reason: &str) {
    // cargo-nextest names the test program; a test in the main thread has no name of its own.
    let thread = std::thread::current();
    report(thread.name().unwrap_or("a thread"), reason, |name| std::env::var_os(name));
}

/// Reports a skip as the variables of the environment say.
fn report(test: &str, reason: &str, variable: impl Fn(&str) -> Option<OsString>) {
    let is_refused = variable("ROUNDEL_NO_SKIP").is_some_and(|value| value == "1");
    assert!(!is_refused, "ROUNDEL_NO_SKIP=1, but this test would be skipped: {reason}");
    let program =
        variable("NEXTEST_BINARY_ID").map_or_else(String::new, |id| id.to_string_lossy().into_owned() + " ");
    let line = format!("{program}{test}: {reason}\n");
    let file =
        variable("ROUNDEL_SKIPS").and_then(|path| File::options().append(true).create(true).open(path).ok());
    // A single write, so that tests that run side by side do not mix their lines. stderr itself, past the capture of libtest.
    match file {
        Some(mut file) => file.write_all(line.as_bytes()),
        None => io::stderr().write_all(format!("skipped: {line}").as_bytes()),
    }
    .ok();
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
        report("a_test", "there is no moon", variable);
        report("another", "there is no sun", variable);
        let lines = "x::y a_test: there is no moon\nx::y another: there is no sun\n";
        assert_eq!(std::fs::read_to_string(file).unwrap(), lines);
    }

    #[test]
    #[should_panic(expected = "ROUNDEL_NO_SKIP=1, but this test would be skipped: there is no moon")]
    fn a_skip_fails_where_nothing_may_be_skipped() {
        report("a_test", "there is no moon", |name| (name == "ROUNDEL_NO_SKIP").then(|| "1".into()));
    }
}
