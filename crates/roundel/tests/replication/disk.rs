//! A disk that can be full.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
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

    /// The same with a file system of a disk's kind, ext4, in the file `image`, which takes no more room than what is written.
    pub fn mount_image(at: &Path, image: &Path, bytes: u64) -> Option<SmallDisk> {
        std::fs::create_dir_all(at).unwrap();
        std::fs::File::create(image).unwrap().set_len(bytes).unwrap();
        let mut make = Command::new("mkfs.ext4");
        make.args(["-q", "-m", "0"]).arg(image);
        let is_made = make.output().is_ok_and(|output| output.status.success());
        let mut mount = Command::new("mount");
        mount.args(["-o", "loop"]).arg(image).arg(at);
        let is_mounted = is_made && mount.output().is_ok_and(|output| output.status.success());
        is_mounted.then(|| {
            std::fs::remove_dir(at.join("lost+found")).unwrap();
            SmallDisk(at.to_path_buf())
        })
    }

    /// Leaves no room.
    pub fn fill(&self) {
        let mut file = File::create(self.0.join("ballast")).unwrap();
        let (mut end, mut piece) = (0, 1 << 30);
        // Room is taken without being written, by smaller and smaller pieces, and the rest by bytes.
        while piece >= 1 << 16 {
            match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), end, piece) {
                Ok(()) => end += piece,
                Err(_) => piece /= 2,
            }
        }
        file.seek(SeekFrom::Start(end)).unwrap();
        let bytes = vec![0; 1 << 16];
        while file.write_all(&bytes).is_ok() {}
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
