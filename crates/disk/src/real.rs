//! The real disk: a directory of the operating system, accessed through `rustix`.
//!
//! The root is opened once, so renaming or remounting a parent cannot move the store.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{self, AtFlags, FallocateFlags, FlockOperation, OFlags};
use rustix::io::Errno;

use crate::{Advice, Disk, DiskFile, Mode, Shortage};

/// Permissions of new files and directories, before the umask: the operator's group may read.
const FILE_MODE: u32 = 0o640;
const DIRECTORY_MODE: u32 = 0o750;

/// A directory of the operating system.
#[derive(Debug)]
pub struct RealDisk {
    root: OwnedFd,
    root_path: PathBuf,
    file_mode: u32,
    /// Directories that were synced: they stay open, so that clients that take all descriptors cannot keep the
    /// store from syncing them again.
    directories: Mutex<HashMap<PathBuf, Arc<OwnedFd>>>,
}

impl RealDisk {
    /// Opens `root`.
    ///
    /// # Errors
    /// When it does not exist or is not a directory.
    pub fn open(root: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = fs::open(root, flags, fs::Mode::empty()).map_err(|errno| failed("open", root, errno))?;
        let directories = Mutex::default();
        Ok(RealDisk { root: fd, root_path: root.to_owned(), file_mode: FILE_MODE, directories })
    }

    /// Opens `root`, creating it if it is missing.
    ///
    /// # Errors
    /// When it cannot be created or opened.
    pub fn create(root: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(root).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot create {}: {error}", root.display()))
        })?;
        RealDisk::open(root)
    }

    /// The same disk with another mode for new files, before the umask is applied.
    #[must_use]
    pub fn with_file_mode(self, file_mode: u32) -> Self {
        RealDisk { file_mode, ..self }
    }

    fn full(&self, path: &Path) -> PathBuf {
        self.root_path.join(path)
    }

    fn failed(&self, operation: &'static str, path: &Path, errno: Errno) -> io::Error {
        failed(operation, &self.full(path), errno)
    }

    fn open_file(
        &self,
        path: &Path,
        flags: OFlags,
        operation: &'static str,
    ) -> io::Result<Arc<dyn DiskFile>> {
        let mode = fs::Mode::from_raw_mode(self.file_mode);
        let fd = retry(|| fs::openat(&self.root, path, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, mode))
            .map_err(|errno| self.failed(operation, path, errno))?;
        Ok(Arc::new(RealFile { fd, path: self.full(path) }))
    }

    /// A directory that stays open.
    fn kept_dir(&self, dir: &Path) -> Result<Arc<OwnedFd>, Errno> {
        let known = || self.directories.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = known().get(dir).cloned();
        if let Some(fd) = kept {
            // Another directory may have taken its name.
            let (now, then) = (fs::statat(&self.root, or_here(dir), AtFlags::empty())?, fs::fstat(&fd)?);
            if (now.st_dev, now.st_ino) == (then.st_dev, then.st_ino) {
                return Ok(fd);
            }
        }
        let fd = Arc::new(self.open_dir(dir)?);
        known().insert(dir.to_owned(), Arc::clone(&fd));
        Ok(fd)
    }

    fn open_dir(&self, dir: &Path) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        retry(|| fs::openat(&self.root, or_here(dir), flags, fs::Mode::empty()))
    }
}

