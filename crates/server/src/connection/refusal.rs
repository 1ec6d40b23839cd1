//! Refusals: why a request was not executed.

use protocol::frames::code::ErrorCode;
use protocol::rrdcached::command::Command;
use rrd::update::UpdateError;
use store::engine::StoreError;
use store::name::NameError;

use crate::budget::Share;
use crate::metrics::DropReason;
use crate::names::NameFailure;

/// Why a request was not executed, for people, for programs, and for counters.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The text for the client, without status.
    pub text: Vec<u8>,
    /// The code for programs.
    pub code: ErrorCode,
    /// The reason by which it is counted.
    pub reason: DropReason,
}

impl Refusal {
    /// A refusal with this text, and the reason's default code.
    pub fn new(reason: DropReason, text: impl Into<Vec<u8>>) -> Self {
        let code = match reason {
            DropReason::NoSuchRrd => ErrorCode::NoSuchRrd,
            DropReason::UnknownCommand => ErrorCode::UnknownCommand,
            DropReason::Permission => ErrorCode::Permission,
            DropReason::LineTooLong | DropReason::Usage => ErrorCode::Syntax,
            _ => ErrorCode::Other,
        };
        Refusal { text: text.into(), code, reason }
    }

    /// Replaces the code.
    pub fn with_code(self, code: ErrorCode) -> Self {
        Refusal { code, ..self }
    }

    /// A refusal with the text `before`, path, `after`.
    pub fn of_path(reason: DropReason, before: &str, path: &[u8], after: &str) -> Self {
        Refusal::new(reason, [before.as_bytes(), path, after.as_bytes()].concat())
    }

    /// A refusal with the store's text after `before`.
    pub fn of_store(before: &str, error: &StoreError) -> Self {
        Refusal::new(reason(error), format!("{before}{error}")).with_code(code(error))
    }

    /// There is no such command.
    pub fn unknown_command(word: &[u8]) -> Self {
        Refusal::of_path(DropReason::UnknownCommand, "Unknown command: ", word, "")
    }

    /// The socket does not allow the request.
    pub fn permission() -> Self {
        Refusal::new(DropReason::Permission, "Permission denied.")
    }

    /// The command, which the client spelt `word`, is not allowed at this point.
    pub fn misplaced(word: &[u8]) -> Self {
        Refusal::of_path(DropReason::Usage, "Can't use '", word, "' here.")
    }

    /// An argument of the command is missing or wrong.
    pub fn usage(command: &Command) -> Self {
        let text = match command.usage {
            "" => format!("Usage: docs/protocol says what {} takes", command.name),
            usage => format!("Usage: {usage}"),
        };
        Refusal::new(DropReason::Usage, text)
    }

    /// The name leads outside the base directory.
    pub fn denied(path: &[u8]) -> Self {
        Refusal::of_path(DropReason::Name, "", path, ": Permission denied").with_code(ErrorCode::Permission)
    }

    /// There is no RRD at a path, in the words of INFO and others.
    pub fn no_such_rrd(path: &[u8]) -> Self {
        Refusal::of_path(DropReason::NoSuchRrd, "RRD Error: opening '", path, "': No such file or directory")
    }

    /// The argument names no RRD; `missing` makes the refusal for a path where none can be.
    pub fn of_name(failure: NameFailure, missing: impl FnOnce(&[u8]) -> Refusal) -> Self {
        match failure {
            NameFailure::Denied(path) => Refusal::denied(&path),
            NameFailure::Missing(path) => missing(&path),
        }
    }
}

impl Refusal {
    /// The refusal of `what`, an answer or a file of so many bytes, for which `share`'s budget has no room: not now, or
    /// never.
    pub fn no_memory(what: &str, bytes: u64, share: &Share) -> Self {
        let all = share.budget_bytes();
        let text = if share.may_ever_be(bytes) {
            "clients hold too much memory now; try again later ([limits] memory)".to_owned()
        } else {
            format!(
                "{what} takes {bytes} bytes here or more, and all clients together have {all}; ask for less, or raise \
                 [limits] memory"
            )
        };
        Refusal::new(DropReason::Memory, text)
    }
}

/// The error code for an error of the store.
pub fn code(error: &StoreError) -> ErrorCode {
    match error {
        StoreError::NoSuchRrd(_) => ErrorCode::NoSuchRrd,
        StoreError::Exists(_) => ErrorCode::Exists,
        StoreError::Changed(_) => ErrorCode::Changed,
        StoreError::Update(UpdateError::NotLater { .. }) => ErrorCode::IllegalTime,
        StoreError::Update(_) | StoreError::Tune(_) => ErrorCode::Syntax,
        StoreError::Name(NameError::Outside) | StoreError::LeadsOut { .. } | StoreError::Denied(_) => {
            ErrorCode::Permission
        }
        StoreError::Name(_) => ErrorCode::NoSuchRrd,
        StoreError::Short(_) => ErrorCode::DiskFull,
        StoreError::Poisoned(_) => ErrorCode::Poisoned,
        StoreError::Damaged { .. } | StoreError::Segment(_) | StoreError::Lost(_) => ErrorCode::Damaged,
        StoreError::Unsupported(_) | StoreError::Unfit { .. } => ErrorCode::Unsupported,
        StoreError::Stopping => ErrorCode::Stopping,
        StoreError::Backlog(_)
        | StoreError::NotPrimary(_)
        | StoreError::NotReplicated(_)
        | StoreError::Unavailable(_) => ErrorCode::Unavailable,
        StoreError::Fetch(_)
        | StoreError::TooLarge(_)
        | StoreError::TooFast(_)
        | StoreError::Replica(_)
        | StoreError::Locked
        | StoreError::Io { .. }
        | StoreError::Placeholder(_) => ErrorCode::Other,
    }
}

/// The reason by which an error of the store is counted.
pub fn reason(error: &StoreError) -> DropReason {
    match error {
        StoreError::NoSuchRrd(_) => DropReason::NoSuchRrd,
        StoreError::Denied(_) => DropReason::Permission,
        StoreError::Exists(_)
        | StoreError::Changed(_)
        | StoreError::Update(_)
        | StoreError::Fetch(_)
        | StoreError::Tune(_)
        | StoreError::Name(_)
        | StoreError::LeadsOut { .. }
        | StoreError::Unfit { .. }
        | StoreError::TooLarge(_)
        | StoreError::TooFast(_)
        | StoreError::Backlog(_)
        | StoreError::NotPrimary(_)
        | StoreError::Unsupported(_) => DropReason::Refused,
        StoreError::Short(_)
        | StoreError::Poisoned(_)
        | StoreError::Segment(_)
        | StoreError::Lost(_)
        | StoreError::Damaged { .. }
        | StoreError::Locked
        | StoreError::Io { .. }
        | StoreError::Placeholder(_)
        | StoreError::NotReplicated(_)
        | StoreError::Unavailable(_)
        | StoreError::Replica(_)
        | StoreError::Stopping => DropReason::Store,
    }
}
