//! Disk space to measure on: a separate loop device where that is allowed, so that nothing else writes to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::usage::DeviceUsage;

/// A directory that is removed with this value.
pub struct Volume {
    directory: PathBuf,
    image: Option<PathBuf>,
}

impl Volume {
    /// A plain directory.
    pub fn plain(directory: &Path) -> Outcome<Self> {
        fs::create_dir_all(directory)?;
        Ok(Volume { directory: directory.to_path_buf(), image: None })
    }

    /// An ext4 file system of `bytes` in a sparse file, mounted; a plain directory where that is refused.
    pub fn isolated(directory: &Path, bytes: u64) -> Outcome<Self> {
        let image = directory.with_extension("img");
        fs::create_dir_all(directory)?;
        fs::File::create(&image)?.set_len(bytes)?;
        let made = run(Command::new("mkfs.ext4")
            .args(["-q", "-F", "-m", "0", "-E"])
            .args(["lazy_itable_init=0,lazy_journal_init=0,nodiscard"])
            .arg(&image))
            && run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(directory));
        if !made {
            fs::remove_file(&image).ok();
            return Volume::plain(directory);
        }
        Ok(Volume { directory: directory.to_path_buf(), image: Some(image) })
    }

    /// True for a device of its own.
    pub fn is_isolated(&self) -> bool {
        self.image.is_some()
    }

    /// The directory to write to.
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// What its device has done, everything written out; `None` where it is no block device.
    pub fn device(&self) -> Outcome<Option<DeviceUsage>> {
        DeviceUsage::holding(&self.directory)
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        if let Some(image) = &self.image {
            run(Command::new("umount").arg(&self.directory));
            fs::remove_file(image).ok();
        }
        fs::remove_dir_all(&self.directory).ok();
    }
}

/// Unmounts and removes what an interrupted run left under `work`.
pub fn clear(work: &Path) -> Outcome<()> {
    fs::create_dir_all(work)?;
    let work = work.canonicalize()?;
    for line in fs::read_to_string("/proc/mounts")?.lines() {
        let point = line.split(' ').nth(1).unwrap_or_default();
        if Path::new(point).starts_with(&work) {
            run(Command::new("umount").arg(point));
        }
    }
    fs::remove_dir_all(&work)?;
    Ok(fs::create_dir_all(&work)?)
}

fn run(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
