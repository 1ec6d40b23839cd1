//! The address of a store's daemon, in a small text file at the root of the tree of placeholders.
//!
//! The daemon writes it when its sockets are bound. A client that meets a placeholder derives the root of the
//! tree from the name in the placeholder, and reads the address there. The file holds no data: a stale one
//! names a socket on which no daemon listens, and the next start replaces it. So nothing here syncs.
//!
//! ```text
//! roundel-daemon 1
//! id 00112233445566778899aabbccddeeff
//! address unix:/var/lib/roundel/rrdcached.sock
//! ```

use std::fmt;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};
use rustix::io::Errno;

use crate::name::RrdName;
use crate::placeholder::{Placeholder, StoreIdentity};
use crate::tree::FILE_MODE;

/// The name of the file.
pub const FILE_NAME: &str = ".roundel-daemon";
/// The first line.
const FIRST_LINE: &str = "roundel-daemon 1";
/// Longest file that is read; an address has at most a few hundred bytes.
const BYTES_MAX: u64 = 4096;

/// Why no daemon can be found for a placeholder.
#[derive(Debug)]
pub enum DaemonAddressError {
    /// No directory above it has the file: it was moved or copied out of its store's tree, or no daemon has served that yet.
    Outside(Placeholder),
    /// The file cannot be read.
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file is not in this release's format.
    Malformed(PathBuf),
    /// The file belongs to another store than the placeholder.
    Foreign(PathBuf),
}

impl fmt::Display for DaemonAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DaemonAddressError::Outside(Placeholder { store, name, .. }) => write!(
                f,
                "it is a placeholder of \"{name}\" in store {store}, outside of that store's tree, where no {FILE_NAME} says \
                 which daemon has it; move it back, start that daemon, or name it (--daemon)"
            ),
            DaemonAddressError::Unreadable { path, error } => write!(
                f,
                "it is a placeholder, and {} does not say which daemon has its store ({error}); \
                 start it, or name it (--daemon)",
                path.display()
            ),
            DaemonAddressError::Malformed(path) => {
                write!(f, "it is a placeholder, and {} is no file of this release", path.display())
            }
            DaemonAddressError::Foreign(path) => write!(
                f,
                "it is a placeholder of another store than the daemon's that {} names",
                path.display()
            ),
        }
    }
}

impl std::error::Error for DaemonAddressError {}

/// Writes the address of a store's daemon to the root of a tree, replacing any old file.
///
/// # Errors
/// When the file cannot be written or renamed.
pub fn write(tree: &Path, store: StoreIdentity, address: &str) -> io::Result<()> {
    let new = tree.join(format!("{FILE_NAME}.{}", std::process::id()));
    std::fs::write(&new, format!("{FIRST_LINE}\nid {store}\naddress {address}\n"))?;
    std::fs::rename(&new, tree.join(FILE_NAME)).inspect_err(|_| {
        // It would only be litter.
        std::fs::remove_file(&new).ok();
    })
}

/// The address of the daemon that has the RRD of the placeholder at `path`, and the RRD's name there: what the path is within the tree, as the daemon
/// follows what is done to placeholders.
///
/// # Errors
/// As in [`DaemonAddressError`].
pub fn find(path: &Path, placeholder: &Placeholder) -> Result<(String, RrdName), DaemonAddressError> {
    let outside = || DaemonAddressError::Outside(placeholder.clone());
    let real = path.canonicalize().map_err(|_| outside())?;
    let (tree, name) = tree_above(&real).ok_or_else(outside)?;
    let file = tree.join(FILE_NAME);
    let unreadable = |error| DaemonAddressError::Unreadable { path: file.clone(), error };
    let text = read(&file).map_err(unreadable)?;
    let Some((id, address)) = parse(&text) else { return Err(DaemonAddressError::Malformed(file)) };
    match id == placeholder.store.to_string() {
        true => Ok((address.to_string(), name)),
        false => Err(DaemonAddressError::Foreign(file)),
    }
}

/// The address of the daemon in whose tree a path lies, and its name there. The path itself need not exist,
/// but its directory must.
pub fn above(path: &Path) -> Option<(String, RrdName)> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let real = parent.canonicalize().ok()?.join(path.file_name()?);
    let (tree, name) = tree_above(&real)?;
    Some((at(tree)?.1, name))
}

