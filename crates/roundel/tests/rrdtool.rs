//! Our own `rrdtool` on RRDs that a daemon has: named by an option or the environment, or found through the
//! placeholder alone. Every answer is that of the same command on a real file.

#![allow(clippy::unwrap_used, reason = "tests")]

mod wire;

use std::path::{Path, PathBuf};
use std::process::Command;

use wire::{Daemon, Kind};

const CREATE: &str = "create a.rrd -b 1000000000 -s 10 DS:x:GAUGE:30:U:U DS:y:COUNTER:30:0:U RRA:AVERAGE:0.5:1:20 RRA:MAX:0.5:3:9";

/// Our executable under the name of rrdtool.
struct Tool {
    link: PathBuf,
}

impl Tool {
    fn new(directory: &Path) -> Self {
        let link = directory.join("rrdtool");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_roundel"), &link).unwrap();
        Tool { link }
    }

    /// What a command prints, then what it says is wrong.
    fn run(&self, directory: &Path, daemon: Option<&str>, words: &str) -> (String, String) {
        let mut command = Command::new(&self.link);
        command
            .args(words.split(' '))
            .current_dir(directory)
            .env("TZ", "UTC")
            .env_remove("RRDCACHED_ADDRESS");
        if let Some(address) = daemon {
            command.env("RRDCACHED_ADDRESS", address);
        }
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(i32::from(!error.is_empty())), "{words}: {error}");
        (String::from_utf8_lossy(&output.stdout).into_owned(), error)
    }
}

/// What is drawn at random, or says where the RRD is.
fn normal(text: &str) -> String {
    let drawn = |line: &&str| !line.starts_with("filename = ") && !line.contains(".cur_row = ");
    text.lines().filter(drawn).collect::<Vec<_>>().join("\n")
}

const READS: &[&str] = &[
    "info a.rrd",
    "first a.rrd --rraindex 1",
    "lastupdate a.rrd",
    "fetch a.rrd AVERAGE -s 1000000000 -e 1000000100",
    "fetch a.rrd MAX -s 1000000000 -e 1000000100 --align-start",
    "dump a.rrd",
    "dump -n a.rrd",
    "xport -s 1000000000 -e 1000000090 DEF:v=a.rrd:x:AVERAGE CDEF:w=v,2,* XPORT:v:one XPORT:w:two",
];

#[test]
fn verbs_find_rrds_of_a_store_with_and_without_an_address() {
    let directory = tempfile::Builder::new().prefix("tool-").tempdir().unwrap();
    let mut daemon = Daemon::new(Kind::Stripes, &directory.path().join("daemon"));
    daemon.start();
    let tool = Tool::new(directory.path());
    let plain = directory.path().join("plain");
    std::fs::create_dir(&plain).unwrap();
    let base = daemon.base();
    let address = format!("unix:{}", daemon.socket().display());

    let same = |daemon: Option<&str>, words: &str| {
        let (ours, want) = (tool.run(&base, daemon, words), tool.run(&plain, None, words));
        assert_eq!((normal(&ours.0), ours.1), (normal(&want.0), want.1), "{words} {daemon:?}");
    };
    same(Some(&address), CREATE);
    same(Some(&address), "update a.rrd 1000000010:1:10 1000000025:2:30");
    // From here on without an address as well: the placeholder leads to the store.
    same(None, "update a.rrd 1000000034:3:35");
    same(None, "update -t y:x a.rrd 1000000047:50:4");
    same(Some(&address), "update -t x a.rrd 1000000058:5");
    same(None, "update a.rrd 20010909@1:1 -s 1000000071:U:90");
    same(None, "tune a.rrd -h x:40");
    same(Some(&address), "tune a.rrd -i y:1");
    for words in READS {
        same(None, words);
        same(Some(&address), words);
    }
    same(None, "last a.rrd");
    same(None, "last a.rrd --bogus");
    same(None, "fetch a.rrd BOGUS");
    let refused = tool.run(&base, None, "updatev a.rrd 1000000100:1:1");
    assert!(refused.1.contains("a store has it"), "{refused:?}");
    assert_eq!(tool.run(&base, Some(&address), "list /").0, "a.rrd\n");
    assert_eq!(tool.run(&base, Some(&address), "flushcached a.rrd").1, "");

    daemon.kill();
    let (_, error) = tool.run(&base, None, "last a.rrd");
    assert!(error.contains("its daemon at unix:") && error.contains("does not answer"), "{error}");
}
