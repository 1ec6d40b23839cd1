//! The one place that decides about skipping a test.

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
    let refused = std::env::var_os("ROUNDEL_NO_SKIP").is_some_and(|value| value == "1");
    assert!(!refused, "ROUNDEL_NO_SKIP=1, but this test would be skipped: {reason}");
    // cargo-nextest names the test program; a test in the main thread has no name of its own.
    let program = std::env::var("NEXTEST_BINARY_ID").map_or_else(|_| String::new(), |id| id + " ");
    let thread = std::thread::current();
    let line = format!("{program}{}: {reason}\n", thread.name().unwrap_or("a thread"));
    let file = std::env::var_os("ROUNDEL_SKIPS")
        .and_then(|path| File::options().append(true).create(true).open(path).ok());
    // A single write, so that tests that run side by side do not mix their lines. stderr itself, past the capture of libtest.
    match file {
        Some(mut file) => file.write_all(line.as_bytes()),
        None => io::stderr().write_all(format!("skipped: {line}").as_bytes()),
    }
    .ok();
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// The variables are the process's, so each case runs in a process of its own.
    fn run(variables: &[(&str, &str)]) -> (bool, String) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "skip::tests::skips"]);
        command.env_remove("ROUNDEL_NO_SKIP").env_remove("ROUNDEL_SKIPS").env_remove("NEXTEST_BINARY_ID");
        let output = command.envs(variables.iter().copied()).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    #[test]
    #[ignore = "a process of the test below"]
    fn skips() {
        super::skip("there is no moon");
    }

    #[test]
    fn a_skip_is_a_line_or_a_failure() {
        let (is_good, said) = run(&[]);
        assert!(is_good && said.contains("skip::tests::skips: there is no moon\n"), "{said}");
        assert!(!run(&[("ROUNDEL_NO_SKIP", "1")]).0);
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("skips");
        let variables = [("ROUNDEL_SKIPS", file.to_str().unwrap()), ("NEXTEST_BINARY_ID", "x::y")];
        for _ in 0..2 {
            let (is_good, said) = run(&variables);
            assert!(is_good && !said.contains("moon"), "{said}");
        }
        let line = "x::y skip::tests::skips: there is no moon\n";
        assert_eq!(std::fs::read_to_string(file).unwrap(), [line, line].concat());
    }
}
