//! SNAPSHOT: a copy of the store as it is at one moment, in a directory of this name below the one that the operator allows.
//!
//! A client says a name or a path in just that directory, never where else. The copy has another name until it is complete.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use protocol::rrdcached::reply;
use store::snapshot::write;

use crate::connection::refusal::Refusal;
use crate::metrics::DropReason;
use crate::service::Service;

/// The longest name: dates and purposes.
const NAME_BYTES_MAX: usize = 128;
/// Snapshots there may be: each has files of its own, and keeps others from going.
const SNAPSHOTS_MAX: usize = 1000;

/// One at a time: each holds files.
static TURN: Mutex<()> = Mutex::new(());

/// Answers SNAPSHOT.
///
/// # Errors
/// When no directory is allowed, the name is none in it, there is one of that name, or the copy cannot be made.
pub fn snapshot(service: &Service, word: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
    let refused = |text: String| Refusal::new(DropReason::Refused, text);
    let Some(allowed) = service.snapshots.get() else {
        let text = "This daemon makes no snapshots: give snapshots = \"DIR\" in its configuration.";
        return Err(refused(text.to_string()));
    };
    let name = name_in(allowed, word).ok_or_else(|| {
        let text = format!(
            "Give a name of letters, digits, '.', '_' and '-', or such a name in {}: snapshots are made nowhere else.",
            allowed.display()
        );
        Refusal::new(DropReason::Name, text)
    })?;
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let copied = make(service, allowed, &name).map_err(|text| refused(text.replace('\n', " ")))?;
    service.operated("snapshot", name.to_str());
    reply::push_status(out, 1, b"Snapshot");
    let path = allowed.join(&name);
    let line = format!("{} {} {}\n", copied.linked, copied.copied, path.display());
    out.extend_from_slice(line.as_bytes());
    Ok(())
}

/// The name that is meant, if it is one in the directory.
fn name_in(allowed: &Path, word: &[u8]) -> Option<PathBuf> {
    let at = word.iter().rposition(|byte| *byte == b'/');
    let (directory, name) = at.map_or((None, word), |at| (Some(&word[..at]), &word[at + 1..]));
    // As it is written, so that nothing outside is looked at.
    if directory.is_some_and(|directory| Path::new(OsStr::from_bytes(directory)) != allowed) {
        return None;
    }
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    let is_name = name.first().is_some_and(u8::is_ascii_alphanumeric)
        && name.iter().all(is_plain)
        && name.len() <= NAME_BYTES_MAX;
    is_name.then(|| PathBuf::from(OsStr::from_bytes(name)))
}

fn make(service: &Service, allowed: &Path, name: &Path) -> Result<store::snapshot::Copied, String> {
    let cannot = |error: &dyn std::fmt::Display| format!("cannot make the snapshot: {error}");
    std::fs::create_dir_all(allowed).map_err(|error| cannot(&error))?;
    let to = allowed.join(name);
    if to.symlink_metadata().is_ok() {
        return Err(format!("there is a snapshot \"{}\" already", to.display()));
    }
    let count = std::fs::read_dir(allowed).map_err(|error| cannot(&error))?.count();
    if count >= SNAPSHOTS_MAX {
        return Err(format!("there are {count} snapshots: remove some from {}", allowed.display()));
    }
    // What a crash left unfinished.
    let unfinished = allowed.join(".unfinished");
    match std::fs::remove_dir_all(&unfinished) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(cannot(&error)),
        _ => {}
    }
    let capture = service.engine.capture().map_err(|error| cannot(&error))?;
    let copied = write(&capture, &unfinished).map_err(|error| cannot(&error))?;
    drop(capture);
    let sync = || std::fs::File::open(allowed)?.sync_all();
    std::fs::rename(&unfinished, &to).and_then(|()| sync()).map_err(|error| cannot(&error))?;
    tracing::info!(snapshot = %to.display(), linked = copied.linked, copied = copied.copied, "a snapshot of the store was made");
    Ok(copied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_are_made_in_one_directory_only() {
        let allowed = Path::new("/srv/snapshots");
        let name = |word: &str| name_in(allowed, word.as_bytes());
        assert_eq!(name("2026-11-25"), Some("2026-11-25".into()));
        assert_eq!(name("/srv/snapshots/a.b_c"), Some("a.b_c".into()));
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        for bad in [
            "",
            "/",
            ".",
            "..",
            ".hidden",
            "-x",
            "a/b",
            "../a",
            "/srv/snapshots/../a",
            "/srv/snapshots/a/b",
            "/srv/snapshots/..",
            "/srv/snapshots2/a",
            "/etc/a",
            "srv/snapshots/a",
            "a b",
            "a\u{e9}",
            "a\0",
            &long,
        ] {
            assert_eq!(name(bad), None, "{bad:?}");
        }
    }
}
