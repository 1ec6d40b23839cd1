//! `roundel mount`, for tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{Daemon, Running, Signal};

/// `roundel mount`, ended with the test.
pub struct Mount {
    pub process: Running,
    pub directory: PathBuf,
}

/// True if this machine can mount. Skips the test if not.
pub fn can_mount() -> bool {
    let can = Path::new("/dev/fuse").exists()
        && rustix::process::geteuid().is_root()
        && Command::new("fusermount3").arg("-V").output().is_ok();
    if !can {
        testkit::skip("mounting needs root, /dev/fuse and the package fuse3");
    }
    can
}

pub fn is_mounted(directory: &Path) -> bool {
    let directory = format!(" {} ", directory.display());
    std::fs::read_to_string("/proc/self/mountinfo").unwrap().lines().any(|line| line.contains(&directory))
}

impl Mount {
    /// Mounts what `from` names on a new directory.
    pub fn new(from: &str, directory: &Path, options: &str) -> Self {
        std::fs::create_dir(directory).unwrap();
        let directory = directory.canonicalize().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_roundel"));
        command.arg("mount").arg(&directory).args(["--foreground", "--from", from]);
        if !options.is_empty() {
            command.args(["-o", options]);
        }
        let log = directory.with_extension("log");
        let process = Running::start(command.env_remove("RRDCACHED_ADDRESS"), log);
        let mut mount = Mount { process, directory };
        mount.process.wait_for("the mount", || is_mounted(&mount.directory).then_some(()));
        mount
    }

    /// The store of a daemon.
    pub fn of(daemon: &Daemon, options: &str) -> Self {
        let directory = daemon.directory().parent().unwrap().join("mount");
        Self::new(&format!("unix:{}", daemon.socket().display()), &directory, options)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.process.ended().is_none() {
            self.process.signal(Signal::TERM);
            self.process.wait();
        }
        // Should it have been killed.
        if is_mounted(&self.directory) {
            Command::new("umount").arg("-l").arg(&self.directory).status().ok();
        }
    }
}
