//! Builds of ours: where a directory like `target/release` has what is measured.

use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::daemon::Kind;

/// A build of ours.
#[derive(Clone, Debug)]
pub struct Build {
    directory: PathBuf,
}

impl Build {
    /// The build in a directory.
    ///
    /// # Errors
    /// That there is no `roundel` in it.
    pub fn open(directory: &Path) -> Outcome<Self> {
        let there = |error| format!("no build of ours in {}: {error}", directory.display());
        let directory = directory.canonicalize().map_err(there)?;
        directory.join("roundel").metadata().map_err(there)?;
        Ok(Build { directory })
    }

    /// The executable of the daemon.
    pub fn roundel(&self) -> PathBuf {
        self.directory.join("roundel")
    }

    /// The command line, to be called by the name `rrdtool`: an executable of its own, or in an older build the
    /// daemon's.
    pub fn rrdtool(&self) -> PathBuf {
        let own = self.directory.join("rrdtool");
        if own.exists() { own } else { self.roundel() }
    }

    /// The C library.
    pub fn library(&self) -> PathBuf {
        self.directory.join("liblibrrd.so")
    }

    /// The example `direct` of crate `rrd-file`: files used in place.
    pub fn direct(&self) -> PathBuf {
        self.directory.join("examples/direct")
    }
}

/// A daemon to measure: its kind, and the build where it is ours.
#[derive(Clone, Debug)]
pub struct Program {
    /// Which daemon.
    pub kind: Kind,
    /// Our executable; unused for rrdcached.
    pub roundel: PathBuf,
    /// Of the other build.
    pub is_before: bool,
}

impl Program {
    /// As tables and directories call it.
    pub fn title(&self) -> String {
        let title = self.kind.title();
        if self.is_before { format!("{title}, before") } else { title.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn an_older_build_has_one_executable() {
        let directory = std::env::temp_dir().join(format!("bench-builds-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        assert!(Build::open(&directory).is_err());
        fs::write(directory.join("roundel"), "").unwrap();
        let build = Build::open(&directory).unwrap();
        assert_eq!(build.rrdtool(), build.roundel());
        fs::write(directory.join("rrdtool"), "").unwrap();
        assert_eq!(build.rrdtool().file_name().unwrap(), "rrdtool");
        fs::remove_dir_all(directory).unwrap();
    }
}