/// What the file at the root of a tree says: the id of the store, and the address of its daemon.
pub fn at(tree: &Path) -> Option<(String, String)> {
    let text = read(&tree.join(FILE_NAME)).ok()?;
    parse(&text).map(|(id, address)| (id.to_string(), address.to_string()))
}

/// Whether the daemon made the placeholder at `path` as its own user, and no one has changed its owner or mode since. Such a placeholder says nothing about
/// who may write: the rights of the daemon's socket do, as with rrdcached.
pub fn is_as_made(path: &Path) -> bool {
    let Ok(real) = path.canonicalize() else { return false };
    let Some((tree, _)) = tree_above(&real) else { return false };
    let (Ok(made), Ok(about)) = (tree.join(FILE_NAME).metadata(), real.metadata()) else { return false };
    // What the daemon's umask has left of either mode.
    about.uid() == made.uid() && about.mode() & 0o7777 == made.mode() & FILE_MODE
}

/// Checks that the caller may write to the placeholder at `path`, as it must be allowed to write to a `.rrd` file there. A file system that is mounted
/// read-only is no hindrance: the store is elsewhere.
///
/// # Errors
/// The system's, when it may not.
pub fn check_writable(path: &Path) -> io::Result<()> {
    match rustix::fs::accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS) {
        Err(error @ (Errno::ACCESS | Errno::PERM)) if !is_as_made(path) => Err(error.into()),
        _ => Ok(()),
    }
}

/// The tree that a path without links lies in, and its name there.
fn tree_above(real: &Path) -> Option<(&Path, RrdName)> {
    let tree = real.ancestors().skip(1).find(|tree| tree.join(FILE_NAME).is_file())?;
    let name = RrdName::new(real.strip_prefix(tree).ok()?.as_os_str().as_bytes()).ok()?;
    Some((tree, name))
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    std::fs::File::open(file)?.take(BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}

/// Parses the id and the address.
fn parse(text: &[u8]) -> Option<(&str, &str)> {
    let mut lines = std::str::from_utf8(text).ok()?.lines();
    if lines.next()? != FIRST_LINE {
        return None;
    }
    Some((lines.next()?.strip_prefix("id ")?, lines.next()?.strip_prefix("address ")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_leads_to_the_daemon_of_its_store() {
        let directory = tempfile::tempdir().unwrap();
        let tree = directory.path();
        std::fs::create_dir(tree.join("host")).unwrap();
        let path = tree.join("host/a.rrd");
        std::fs::write(&path, "any").unwrap();
        let name = RrdName::new(b"host/a.rrd").unwrap();
        let placeholder = Placeholder { store: StoreIdentity([7; 16]), name, rrd: None };
        assert!(matches!(find(&path, &placeholder), Err(DaemonAddressError::Outside(_))));
        write(tree, StoreIdentity([7; 16]), "unix:/x.sock").unwrap();
        assert_eq!(
            find(&path, &placeholder).unwrap(),
            ("unix:/x.sock".to_string(), placeholder.name.clone())
        );
        assert_eq!(above(&tree.join("host/new.rrd")).unwrap().1.as_bytes(), b"host/new.rrd");
        assert_eq!(above(&tree.join("new.rrd")).unwrap().0, "unix:/x.sock");
        assert!(above(&tree.join("nodir/new.rrd")).is_none());
        assert!(above(Path::new("/new.rrd")).is_none());
        let foreign = Placeholder { store: StoreIdentity([8; 16]), ..placeholder.clone() };
        assert!(matches!(find(&path, &foreign), Err(DaemonAddressError::Foreign(_))));
        std::fs::rename(&path, tree.join("b.rrd")).unwrap();
        assert_eq!(find(&tree.join("b.rrd"), &placeholder).unwrap().1.as_bytes(), b"b.rrd");
        let away = tempfile::tempdir().unwrap();
        std::fs::rename(tree.join("b.rrd"), away.path().join("b.rrd")).unwrap();
        let outside = find(&away.path().join("b.rrd"), &placeholder).unwrap_err().to_string();
        assert!(outside.contains("host/a.rrd") && outside.contains("move it back"), "{outside}");
        std::fs::rename(away.path().join("b.rrd"), tree.join("b.rrd")).unwrap();
        std::fs::write(tree.join(FILE_NAME), "hello\n").unwrap();
        std::fs::rename(tree.join("b.rrd"), &path).unwrap();
        assert!(matches!(find(&path, &placeholder), Err(DaemonAddressError::Malformed(_))));
    }
}
