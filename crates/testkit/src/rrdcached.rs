//! Debian's `rrdcached` beside a test.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::running::Running;
use crate::wait::wait_until;

/// A command that starts it in the foreground with options; it writes files only when asked (`-w`, `-f`). Times are UTC.
#[must_use]
pub fn rrdcached(base: &Path, socket: &Path, pid: &Path, options: &[&str]) -> Command {
    let mut command = Command::new("/usr/bin/rrdcached");
    command.args(["-g", "-w", "3600", "-f", "7200", "-b"]).arg(base).arg("-p").arg(pid);
    // What a client may do is said before the socket it is for.
    command.args(options).arg("-l").arg(format!("unix:{}", socket.display()));
    command.env("TZ", "UTC").env("LC_ALL", "C").stdin(Stdio::null());
    command
}

/// Debian's daemon; it ends with this value.
#[derive(Debug)]
pub struct Rrdcached {
    _process: Running,
    base: PathBuf,
    socket: PathBuf,
    _directory: tempfile::TempDir,
}

impl Rrdcached {
    /// Starts it over a directory of its own, with options in addition to those of [`rrdcached`].
    ///
    /// # Errors
    /// When no directory can be made.
    ///
    /// # Panics
    /// When it is not installed.
    pub fn start(options: &[&str]) -> io::Result<Self> {
        let directory = tempfile::tempdir()?;
        let base = directory.path().join("base");
        std::fs::create_dir(&base)?;
        Rrdcached::in_directory(directory, base, options)
    }

    /// Starts it over a directory that exists.
    ///
    /// # Errors
    /// As [`Rrdcached::start`].
    pub fn over(base: &Path, options: &[&str]) -> io::Result<Self> {
        Rrdcached::in_directory(tempfile::tempdir()?, base.to_path_buf(), options)
    }

    fn in_directory(directory: tempfile::TempDir, base: PathBuf, options: &[&str]) -> io::Result<Self> {
        let socket = directory.path().join("sock");
        let mut command = rrdcached(&base, &socket, &directory.path().join("pid"), options);
        let daemon =
            Rrdcached { _process: Running::quiet(&mut command), base, socket, _directory: directory };
        wait_until("rrdcached to listen", || UnixStream::connect(&daemon.socket).is_ok());
        Ok(daemon)
    }

    /// Its base directory.
    #[must_use]
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}
