//! Finds the programs and files of others that tests compare with. A test whose peer is missing is skipped here, by its name.
//!
//! `peers/install.sh` puts peers into cargo's target directory or, by Debian's packages, into the system.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::skip;

/// Cargo's target directory, in which this test was built.
///
/// # Panics
/// If the test program is not in one.
#[must_use]
pub fn target() -> PathBuf {
    let program = std::env::current_exe().expect("a test knows its program");
    // `--target` makes another one within.
    let tagged = |directory: &&Path| directory.join("CACHEDIR.TAG").exists();
    let found = program.ancestors().skip(1).filter(tagged).last();
    found.unwrap_or_else(|| panic!("{} is not in cargo's target directory", program.display())).to_path_buf()
}

/// A path below the target directory; without it, the test is skipped.
fn installed(name: &str, place: &str) -> Option<PathBuf> {
    let path = target().join(place);
    if path.exists() {
        return Some(path);
    }
    skip(&format!("{name} is missing: make peers, or make all-peers"));
    None
}

/// A program in the target directory, else on PATH; without either, the test is skipped.
fn program(name: &str, place: &str) -> Option<PathBuf> {
    let own = target().join(place);
    let on_path = || which(Path::new(place).file_name().unwrap_or_default());
    let found = Some(own).filter(|own| own.exists()).or_else(on_path);
    if found.is_none() {
        skip(&format!("{name} is missing: make peers, or make all-peers"));
    }
    found
}

fn directory_of(file: PathBuf) -> Option<PathBuf> {
    file.parent().map(Path::to_path_buf)
}

fn which(program: &OsStr) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|path| path.is_file())
}

/// A file of a Debian package at its full path; without it, the test is skipped.
#[must_use]
pub fn debian(package: &str, path: &str) -> Option<PathBuf> {
    if Path::new(path).exists() {
        return Some(path.into());
    }
    skip(&format!("{path} is missing: install Debian's package {package}"));
    None
}

/// moto, an S3 server.
#[must_use]
pub fn moto() -> Option<PathBuf> {
    program("moto", "moto/bin/moto_server")
}

/// versitygw, an S3 server.
#[must_use]
pub fn versitygw() -> Option<PathBuf> {
    program("versitygw", "versitygw/versitygw")
}

/// s3s-fs, an S3 server.
#[must_use]
pub fn s3s_fs() -> Option<PathBuf> {
    program("s3s-fs", "s3s-fs/bin/s3s-fs")
}

/// Telegraf.
#[must_use]
pub fn telegraf() -> Option<PathBuf> {
    program("Telegraf", "telegraf/telegraf")
}

/// Python with DuckDB and pyarrow.
#[must_use]
pub fn duckdb() -> Option<PathBuf> {
    installed("Python with DuckDB and pyarrow", "duckdb/bin/python")
}

/// Python with the clients of InfluxDB, statsd and OpenTelemetry.
#[must_use]
pub fn senders() -> Option<PathBuf> {
    installed("Python with the clients of InfluxDB, statsd and OpenTelemetry", "push-peers/bin/python3")
}

/// Python with graphite-web and rrdtool.
#[must_use]
pub fn graphite_web() -> Option<PathBuf> {
    let python = installed("Python with graphite-web", "graphite-web/bin/python")?;
    let mut check = Command::new(&python);
    let is_whole = check.args(["-c", "import graphite.settings, rrdtool"]).output();
    if is_whole.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    skip("graphite-web does not find Debian's package python3-rrdtool: make peers");
    None
}

/// The newest Prometheus there is: of `make prometheus-peer`, or Debian's. `ROUNDEL_PROMETHEUS` may name another one.
#[must_use]
pub fn prometheus() -> Option<PathBuf> {
    let given = std::env::var_os("ROUNDEL_PROMETHEUS").map(PathBuf::from);
    given.or_else(|| program("Prometheus", "prometheus/prometheus"))
}

/// Debian's spine, the poller of Cacti.
#[must_use]
pub fn spine() -> Option<PathBuf> {
    installed("spine", "apps/spine/usr/sbin/spine")
}

/// The directory of Kafka's broker.
#[must_use]
pub fn kafka() -> Option<PathBuf> {
    directory_of(installed("Kafka", "kafka/installed.xml")?)
}

/// RRDtool's own test scripts: a directory.
#[must_use]
pub fn rrdtool_scripts() -> Option<PathBuf> {
    directory_of(installed("RRDtool's test scripts", "rrdtool-scripts/functions")?)
}

/// The test scripts of Prometheus' language: a directory.
#[must_use]
pub fn promql_scripts() -> Option<PathBuf> {
    installed("Prometheus' test scripts", "promql-scripts")
}

/// The test files of exporter-toolkit: a directory.
#[must_use]
pub fn exporter_toolkit() -> Option<PathBuf> {
    installed("exporter-toolkit's test files", "exporter-toolkit")
}

/// The node_modules of the browser's tests: Playwright, axe and TypeScript. The result is the directory that has node_modules.
#[must_use]
pub fn page_modules() -> Option<PathBuf> {
    debian("chromium", "/usr/bin/chromium")?;
    installed("Playwright", "page/node_modules/playwright-core")?;
    Some(target().join("page"))
}

/// PostgreSQL's programs: a directory.
#[must_use]
pub fn postgresql() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let found = versions.map(|version| version.path().join("bin")).find(|bin| bin.join("initdb").exists());
    if found.is_none() {
        skip("PostgreSQL is missing: install Debian's package postgresql");
    }
    found
}
