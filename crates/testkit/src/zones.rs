//! Tests in several time zones: a process has one zone, so each zone is a run of its own.

use std::env;
use std::process::Command;

/// The zone, set for the runs that compare.
const ZONE: &str = "ROUNDEL_TEST_ZONE";

/// Runs the test `test`, which calls this, again in each of these time zones, and returns `None`.
///
/// Returns the zone in those runs, in which the test goes on.
///
/// # Panics
/// If the test fails in a zone, or there is no test of this name.
#[must_use]
pub fn in_zones(test: &str, zones: &[&str]) -> Option<String> {
    if let Ok(zone) = env::var(ZONE) {
        return Some(zone);
    }
    let program = env::current_exe().expect("a test knows its program");
    for zone in zones {
        let mut run = Command::new(&program);
        run.args(["--exact", test, "--nocapture"]).env("TZ", zone).env(ZONE, zone);
        let output = run.output().expect("a test can be run again");
        let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        assert!(output.status.success(), "{zone}: {err}");
        assert!(out.contains(" 1 passed"), "{zone}: {test} did not run: {out}");
    }
    None
}

#[cfg(test)]
mod tests {
    #[test]
    #[should_panic(expected = "zones::tests::no_such_test did not run")]
    fn a_test_that_is_not_there_is_noticed() {
        let _ = super::in_zones("zones::tests::no_such_test", &["UTC"]);
    }
}