/// The root is `""` in our paths and `.` for the kernel.
fn or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.open_file(path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, "create")
    }

    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let flags = if mode == Mode::Read { OFlags::RDONLY } else { OFlags::RDWR };
        self.open_file(path, flags, "open")
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::renameat(&self.root, from, &self.root, to).map_err(|errno| self.failed("rename", from, errno))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::unlinkat(&self.root, path, AtFlags::empty()).map_err(|errno| self.failed("remove", path, errno))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let failed = |errno| self.failed("list", dir, errno);
        let mut names = Vec::new();
        for entry in fs::Dir::new(self.open_dir(dir).map_err(failed)?).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut above = PathBuf::new();
        for component in dir.components() {
            let path = above.join(component);
            match fs::mkdirat(&self.root, &path, fs::Mode::from_raw_mode(DIRECTORY_MODE)) {
                Ok(()) => self.sync_dir(&above)?,
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(self.failed("create directory", &path, errno)),
            }
            above = path;
        }
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let failed = |errno| self.failed("sync directory", dir, errno);
        let fd = self.kept_dir(dir).map_err(failed)?;
        retry(|| fs::fsync(&fd)).map_err(failed)
    }

    fn sync_all(&self) -> io::Result<()> {
        retry(|| fs::syncfs(&self.root)).map_err(|errno| self.failed("sync", Path::new(""), errno))
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        let stat = fs::statat(&self.root, or_here(path), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| self.failed("find", path, errno))?;
        Ok(stat.st_size as u64)
    }

    fn link_out(&self, path: &Path, to: &Path) -> io::Result<()> {
        fs::linkat(&self.root, path, fs::CWD, to, AtFlags::empty())
            .map_err(|errno| self.failed("link", path, errno))
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let space = fs::fstatvfs(&self.root)
            .map_err(|errno| self.failed("ask for free space on", Path::new(""), errno))?;
        Ok(space.f_bavail.saturating_mul(space.f_frsize))
    }
}

/// An open file of the operating system.
struct RealFile {
    fd: OwnedFd,
    path: PathBuf,
}

impl RealFile {
    fn failed(&self, operation: &'static str, errno: Errno) -> io::Error {
        failed(operation, &self.path, errno)
    }
}

impl DiskFile for RealFile {
    fn write_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = retry(|| rustix::io::pwrite(&self.fd, bytes, offset))
                .map_err(|errno| self.failed("write", errno))?;
            if count == 0 {
                return Err(self.failed("write", Errno::IO));
            }
            bytes = &bytes[count..];
            offset += count as u64;
        }
        Ok(())
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            let rest = &mut bytes[done..];
            let count = retry(|| rustix::io::pread(&self.fd, &mut *rest, offset + done as u64))
                .map_err(|errno| self.failed("read", errno))?;
            if count == 0 {
                break;
            }
            done += count;
        }
        Ok(done)
    }

    fn sync(&self) -> io::Result<()> {
        retry(|| fs::fdatasync(&self.fd)).map_err(|errno| self.failed("sync", errno))
    }

    fn length(&self) -> io::Result<u64> {
        let stat = fs::fstat(&self.fd).map_err(|errno| self.failed("measure", errno))?;
        Ok(stat.st_size as u64)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        retry(|| fs::ftruncate(&self.fd, length)).map_err(|errno| self.failed("truncate", errno))
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        match retry(|| fs::fallocate(&self.fd, FallocateFlags::empty(), offset, length)) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(errno) => Err(self.failed("allocate", errno)),
        }
    }

    fn advise(&self, offset: u64, length: u64, advice: Advice) {
        let advice = match advice {
            Advice::Normal => fs::Advice::Normal,
            Advice::Sequential => fs::Advice::Sequential,
            Advice::Random => fs::Advice::Random,
            Advice::WillNeed => fs::Advice::WillNeed,
            Advice::DontNeed => fs::Advice::DontNeed,
        };
        // Only a hint: a file system that refuses it can still be read.
        let _ = fs::fadvise(&self.fd, offset, NonZeroU64::new(length), advice);
    }

    fn try_lock(&self) -> io::Result<bool> {
        match retry(|| fs::flock(&self.fd, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(errno) => Err(self.failed("lock", errno)),
        }
    }
}

/// Retries a call that a signal interrupted.
fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Operation, path and cause of a failed call.
#[derive(Debug)]
struct Failure {
    operation: &'static str,
    path: PathBuf,
    cause: io::Error,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.operation, self.path.display(), self.cause)
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

