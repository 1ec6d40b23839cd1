//! Errors about files, in RRDtool's words.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rrd::codec::file::FileError;
use rrd::reading::TemplateError;
use rrd::tune::TuneError;
use rrd::update::UpdateError;

use crate::apply::SEASON_BYTES_MAX;
use crate::create::FILE_BYTES_MAX;
use crate::file::LOCKED;
use crate::placeholder::Placeholder;
use rrd::updatev::UpdateReport;

/// Why a file could not be used. `Display` gives RRDtool's text if there is one.
#[derive(Debug)]
pub enum Error {
    /// It could not be opened: `opening 'PATH': No such file or directory`.
    Open {
        /// The path as given.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// It is empty or not a regular file, which RRDtool notices when it maps it.
    Map {
        /// The path as given.
        path: PathBuf,
        /// The error that `mmap` would give.
        error: io::Error,
    },
    /// Another process or thread has it locked: `could not lock RRD`.
    Locked,
    /// It is not a valid `.rrd` file.
    File {
        /// The path as given.
        path: PathBuf,
        /// What is invalid.
        error: FileError,
    },
    /// It is a placeholder: the store it names has the data.
    Placeholder {
        /// The path as given.
        path: PathBuf,
        /// The store and the name there.
        placeholder: Placeholder,
    },
    /// Reading or writing the open file failed.
    Io {
        /// The path as given.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// It could not be created: `creating 'PATH': File exists`.
    Create {
        /// The path as given.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A new file could not be written; nothing of it remains.
    Write {
        /// The path as given.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The temporary file beside a new file could not be created.
    Temporary(io::Error),
    /// The temporary file could not be renamed to the file.
    Rename(io::Error),
    /// An argument of an update was refused; earlier ones are in the file.
    Update {
        /// The path as given.
        path: PathBuf,
        /// Why.
        error: UpdateError,
        /// The report on the earlier arguments.
        report: Box<UpdateReport>,
    },
    /// The template of an update was refused; nothing has changed.
    Template(TemplateError),
    /// A change by the arguments of `rrdtune(1)` was refused; nothing has changed.
    Tune(TuneError),
    /// More bytes than can be read at once.
    TooLarge {
        /// The path as given.
        path: PathBuf,
        /// How many.
        bytes: u64,
    },
    /// A new file would have more than [`FILE_BYTES_MAX`] bytes.
    Huge {
        /// The path as given.
        path: PathBuf,
        /// How many.
        bytes: u64,
    },
    /// A season of a new file would have more than [`SEASON_BYTES_MAX`] bytes.
    HugeSeason {
        /// The path as given.
        path: PathBuf,
        /// How many.
        bytes: u64,
    },
}

impl Error {
    /// A system error while the file at `path` was open.
    pub(crate) fn io(path: &Path, error: io::Error) -> Self {
        Error::Io { path: path.to_path_buf(), error }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Open { path, error } => write!(f, "opening '{}': {}", path.display(), system_text(error)),
            Error::Map { path, error } => {
                write!(f, "mmaping file '{}': {}", path.display(), system_text(error))
            }
            Error::Locked => f.write_str(LOCKED),
            Error::File { path, error } => error.named(&path.to_string_lossy()).fmt(f),
            // The text of a stock rrdtool.
            Error::Placeholder { path, .. } => write!(f, "'{}' is not an RRD file", path.display()),
            Error::Io { path, error } => write!(f, "'{}': {}", path.display(), system_text(error)),
            Error::Create { path, error } => {
                write!(f, "creating '{}': {}", path.display(), system_text(error))
            }
            Error::Write { path, error } => {
                write!(f, "a file error occurred while creating '{}': {}", path.display(), system_text(error))
            }
            Error::Temporary(_) => f.write_str("Cannot create temporary file"),
            Error::Rename(_) => f.write_str("Cannot rename temporary file to final file!"),
            Error::Update { path, error, .. } => write!(f, "{}: {error}", path.display()),
            Error::Template(error) => error.fmt(f),
            Error::Tune(error) => error.fmt(f),
            Error::TooLarge { path, bytes } => {
                write!(f, "'{}': {bytes} bytes are too many to read at once", path.display())
            }
            Error::Huge { path, bytes } => {
                let path = path.display();
                write!(f, "creating '{path}': it would have {bytes} bytes, {FILE_BYTES_MAX} are the limit")
            }
            Error::HugeSeason { path, bytes } => write!(
                f,
                "creating '{}': a season of it would have {bytes} bytes, {SEASON_BYTES_MAX} are the limit, because each update holds it in memory",
                path.display()
            ),
        }
    }
}

impl std::error::Error for Error {}

/// The system's text for an error, without Rust's "(os error n)" and without the operation and path that a
/// [`disk::RealDisk`] adds.
pub fn system_text(error: &io::Error) -> String {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
    let full = cause.unwrap_or(error).to_string();
    full.split(" (os error").next().unwrap_or_default().to_string()
}
