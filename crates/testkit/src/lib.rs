//! For tests only: Debian's `rrdtool` and `rrdcached` beside us, a client of rrdcached's protocol, and what tests share.

#![forbid(unsafe_code)]

mod bindings;
mod client;
mod http;
mod kafka;
mod librrd;
mod ports;
mod program;
pub mod random;
mod rrdcached;
mod shake;
pub mod svg;
mod wait;

pub use bindings::{Bindings, Exported};
pub use client::{Answer, Client};
pub use http::{http_get, http_post_form};
pub use kafka::{Doors, Kafka};
pub use librrd::{librrd_directory, our_librrd, thread_sanitized};
pub use ports::{free_port, wait_until_received};
pub use program::{Program, rrd_files};
pub use rrdcached::{Rrdcached, rrdcached};
pub use shake::{shake, shaken};
pub use wait::{DEADLINE, wait_for, wait_until};

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where Debian keeps the libraries of this architecture: `/usr/lib/x86_64-linux-gnu`, `/usr/lib/aarch64-linux-gnu`.
#[must_use]
pub fn libraries() -> PathBuf {
    PathBuf::from(format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH))
}

/// The library that stops a program's clock, for `LD_PRELOAD`.
#[must_use]
pub fn faketime() -> PathBuf {
    static CLEANED: Once = Once::new();
    CLEANED.call_once(remove_stale_clocks);
    libraries().join("faketime/libfaketime.so.1")
}

/// Removes the shared memory that faketime's processes have left. It is called after the process: when the system gives the
/// same number again, faketime does not start ("sem_open: File exists").
fn remove_stale_clocks() {
    for entry in std::fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process =
            ["sem.faketime_sem_", "faketime_shm_"].iter().find_map(|prefix| name.strip_prefix(prefix));
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            // Another user's cannot be removed, and another test may have removed it.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

static SKIPPED: AtomicUsize = AtomicUsize::new(0);

/// Reports why a test is skipped: it needs something this machine or user lacks (root, IPv6). The caller then returns.
///
/// # Panics
/// When `ROUNDEL_ROOT_TESTS` is 1, as in CI: there nothing may be skipped.
pub fn skip(reason: &str) {
    skip_unless("ROUNDEL_ROOT_TESTS", reason);
}

/// As [`skip`], for what even CI may lack (a file from the network).
///
/// # Panics
/// When the environment's `variable` is 1.
pub fn skip_unless(variable: &str, reason: &str) {
    let required = std::env::var_os(variable).is_some_and(|value| value == "1");
    assert!(!required, "{variable}=1, but {reason}");
    let count = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
    // Past the capture of the test's output, which hides what tests print that pass.
    writeln!(io::stderr(), "SKIPPED, number {count} of this program (fails with {variable}=1): {reason}")
        .ok();
}

/// Debian's `rrdtool` in pipe mode, in a temporary directory of its own.
pub struct RrdTool {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    directory: tempfile::TempDir,
}

impl RrdTool {
    /// Starts `/usr/bin/rrdtool -` with `TZ=UTC` and `LC_ALL=C`, in a new temporary directory.
    pub fn start() -> io::Result<Self> {
        RrdTool::start_with(|command| command.env("TZ", "UTC"))
    }

    /// As [`RrdTool::start`] in another time zone, with the clock stopped at `now` (seconds since the epoch).
    pub fn start_at(zone: &str, now: i64) -> io::Result<Self> {
        if !faketime().exists() {
            return Err(io::Error::other("the package faketime is not installed (make test does that)"));
        }
        RrdTool::start_with(|command| {
            command
                .env("TZ", zone)
                .env("LD_PRELOAD", faketime())
                .env("FAKETIME_FMT", "%s")
                .env("FAKETIME", now.to_string())
        })
    }

    fn start_with(change: impl FnOnce(&mut Command) -> &mut Command) -> io::Result<Self> {
        let directory = tempfile::tempdir()?;
        let mut command = Command::new("/usr/bin/rrdtool");
        command.arg("-").current_dir(directory.path()).env("LC_ALL", "C").env_remove("RRDCACHED_ADDRESS");
        let mut child = change(&mut command).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let missing = || io::Error::other("rrdtool has no pipe");
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = BufReader::new(child.stdout.take().ok_or_else(missing)?);
        Ok(RrdTool { child, input, output, directory })
    }

    /// Its working directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A path in that directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs one command line. Returns the text before `OK`, or the text after `ERROR: `.
    pub fn run(&mut self, line: &str) -> Result<String, String> {
        let fail = |error: io::Error| format!("rrdtool pipe: {error}");
        self.input.write_all(line.as_bytes()).and_then(|()| self.input.write_all(b"\n")).map_err(fail)?;
        self.input.flush().map_err(fail)?;
        let mut text = String::new();
        loop {
            let mut bytes = Vec::new();
            if self.output.read_until(b'\n', &mut bytes).map_err(fail)? == 0 {
                return Err("rrdtool ended".to_string());
            }
            let answer = String::from_utf8_lossy(&bytes);
            if let Some(error) = answer.strip_prefix("ERROR: ") {
                return Err(error.trim_end_matches('\n').to_string());
            }
            if answer.starts_with("OK u:") {
                return Ok(text);
            }
            text.push_str(&answer);
        }
    }
}

impl Drop for RrdTool {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
