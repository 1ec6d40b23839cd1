//! What a command is given beside its words: the environment, the clock, local time, and where it may go.
//!
//! A value, so that the C library and tests can make their own; verbs read no environment themselves. The
//! current directory is the process's: RRDtool's is too.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use args::times::Clock;
use rrd::time::Timestamp;
use rrd::when::calendar::Calendar;
use rrdgraph::GraphContext;
use store::direct::Locking;

use crate::failure::{Failure, Result};

/// What a command is given beside its words.
pub struct Environment {
    /// RRDCACHED_ADDRESS, when it is set and not empty.
    pub daemon: Option<Vec<u8>>,
    /// What to do about a locked file (RRD_LOCKING).
    pub locking: Locking,
    /// The directory that names of files may not lead out of (`rrdtool - DIR`), free of links.
    pub confined_to: Option<PathBuf>,
    /// The time: seconds and microseconds.
    pub now: fn() -> Timestamp,
    /// Local time.
    pub calendar: Box<dyn Calendar>,
    /// What stands in front of decimals (LC_NUMERIC), where RRDtool heeds that.
    pub decimal_point: String,
    /// The font of graphs (RRD_DEFAULT_FONT), where not the usual one.
    pub default_font: Option<Vec<u8>>,
    /// The day that weeks begin with (LC_TIME), counted from Sunday = 0.
    pub first_weekday: u32,
}

impl Environment {
    /// Those of this process. Costs no system call; the zone is read when a date is asked for.
    pub fn of_process() -> Self {
        let variable = |name: &str| std::env::var_os(name).map(OsStringExt::into_vec);
        let locking = variable("RRD_LOCKING").and_then(|word| String::from_utf8(word).ok());
        Environment {
            daemon: variable("RRDCACHED_ADDRESS").filter(|address| !address.is_empty()),
            locking: locking.and_then(|word| Locking::from_word(&word)).unwrap_or_default(),
            confined_to: None,
            now: wall_clock,
            calendar: Box::new(localtime::Local),
            decimal_point: localtime::locale::decimal_point(),
            default_font: variable("RRD_DEFAULT_FONT"),
            first_weekday: localtime::locale::first_weekday(),
        }
    }

    /// What graphs take from it.
    pub(crate) fn graph_context(&self) -> GraphContext {
        GraphContext {
            first_weekday: self.first_weekday,
            decimal_point: self.decimal_point.clone(),
            default_font: self.default_font.clone(),
            ..GraphContext::at((self.now)().whole)
        }
    }

    /// What the times among the arguments are relative to.
    pub(crate) fn clock(&self) -> Clock<'_> {
        Clock { now: (self.now)().whole, calendar: &*self.calendar }
    }

    /// Puts the locale's decimal point where the number behind `start` has a point.
    pub(crate) fn localise(&self, text: &mut Vec<u8>, start: usize) {
        if self.decimal_point != "."
            && let Some(at) = memchr::memchr(b'.', &text[start..])
        {
            text.splice(start + at..=start + at, self.decimal_point.bytes());
        }
    }

    /// The path that a word is, when it is allowed.
    ///
    /// # Errors
    /// A path that leads out of the directory the session is confined to.
    pub fn path<'w>(&self, word: &'w [u8]) -> Result<&'w Path> {
        let path = Path::new(OsStr::from_bytes(word));
        match &self.confined_to {
            Some(base) if !stays_within(base, path) => {
                Err(Failure::of_name("opening '", word, "': Permission denied"))
            }
            _ => Ok(path),
        }
    }
}

/// Whether a path leads to somewhere below `base`, links followed. What does not exist yet must be a plain
/// name in a directory that does.
pub fn stays_within(base: &Path, path: &Path) -> bool {
    if let Ok(real) = path.canonicalize() {
        return real.starts_with(base);
    }
    if path.symlink_metadata().is_ok_and(|found| found.file_type().is_symlink()) {
        return false;
    }
    let Some(Component::Normal(_)) = path.components().next_back() else { return false };
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => stays_within(base, Path::new(".")),
        Some(parent) => stays_within(base, parent),
        None => false,
    }
}

/// Seconds and microseconds since the epoch.
fn wall_clock() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::new(since.as_secs() as i64, since.subsec_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confined_session_cannot_leave() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let base = root.join("base");
        std::fs::create_dir_all(base.join("sub")).unwrap();
        std::fs::write(root.join("outside.rrd"), "x").unwrap();
        std::fs::write(base.join("inside.rrd"), "x").unwrap();
        std::os::unix::fs::symlink(&root, base.join("up")).unwrap();
        std::os::unix::fs::symlink(root.join("new.rrd"), base.join("dangling.rrd")).unwrap();
        std::os::unix::fs::symlink("inside.rrd", base.join("link.rrd")).unwrap();
        let check = |path: &str, want: bool| {
            assert_eq!(stays_within(&base, &base.join(path)), want, "{path}");
        };
        for inside in ["inside.rrd", "link.rrd", "new.rrd", "sub/new.rrd", "sub/../inside.rrd", ".", "sub/.."]
        {
            check(inside, true);
        }
        for outside in [
            "..",
            "../outside.rrd",
            "../new.rrd",
            "up/outside.rrd",
            "up/new.rrd",
            "up",
            "dangling.rrd",
            "sub/../../outside.rrd",
            "/etc/passwd",
            "nodir/../../outside.rrd",
            "nodir/..",
        ] {
            check(outside, false);
        }
    }
}
