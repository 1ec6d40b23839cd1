//! The paths that a shell pattern matches ([`args::pattern`]).
//!
//! Only a pattern with a leading dot matches names with one. What cannot be read is passed over.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use args::pattern::{has_wildcards, matches, without_escapes};

/// Every path that a pattern matches, in the order of their bytes.
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

/// The path with each name behind it that the part matches; only directories where more follows.
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
