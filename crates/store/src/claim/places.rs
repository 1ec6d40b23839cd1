//! Where a directory can be seen: its path, and those that bind mounts give it.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The mounts that this process sees, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Mounts(Vec<Mount>);

#[derive(Debug, PartialEq, Eq)]
struct Mount {
    /// The file system: `major:minor`.
    device: Vec<u8>,
    /// Which directory of the file system is shown.
    root: PathBuf,
    /// Where it is shown.
    point: PathBuf,
}

impl Mounts {
    /// Reads `/proc/thread-self/mountinfo`.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn read() -> io::Result<Self> {
        Ok(Self::parse(&std::fs::read("/proc/thread-self/mountinfo")?))
    }

    /// Parses what proc_pid_mountinfo(5) describes: number, parent, device, root, mount point and more.
    fn parse(text: &[u8]) -> Self {
        let mount = |line: &[u8]| {
            let mut fields = line.split(|&byte| byte == b' ').skip(2);
            let device = fields.next()?.to_vec();
            Some(Mount { device, root: unescaped(fields.next()?), point: unescaped(fields.next()?) })
        };
        Mounts(text.split(|&byte| byte == b'\n').filter_map(mount).collect())
    }

    /// The mount points below a directory.
    pub(super) fn inside(&self, directory: &Path) -> impl Iterator<Item = PathBuf> {
        let below =
            self.0.iter().filter(move |mount| mount.point != directory && mount.point.starts_with(directory));
        below.map(|mount| mount.point.clone())
    }

    /// All paths of a directory, first the one given, which has no links.
    pub(super) fn places(&self, directory: &Path) -> Vec<PathBuf> {
        let mut places = vec![directory.to_path_buf()];
        // The longest mount point above it; of several mounts there, the last covers the others.
        let above = self.0.iter().filter(|mount| directory.starts_with(&mount.point));
        let Some(shown) = above.max_by_key(|mount| mount.point.components().count()) else { return places };
        let Ok(rest) = directory.strip_prefix(&shown.point) else { return places };
        let inner = shown.root.join(rest);
        for mount in self.0.iter().filter(|mount| mount.device == shown.device) {
            let Ok(rest) = inner.strip_prefix(&mount.root) else { continue };
            // Joining nothing would add a slash.
            let place =
                if rest.as_os_str().is_empty() { mount.point.clone() } else { mount.point.join(rest) };
            if !places.contains(&place) && is_same(&place, directory) {
                places.push(place);
            }
        }
        places
    }
}

/// Whether two paths lead to the same directory; one may be hidden by another mount.
fn is_same(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| path.metadata().map(|about| (about.dev(), about.ino()));
    matches!((identity(one), identity(other)), (Ok(one), Ok(other)) if one == other)
}

/// A path in which blanks and the like are written as `\040`.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let octal = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(meant) if byte == b'\\' => {
                bytes.push(meant);
                rest = &after[3..];
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    PathBuf::from(OsStr::from_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_with_their_escapes() {
        let text = b"25 1 254:0 / / rw - ext4 /dev/vda rw\n31 25 0:27 /a\\040b\\134\\0401 /mnt/x\\012y rw shared:1 - tmpfs t rw\nodd\n";
        let mounts = Mounts::parse(text);
        let mount = |device: &str, root: &str, point: &str| Mount {
            device: device.into(),
            root: root.into(),
            point: point.into(),
        };
        assert_eq!(mounts.0, [mount("254:0", "/", "/"), mount("0:27", "/a b\\ 1", "/mnt/x\ny")]);
        assert_eq!(mounts.inside(Path::new("/mnt")).collect::<Vec<_>>(), [Path::new("/mnt/x\ny")]);
        assert_eq!(mounts.inside(Path::new("/mn")).count(), 0);
    }
}
