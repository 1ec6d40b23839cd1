//! The rights of placeholders: they count for our `rrdtool` as those of files do for Debian's.

use super::*;

/// What another user than the owner may do.
const MODES: [u32; 5] = [0o666, 0o646, 0o640, 0o444, 0o600];

const COMMANDS: [&str; 8] = [
    "info a.rrd",
    "last a.rrd",
    "lastupdate a.rrd",
    "fetch a.rrd AVERAGE -s 1000000000 -e 1000000060",
    "dump a.rrd",
    "update a.rrd 1000000050:1:2",
    "updatev a.rrd 1000000060:1:2",
    "tune a.rrd --maximum x:9",
];

#[test]
fn a_placeholder_needs_the_rights_that_a_file_needs() {
    let (directory, daemon, tool) = beside_files(Kind::Stripes);
    let (base, plain) = (daemon.base(), directory.path().join("plain"));
    if std::fs::metadata(directory.path()).unwrap().uid() != 0 {
        return testkit::skip("only root can become another user");
    }
    let ours = directory.path().join("ours");
    std::fs::copy(env!("CARGO_BIN_EXE_rrdtool"), &ours).unwrap();
    let set = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    for path in [directory.path(), daemon.directory(), &base, &plain] {
        set(path, 0o755);
    }
    set(&daemon.socket(), 0o666);
    // The exit status, and what is said of the file.
    let as_other = |program: &Path, place: &Path, words: &str| {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(program)
            .args(words.split(' '));
        let output =
            command.current_dir(place).env_remove("RRDCACHED_ADDRESS").env("TZ", "UTC").output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for mode in MODES {
        for place in [&base, &plain] {
            let _ = std::fs::remove_file(place.join("a.rrd"));
            assert_eq!(tool.run(place, None, CREATE).1, "");
            set(&place.join("a.rrd"), mode);
        }
        for words in COMMANDS {
            let want = as_other(Path::new("/usr/bin/rrdtool"), &plain, words);
            assert_eq!(as_other(&ours, &base, words), want, "{mode:o} {words}");
        }
    }
    // One that is as the daemon made it: its socket decides, and all who may use that may update, as with rrdcached.
    std::fs::remove_file(base.join("a.rrd")).unwrap();
    assert_eq!(tool.run(&base, None, CREATE).1, "");
    for words in COMMANDS {
        assert_eq!(as_other(&ours, &base, words), (Some(0), String::new()), "{words}");
    }
    set(&daemon.socket(), 0o600);
    let (code, said) = as_other(&ours, &base, "update a.rrd 1000000070:1:2");
    assert_eq!((code, said.contains("does not answer")), (Some(1), true), "{said}");
}
