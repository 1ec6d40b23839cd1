//! Whole applications on placeholders of our daemon, beside the same with Debian's RRDtool on files. `make test-all` runs them, because they
//! need a database, a web front end and minutes.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "apps/cacti.rs"]
mod cacti;
#[path = "apps/database.rs"]
mod database;
#[path = "wire/mounting.rs"]
mod mounting;
#[path = "apps/readers.rs"]
mod readers;
#[path = "wire/snmpd.rs"]
mod snmpd;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory in which `rrdtool` is ours.
fn our_tools(directory: &Path) -> PathBuf {
    let tools = directory.join("tools");
    fs::create_dir_all(&tools).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_rrdtool"), tools.join("rrdtool")).unwrap();
    tools
}

/// What a command prints; it must succeed.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

/// The `.rrd` files below a directory, in the order of their names.
fn rrds(directory: &Path) -> Vec<String> {
    let found = output(Command::new("find").args([".", "-name", "*.rrd"]).current_dir(directory));
    let mut names: Vec<String> = found.lines().map(str::to_string).collect();
    names.sort();
    names
}

/// An RRD as XML, without the comments that say which program has written it and the times as texts.
fn dump(rrdtool: &Path, file: &Path) -> String {
    let xml = output(Command::new(rrdtool).arg("dump").arg(file).env("TZ", "UTC"));
    xml[xml.find("<rrd>").expect("an RRD as XML")..].to_string()
}

/// Both trees have the same RRDs with the same content; returns how many.
fn same_rrds(plain: &Path, ours: &Path, tools: &Path) -> usize {
    let names = rrds(plain);
    assert_eq!(rrds(ours), names);
    for name in &names {
        let want = dump(Path::new("/usr/bin/rrdtool"), &plain.join(name));
        let have = dump(&tools.join("rrdtool"), &ours.join(name));
        // The lines that differ are few, the others thousands.
        for (have, want) in have.lines().zip(want.lines()) {
            assert_eq!(have, want, "{name}");
        }
        assert_eq!(have.len(), want.len(), "{name}");
    }
    names.len()
}
