//! Making whole files: beside their target under a temporary name, then renamed.
//!
//! Whoever opens the target sees the old file or the new one, never a part of it; a full disk leaves the old
//! one and no temporary. Unknown rows are written, not left out, so that readers see one kind of file.

use std::path::Path;

use rrd::content::Rrd;
use rrd::definition::Definition;

use crate::direct::DirectError;

/// What to do about a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// The new one takes its place.
    Replace,
    /// It stays, and that is an error.
    Refuse,
}

/// Makes a new file, all unknown, last updated at `start` (seconds). It gets the mode of the file it
/// replaces, or 0644 whatever the umask is; a symbolic link is replaced, not followed.
///
/// # Errors
/// [`DirectError::Create`] when it exists, [`DirectError::Temporary`], [`DirectError::Rename`],
/// [`DirectError::File`] when no file can hold the definition.
pub fn create(
    path: &Path,
    definition: &Definition,
    start: i64,
    existing: Existing,
) -> Result<(), DirectError> {
    let _ = (path, definition, start, existing);
    unimplemented_yet()
}

/// The same with content (`create --source`, structural `tune`).
///
/// # Errors
/// As [`create`].
pub fn create_filled(path: &Path, rrd: &Rrd, existing: Existing) -> Result<(), DirectError> {
    let _ = (path, rrd, existing);
    unimplemented_yet()
}

/// Writes a file as `restore` and `resize` do: mode 0666 less the umask, or that of the file it replaces;
/// a symbolic link is followed.
///
/// # Errors
/// [`DirectError::Create`]; [`DirectError::File`] when no file can hold the RRD.
pub fn write_file(path: &Path, rrd: &Rrd, existing: Existing) -> Result<(), DirectError> {
    let _ = (path, rrd, existing);
    unimplemented_yet()
}

fn unimplemented_yet() -> Result<(), DirectError> {
    Err(DirectError::Temporary(std::io::ErrorKind::Unsupported.into()))
}
