//! The Debian packages: built by `debian/rules`, installed with apt over RRDtool's own, used, and removed
//! again, in a throw-away copy of this system whose changes are kept in memory (`packages/inside.sh`).

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Runs a command; panics with its output if it fails.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}\n{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// A directory with the packages, built from what cargo compiled for the tests.
fn packages() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    let built = place.path().join("built");
    fs::create_dir_all(&built).unwrap();
    symlink(env!("CARGO_BIN_EXE_roundel"), built.join("roundel")).unwrap();
    symlink(env!("CARGO_BIN_EXE_rrdtool"), built.join("rrdtool")).unwrap();
    symlink(testkit::our_librrd().unwrap(), built.join("liblibrrd.so")).unwrap();
    fs::create_dir(&source).unwrap();
    run(Command::new("cp")
        .args(["-r", "--parents", "debian", "docs", "README.md", "roundel.example.toml"])
        .args(["crates/librrd/include", "crates/librrd/librrd.pc.in"])
        .arg(&source)
        .current_dir(root()));
    run(Command::new("debian/rules")
        .arg("binary")
        .current_dir(&source)
        .env("BUILT", &built)
        .env("DEB_BUILD_OPTIONS", "noautodbgsym")
        .env("DPKG_DEB_COMPRESSOR_TYPE", "none"));
    place
}

#[test]
fn packages_replace_rrdtools_and_restore_them_when_removed() {
    // Mounting and installing need root.
    let root = run(Command::new("id").arg("-u")).trim() == "0";
    let sudo =
        || Command::new("sudo").args(["-n", "true"]).output().is_ok_and(|output| output.status.success());
    if !root && !sudo() {
        return testkit::skip("neither root nor sudo -n is at hand");
    }
    let packages = packages();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/packages/inside.sh");
    let mut command = if root { Command::new("unshare") } else { Command::new("sudo") };
    if !root {
        command.args(["-n", "unshare"]);
    }
    let said =
        run(command.args(["--mount", "--propagation", "private", "sh"]).arg(script).arg(packages.path()));
    said.lines().filter_map(|line| line.strip_prefix("skip: ")).for_each(testkit::skip);
}
