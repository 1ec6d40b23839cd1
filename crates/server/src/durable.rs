//! Small files of the daemon's own that are replaced whole.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Replaces a file by one with this content. It is durable when this returns; after a crash it is the new one or the one before.
///
/// # Errors
/// The system's.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    replace_with_mode(path, content, 0o666)
}

/// The same; only its owner may read it.
///
/// # Errors
/// The system's.
pub fn replace_private(path: &Path, content: &[u8]) -> io::Result<()> {
    replace_with_mode(path, content, 0o600)
}

fn replace_with_mode(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut new = OsString::from(path);
    new.push(".new");
    let new = PathBuf::from(new);
    // One that a crash has left may have other rights.
    fs::remove_file(&new).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })?;
    let mut file = File::options().write(true).create_new(true).mode(mode).open(&new)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_replaced_whatever_a_crash_has_left() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("a.view");
        fs::write(place.path().join("a.view.new"), "half of another one").unwrap();
        replace(&file, b"1").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"1");
        replace_private(&file, b"2").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"2");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
        assert!(replace(&place.path().join("none/a"), b"").is_err());
    }
}
