//! What a file or directory of ours holds, in words, read-only and as far as damage allows.
//!
//! The door of `roundel inspect`. It takes no lock and writes nothing, so it may look at a store that a
//! daemon has open; a file that the daemon replaces meanwhile is then reported as missing. Every damage is
//! told with its place and counted, and what can be read around it is shown.

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
    /// Of a directory: read and check every block of every segment too, not only the footers.
    pub verify: bool,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Places that are damaged or missing.
    pub damage_count: u64,
}

/// Why nothing could be shown.
#[derive(Debug)]
pub enum InspectError {
    /// It cannot be read.
    Read {
        /// What.
        path: PathBuf,
        /// What the operating system said.
        error: io::Error,
    },
    /// It is nothing of ours, nor RRDtool's.
    Unknown {
        /// What.
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

/// Shows what is at `path`.
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

/// The text under construction. The first failure to write is kept; what follows is dropped.
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

/// What something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Store,
    Shard,
    JournalDirectory,
    Journal,
    Kind(FileKind),
    Identity,
    Placeholder,
    RrdFile,
}

impl What {
    fn show(self, path: &Path, options: Options, report: &mut Report<'_>) -> io::Result<()> {
        match self {
            What::Store => return store::store(path, options, report),
            What::Shard => return store::shard(path, options, report),
            What::JournalDirectory => return journal::directory(path, report),
            What::Journal => return journal::file(path, report),
            What::Placeholder => rrd_file::placeholder(path, report),
            What::RrdFile => return rrd_file::file(path, report),
            What::Identity => store::identity(path, report)?,
            What::Kind(kind) => {
                let (directory, name) = split(path);
                let disk = RealDisk::open(&directory)?;
                match kind {
                    FileKind::Log(start) => log::file(&disk, &name, start, report)?,
                    FileKind::Checkpoint(_) => checkpoint::file(&disk, &name, report)?,
                    FileKind::Segment(_) => segment::file(&disk, &name, report),
                    FileKind::Manifest | FileKind::ManifestNew => store::manifest_file(path, report)?,
                }
            }
        }
        Ok(())
    }
}

/// What is at `path`; `None` when it is nothing known. The first bytes decide, and where they are damaged
/// the name does.
fn identify(path: &Path) -> io::Result<Option<What>> {
    if fs::metadata(path)?.is_dir() {
        return identify_directory(path);
    }
    let mut front = Vec::new();
    fs::File::open(path)?.take(64).read_to_end(&mut front)?;
    let named = path.file_name().and_then(filenames::kind_of);
    let what = match () {
        () if front.starts_with(&placeholder::MAGIC) => What::Placeholder,
        () if front.starts_with(b"RRD\0") => What::RrdFile,
        () if front.starts_with(&journal_file::MAGIC) => What::Journal,
        () if front.starts_with(b"roundel-store ") => What::Identity,
        () if front.starts_with(b"roundel-manifest ") => What::Kind(FileKind::Manifest),
        () if front.starts_with(&checkpoint_file::MAGIC[..7]) => What::Kind(FileKind::Checkpoint(0)),
        () if front.starts_with(&segment_file::HEAD_MAGIC) => What::Kind(FileKind::Segment(0)),
        () if named.is_some() => return Ok(named.map(What::Kind)),
        () if front.starts_with(&log_file::envelope::MAGIC) => {
            // A copy under another name: its first record says where it stands.
            let start = log_file::envelope::place_of(&front);
            return Ok(start.map(|start| What::Kind(FileKind::Log(start))));
        }
        () if path.extension().is_some_and(|extension| extension == "journal") => What::Journal,
        () if path.extension().is_some_and(|extension| extension == "rrd") => What::RrdFile,
        () => return Ok(None),
    };
    Ok(Some(what))
}

fn identify_directory(path: &Path) -> io::Result<Option<What>> {
    let mut found = None;
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        let text = name.to_string_lossy();
        if text == "STORE" || filenames::shard_index(&name).is_some() {
            return Ok(Some(What::Store));
        }
        if filenames::kind_of(&name).is_some() {
            found = Some(What::Shard);
        } else if text.ends_with(".journal") {
            found = Some(What::JournalDirectory);
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

/// A moment given in units since the epoch, in UTC.
fn moment(units: i64, units_per_second: u32) -> String {
    let rate = i64::from(units_per_second.max(1));
    let nanoseconds = units.rem_euclid(rate) * 1_000_000_000 / rate;
    utc_text(units.div_euclid(rate), nanoseconds as u32).unwrap_or_else(|| format!("{units}/{rate} s"))
}

/// The same of a time as updates have it.
fn moment_of(time: rrd::time::Timestamp, units_per_second: u32) -> String {
    match time.micros {
        0 => moment(time.whole, units_per_second),
        micros => format!("{} + {micros}/{MICROS}", moment(time.whole, units_per_second)),
    }
}

/// A name or other bytes from outside, quoted and printable.
fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

/// Units as seconds.
fn seconds(units: u64, units_per_second: u32) -> String {
    format!("{} s", units as f64 / f64::from(units_per_second.max(1)))
}

#[cfg(test)]
mod tests;
