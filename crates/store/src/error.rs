//! The store's errors: why it could not be opened, and why a request failed. Causes are kept where there are
//! any.

use std::fmt;
use std::io;
use std::mem::discriminant;
use std::sync::Arc;

use disk::Shortage;
use rrd::codec::file::FileError;
use rrd::plan::PlanError;
use rrd::tune::TuneError;
use rrd::update::UpdateError;
use rrd_file::file::LOCKED;
use rrd_file::name::{NameError, RrdName};
use rrd_file::placeholder::PlaceholderError;
use rrd_file::system_text;
use rrd_file::tree::ListError;

use crate::segment::SegmentError;

/// Why a request failed. Where RRDtool has a text for the failure, `Display` gives that text.
#[derive(Debug, Clone)]
pub enum StoreError {
    /// No RRD of this name.
    NoSuchRrd(RrdName),
    /// `--no-overwrite` was given and the RRD exists.
    Exists(RrdName),
    /// The RRD is not of the version that a change is for.
    Changed(RrdName),
    /// An update was refused.
    Update(UpdateError),
    /// A fetch was refused.
    Fetch(PlanError),
    /// A tune was refused.
    Tune(TuneError),
    /// No RRD can have this name.
    Name(NameError),
    /// A symbolic link on the way to the file leads out of the base directory.
    LeadsOut {
        /// The file's path.
        path: String,
    },
    /// No `.rrd` file can hold the RRD.
    Unfit {
        /// The file's path, or the RRD's name.
        path: String,
        /// Why.
        error: FileError,
    },
    /// Who asks may see the RRD, or that it could be made, but not do this to it. What may not be seen is [`StoreError::NoSuchRrd`].
    Denied(RrdName),
    /// Who asks does more than it may in a time; says what.
    TooFast(String),
    /// More than a limit of the store; says which.
    TooLarge(String),
    /// So many updates wait for the RRD's file that no more are taken; says how many.
    Backlog(String),
    /// The disk is full, or the machine is short of something else; the store continues by itself once that has
    /// passed.
    Short(Shortage),
    /// A write or sync failed: no more writes until the store is reopened.
    Poisoned(String),
    /// The name may be that of an RRD that is lost with a damaged page of a checkpoint; names the file.
    Lost(String),
    /// A segment could not be read; names file and offset.
    Segment(Arc<SegmentError>),
    /// A `.rrd` file is damaged.
    Damaged {
        /// Its path, or the RRD's name.
        path: String,
        /// What is wrong with it.
        error: FileError,
    },
    /// Another program has the `.rrd` file locked.
    Locked,
    /// A system call failed.
    Io {
        /// What was attempted, with the file: `opening 'PATH'`.
        what: String,
        /// The system's error.
        error: Arc<io::Error>,
    },
    /// A placeholder could not be written.
    Placeholder(Arc<PlaceholderError>),
    /// The store takes no changes, because another one has its RRDs, too; says what to do.
    NotPrimary(&'static str),
    /// No follower has what was asked for in time, while this store has it; says what that means.
    NotReplicated(&'static str),
    /// What a primary sent cannot be applied; says why.
    Replica(String),
    /// The node of a cluster that has the RRD does not answer now; names its partition and the node.
    Unavailable(String),
    /// This layout does not support the request.
    Unsupported(&'static str),
    /// The store is stopping.
    Stopping,
}

impl StoreError {
    /// Whether what was to be read is damaged: it will not pass by itself.
    pub fn is_damage(&self) -> bool {
        match self {
            StoreError::Segment(error) => matches!(**error, SegmentError::Damaged { .. }),
            StoreError::Damaged { .. } | StoreError::Lost(_) => true,
            _ => false,
        }
    }

    /// True when the same may succeed later: it has nothing to do with what was asked for.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            StoreError::Short(_)
                | StoreError::Poisoned(_)
                | StoreError::Stopping
                | StoreError::Locked
                | StoreError::Backlog(_)
                | StoreError::TooFast(_)
                | StoreError::NotPrimary(_)
                | StoreError::NotReplicated(_)
                | StoreError::Unavailable(_)
        )
    }

    /// The operating system refused `what`.
    pub fn io(what: impl Into<String>, error: io::Error) -> Self {
        StoreError::Io { what: what.into(), error: Arc::new(error) }
    }
}

/// Two errors are equal when they have the same variant and text.
impl PartialEq for StoreError {
    fn eq(&self, other: &Self) -> bool {
        discriminant(self) == discriminant(other) && self.to_string() == other.to_string()
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::NoSuchRrd(_) => f.write_str("No such file or directory"),
            StoreError::Exists(_) => f.write_str("File exists"),
            StoreError::Changed(_) => f.write_str("it was changed meanwhile"),
            StoreError::Update(error) => error.fmt(f),
            StoreError::Fetch(error) => error.fmt(f),
            StoreError::Tune(error) => error.fmt(f),
            StoreError::Name(error) => error.fmt(f),
            StoreError::LeadsOut { path } => {
                write!(f, "opening '{path}': a symbolic link on the way leads out of the base directory")
            }
            StoreError::Unfit { path, error } | StoreError::Damaged { path, error } => {
                error.named(path).fmt(f)
            }
            StoreError::Denied(name) => write!(f, "'{name}': Permission denied"),
            StoreError::TooFast(text)
            | StoreError::TooLarge(text)
            | StoreError::Backlog(text)
            | StoreError::Poisoned(text)
            | StoreError::Replica(text)
            | StoreError::Unavailable(text)
            | StoreError::Lost(text) => f.write_str(text),
            StoreError::Short(shortage) => shortage.fmt(f),
            StoreError::Segment(error) => error.fmt(f),
            StoreError::Locked => f.write_str(LOCKED),
            StoreError::Io { what, error } if what.is_empty() => f.write_str(&system_text(error)),
            StoreError::Io { what, error } => write!(f, "{what}: {}", system_text(error)),
            StoreError::Placeholder(error) => error.fmt(f),
            StoreError::Unsupported(what)
            | StoreError::NotPrimary(what)
            | StoreError::NotReplicated(what) => f.write_str(what),
            StoreError::Stopping => f.write_str("the daemon is stopping"),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StoreError::Update(error) => Some(error),
            StoreError::Fetch(error) => Some(error),
            StoreError::Tune(error) => Some(error),
            StoreError::Name(error) => Some(error),
            StoreError::Segment(error) => Some(&**error),
            StoreError::Io { error, .. } => Some(&**error),
            StoreError::Placeholder(error) => Some(&**error),
            _ => None,
        }
    }
}

