//! What can go wrong with a file, in RRDtool's words.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rrd::codec::file::FileError;
use rrd::reading::TemplateError;
use rrd::tune::TuneError;
use rrd::update::UpdateError;

use crate::direct::UpdateReport;
use crate::files::medium::{LOCKED, text};
use crate::placeholder::Placeholder;

/// Why a file could not be used. `Display` is RRDtool's text wherever it has one.
#[derive(Debug)]
pub enum DirectError {
    /// It could not be opened: `opening 'PATH': No such file or directory`.
    Open {
        /// The path as given.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It is empty or no regular file, which RRDtool notices when it maps it.
    Map {
        /// The path as given.
        path: PathBuf,
        /// What the system would say to `mmap`.
        error: io::Error,
    },
    /// Another process or thread has it locked: `could not lock RRD`.
    Locked,
    /// Its bytes are no usable `.rrd` file.
    File {
        /// The path as given.
        path: PathBuf,
        /// What is wrong with them.
        error: FileError,
    },
    /// A placeholder stands there: the store it names has the data.
    Placeholder {
        /// The path as given.
        path: PathBuf,
        /// Which store has it, under which name.
        placeholder: Placeholder,
    },
    /// Reading or writing failed while it was open.
    Io {
        /// The path as given.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It could not be created: `creating 'PATH': File exists`.
    Create {
        /// The path as given.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A new file could not be written; nothing of it is left.
    Write {
        /// The path as given.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The temporary file beside a new file could not be made.
    Temporary(io::Error),
    /// The temporary file could not take the place of the file.
    Rename(io::Error),
    /// One argument of an update was refused; those before it are in the file.
    Update {
        /// The path as given.
        path: PathBuf,
        /// Why.
        error: UpdateError,
        /// What became of the arguments before it.
        report: Box<UpdateReport>,
    },
    /// The template of an update was refused; nothing has changed.
    Template(TemplateError),
    /// A change by the words of `rrdtune(1)` was refused; nothing has changed.
    Tune(TuneError),
    /// More bytes than can be read at once.
    TooLarge {
        /// The path as given.
        path: PathBuf,
        /// How many.
        bytes: u64,
    },
}

impl DirectError {
    /// An error of the system while the file at `path` was open.
    pub(super) fn io(path: &Path, error: io::Error) -> Self {
        DirectError::Io { path: path.to_path_buf(), error }
    }
}

impl fmt::Display for DirectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DirectError::Open { path, error } => write!(f, "opening '{}': {}", path.display(), text(error)),
            DirectError::Map { path, error } => {
                write!(f, "mmaping file '{}': {}", path.display(), text(error))
            }
            DirectError::Locked => f.write_str(LOCKED),
            DirectError::File { path, error } => error.named(&path.to_string_lossy()).fmt(f),
            // What a stock rrdtool says of it.
            DirectError::Placeholder { path, .. } => write!(f, "'{}' is not an RRD file", path.display()),
            DirectError::Io { path, error } => write!(f, "'{}': {}", path.display(), text(error)),
            DirectError::Create { path, error } => {
                write!(f, "creating '{}': {}", path.display(), text(error))
            }
            DirectError::Write { path, error } => {
                write!(f, "a file error occurred while creating '{}': {}", path.display(), text(error))
            }
            DirectError::Temporary(_) => f.write_str("Cannot create temporary file"),
            DirectError::Rename(_) => f.write_str("Cannot rename temporary file to final file!"),
            DirectError::Update { path, error, .. } => write!(f, "{}: {error}", path.display()),
            DirectError::Template(error) => error.fmt(f),
            DirectError::Tune(error) => error.fmt(f),
            DirectError::TooLarge { path, bytes } => {
                write!(f, "'{}': {bytes} bytes are too many to read at once", path.display())
            }
        }
    }
}

impl std::error::Error for DirectError {}
