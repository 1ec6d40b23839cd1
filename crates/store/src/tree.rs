//! The directory tree that programs see: files opened by [`RrdName`], never outside of it.
//!
//! A name holds no `..` ([`RrdName`]); here the links on the way are refused that would lead out of the
//! root (`openat2(2)` with `RESOLVE_BENEATH`; where a kernel or a sandbox lacks that call, every link is
//! refused). The last component is opened without following a link unless that link stays inside.
//! Directories are opened once and remembered, so that most opens walk a single component.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::name::RrdName;

/// Directories remembered open. Each costs a file descriptor of the usual 1,024; a tree is mostly written
/// in runs within one directory, so few are enough. At the limit all are closed and collected anew.
const DIRECTORIES_MAX: usize = 256;

/// Mode of directories made here, before the umask (`rrdcached -R` makes them the same).
const DIRECTORY_MODE: u32 = 0o775;

/// A base directory and what of it is open.
#[derive(Debug)]
pub struct Tree {
    root: Arc<OwnedFd>,
    path: PathBuf,
    directories: Mutex<HashMap<Box<[u8]>, Arc<OwnedFd>>>,
}

impl Tree {
    /// Opens the base directory, which must exist.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let root = Arc::new(rustix::fs::open(path, flags, Mode::empty())?);
        Ok(Tree { root, path: path.to_path_buf(), directories: Mutex::new(HashMap::new()) })
    }

    /// The base directory as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The base directory, open.
    pub fn root(&self) -> &OwnedFd {
        &self.root
    }

    /// Opens the file of this name. With `CREATE` in `flags` missing directories are made.
    ///
    /// `ELOOP` and `EXDEV` mean a link that leads out (or, without `openat2`, any link).
    pub fn open_file(&self, name: &RrdName, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let (directory, leaf) = split(name.as_bytes());
        let create = flags.contains(OFlags::CREATE);
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let parent = self.directory(directory, create)?;
        match rustix::fs::openat(&parent, leaf, flags, mode) {
            // A remembered directory may have been removed and made again behind our back.
            Err(Errno::NOENT) if !directory.is_empty() => {
                self.forget_all();
                let parent = self.directory(directory, create)?;
                Ok(rustix::fs::openat(&parent, leaf, flags, mode)?)
            }
            Err(Errno::LOOP) if !create => Ok(self.open_beneath(name.as_bytes(), flags)?),
            other => Ok(other?),
        }
    }

    /// Removes the file of this name (the link itself, if it is one).
    pub fn remove(&self, name: &RrdName) -> io::Result<()> {
        let (directory, leaf) = split(name.as_bytes());
        let parent = self.directory(directory, false)?;
        Ok(rustix::fs::unlinkat(&parent, leaf, rustix::fs::AtFlags::empty())?)
    }

    /// Renames `leaf` to the name's last component, both in the name's directory.
    pub fn rename_into_place(&self, leaf: &[u8], name: &RrdName, replace: bool) -> io::Result<()> {
        let (directory, target) = split(name.as_bytes());
        let parent = self.directory(directory, false)?;
        if replace {
            Ok(rustix::fs::renameat(&parent, leaf, &parent, target)?)
        } else {
            let flags = rustix::fs::RenameFlags::NOREPLACE;
            Ok(rustix::fs::renameat_with(&parent, leaf, &parent, target, flags)?)
        }
    }

    /// Makes what was renamed into the directory of `name` durable.
    pub fn sync_directory(&self, name: &RrdName) -> io::Result<()> {
        let parent = self.directory(split(name.as_bytes()).0, false)?;
        Ok(rustix::fs::fsync(&parent)?)
    }

    /// The directory at `path` below the base (`""` = the base), made if asked for.
    pub fn directory(&self, path: &[u8], create: bool) -> io::Result<Arc<OwnedFd>> {
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
                let parent = self.directory(above, true)?;
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
        // The resolver does the checking now, so a link that stays inside may be followed.
        let following = flags.difference(OFlags::NOFOLLOW);
        loop {
            match rustix::fs::openat2(&self.root, path, following, Mode::empty(), beneath) {
                // Something was renamed during the walk; the manual page says to try again.
                Err(Errno::AGAIN) => continue,
                Err(Errno::NOSYS | Errno::PERM) => return self.open_by_component(path, flags),
                other => return other,
            }
        }
    }

    /// The same without `openat2`: one component at a time, no links at all.
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

    /// Any directory above may be the one that went, so none is kept.
    fn forget_all(&self) {
        self.remembered().clear();
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, HashMap<Box<[u8]>, Arc<OwnedFd>>> {
        // The map is only a memory of opens: whatever a panic left in it is valid.
        self.directories.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `a/b/c` as `a/b` and `c`.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
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
        let open = |text: &str| tree.open_file(&name(text), OFlags::RDONLY, Mode::empty()).is_ok();
        for good in ["real/a.rrd", "inside/a.rrd", "real/b.rrd"] {
            assert!(open(good), "{good}");
        }
        for bad in ["up/secret.rrd", "absolute/secret.rrd", "real/leaf.rrd"] {
            assert!(!open(bad), "{bad}");
        }
        let create = OFlags::CREATE | OFlags::WRONLY;
        for bad in ["up/new.rrd", "absolute/new/x.rrd", "real/leaf.rrd"] {
            assert!(tree.open_file(&name(bad), create, Mode::from_raw_mode(0o644)).is_err(), "{bad}");
        }
        assert!(!outer.path().join("new.rrd").exists() && !outer.path().join("new").exists());
    }

    #[test]
    fn without_openat2_every_link_is_refused() {
        let (outer, tree) = tree();
        symlink("real", outer.path().join("base/inside")).unwrap();
        assert!(tree.open_by_component(b"real/a.rrd", OFlags::RDONLY).is_ok());
        assert!(tree.open_by_component(b"inside/a.rrd", OFlags::RDONLY).is_err());
    }

    #[test]
    fn directories_are_made_and_made_again() {
        let (outer, tree) = tree();
        let create = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
        let make = |text: &str| tree.open_file(&name(text), create, Mode::from_raw_mode(0o644)).unwrap();
        make("x/y/z.rrd");
        std::fs::remove_dir_all(outer.path().join("base/x")).unwrap();
        make("x/y/z.rrd");
        assert!(outer.path().join("base/x/y/z.rrd").exists());
    }
}
