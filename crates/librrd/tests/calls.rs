//! A C program on Debian's librrd and on ours: the same results and the same RRDs. Programs and languages of Debian's
//! archive are tested in `crates/roundel/tests/programs`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

#[path = "../../cli/tests/oracle/anything.rs"]
mod anything;
#[path = "../../cli/tests/oracle/bytes.rs"]
mod bytes;
#[path = "../../cli/tests/oracle/harness.rs"]
#[allow(dead_code, reason = "the tests of the command line use the rest")]
mod harness;
#[path = "../../cli/tests/oracle/listed.rs"]
mod listed;
#[path = "../../cli/tests/oracle/locales.rs"]
mod locales;
#[path = "../../cli/tests/oracle/plots.rs"]
mod plots;
#[path = "../../cli/tests/oracle/random.rs"]
mod random;
#[path = "../../cli/tests/oracle/scenarios.rs"]
mod scenarios;
#[path = "../../cli/tests/oracle/spellings.rs"]
mod spellings;

use std::path::Path;
use std::process::Command;

/// Debian's program on our library, and on Debian's.
fn pair() -> harness::Pair {
    harness::Pair::with(|root| {
        let library = testkit::librrd_directory(root).unwrap();
        let path = ("LD_LIBRARY_PATH".to_string(), library.display().to_string());
        (Path::new(harness::THEIRS).to_path_buf(), vec![path])
    })
}

#[test]
fn random_scenarios_are_answered_alike() {
    random::check();
}

#[test]
fn spellings_are_answered_alike() {
    random::check_spellings();
}

#[test]
fn anything_is_answered_alike() {
    random::check_anything();
}

/// The output of `command` in a directory of its own, on either library.
fn on_both(command: impl Fn() -> Command) -> [(String, tempfile::TempDir); 2] {
    [false, true].map(|ours| {
        let directory = tempfile::tempdir().unwrap();
        let mut command = command();
        command
            .current_dir(directory.path())
            .env("TZ", "UTC")
            .env("LC_ALL", "C")
            .env_remove("RRDCACHED_ADDRESS");
        if ours {
            command.env("LD_LIBRARY_PATH", testkit::librrd_directory(directory.path()).unwrap());
        }
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ours: {ours}\n{text}\n{errors}");
        (text, directory)
    })
}

fn compare([(theirs, their_place), (ours, our_place)]: [(String, tempfile::TempDir); 2], files: &[&str]) {
    for (number, (their, our)) in theirs.lines().zip(ours.lines()).enumerate() {
        // RRDtool draws the start of an archive's ring at random.
        if !their.contains("cur_row") {
            assert_eq!(our, their, "line {}", number + 1);
        }
    }
    assert_eq!(ours.lines().count(), theirs.lines().count());
    for file in files {
        let read = |directory: &tempfile::TempDir| {
            let dump = Command::new("/usr/bin/rrdtool")
                .args(["dump", file])
                .current_dir(directory.path())
                .output()
                .unwrap();
            assert!(dump.status.success(), "{file}: {}", String::from_utf8_lossy(&dump.stderr));
            String::from_utf8(dump.stdout).unwrap()
        };
        assert_eq!(read(&our_place), read(&their_place), "{file} differs");
    }
}

#[test]
fn a_c_program_gets_the_same_from_either() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("calls");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/calls.c");
    let made =
        Command::new("cc").args(["-w", "-o"]).arg(&program).args([source, "-lrrd", "-lm"]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    compare(on_both(|| Command::new(&program)), &["x.rrd", "z.rrd"]);
}

/// Debian's `rrdtool` on either library.
#[test]
fn a_directory_that_cannot_be_listed_is_no_error() {
    let listed = [false, true].map(|ours| {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("dir")).unwrap();
        std::fs::write(directory.path().join("dir/a.rrd"), "").unwrap();
        let calls = [
            "nosuch",
            "dir/nosuch",
            "-r nosuch",
            "dir/b.rrd",
            "dir/a.rrd/x",
            "a..b",
            "./*.none",
            "-r ./*",
            "dir",
        ];
        calls.map(|call| {
            let mut command = Command::new("/usr/bin/rrdtool");
            command.arg("list").args(call.split(' ')).current_dir(directory.path()).env("LC_ALL", "C");
            if ours {
                command.env("LD_LIBRARY_PATH", testkit::librrd_directory(directory.path()).unwrap());
            }
            let output = command.env_remove("RRDCACHED_ADDRESS").output().unwrap();
            let [text, errors] =
                [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            format!("{call}: {:?} {text:?} {errors:?}", output.status.code())
        })
    });
    assert_eq!(listed[1], listed[0]);
}

/// Debian's `rrdtool` on either library.
#[test]
fn a_graph_that_cannot_be_written_is_reported_by_graphv() {
    let pair = pair();
    let theirs = pair.theirs.expect("Debian's rrdtool");
    let words = ["graphv", "no/x.png", "-s", "1000000000", "-e", "1000000200", "HRULE:1#ff0000"];
    let answers = [&pair.ours, &theirs].map(|side| side.run(&words, b""));
    assert!(answers[1].output.contains("graph_left = "), "{:?}", answers[1]);
    assert_eq!(answers[0], answers[1]);
}
