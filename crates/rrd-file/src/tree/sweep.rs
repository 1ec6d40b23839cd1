//! Removes files that processes which are gone have left in the tree. Links are not followed.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use super::list::{DEPTH_MAX, kind};
use super::{Place, Tree};

/// Removes each regular file anywhere in the tree for which `is_left` is true, called with its name and the time since it was
/// last written; returns how many. Ends early when `stop` is true. A directory that cannot be read is passed over; a disk
/// other than the operating system's is not swept.
///
/// # Errors
/// When the base directory cannot be read.
pub fn sweep(
    tree: &Tree,
    is_left: &dyn Fn(&[u8], Duration) -> bool,
    stop: &dyn Fn() -> bool,
) -> io::Result<u64> {
    match &tree.place {
        Place::System(directories) => sweep_directory(&directories.root, 0, is_left, stop),
        Place::Disk(_) => Ok(0),
    }
}

fn sweep_directory(
    directory: &OwnedFd,
    depth: usize,
    is_left: &dyn Fn(&[u8], Duration) -> bool,
    stop: &dyn Fn() -> bool,
) -> io::Result<u64> {
    let mut count = 0;
    for item in Dir::read_from(directory)? {
        let item = item?;
        let name = item.file_name();
        // All that are removed are hidden, and other hidden entries are not ours.
        let is_hidden = name.to_bytes().starts_with(b".");
        match kind(directory, &item) {
            _ if stop() => break,
            FileType::RegularFile if is_hidden => {
                let Ok(stat) = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
                    continue;
                };
                let written =
                    UNIX_EPOCH + Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or_default());
                let age = SystemTime::now().duration_since(written).unwrap_or_default();
                if is_left(name.to_bytes(), age)
                    && rustix::fs::unlinkat(directory.as_fd(), name, AtFlags::empty()).is_ok()
                {
                    count += 1;
                }
            }
            FileType::Directory if !is_hidden && depth < DEPTH_MAX => {
                let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
                if let Ok(below) = rustix::fs::openat(directory, name, flags, Mode::empty()) {
                    count += sweep_directory(&below, depth + 1, is_left, stop).unwrap_or_default();
                }
            }
            _ => {}
        }
    }
    Ok(count)
}