impl From<UpdateError> for StoreError {
    fn from(error: UpdateError) -> Self {
        StoreError::Update(error)
    }
}

impl From<PlanError> for StoreError {
    fn from(error: PlanError) -> Self {
        StoreError::Fetch(error)
    }
}

impl From<TuneError> for StoreError {
    fn from(error: TuneError) -> Self {
        StoreError::Tune(error)
    }
}

impl From<NameError> for StoreError {
    fn from(error: NameError) -> Self {
        StoreError::Name(error)
    }
}

impl From<SegmentError> for StoreError {
    fn from(error: SegmentError) -> Self {
        StoreError::Segment(Arc::new(error))
    }
}

impl From<PlaceholderError> for StoreError {
    fn from(error: PlaceholderError) -> Self {
        StoreError::Placeholder(Arc::new(error))
    }
}

impl From<ListError> for StoreError {
    fn from(error: ListError) -> Self {
        match error {
            ListError::TooMany | ListError::NoMemory => StoreError::TooLarge(error.to_string()),
            ListError::Io { directory, error } => {
                StoreError::io(format!("cannot list '{}'", String::from_utf8_lossy(&directory)), error)
            }
        }
    }
}

/// Why a store could not be opened.
#[derive(Debug)]
pub struct OpenError {
    what: String,
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl OpenError {
    /// The store's own reason, without a cause.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        OpenError { what: what.into(), cause: None }
    }

    /// `what` failed because of `error`: `cannot lock the store`.
    pub(crate) fn caused(
        what: impl Into<String>,
        cause: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        OpenError { what: what.into(), cause: Some(Box::new(cause)) }
    }

    /// An error whose text needs no context.
    pub(crate) fn transparent(cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::caused("", cause)
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            None => f.write_str(&self.what),
            Some(cause) if self.what.is_empty() => cause.fmt(f),
            Some(cause) => write!(f, "{}: {cause}", self.what),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|cause| &**cause as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    #[test]
    fn an_io_error_keeps_its_cause_and_text() {
        let error = StoreError::io("opening 'a.rrd'", io::Error::from_raw_os_error(13));
        assert_eq!(error.to_string(), "opening 'a.rrd': Permission denied");
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        assert_eq!(cause.map(io::Error::kind), Some(io::ErrorKind::PermissionDenied));
        assert_eq!(error, StoreError::io("opening 'a.rrd'", io::Error::from_raw_os_error(13)));
        assert_ne!(error, StoreError::TooLarge(error.to_string()));
    }
}
