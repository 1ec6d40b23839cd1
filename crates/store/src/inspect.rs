//! Describes a file or directory of the store as text, read-only and as far as damage allows.
//!
//! This is what `roundel inspect` prints. It takes no lock and writes nothing, so it can read a store that a
//! daemon has open; a file that the daemon replaces meanwhile is then reported as missing. All damage is
//! reported with its offset and counted, and readable content around it is shown.

mod checkpoint;
mod journal;
mod log;
mod rrd_file;
mod segment;
mod store;

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rrd::time::MICROS;
use rrd::when::calendar::utc_text;

use crate::disk::RealDisk;
use crate::filenames::{self, FileKind};
use crate::files::journal as journal_file;
use crate::placeholder;
use crate::{checkpoint as checkpoint_file, log as log_file, segment as segment_file};

/// How much is shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// For a directory: read and check every block of every segment too, not only the footers.
    pub verify: bool,
}

/// The result of an inspection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Number of damaged or missing places.
    pub damage_count: u64,
}

/// Why nothing could be shown.
#[derive(Debug)]
pub enum InspectError {
    /// The file cannot be read.
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file belongs neither to Roundel nor to RRDtool.
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// The report could not be written.
    Write(io::Error),
}

impl fmt::Display for InspectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InspectError::Read { path, error } => write!(f, "cannot read \"{}\": {error}", path.display()),
            InspectError::Unknown { path } => write!(
                f,
                "cannot tell what \"{}\" is; give a store, a shard, a journal directory, or one of their files, \
                 or a .rrd file",
                path.display()
            ),
            InspectError::Write(error) => write!(f, "cannot write the report: {error}"),
        }
    }
}

impl std::error::Error for InspectError {}

/// Describes what is at `path`.
///
/// # Errors
/// When it cannot be read or is of an unknown kind, or `out` fails.
pub fn inspect(path: &Path, options: Options, out: &mut dyn Write) -> Result<Found, InspectError> {
    let read = |error| InspectError::Read { path: path.to_owned(), error };
    let what =
        identify(path).map_err(read)?.ok_or_else(|| InspectError::Unknown { path: path.to_owned() })?;
    let mut report = Report { out, broken: None, damage_count: 0 };
    what.show(path, options, &mut report).map_err(read)?;
    match report.broken {
        Some(error) => Err(InspectError::Write(error)),
        None => Ok(Found { damage_count: report.damage_count }),
    }
}

/// The text being written. Keeps the first error of a write and drops everything after it.
struct Report<'a> {
    out: &'a mut dyn Write,
    broken: Option<io::Error>,
    damage_count: u64,
}

impl Report<'_> {
    fn line(&mut self, text: impl fmt::Display) {
        if self.broken.is_none()
            && let Err(error) = writeln!(self.out, "{text}")
        {
            self.broken = Some(error);
        }
    }

    fn damage(&mut self, text: impl fmt::Display) {
        self.damage_count += 1;
        self.line(format_args!("  DAMAGE {text}"));
    }
}

/// The kind of a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathKind {
    Store,
    Shard,
    JournalDirectory,
    Journal,
    Kind(FileKind),
    Identity,
    Placeholder,
    RrdFile,
}

impl PathKind {
    fn show(self, path: &Path, options: Options, report: &mut Report<'_>) -> io::Result<()> {
        match self {
            PathKind::Store => return store::store(path, options, report),
            PathKind::Shard => return store::shard(path, options, report),
            PathKind::JournalDirectory => return journal::directory(path, report),
            PathKind::Journal => return journal::file(path, report),
            PathKind::Placeholder => rrd_file::placeholder(path, report),
            PathKind::RrdFile => return rrd_file::file(path, report),
            PathKind::Identity => store::identity(path, report)?,
            PathKind::Kind(kind) => {
                let (directory, name) = split(path);
                let disk = RealDisk::open(&directory)?;
                match kind {
                    FileKind::Log(start) => log::file(&disk, &name, start, report)?,
                    FileKind::Checkpoint(_) => checkpoint::file(&disk, &name, report)?,
                    FileKind::Segment(_) => segment::file(&disk, &name, report),
                    FileKind::Manifest | FileKind::ManifestNew | FileKind::ManifestCopy => {
                        store::manifest_file(path, report)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Identifies what is at `path`; `None` when it is unknown. The first bytes decide; if they are damaged, the
/// name does.
fn identify(path: &Path) -> io::Result<Option<PathKind>> {
    if fs::metadata(path)?.is_dir() {
        return identify_directory(path);
    }
    let mut front = Vec::new();
    fs::File::open(path)?.take(64).read_to_end(&mut front)?;
    let named = path.file_name().and_then(filenames::kind_of);
    let what = match () {
        () if front.starts_with(&placeholder::MAGIC) => PathKind::Placeholder,
        () if front.starts_with(b"RRD\0") => PathKind::RrdFile,
        () if front.starts_with(&journal_file::MAGIC) => PathKind::Journal,
        () if front.starts_with(b"roundel-store ") => PathKind::Identity,
        () if front.starts_with(b"roundel-manifest ") => PathKind::Kind(FileKind::Manifest),
        () if front.starts_with(&checkpoint_file::MAGIC[..7]) => PathKind::Kind(FileKind::Checkpoint(0)),
        () if front.starts_with(&segment_file::HEAD_MAGIC) => PathKind::Kind(FileKind::Segment(0)),
        () if named.is_some() => return Ok(named.map(PathKind::Kind)),
        () if front.starts_with(&log_file::envelope::MAGIC) => {
            // A copy under another name: its first record has its position.
            let start = log_file::envelope::place_of(&front);
            return Ok(start.map(|start| PathKind::Kind(FileKind::Log(start))));
        }
        () if path.extension().is_some_and(|extension| extension == "journal") => PathKind::Journal,
        () if path.extension().is_some_and(|extension| extension == "rrd") => PathKind::RrdFile,
        () => return Ok(None),
    };
    Ok(Some(what))
}

fn identify_directory(path: &Path) -> io::Result<Option<PathKind>> {
    let mut found = None;
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        let text = name.to_string_lossy();
        if text == "STORE" || filenames::shard_index(&name).is_some() {
            return Ok(Some(PathKind::Store));
        }
        if filenames::kind_of(&name).is_some() {
            found = Some(PathKind::Shard);
        } else if text.ends_with(".journal") {
            found = Some(PathKind::JournalDirectory);
        }
    }
    Ok(found)
}

/// Directory and name of a file.
fn split(path: &Path) -> (PathBuf, PathBuf) {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let name = path.file_name().map_or_else(|| path.to_owned(), PathBuf::from);
    (directory.unwrap_or(Path::new(".")).to_owned(), name)
}

/// A time in units since the epoch, as UTC.
fn moment(units: i64, units_per_second: u32) -> String {
    let rate = i64::from(units_per_second.max(1));
    let nanoseconds = units.rem_euclid(rate) * 1_000_000_000 / rate;
    utc_text(units.div_euclid(rate), nanoseconds as u32).unwrap_or_else(|| format!("{units}/{rate} s"))
}

/// An update's time, as UTC.
fn moment_of(time: rrd::time::Timestamp, units_per_second: u32) -> String {
    match time.micros {
        0 => moment(time.whole, units_per_second),
        micros => format!("{} + {micros}/{MICROS}", moment(time.whole, units_per_second)),
    }
}

/// Quotes a name or other untrusted bytes in printable form.
fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

/// Converts units to seconds.
fn seconds(units: u64, units_per_second: u32) -> String {
    format!("{} s", units as f64 / f64::from(units_per_second.max(1)))
}

#[cfg(test)]
mod tests;
