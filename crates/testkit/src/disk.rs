//! A disk that can be full.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{skip, stale};

/// A small file system, unmounted when dropped.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts a file system in memory of a size (`96M`). Returns `None`, and skips the test, if this user may not mount.
    ///
    /// # Panics
    /// If the directory cannot be created.
    #[must_use]
    pub fn mount(at: &Path, size: &str) -> Option<SmallDisk> {
        stale::remove_mounts();
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &format!("size={size}"), &stale::mark()]);
        SmallDisk::mount_by(&mut command, at)
    }

    /// As [`SmallDisk::mount`], with ext4 in the file `image`, which takes no more room than what is written.
    ///
    /// # Panics
    /// If the directory or the image cannot be created.
    #[must_use]
    pub fn mount_image(at: &Path, image: &Path, bytes: u64) -> Option<SmallDisk> {
        File::create(image).and_then(|file| file.set_len(bytes)).expect("the image can be made");
        let made = Command::new("mkfs.ext4").args(["-q", "-m", "0"]).arg(image).output();
        if !made.is_ok_and(|output| output.status.success()) {
            skip("mkfs.ext4 is missing: install Debian's package e2fsprogs");
            return None;
        }
        let disk = SmallDisk::mount_by(Command::new("mount").args(["-o", "loop"]).arg(image), at)?;
        fs::remove_dir(at.join("lost+found")).expect("a new file system has this directory");
        Some(disk)
    }

    fn mount_by(command: &mut Command, at: &Path) -> Option<SmallDisk> {
        fs::create_dir_all(at).expect("the directory can be made");
        if command.arg(at).output().is_ok_and(|output| output.status.success()) {
            return Some(SmallDisk(at.to_path_buf()));
        }
        skip("this user may not mount");
        None
    }

    /// Leaves no room.
    ///
    /// # Panics
    /// If no file can be made there.
    pub fn fill(&self) {
        let mut file = File::create(self.0.join("ballast")).expect("a file can be made");
        let (mut end, mut piece) = (0, 1 << 30);
        // Room is taken without being written, by smaller and smaller pieces, and the rest by bytes.
        while piece >= 1 << 16 {
            match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), end, piece) {
                Ok(()) => end += piece,
                Err(_) => piece /= 2,
            }
        }
        file.seek(SeekFrom::Start(end)).expect("a file has places");
        let bytes = vec![0; 1 << 16];
        while file.write_all(&bytes).is_ok() {}
    }

    /// Makes room again.
    ///
    /// # Panics
    /// If the disk was not filled.
    pub fn empty(&self) {
        fs::remove_file(self.0.join("ballast")).expect("the disk was filled");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The daemons on it have been killed, or are about to be.
        Command::new("umount").arg("-l").arg(&self.0).output().ok();
    }
}
