//! Project rules that the compiler cannot check are tests in `tests/`. This library holds what they share.

#![forbid(unsafe_code)]

pub mod constants;

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the workspace.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text of a file; its path is relative to the workspace.
///
/// # Panics
/// When it cannot be read as UTF-8.
#[must_use]
pub fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// All files in some folders of the workspace with one of the endings, sorted, as (path relative to the workspace, text).
/// Skips folders named `target`.
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
/// When hardly any are found, which means that this function looks in the wrong place.
#[must_use]
pub fn sources() -> Vec<(String, String)> {
    let found = files(&["crates", "fuzz"], &[".rs"]);
    assert!(found.len() > 20, "too few sources were found");
    found
}
