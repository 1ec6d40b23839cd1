//! The directory tree that programs see: files are opened by [`RrdName`] and never outside of it.
//!
//! A name contains no `..` ([`RrdName`]). Symbolic links that lead out of the root are refused (`openat2(2)`
//! with `RESOLVE_BENEATH`; where a kernel or sandbox lacks that call, every link is refused). The last
//! component is opened without following a link unless the link stays inside. Open directories are cached, so
//! that most opens resolve a single component.

mod directory;
mod list;
mod sweep;

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use disk::Disk;
use hashbrown::HashMap;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, ResolveFlags, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

use crate::file::Access;
use crate::handle::Handle;
use crate::name::RrdName;
pub use directory::{Directory, Entry};
pub use list::{ListError, list, name_bytes};
pub use sweep::sweep;

/// Directories kept open. Each takes a file descriptor, of usually 1,024. Trees are mostly written directory
/// by directory, so few are enough. At the limit all are closed.
const DIRECTORIES_MAX: usize = 256;

/// Mode of new files, before the umask: RRDtool's.
pub(crate) const FILE_MODE: u32 = 0o644;

/// Mode of created directories, before the umask (as in `rrdcached -R`).
const DIRECTORY_MODE: u32 = 0o775;

/// A base directory, of the operating system or of another disk.
#[derive(Debug)]
pub struct Tree {
    place: Place,
    path: PathBuf,
}

enum Place {
    System(Directories),
    Disk(Arc<dyn Disk>),
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::System(directories) => directories.fmt(f),
            Place::Disk(_) => f.write_str("Disk"),
        }
    }
}

/// The cached open directories of a base directory.
#[derive(Debug)]
struct Directories {
    root: Arc<OwnedFd>,
    open: Mutex<HashMap<Box<[u8]>, Arc<OwnedFd>>>,
}

