//! Locales for the programs under test, built from the system's sources, because a machine may have none.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The locales of the tests; one uses a decimal comma and starts the week on Monday, one does neither.
pub const NAMES: &[&str] = &["de_DE.UTF-8", "en_US.UTF-8"];

/// The directory for LOCPATH; `None`, which is reported, if the system has no sources of locales.
pub fn path() -> Option<&'static Path> {
    static MADE: OnceLock<Option<PathBuf>> = OnceLock::new();
    MADE.get_or_init(|| {
        let made = make();
        if made.is_none() {
            testkit::skip("no locales can be made: install Debian's package locales");
        }
        made
    })
    .as_deref()
}

fn make() -> Option<PathBuf> {
    let directory = testkit::peer::target().join("locales");
    for name in NAMES {
        let path = directory.join(name);
        if path.join("LC_NUMERIC").exists() {
            continue;
        }
        // Under another name first, because two test runs may build it at the same time. Beside its place, because a directory
        // cannot be renamed to another file system.
        std::fs::create_dir_all(&directory).expect("the directory of the locales can be made");
        let fresh = tempfile::tempdir_in(&directory).expect("a directory beside the locales");
        let made = fresh.path().join(name);
        let (source, charset) = name.split_once('.')?;
        let status = Command::new("localedef").args(["-i", source, "-f", charset]).arg(&made).output();
        if !status.is_ok_and(|output| output.status.success()) {
            return None;
        }
        if let Err(error) = std::fs::rename(&made, &path) {
            let is_there = path.join("LC_NUMERIC").exists();
            assert!(is_there, "the locale {} cannot be made: {error}", path.display());
        }
    }
    Some(directory)
}
