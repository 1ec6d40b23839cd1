//! Whether a running rrdcached writes to a journal: then it must not be taken over.
//!
//! It takes no lock, so its open files tell. Those of another user's processes only root can see; of these the command line still says which journal is theirs.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::journal_files;

/// The bit of a descriptor's link in `/proc` that says that it can be written to.
const WRITABLE: u32 = 0o200;

/// Checks that no process has a file of this journal open for writing. The result may be a text that says what cannot be known.
///
/// # Errors
/// A text for the operator: which process has it.
pub fn check_unused(directory: &Path) -> Result<Option<String>, String> {
    let files: HashSet<(u64, u64)> = journal_files(directory)
        .unwrap_or_default()
        .iter()
        .filter_map(|file| fs::metadata(&file.path).ok())
        .map(|about| (about.dev(), about.ino()))
        .collect();
    if files.is_empty() {
        return Ok(None);
    }
    let shown = directory.display();
    let Ok(processes) = fs::read_dir("/proc") else {
        let text = format!(
            "/proc cannot be read: whether an rrdcached still uses its journal in \"{shown}\" is not known"
        );
        return Ok(Some(text));
    };
    let mut hidden = None;
    for entry in processes.flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let uses = match writes_to(&entry.path(), &files) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let is_rrdcached =
                    fs::read(entry.path().join("comm")).is_ok_and(|name| name == b"rrdcached\n");
                if is_rrdcached {
                    hidden = Some(process);
                }
                is_rrdcached && is_named(&entry.path(), directory)
            }
            // It has ended meanwhile.
            uses => uses.unwrap_or(false),
        };
        if uses && process != std::process::id() {
            return Err(format!(
                "process {process} has rrdcached's journal in \"{shown}\" open: stop that daemon first; what it has not written to the RRDs is then taken from there"
            ));
        }
    }
    Ok(hidden.map(|process| {
        format!("process {process} is an rrdcached of another user, whose open files only root can see: stop it, if its journal is the one in \"{shown}\"")
    }))
}

/// Whether a process, by its directory in `/proc`, has one of these files open for writing.
fn writes_to(process: &Path, files: &HashSet<(u64, u64)>) -> io::Result<bool> {
    for entry in fs::read_dir(process.join("fd"))?.flatten() {
        let path = entry.path();
        let is_writable = fs::symlink_metadata(&path).is_ok_and(|link| link.mode() & WRITABLE != 0);
        if is_writable && fs::metadata(&path).is_ok_and(|about| files.contains(&(about.dev(), about.ino()))) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the command line of a process has this directory for its journal.
fn is_named(process: &Path, directory: &Path) -> bool {
    let line = fs::read(process.join("cmdline")).unwrap_or_default();
    let mut words = line.split(|&byte| byte == 0);
    let wanted = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_path_buf());
    let is_wanted = |word: &[u8]| {
        let path = PathBuf::from(OsStr::from_bytes(word));
        fs::canonicalize(&path).unwrap_or(path) == wanted
    };
    while let Some(word) = words.next() {
        let Some(given) = word.strip_prefix(b"-j") else { continue };
        if given.is_empty() && words.next().is_some_and(is_wanted) || !given.is_empty() && is_wanted(given) {
            return true;
        }
    }
    false
}
