//! The rules of the house that the compiler does not know are tests, in `tests/`. Here is what they share.

#![forbid(unsafe_code)]

pub mod constants;

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the workspace.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text of a file, named from the folder of the workspace.
///
/// # Panics
/// When it cannot be read as UTF-8.
#[must_use]
pub fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// All files under some folders of the workspace whose name ends like this, as (name from the workspace, text), sorted.
/// Folders called `target` are left out.
///
/// # Panics
/// When one of the files is not UTF-8.
#[must_use]
pub fn files(folders: &[&str], endings: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    while let Some(folder) = open.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
            if path.is_dir() {
                if !name.ends_with("target") {
                    open.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                let text = read(&name);
                found.push((name, text));
            }
        }
    }
    found.sort();
    found
}

/// All Rust sources.
///
/// # Panics
/// When they are not where this function looks.
#[must_use]
pub fn sources() -> Vec<(String, String)> {
    let found = files(&["crates", "fuzz"], &[".rs"]);
    assert!(found.len() > 20, "the sources are not where this function looks");
    found
}
