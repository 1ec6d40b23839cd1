//! A command's inputs other than its arguments: environment variables, clock, local time, and where it may
//! go.
//!
//! They are fields of a struct, so the C library and tests can supply their own; verbs read no environment
//! themselves. The current directory is the process's, as in RRDtool.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use args::times::Clock;
use rrd::time::Timestamp;
use rrd::when::calendar::Calendar;
use rrd_file::Locking;
use rrdgraph::GraphContext;

use crate::failure::{Failure, Result};

/// A command's inputs other than its arguments.
pub struct Environment {
    /// RRDCACHED_ADDRESS, if set and not empty.
    pub daemon: Option<Vec<u8>>,
    /// The leading part of an absolute name that a daemon on another host does not know (RRDCACHED_STRIPPATH).
    pub strip_path: Option<Vec<u8>>,
    /// What to do about a locked file (RRD_LOCKING).
    pub locking: Locking,
    /// The directory outside of which no file may be named (`rrdtool - DIR`), with links resolved.
    pub confined_to: Option<PathBuf>,
    /// The clock: seconds and microseconds.
    pub now: fn() -> Timestamp,
    /// Local time.
    pub calendar: Box<dyn Calendar>,
    /// The decimal point (LC_NUMERIC), where RRDtool respects it.
    pub decimal_point: String,
    /// The font of graphs (RRD_DEFAULT_FONT), if not the default.
    pub default_font: Option<Vec<u8>>,
    /// The first day of the week (LC_TIME), counted from Sunday = 0.
    pub first_weekday: u32,
}

impl Environment {
    /// The environment of this process. Needs no system call; the time zone is read when a date is needed.
    pub fn of_process() -> Self {
        let variable = |name: &str| std::env::var_os(name).map(OsStringExt::into_vec);
        let locking = variable("RRD_LOCKING").and_then(|word| String::from_utf8(word).ok());
        Environment {
            daemon: variable("RRDCACHED_ADDRESS").filter(|address| !address.is_empty()),
            strip_path: variable("RRDCACHED_STRIPPATH"),
            locking: locking.and_then(|word| Locking::from_word(&word)).unwrap_or_default(),
            confined_to: None,
            now: wall_clock,
            calendar: Box::new(localtime::Local),
            decimal_point: localtime::locale::decimal_point(),
            default_font: variable("RRD_DEFAULT_FONT"),
            first_weekday: localtime::locale::first_weekday(),
        }
    }

    /// The part of the environment that graphs need.
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

    /// Replaces the point of the number after `start` with the locale's decimal point.
    pub(crate) fn localise(&self, text: &mut Vec<u8>, start: usize) {
        if self.decimal_point != "."
            && let Some(at) = memchr::memchr(b'.', &text[start..])
        {
            text.splice(start + at..=start + at, self.decimal_point.bytes());
        }
    }

    /// The path that an argument names, if it is allowed.
    ///
    /// # Errors
    /// When the path leads outside the directory to which the session is confined.
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

/// Whether a path leads to somewhere below `base`, with links followed. A path that does not exist yet must
/// be a plain name in a directory that does.
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
