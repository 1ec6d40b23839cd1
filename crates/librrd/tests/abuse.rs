//! Programs that misuse the library, and what they must not be able to break.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{librrd_directory, thread_sanitized};

fn build(directory: &Path, name: &str, options: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(format!("{name}.c"));
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let program = directory.join(name);
    let mut cc = Command::new("cc");
    cc.args(["-g", "-O1", "-Wall", "-Werror"])
        .args(options)
        .arg("-I")
        .arg(include)
        .arg("-o")
        .arg(&program)
        .arg(&source);
    let made = cc.args(["-lrrd", "-lpthread", "-ldl"]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    program
}

fn run(mut command: Command, directory: &Path) -> String {
    command.current_dir(directory).env("TZ", "UTC").env("LC_ALL", "C").env_remove("RRDCACHED_ADDRESS");
    let output = command.output().unwrap();
    let (text, errors) =
        (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{text}{errors}", output.status);
    text
}

#[test]
fn no_call_brings_the_program_down() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(build(directory.path(), "abuse", &[]));
    command.env("LD_LIBRARY_PATH", librrd_directory(directory.path()).unwrap());
    // This also checks that only the program itself prints.
    assert_eq!(run(command, directory.path()), "0 faults\n");
}

#[test]
fn memcheck_finds_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let program = build(directory.path(), "abuse", &[]);
    let mut command = Command::new("valgrind");
    command.args(["-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
    command.arg(program).env("LD_LIBRARY_PATH", librrd_directory(directory.path()).unwrap());
    assert_eq!(run(command, directory.path()), "0 faults\n");
}

#[test]
fn thread_sanitizer_finds_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = thread_sanitized(&build(directory.path(), "abuse", &["-fsanitize=thread"]));
    command.env("LD_LIBRARY_PATH", librrd_directory(directory.path()).unwrap());
    assert_eq!(run(command, directory.path()), "0 faults\n");
}

#[test]
fn two_libraries_live_in_one_process() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(build(directory.path(), "pair", &[]));
    let library = librrd_directory(directory.path()).unwrap();
    command.arg(library.join("librrd.so.8")).arg(testkit::libraries().join("librrd.so.8"));
    assert_eq!(run(command, directory.path()), "0\n");
}
