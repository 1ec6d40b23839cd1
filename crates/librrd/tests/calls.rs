//! A C program on Debian's librrd and on ours: the same answers and the same RRDs. Programs and languages of Debian's
//! archive are in `crates/roundel/tests/programs`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::process::Command;

/// What `command` prints in a directory of its own, on either library.
fn on_both(command: impl Fn() -> Command) -> [(String, tempfile::TempDir); 2] {
    [false, true].map(|ours| {
        let place = tempfile::tempdir().unwrap();
        let mut command = command();
        command.current_dir(place.path()).env("TZ", "UTC").env("LC_ALL", "C").env_remove("RRDCACHED_ADDRESS");
        if ours {
            command.env("LD_LIBRARY_PATH", oracle::librrd_directory(place.path()).unwrap());
        }
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ours: {ours}\n{text}\n{errors}");
        (text, place)
    })
}

fn compare([(theirs, their_place), (ours, our_place)]: [(String, tempfile::TempDir); 2], files: &[&str]) {
    for (number, (their, our)) in theirs.lines().zip(ours.lines()).enumerate() {
        // RRDtool draws lots where an archive begins.
        if !their.contains("cur_row") {
            assert_eq!(our, their, "line {}", number + 1);
        }
    }
    assert_eq!(ours.lines().count(), theirs.lines().count());
    for file in files {
        let read = |place: &tempfile::TempDir| {
            let dump = Command::new("/usr/bin/rrdtool")
                .args(["dump", file])
                .current_dir(place.path())
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
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("calls");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/calls.c");
    let made =
        Command::new("cc").args(["-w", "-o"]).arg(&program).args([source, "-lrrd", "-lm"]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    compare(on_both(|| Command::new(&program)), &["x.rrd", "z.rrd"]);
}
