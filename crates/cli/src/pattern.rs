//! The paths that match a shell pattern ([`args::pattern`]).
//!
//! Only a pattern with a leading dot matches names with one. Unreadable directories are skipped.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use args::pattern::{has_wildcards, matches, without_escapes};

/// All paths that match a pattern, sorted by bytes.
pub fn expand(pattern: &[u8]) -> Vec<Vec<u8>> {
    let mut paths = vec![Vec::new()];
    let mut parts = pattern.split(|&byte| byte == b'/').peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        let mut longer = Vec::new();
        for path in paths {
            each_match(path, part, last, &mut longer);
        }
        if !last {
            longer.iter_mut().for_each(|path| path.push(b'/'));
        }
        paths = longer;
    }
    paths.retain(|path| as_path(path).symlink_metadata().is_ok());
    paths.sort();
    paths
}

/// Extends the path by each name that matches `part`; only directories where more parts follow.
fn each_match(path: Vec<u8>, part: &[u8], last: bool, found: &mut Vec<Vec<u8>>) {
    if !has_wildcards(part) {
        found.push([path, without_escapes(part)].concat());
        return;
    }
    let directory: &[u8] = if path.is_empty() { b"." } else { &path };
    let Ok(entries) = std::fs::read_dir(as_path(directory)) else { return };
    let names = entries.flatten().map(|entry| entry.file_name().as_bytes().to_vec());
    for name in names.chain([b".".to_vec(), b"..".to_vec()]) {
        if (!name.starts_with(b".") || part.starts_with(b".")) && matches(part, &name) {
            let longer = [&*path, &name].concat();
            if last || as_path(&longer).is_dir() {
                found.push(longer);
            }
        }
    }
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
