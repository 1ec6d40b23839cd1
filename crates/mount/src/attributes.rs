//! What `stat(2)` says.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo};
use protocol::rrdcached::files::{FileStat, Rights};

use crate::options::Options;

/// The rights of a file and of a directory that no placeholder says.
const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;
/// Bytes of a block, in which `stat` counts.
const BLOCK_BYTES: u64 = 512;

/// Owners and rights where nothing else says them.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    user: u32,
    group: u32,
    /// Those of the options go before all others.
    given: (Option<u32>, Option<u32>),
}

impl Owner {
    /// What the options say, else the user who mounts.
    pub fn of(options: &Options) -> Self {
        Owner {
            user: options.user.unwrap_or_else(|| rustix::process::getuid().as_raw()),
            group: options.group.unwrap_or_else(|| rustix::process::getgid().as_raw()),
            given: (options.user, options.group),
        }
    }

    /// An RRD's or another file's, of the number `number`.
    pub fn file(&self, number: u64, stat: &FileStat) -> FileAttr {
        let rights = stat.rights.unwrap_or(Rights { mode: FILE_MODE, user: self.user, group: self.group });
        let time = time(stat.modified);
        FileAttr {
            ino: INodeNo(number),
            size: stat.bytes,
            blocks: stat.bytes.div_ceil(BLOCK_BYTES),
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind: FileType::RegularFile,
            perm: (rights.mode & 0o7777) as u16,
            nlink: 1,
            uid: self.given.0.unwrap_or(rights.user),
            gid: self.given.1.unwrap_or(rights.group),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    /// A socket's.
    pub fn socket(&self, number: u64, stat: &FileStat) -> FileAttr {
        FileAttr { kind: FileType::Socket, ..self.file(number, stat) }
    }

    /// A directory's, whose time is `modified`.
    pub fn directory(&self, number: u64, modified: SystemTime) -> FileAttr {
        let stat = FileStat { bytes: 0, modified: (0, 0), rights: None };
        let attributes = self.file(number, &stat);
        FileAttr {
            kind: FileType::Directory,
            perm: DIRECTORY_MODE as u16,
            atime: modified,
            mtime: modified,
            ctime: modified,
            crtime: modified,
            ..attributes
        }
    }
}

/// A time of seconds since 1970, which may be before, and microseconds.
pub fn time((seconds, micros): (i64, u32)) -> SystemTime {
    let part = Duration::from_micros(u64::from(micros));
    let since = UNIX_EPOCH.checked_add(Duration::from_secs(seconds.unsigned_abs()));
    match seconds {
        0.. => since.map_or(UNIX_EPOCH, |time| time + part),
        _ => UNIX_EPOCH
            .checked_sub(Duration::from_secs(seconds.unsigned_abs()))
            .map_or(UNIX_EPOCH, |time| time + part),
    }
}

/// The present as seconds since 1970 and microseconds.
pub fn now() -> (i64, u32) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_secs() as i64, since.subsec_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_block_is_a_block() {
        let owner = Owner { user: 1, group: 2, given: (None, None) };
        let blocks = |bytes| owner.file(1, &FileStat { bytes, modified: (0, 0), rights: None }).blocks;
        assert_eq!([0, 1, 512, 513, 1024].map(blocks), [0, 1, 1, 2, 2]);
    }
}
