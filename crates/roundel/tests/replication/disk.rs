//! A disk that can be full.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A small file system, unmounted in the end.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None` when this user may not mount.
    pub fn mount(at: &Path, size: &str) -> Option<SmallDisk> {
        std::fs::create_dir_all(at).unwrap();
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(at);
        let is_mounted = command.output().is_ok_and(|output| output.status.success());
        is_mounted.then(|| SmallDisk(at.to_path_buf()))
    }

    /// Leaves no room, by a file of this length at most.
    pub fn fill(&self) {
        let bytes = vec![0; 1 << 20];
        let mut file = std::fs::File::create(self.0.join("ballast")).unwrap();
        while std::io::Write::write_all(&mut file, &bytes).is_ok() {}
    }

    /// Makes room again.
    pub fn empty(&self) {
        std::fs::remove_file(self.0.join("ballast")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The daemons on it have been killed, or are about to be.
        Command::new("umount").arg("-l").arg(&self.0).output().ok();
    }
}