impl Tree {
    /// Opens the base directory, which must exist.
    ///
    /// # Errors
    /// When it does not exist or cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let root = Arc::new(rustix::fs::open(path, flags, Mode::empty())?);
        let place = Place::System(Directories { root, open: Mutex::new(HashMap::new()) });
        Ok(Tree { place, path: path.to_path_buf() })
    }

    /// The root of another disk; messages show it as `path`.
    pub fn on_disk(disk: Arc<dyn Disk>, path: &Path) -> Self {
        Tree { place: Place::Disk(disk), path: path.to_path_buf() }
    }

    /// The base directory as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file of this name; a FIFO does not block.
    ///
    /// # Errors
    /// The system's. `ELOOP` and `EXDEV` mean a link that leads out (or, without `openat2`, any link).
    pub fn open_file(&self, name: &RrdName, access: Access) -> io::Result<Handle> {
        match &self.place {
            Place::System(directories) => {
                let flags = match access {
                    Access::Read => OFlags::RDONLY,
                    Access::Write => OFlags::RDWR,
                };
                Ok(Handle::System(directories.open_file(name, flags | OFlags::NONBLOCK, Mode::empty())?))
            }
            Place::Disk(disk) => {
                let mode = match access {
                    Access::Read => disk::Mode::Read,
                    Access::Write => disk::Mode::Write,
                };
                Ok(Handle::Disk(disk.open(path_of(name.as_bytes()), mode)?))
            }
        }
    }

    /// Opens the file of this name for reading as [`Tree::open_file`] does, but by its whole path, so that a directory that was renamed just
    /// now is not mistaken for the one of its former name.
    ///
    /// # Errors
    /// As [`Tree::open_file`].
    pub fn open_afresh(&self, name: &RrdName) -> io::Result<Handle> {
        match &self.place {
            Place::System(directories) => {
                let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
                Ok(Handle::System(directories.open_beneath(name.as_bytes(), flags)?))
            }
            Place::Disk(_) => self.open_file(name, Access::Read),
        }
    }

    /// Creates an empty file of this name for writing, and the directories above it. Its mode is 0644 less
    /// the umask.
    ///
    /// # Errors
    /// `AlreadyExists` when there is one; the system's.
    pub fn create_file(&self, name: &RrdName) -> io::Result<Handle> {
        match &self.place {
            Place::System(directories) => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
                let file = directories.open_file(name, flags, Mode::from_raw_mode(FILE_MODE))?;
                Ok(Handle::System(file))
            }
            Place::Disk(disk) => {
                disk.create_dir_all(path_of(split(name.as_bytes()).0))?;
                Ok(Handle::Disk(disk.create(path_of(name.as_bytes()))?))
            }
        }
    }

    /// True when this name exists.
    pub fn exists(&self, name: &RrdName) -> bool {
        match &self.place {
            Place::System(directories) => directories.open_file(name, OFlags::PATH, Mode::empty()).is_ok(),
            Place::Disk(disk) => disk.exists(path_of(name.as_bytes())).unwrap_or(false),
        }
    }

    /// Removes the file of this name (the link itself, if it is one).
    ///
    /// # Errors
    /// The system's.
    pub fn remove(&self, name: &RrdName) -> io::Result<()> {
        match &self.place {
            Place::System(directories) => {
                let (directory, leaf) = split(name.as_bytes());
                let parent = directories.get(directory, false)?;
                Ok(rustix::fs::unlinkat(&parent, leaf, rustix::fs::AtFlags::empty())?)
            }
            Place::Disk(disk) => disk.remove(path_of(name.as_bytes())),
        }
    }

    /// Sets when the file of this name was last modified, in seconds since the epoch and nanoseconds, unless it says so already. A link is not
    /// followed.
    ///
    /// # Errors
    /// The system's; on a disk that is not the system's, always.
    pub fn set_modified(&self, name: &RrdName, (seconds, nanoseconds): (i64, u32)) -> io::Result<()> {
        let Place::System(directories) = &self.place else { return Err(io::ErrorKind::Unsupported.into()) };
        let (directory, leaf) = split(name.as_bytes());
        let parent = directories.get(directory, false)?;
        let about = rustix::fs::statat(&parent, leaf, AtFlags::SYMLINK_NOFOLLOW)?;
        if (about.st_mtime, about.st_mtime_nsec as u64) == (seconds, u64::from(nanoseconds)) {
            return Ok(());
        }
        let times = Timestamps {
            last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            last_modification: Timespec { tv_sec: seconds, tv_nsec: i64::from(nanoseconds) },
        };
        Ok(rustix::fs::utimensat(&parent, leaf, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Renames a file, replacing what has the new name, and creates the directories above that.
    ///
    /// # Errors
    /// The system's.
    pub fn rename(&self, from: &RrdName, to: &RrdName) -> io::Result<()> {
        let ((above_from, leaf_from), (above_to, leaf_to)) = (split(from.as_bytes()), split(to.as_bytes()));
        match &self.place {
            Place::System(directories) => {
                let parents = || {
                    Ok::<_, io::Error>((
                        directories.get(above_from, false)?,
                        directories.get(above_to, true)?,
                    ))
                };
                let (parent_from, parent_to) = parents()?;
                match rustix::fs::renameat(&parent_from, leaf_from, &parent_to, leaf_to) {
                    // Another program may have removed and recreated a cached directory.
                    Err(Errno::NOENT) => {
                        directories.forget_all();
                        let (parent_from, parent_to) = parents()?;
                        Ok(rustix::fs::renameat(&parent_from, leaf_from, &parent_to, leaf_to)?)
                    }
                    other => Ok(other?),
                }
            }
            Place::Disk(disk) => {
                disk.create_dir_all(path_of(above_to))?;
                disk.rename(path_of(from.as_bytes()), path_of(to.as_bytes()))
            }
        }
    }

    /// Renames `leaf` to the name's last component, both in the name's directory.
    ///
    /// # Errors
    /// `AlreadyExists` when the name exists and must not be replaced; the system's.
    pub fn rename_into_place(&self, leaf: &[u8], name: &RrdName, replace: bool) -> io::Result<()> {
        let (directory, target) = split(name.as_bytes());
        match &self.place {
            Place::System(directories) => {
                let parent = directories.get(directory, false)?;
                let flags = RenameFlags::NOREPLACE;
                match replace {
                    true => rustix::fs::renameat(&parent, leaf, &parent, target)?,
                    false => rustix::fs::renameat_with(&parent, leaf, &parent, target, flags)?,
                }
                Ok(())
            }
            Place::Disk(disk) => {
                let target = path_of(name.as_bytes());
                if !replace && disk.exists(target)? {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                disk.rename(&path_of(directory).join(path_of(leaf)), target)
            }
        }
    }

    /// Makes renames into and removals from the directory of `name` durable, and the directories up to the
    /// base, which may be new.
    ///
    /// # Errors
    /// The system's.
    pub fn sync_directories(&self, name: &RrdName) -> io::Result<()> {
        let mut directory = name.as_bytes();
        while !directory.is_empty() {
            directory = split(directory).0;
            match &self.place {
                Place::System(directories) => rustix::fs::fsync(&directories.get(directory, false)?)?,
                Place::Disk(disk) => disk.sync_dir(path_of(directory))?,
            }
        }
        Ok(())
    }

    /// Makes everything on the tree's file system durable.
    ///
    /// # Errors
    /// The system's.
    pub fn sync_all(&self) -> io::Result<()> {
        match &self.place {
            Place::System(directories) => Ok(rustix::fs::syncfs(&directories.root)?),
            Place::Disk(disk) => disk.sync_all(),
        }
    }
}

impl Directories {
    /// Opens a file. With `CREATE` in `flags`, missing directories are created.
    fn open_file(&self, name: &RrdName, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let (directory, leaf) = split(name.as_bytes());
        let create = flags.contains(OFlags::CREATE);
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let parent = self.get(directory, create)?;
        match rustix::fs::openat(&parent, leaf, flags, mode) {
            // Another program may have removed and recreated a cached directory.
            Err(Errno::NOENT) if !directory.is_empty() => {
                self.forget_all();
                let parent = self.get(directory, create)?;
                Ok(rustix::fs::openat(&parent, leaf, flags, mode)?)
            }
            Err(Errno::LOOP) if !create => Ok(self.open_beneath(name.as_bytes(), flags)?),
            // No file can have it.
            Err(Errno::NAMETOOLONG) if !create => Err(Errno::NOENT.into()),
            other => Ok(other?),
        }
    }

    /// The directory at `path` below the base (`""` = the base), created if `create`.
    fn get(&self, path: &[u8], create: bool) -> io::Result<Arc<OwnedFd>> {
        if path.is_empty() {
            return Ok(Arc::clone(&self.root));
        }
        if let Some(found) = self.remembered().get(path) {
            return Ok(Arc::clone(found));
        }
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let opened = match self.open_beneath(path, flags) {
            Err(Errno::NOENT) if create => {
                let (above, leaf) = split(path);
                let parent = self.get(above, true)?;
                match rustix::fs::mkdirat(&parent, leaf, Mode::from_raw_mode(DIRECTORY_MODE)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                self.open_beneath(path, flags)?
            }
            other => other?,
        };
        let opened = Arc::new(opened);
        let mut remembered = self.remembered();
        if remembered.len() >= DIRECTORIES_MAX {
            remembered.clear();
        }
        remembered.insert(path.into(), Arc::clone(&opened));
        Ok(opened)
    }

    fn open_beneath(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        // The kernel checks the path now, so a link that stays inside may be followed.
        let following = flags.difference(OFlags::NOFOLLOW);
        loop {
            match rustix::fs::openat2(&self.root, path, following, Mode::empty(), beneath) {
                // Something was renamed meanwhile; the manual page says to retry.
                Err(Errno::AGAIN) => continue,
                // None can have it.
                Err(Errno::NAMETOOLONG) => return Err(Errno::NOENT),
                Err(Errno::NOSYS | Errno::PERM) => return self.open_by_component(path, flags),
                other => return other,
            }
        }
    }

    /// As [`Directories::open_beneath`], without `openat2`: one component at a time, no links at all.
    fn open_by_component(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let (above, leaf) = split(path);
        let step = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let mut parent: Option<OwnedFd> = None;
        for component in above.split(|&byte| byte == b'/').filter(|component| !component.is_empty()) {
            let from = parent.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
            parent = Some(rustix::fs::openat(from, component, step, Mode::empty())?);
        }
        let from = parent.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
        rustix::fs::openat(from, leaf, flags | OFlags::NOFOLLOW, Mode::empty())
    }

    /// Any directory above may be the one that was removed, so none is kept.
    fn forget_all(&self) {
        self.remembered().clear();
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, HashMap<Box<[u8]>, Arc<OwnedFd>>> {
        // The map is only a cache of open directories, so it is valid even after a panic.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Splits `a/b/c` into `a/b` and `c`.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

/// A part of a name as a path.
fn path_of(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn name(text: &str) -> RrdName {
        RrdName::new(text.as_bytes()).unwrap()
    }

    fn tree() -> (tempfile::TempDir, Tree) {
        let outer = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(outer.path().join("base/real")).unwrap();
        std::fs::write(outer.path().join("secret.rrd"), "secret").unwrap();
        std::fs::write(outer.path().join("base/real/a.rrd"), "a").unwrap();
        let tree = Tree::open(&outer.path().join("base")).unwrap();
        (outer, tree)
    }

    #[test]
    fn links_that_stay_inside_are_followed_and_others_refused() {
        let (outer, tree) = tree();
        let base = outer.path().join("base");
        symlink("real", base.join("inside")).unwrap();
        symlink("a.rrd", base.join("real/b.rrd")).unwrap();
        symlink("..", base.join("up")).unwrap();
        symlink(outer.path(), base.join("absolute")).unwrap();
        symlink("../../secret.rrd", base.join("real/leaf.rrd")).unwrap();
        let open = |text: &str| tree.open_file(&name(text), Access::Read).is_ok();
        for good in ["real/a.rrd", "inside/a.rrd", "real/b.rrd"] {
            assert!(open(good), "{good}");
        }
        for bad in ["up/secret.rrd", "absolute/secret.rrd", "real/leaf.rrd"] {
            assert!(!open(bad), "{bad}");
        }
        for bad in ["up/new.rrd", "absolute/new/x.rrd", "real/leaf.rrd"] {
            assert!(tree.create_file(&name(bad)).is_err(), "{bad}");
        }
        assert!(!outer.path().join("new.rrd").exists() && !outer.path().join("new").exists());
    }

    #[test]
    fn without_openat2_every_link_is_refused() {
        let (outer, tree) = tree();
        symlink("real", outer.path().join("base/inside")).unwrap();
        let Place::System(tree) = &tree.place else { panic!("it is the system's") };
        assert!(tree.open_by_component(b"real/a.rrd", OFlags::RDONLY).is_ok());
        assert!(tree.open_by_component(b"inside/a.rrd", OFlags::RDONLY).is_err());
    }

    #[test]
    fn directories_are_created_and_recreated() {
        let (outer, tree) = tree();
        let make = |text: &str| tree.create_file(&name(text)).unwrap();
        make("x/y/z.rrd");
        std::fs::remove_dir_all(outer.path().join("base/x")).unwrap();
        make("x/y/z.rrd");
        assert!(outer.path().join("base/x/y/z.rrd").exists());
    }
}
