//! Files that tests look for.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The names of the `.rrd` files below a directory, relative to it.
#[must_use]
pub fn rrd_files(base: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut directories = vec![base.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rrd") {
                found.insert(path.strip_prefix(base).map(Path::to_path_buf).unwrap_or(path));
            }
        }
    }
    found
}