fn failed(operation: &'static str, path: &Path, errno: Errno) -> io::Error {
    let cause = io::Error::from(errno);
    let kind = match Shortage::of(&cause) {
        Some(shortage) => shortage.kind(),
        // The kind of this error stands for a shortage of descriptors.
        None if errno == Errno::BUSY => io::ErrorKind::Other,
        None => cause.kind(),
    };
    io::Error::new(kind, Failure { operation, path: path.to_owned(), cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> (tempfile::TempDir, RealDisk) {
        let root = tempfile::tempdir().expect("a temporary directory");
        let disk = RealDisk::create(&root.path().join("store")).unwrap();
        (root, disk)
    }

    #[test]
    fn files_are_written_and_read_by_position() {
        let (_root, disk) = disk();
        disk.create_dir_all(Path::new("a/b")).unwrap();
        disk.create_dir_all(Path::new("a/b")).unwrap();
        let path = Path::new("a/b/f");
        let file = disk.create(path).unwrap();
        file.write_at(b"world", 6).unwrap();
        file.write_at(b"hello ", 0).unwrap();
        file.sync().unwrap();
        let mut bytes = [0; 32];
        assert_eq!(disk.open(path, Mode::Read).unwrap().read_at(&mut bytes, 0).unwrap(), 11);
        assert_eq!(&bytes[..11], b"hello world");
        assert_eq!(file.read_at(&mut bytes, 11).unwrap(), 0);
        file.allocate(0, 4096).unwrap();
        file.truncate(5).unwrap();
        assert_eq!((file.length().unwrap(), disk.length(path).unwrap()), (5, 5));
        file.advise(0, 0, Advice::DontNeed);
        disk.rename(path, Path::new("a/g")).unwrap();
        disk.sync_dir(Path::new("a")).unwrap();
        disk.sync_dir(Path::new("")).unwrap();
        assert_eq!(disk.list(Path::new("a")).unwrap(), ["b", "g"]);
        assert_eq!(disk.list(Path::new("")).unwrap(), ["a"]);
        disk.remove(Path::new("a/g")).unwrap();
        assert!(!disk.exists(Path::new("a/g")).unwrap());
        assert!(disk.exists(Path::new("a/b")).unwrap());
        assert!(disk.free_bytes().unwrap() > 0);
    }

    #[test]
    fn errors_keep_their_kind_and_name_operation_and_path() {
        let (root, disk) = disk();
        let check = |error: io::Error, kind: io::ErrorKind, text: &str| {
            assert_eq!(error.kind(), kind);
            let want = text.replace("ROOT", &root.path().join("store").display().to_string());
            assert!(error.to_string().starts_with(&want), "{error} is not {want}");
        };
        let missing = Path::new("x");
        check(disk.open(missing, Mode::Read).err().unwrap(), io::ErrorKind::NotFound, "cannot open ROOT/x: ");
        check(disk.remove(missing).unwrap_err(), io::ErrorKind::NotFound, "cannot remove ROOT/x: ");
        disk.create(missing).unwrap();
        check(disk.create(missing).err().unwrap(), io::ErrorKind::AlreadyExists, "cannot create ROOT/x: ");
        let file = disk.open(missing, Mode::Read).unwrap();
        let refused = file.write_at(b"1", 0).unwrap_err().to_string();
        assert!(refused.starts_with("cannot write "), "{refused}");
        assert_eq!(failed("write", missing, Errno::NOSPC).kind(), io::ErrorKind::StorageFull);
        let full = failed("write", missing, Errno::MFILE);
        assert_eq!(Shortage::of(&full), Some(Shortage::Descriptors));
        assert!(full.to_string().contains("Too many open files"), "{full}");
        assert_eq!(Shortage::of(&failed("rename", missing, Errno::BUSY)), None);
    }

    #[test]
    fn a_lock_excludes_others_until_its_file_is_closed() {
        let (_root, disk) = disk();
        let path = Path::new("lock");
        let first = disk.create(path).unwrap();
        let second = disk.open(path, Mode::Write).unwrap();
        assert!(first.try_lock().unwrap());
        assert!(!second.try_lock().unwrap());
        drop(first);
        assert!(second.try_lock().unwrap());
    }
}
