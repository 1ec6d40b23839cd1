//! Every verb from an empty directory, on a daemon over TCP: a web head whose RRDs are on another machine.

use std::fs;
use std::path::Path;
use std::process::Command;

use testkit::Kind;

use crate::support::library;

/// What runs, in this order, with `NAME` for the client's own RRD and `COPY` for one made from it. `x.xml` is a dump.
const CALLS: &[&str] = &[
    "create NAME -b 1000000000 -s 10 DS:x:GAUGE:20:U:U RRA:AVERAGE:0.5:1:5",
    "update NAME 1000000010:5 1000000020:6",
    "updatev NAME 1000000030:7",
    "fetch NAME AVERAGE -s 1000000000 -e 1000000020",
    "info NAME",
    "first NAME",
    "last NAME",
    "lastupdate NAME",
    "graph x.png -s 1000000000 -e 1000000020 DEF:x=NAME:x:AVERAGE LINE:x#ff0000",
    "graphv x.png -s 1000000000 -e 1000000020 DEF:x=NAME:x:AVERAGE PRINT:x:MAX:%lf",
    "xport -s 1000000000 -e 1000000020 DEF:x=NAME:x:AVERAGE XPORT:x",
    "dump NAME x.xml",
    "tune NAME -h x:30",
    "resize NAME 0 GROW 1",
    "create COPY --source NAME -s 10 DS:x:GAUGE:20:U:U RRA:AVERAGE:0.5:1:5",
    "flushcached NAME",
    "list /",
    "restore x.xml copy-of-dump.rrd",
];
/// Calls a function of Python's module `rrdtool`; says what went wrong.
const PYTHON: &str = "import sys, rrdtool\ncall = getattr(rrdtool, sys.argv[1], None)\n\
    if call is None: sys.exit(2)\n\
    done = call(*sys.argv[2:])\n\
    if isinstance(done, dict) and done.get('return_value', 0) == -1: sys.exit('ERROR: it returns -1')\n";

/// Who calls.
#[derive(Clone, Copy)]
enum Caller {
    Program(&'static str),
    /// Python's module, on our library or Debian's.
    Python {
        ours: bool,
    },
}

const CALLERS: [Caller; 4] = [
    Caller::Program(env!("CARGO_BIN_EXE_rrdtool")),
    Caller::Program("/usr/bin/rrdtool"),
    Caller::Python { ours: true },
    Caller::Python { ours: false },
];

impl Caller {
    fn command(self) -> Command {
        match self {
            Caller::Program(path) => Command::new(path),
            Caller::Python { ours } => {
                let mut command = Command::new("/usr/bin/python3");
                command.args(["-c", PYTHON]);
                if ours {
                    command.env("LD_LIBRARY_PATH", library());
                }
                command
            }
        }
    }

    /// `yes` when the call was done, `-` when there is no such function, else what went wrong.
    fn call(self, words: &str, address: &str, directory: &Path) -> String {
        let mut command = self.command();
        command.args(words.split(' ')).current_dir(directory).env("TZ", "UTC");
        let output = command.env("RRDCACHED_ADDRESS", address).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) if !error.contains("ERROR") => "yes".to_string(),
            Some(2) if matches!(self, Caller::Python { .. }) => "-".to_string(),
            _ => format!("no: {}", error.trim_end().lines().last().unwrap_or_default()),
        }
    }
}

#[test]
fn every_verb_is_tried_over_tcp_from_an_empty_directory() {
    let place = tempfile::tempdir().unwrap();
    let mut daemon = testkit::daemon!(Kind::Stripes, &place.path().join("daemon"));
    let _client = daemon.start();
    let address = format!("127.0.0.1:{}", daemon.tcp_port());
    let mut rows = vec![String::new(); CALLS.len()];
    for (number, caller) in CALLERS.into_iter().enumerate() {
        let directory = place.path().join(format!("web{number}"));
        fs::create_dir(&directory).unwrap();
        let [name, copy] = ["rrd", "copy"].map(|stem| format!("{stem}{number}.rrd"));
        for (row, call) in rows.iter_mut().zip(CALLS) {
            if call.starts_with("restore") {
                fs::write(directory.join("x.xml"), dump_of(&address, "rrd0.rrd", place.path())).unwrap();
            }
            let words = call.replace("NAME", &name).replace("COPY", &copy);
            let done = caller.call(&words, &address, &directory);
            row.push_str(&format!(" {} |", if done.starts_with("no") { "no" } else { &done }));
            let stock =
                matches!(caller, Caller::Program("/usr/bin/rrdtool") | Caller::Python { ours: false });
            assert!(stock || !done.starts_with("no"), "{words}: {done}");
        }
        // Nothing of the daemon's RRDs is left here.
        assert!(!directory.join(&name).exists(), "{name}");
    }
    let label = |call: &str| match call.split_once(' ') {
        Some(("create", rest)) if rest.contains("--source") => "create --source".to_string(),
        Some((verb, _)) => verb.to_string(),
        None => call.to_string(),
    };
    let table: String =
        std::iter::zip(CALLS, &rows).map(|(call, row)| format!("| `{}` |{row}\n", label(call))).collect();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compatibility.md");
    assert!(
        fs::read_to_string(page).unwrap().contains(&table),
        "docs/compatibility.md has no such table:\n{table}"
    );
}

/// An RRD of the daemon as XML.
fn dump_of(address: &str, name: &str, directory: &Path) -> Vec<u8> {
    let mut dump = Command::new(env!("CARGO_BIN_EXE_rrdtool"));
    let output =
        dump.args(["dump", name]).current_dir(directory).env("RRDCACHED_ADDRESS", address).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

/// What a daemon on another host is asked for is relative; the leading part of an absolute name may be cut off.
#[test]
fn strippath_is_cut_off() {
    let place = tempfile::tempdir().unwrap();
    let mut daemon = testkit::daemon!(Kind::Stripes, &place.path().join("daemon"));
    let _client = daemon.start();
    let address = format!("127.0.0.1:{}", daemon.tcp_port());
    let create = CALLS[0].replace("NAME", "a.rrd");
    assert_eq!(CALLERS[0].call(&create, &address, place.path()), "yes");
    for (strip, name, found) in [
        ("/some/where", "/some/where/a.rrd", true),
        ("/some/where/", "/some/where/a.rrd", true),
        ("/some", "/some//a.rrd", true),
        ("/", "/a.rrd", true),
        ("", "/a.rrd", true),
        ("/some", "a.rrd", true),
        ("/some/whe", "/some/where/a.rrd", false),
        ("/other", "/some/a.rrd", false),
        ("some", "some/a.rrd", false),
    ] {
        let answers = CALLERS.map(|caller| {
            let mut command = caller.command();
            command.args(["last", name]).current_dir(place.path()).env("RRDCACHED_ADDRESS", &address);
            let output = command.env("RRDCACHED_STRIPPATH", strip).output().unwrap();
            let (text, error) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            match caller {
                Caller::Program(_) => text.trim_end() == "1000000000",
                Caller::Python { .. } => output.status.success() && error.is_empty(),
            }
        });
        assert_eq!(answers, [found; 4], "{strip} cut off {name}");
    }
}
