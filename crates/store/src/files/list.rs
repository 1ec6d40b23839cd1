//! LIST: the `.rrd` files below a directory of the tree. Links are not followed.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;

use rustix::fs::{Dir, FileType};

use crate::engine::StoreError;
use crate::tree::Tree;

/// Most names an answer holds. Beyond it the answer is an error rather than a part of the truth.
const NAMES_MAX: usize = 10_000_000;
/// Deepest directory looked into: more can only be a loop of mounts.
const DEPTH_MAX: usize = 64;

/// Names below `directory` (`""` = all), relative to the tree and sorted. Not recursive: the immediate
/// children, directories with a trailing `/`. Recursive: files only. What is no directory has none.
pub fn list(tree: &Tree, directory: &[u8], recursive: bool) -> Result<Vec<Vec<u8>>, StoreError> {
    let path = directory.strip_suffix(b"/").unwrap_or(directory);
    let opened = match tree.directory(path, false) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        opened => opened.map_err(|error| failed(path, error))?,
    };
    let mut names = Vec::new();
    let mut prefix = path.to_vec();
    if !prefix.is_empty() {
        prefix.push(b'/');
    }
    walk(&opened, &prefix, recursive, 0, &mut names)?;
    names.sort_unstable();
    Ok(names)
}

fn walk(
    directory: &OwnedFd,
    prefix: &[u8],
    recursive: bool,
    depth: usize,
    names: &mut Vec<Vec<u8>>,
) -> Result<(), StoreError> {
    let io = |error: rustix::io::Errno| failed(prefix, error.into());
    // Opened anew: a shared descriptor has one reading position for everyone.
    for item in Dir::read_from(directory).map_err(io)? {
        let item = item.map_err(io)?;
        let name = item.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let full = [prefix, name].concat();
        match kind(directory, &item) {
            FileType::Directory if !recursive => names.push([&full[..], b"/"].concat()),
            FileType::Directory if depth < DEPTH_MAX => {
                use rustix::fs::{Mode, OFlags};
                let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
                // What cannot be opened (permissions, just removed) is left out, as everything else is listed.
                if let Ok(below) = rustix::fs::openat(directory, item.file_name(), flags, Mode::empty()) {
                    walk(&below, &[&full[..], b"/"].concat(), true, depth + 1, names)?;
                }
            }
            FileType::RegularFile if name.ends_with(b".rrd") => names.push(full),
            _ => {}
        }
        if names.len() > NAMES_MAX {
            return Err(StoreError::Refused(format!(
                "more than {NAMES_MAX} names; list a directory at a time"
            )));
        }
    }
    Ok(())
}

/// What an entry is; some file systems do not say and must be asked.
fn kind(directory: &OwnedFd, item: &rustix::fs::DirEntry) -> FileType {
    match item.file_type() {
        FileType::Unknown => {
            let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::statat(directory, item.file_name(), flags)
                .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
        }
        known => known,
    }
}

fn failed(path: &[u8], error: std::io::Error) -> StoreError {
    let text = crate::files::medium::text(&error);
    StoreError::Io(format!("cannot list '{}': {text}", String::from_utf8_lossy(path)))
}
