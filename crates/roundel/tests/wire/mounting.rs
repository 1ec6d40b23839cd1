//! `roundel mount`, for tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{Daemon, wait_until};

/// `roundel mount`, ended with the test.
pub struct Mount {
    pub child: std::process::Child,
    pub directory: PathBuf,
}

/// Whether this machine can mount. Says SKIPPED if not.
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
        let child = command.env_remove("RRDCACHED_ADDRESS").spawn().unwrap();
        let mut mount = Mount { child, directory };
        wait_until("the mount", || {
            assert!(mount.child.try_wait().unwrap().is_none(), "the mount has ended");
            is_mounted(&mount.directory)
        });
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
        if self.child.try_wait().unwrap().is_none() {
            terminate(self.child.id());
            self.child.wait().unwrap();
        }
        // Should it have been killed.
        if is_mounted(&self.directory) {
            Command::new("umount").arg("-l").arg(&self.directory).status().ok();
        }
    }
}

pub fn terminate(process: u32) {
    let process = rustix::process::Pid::from_raw(process as i32).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
}
