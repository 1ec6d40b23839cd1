//! LIST.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use store::engine::StoreError;
use store::name::RrdName;

use super::Kept;
use super::lines::{self, Lines};
use crate::connection::refusal::Refusal;
use crate::metrics::DropReason;
use crate::service::Service;

/// Answers LIST.
///
/// # Errors
/// When there is no such directory or RRD, or not enough memory for the answer.
pub fn list(service: &Service, path: &[u8], recursive: bool, kept: &mut Kept) -> Result<(), Refusal> {
    let base = service.names.base();
    let shown = [&base[..base.len() - 1], path].concat();
    let refuse = |why: &str| Err(Refusal::of_path(DropReason::Name, "List ", &shown, why));
    let inside = path.iter().position(|&byte| byte != b'/').map_or(path, |at| &path[at..]);
    let directory = match RrdName::new(inside.trim_ascii_end()) {
        Ok(name) => name.as_bytes().to_vec(),
        // The base directory itself, with any number of slashes.
        Err(_) if path.iter().all(|&byte| byte == b'/') => Vec::new(),
        Err(_) => return refuse(": Permission denied"),
    };
    let (mut names, share) = lines::collect(
        service,
        |hold| service.engine.list_within(&directory, recursive, hold),
        |error| match error {
            StoreError::NoSuchRrd(_) => Ok(Vec::new()),
            error => Err(Refusal::of_store("", error)),
        },
    )?;
    for name in &mut names {
        let inside = name.strip_prefix(&*directory).unwrap_or(name);
        let inside = inside.strip_prefix(b"/").unwrap_or(inside);
        name.drain(..name.len() - inside.len());
        name.truncate(name.strip_suffix(b"/").unwrap_or(name).len());
    }
    // The path may be an RRD instead of a directory.
    let alone = directory.rsplit(|&byte| byte == b'/').next().unwrap_or(&directory);
    if names.is_empty() && !directory.is_empty() {
        match RrdName::new(&directory).map(|name| service.engine.status(&name)) {
            Ok(Ok(_)) => names.push(alone.to_vec()),
            _ if service.sees_all_below(&directory) && is_directory(&shown) => {}
            _ => return refuse(": No such file or directory"),
        }
    }
    // A line feed in a name would break the line count, and such a name cannot be requested anyway.
    names.retain(|name| !name.contains(&b'\n'));
    kept.rest = Some(Lines::new(b"RRDs", names, share));
    Ok(())
}

/// Whether there is a directory on disk, which may not contain RRDs yet.
fn is_directory(path: &[u8]) -> bool {
    Path::new(OsStr::from_bytes(path)).symlink_metadata().is_ok_and(|found| found.is_dir())
}
