//! Files that are no RRDs and live in a directory of their own: Munin's `datafile`, lock files, states of plugins.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use protocol::rrdcached::files::{FileStat, Rights};
use rustix::io::Errno;

use crate::scratch::name_of;
use crate::store::Result;

/// What the names of RRDs have in them, those of unfinished ones too.
const RRD: &[u8] = b".rrd";

/// A directory for files that are no RRDs.
#[derive(Debug)]
pub struct Extra {
    directory: PathBuf,
}

/// What stands at a path.
#[derive(Clone, Copy, Debug)]
pub enum Found {
    /// A file.
    File(FileStat),
    /// A socket: that of a daemon whose files live here.
    Socket(FileStat),
    /// A directory.
    Directory,
}

/// The error number of an error of the system.
pub fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

impl Extra {
    /// The files in a directory.
    pub fn new(directory: PathBuf) -> Self {
        Extra { directory }
    }

    /// Whether a file of this path would live here.
    pub fn owns(&self, path: &[u8]) -> bool {
        !name_of(path).windows(RRD.len()).any(|part| part == RRD)
    }

    fn place(&self, path: &[u8]) -> PathBuf {
        self.directory.join(OsStr::from_bytes(path))
    }

    /// What stands at a path; `None` = nothing that has a place in a tree of RRDs.
    pub fn find(&self, path: &[u8]) -> Option<Found> {
        let about = fs::symlink_metadata(self.place(path)).ok()?;
        match about.file_type() {
            kind if kind.is_dir() => Some(Found::Directory),
            kind if kind.is_file() => Some(Found::File(stat(&about))),
            kind if kind.is_socket() => Some(Found::Socket(stat(&about))),
            _ => None,
        }
    }

    /// The entries of a directory.
    pub fn list(&self, path: &[u8]) -> Vec<(Vec<u8>, Found)> {
        let Ok(entries) = fs::read_dir(self.place(path)) else { return Vec::new() };
        let one = |entry: io::Result<fs::DirEntry>| {
            let name = entry.ok()?.file_name().as_bytes().to_vec();
            let path = if path.is_empty() { name.clone() } else { [path, b"/", &name].concat() };
            let found = self.find(&path)?;
            (matches!(found, Found::Directory) || self.owns(&path)).then_some((name, found))
        };
        entries.filter_map(one).collect()
    }

    /// Opens a file; makes it, with its directories, if `create` has its rights.
    ///
    /// # Errors
    /// The system's.
    pub fn open(&self, path: &[u8], write: bool, create: Option<u32>) -> Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(write).custom_flags(NOFOLLOW);
        let place = self.place(path);
        if let Some(mode) = create {
            if let Some(directory) = place.parent() {
                fs::create_dir_all(directory).map_err(|error| errno(&error))?;
            }
            options.create(true).truncate(false).mode(mode);
        }
        options.open(place).map_err(|error| errno(&error))
    }

    /// Makes the file of a socket with these rights and this owner, with the directories above it.
    ///
    /// # Errors
    /// The system's: EEXIST.
    pub fn make_socket(&self, path: &[u8], mode: u32, (user, group): (u32, u32)) -> Result<FileStat> {
        let place = self.place(path);
        if let Some(directory) = place.parent() {
            fs::create_dir_all(directory).map_err(|error| errno(&error))?;
        }
        let rights = rustix::fs::Mode::from_raw_mode(mode & 0o7777);
        rustix::fs::mknodat(rustix::fs::CWD, &place, rustix::fs::FileType::Socket, rights, 0)?;
        self.set_rights(path, Some(mode), Some(user), Some(group)).ok();
        fs::symlink_metadata(place).map(|about| stat(&about)).map_err(|error| errno(&error))
    }

    /// Makes a directory, with those above it.
    ///
    /// # Errors
    /// The system's.
    pub fn make_directory(&self, path: &[u8]) -> Result {
        fs::create_dir_all(self.place(path)).map_err(|error| errno(&error))
    }

    /// Removes a directory, if it is there.
    ///
    /// # Errors
    /// The system's: ENOTEMPTY.
    pub fn remove_directory(&self, path: &[u8]) -> Result {
        match fs::remove_dir(self.place(path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(errno(&error)),
            _ => Ok(()),
        }
    }

    /// Removes a file.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(&self, path: &[u8]) -> Result {
        fs::remove_file(self.place(path)).map_err(|error| errno(&error))
    }

    /// Renames a file or a directory.
    ///
    /// # Errors
    /// The system's.
    pub fn rename(&self, from: &[u8], to: &[u8]) -> Result {
        let to = self.place(to);
        if let Some(directory) = to.parent() {
            fs::create_dir_all(directory).map_err(|error| errno(&error))?;
        }
        fs::rename(self.place(from), to).map_err(|error| errno(&error))
    }

    /// Changes rights and owner of a file.
    ///
    /// # Errors
    /// The system's.
    pub fn set_rights(
        &self,
        path: &[u8],
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
    ) -> Result {
        use std::os::unix::fs::{PermissionsExt, lchown};
        let place = self.place(path);
        if let Some(mode) = mode {
            let rights = fs::Permissions::from_mode(mode & 0o7777);
            fs::set_permissions(&place, rights).map_err(|error| errno(&error))?;
        }
        match (user, group) {
            (None, None) => Ok(()),
            _ => lchown(place, user, group).map_err(|error| errno(&error)),
        }
    }
}

/// A link in the last place would lead out of the directory.
const NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

/// What `stat(2)` says of a file.
pub fn stat(about: &Metadata) -> FileStat {
    FileStat {
        bytes: about.len(),
        modified: (about.mtime(), (about.mtime_nsec() / 1000) as u32),
        rights: Some(Rights { mode: about.mode() & 0o7777, user: about.uid(), group: about.gid() }),
    }
}
