//! For tests only: Debian's `rrdtool` and `rrdcached` and other peers beside us, daemons and their clients, and what tests share.
//!
//! A test with a daemon, in `crates/roundel/tests`:
//!
//! ```ignore
//! use testkit::Kind;
//!
//! #[test]
//! fn a_daemon_keeps_an_update() {
//!     let directory = tempfile::tempdir().unwrap();
//!     let mut daemon = testkit::daemon!(Kind::Stripes, directory.path());
//!     let mut client = daemon.start();
//!     client.ask("CREATE a.rrd -b 1000000000 -s 10 DS:x:GAUGE:20:0:U RRA:AVERAGE:0.5:1:60").unwrap();
//!     client.ask("UPDATE a.rrd 1000000010:1").unwrap();
//!     daemon.kill();
//!     let last = daemon.start().ask("LAST a.rrd").unwrap();
//!     assert_eq!(last.status, 1_000_000_010);
//! }
//! ```

#![forbid(unsafe_code)]

mod bindings;
mod client;
mod daemon;
mod disk;
mod files;
mod http;
mod kafka;
mod librrd;
pub mod peer;
mod ports;
pub mod random;
mod rrdcached;
mod running;
mod shake;
mod share;
mod skip;
pub mod stale;
pub mod svg;
mod wait;
mod zones;

pub use bindings::{Bindings, Exported};
pub use client::{Answer, Client};
pub use daemon::{Daemon, Kind};
pub use disk::SmallDisk;
pub use files::rrd_files;
pub use http::{http_bytes, http_get, http_post_form, http_request};
pub use kafka::{Doors, Kafka};
pub use librrd::{librrd_directory, our_librrd, thread_sanitized};
pub use ports::{free_port, free_ports, wait_until_received};
pub use rrdcached::{Rrdcached, rrdcached};
pub use running::{PidFile, Running, Signal, send_signal};
pub use shake::{shake, shaken};
pub use share::Share;
pub use skip::skip;
pub use wait::{DEADLINE, wait_for, wait_until};
pub use zones::in_zones;

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command};
use std::sync::Once;

/// Where Debian keeps the libraries of this architecture: `/usr/lib/x86_64-linux-gnu`, `/usr/lib/aarch64-linux-gnu`.
#[must_use]
pub fn libraries() -> PathBuf {
    PathBuf::from(format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH))
}

/// The library that stops a program's clock, for `LD_PRELOAD`.
#[must_use]
pub fn faketime() -> PathBuf {
    static CLEANED: Once = Once::new();
    CLEANED.call_once(stale::remove_clocks);
    libraries().join("faketime/libfaketime.so.1")
}

/// Debian's `rrdtool` in pipe mode, in a temporary directory of its own.
pub struct RrdTool {
    _process: Running,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    directory: tempfile::TempDir,
}

impl Drop for RrdTool {
    /// Lets the program end by itself: a killed one leaves the shared memory of its stopped clock.
    fn drop(&mut self) {
        if self.input.write_all(b"quit\n").is_ok() {
            // Until the program has closed its output, which it does when it ends.
            io::copy(&mut self.output, &mut io::sink()).ok();
        }
    }
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
        let (process, input, output) = Running::piped(change(&mut command));
        Ok(RrdTool { _process: process, input, output, directory })
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
