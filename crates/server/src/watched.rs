//! Files that a collector reads again when they change.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A file with what it looked like when it was last read.
#[derive(Debug)]
pub struct WatchedFile {
    path: PathBuf,
    seen: Option<(SystemTime, u64)>,
}

impl WatchedFile {
    /// A file that has not been read.
    pub fn new(path: &Path) -> Self {
        WatchedFile { path: path.to_path_buf(), seen: None }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True when its time or size differ from those at the last [`WatchedFile::read`]; a file that is gone has not changed.
    pub fn has_changed(&self) -> bool {
        let now = look(&self.path);
        now.is_some() && now != self.seen
    }

    /// True when it is not there.
    pub fn is_gone(&self) -> bool {
        look(&self.path).is_none()
    }

    /// Reads it.
    ///
    /// # Errors
    /// A text with the file's name.
    pub fn read(&mut self) -> Result<Vec<u8>, String> {
        // Before reading: a change in between is seen next time.
        self.seen = look(&self.path);
        std::fs::read(&self.path).map_err(|error| format!("cannot read \"{}\": {error}", self.path.display()))
    }
}

fn look(path: &Path) -> Option<(SystemTime, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
