//! Tests that cannot run say so by `testkit::skip`, what tests start can be ended with them, and they leave no files.

use std::process::Command;

use roundel_tidy::{files, root, sources};

/// The part of a source file that is tests.
fn tests_of<'a>(name: &str, text: &'a str) -> &'a str {
    if name.contains("/tests/") || name.ends_with("/tests.rs") {
        return text;
    }
    text.find("#[cfg(test)]").map_or("", |at| &text[at..])
}

/// True if a test looks for something, or prints, and then just returns: it passes without a trace.
fn returns_in_silence(line: &str, next: &str) -> bool {
    let (line, next) = (line.trim(), next.trim());
    let looks = [".exists()", ".is_file()", ".is_dir()"].iter().any(|word| line.contains(word));
    let guards = line.starts_with("if ") && line.ends_with('{') && looks;
    let prints = line.starts_with("println!(") || line.starts_with("eprintln!(");
    (guards || prints) && next == "return;"
}

#[test]
fn one_function_skips() {
    // Put together here, so that this file does not find itself.
    let word = ["SKIP", "PED"].concat();
    for (name, text) in files(&["crates"], &[".rs", ".sh", ".mjs", ".py", ".pl", ".c", ".rb", ".php"]) {
        assert!(!text.contains(&word), "{name} says {word} by itself: call testkit::skip");
    }
    for (name, text) in sources() {
        let tests = tests_of(&name, &text);
        for (line, next) in tests.lines().zip(tests.lines().skip(1)) {
            let is_silent = returns_in_silence(line, next);
            assert!(
                !is_silent,
                "{name}: a test returns after {line:?}: call testkit::skip or use testkit::peer"
            );
        }
    }
}

#[test]
fn processes_stay_in_the_group_of_their_test() {
    // Put together here, so that this file does not find itself.
    let words = [["process", "_group("].concat(), ["set", "sid"].concat()];
    for (name, text) in sources() {
        for line in tests_of(&name, &text).lines() {
            // munin-node is told not to leave the group.
            let leaves = words.iter().any(|word| line.contains(word)) && !line.contains("background 0");
            assert!(
                !leaves,
                "{name}: a process leaves the group of its test, which is killed after a timeout: {line}"
            );
        }
    }
}

#[test]
fn a_test_that_leaves_a_file_fails() {
    let run = |test: &str| {
        let mut command = Command::new(root().join("peers/one-test.sh"));
        let done = command.args(["sh", "-c", test]).output().expect("peers/one-test.sh runs");
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    assert_eq!(run("touch $TMPDIR/file && rm $TMPDIR/file"), (Some(0), String::new()));
    assert_eq!(run("touch $TMPDIR/file; exit 101").0, Some(101), "the test's own status");
    let (status, message) = run("touch $TMPDIR/file");
    assert_eq!(status, Some(1));
    assert!(message.contains("left files") && message.contains("/file\n"), "{message}");
}

#[test]
fn silent_returns_are_found() {
    assert!(returns_in_silence("    if !path.exists() {", "        return;"));
    assert!(returns_in_silence("eprintln!(\"not run\");", "return;"));
    assert!(!returns_in_silence("if path.exists() {", "return Some(path);"));
    assert!(!returns_in_silence("if peer::moto().is_none() {", "return;"));
}

/// The structs that have another field after a temporary directory.
fn directory_first(text: &str) -> Vec<&str> {
    let (mut found, mut name, mut has_directory) = (Vec::new(), "", false);
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
        if let Some((_, rest)) = line.split_once("struct ").filter(|_| line.ends_with('{')) {
            (name, has_directory) = (rest.split([' ', '<']).next().unwrap_or_default(), false);
        } else if line == "}" {
            name = "";
        } else if !name.is_empty() && line.ends_with(" tempfile::TempDir,") | line.ends_with(" TempDir,") {
            has_directory = true;
        } else if !name.is_empty() && has_directory {
            found.push(std::mem::take(&mut name));
        }
    }
    found
}

#[test]
fn directories_go_last() {
    for (name, text) in sources() {
        let tests = if name.starts_with("crates/testkit/") { &text } else { tests_of(&name, &text) };
        let found = directory_first(tests);
        assert!(
            found.is_empty(),
            "{name}: the directory of {found:?} is not the last field: it is removed before what writes into it ends"
        );
    }
}

#[test]
fn early_directories_are_found() {
    let text = "struct A {\n    /// One.\n    place: TempDir,\n    daemon: Daemon,\n}\npub struct B<'a> {\n    daemon: &'a Daemon,\n\
                    pub one: tempfile::TempDir,\n    two: tempfile::TempDir,\n}\nstruct C(u8);\n";
    assert_eq!(directory_first(text), ["A"]);
}
