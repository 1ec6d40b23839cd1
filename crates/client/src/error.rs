//! Why a daemon did not do what it was asked.

use std::fmt;
use std::io;
use std::sync::Arc;

use protocol::frames::code::ErrorCode;
use rrd_file::daemon_address::DaemonAddressError;

/// Why a daemon did not do what it was asked. `Display` is the reason alone, without the daemon's address.
#[derive(Clone, Debug)]
pub enum ClientError {
    /// There is no connection, and none could be made.
    Connect(Arc<io::Error>),
    /// The connection ended before the answer; what became of the request is unknown.
    Lost,
    /// The daemon refused.
    Refused {
        /// Why, for a program. A daemon that knows only text has told it by its text.
        code: ErrorCode,
        /// Why, for people; it may hold the bytes of a name.
        text: Vec<u8>,
    },
    /// The answer is of another kind than the request needs; the value names the expected kind.
    NotAnAnswer(&'static str),
    /// A line feed or NUL in a name or value: a daemon would take what follows for another command.
    LineBreak,
    /// An absolute name for a daemon on another host.
    AbsoluteName,
    /// A name whose directory cannot be resolved.
    Path {
        /// The name.
        name: Vec<u8>,
        /// What the system says.
        error: Arc<io::Error>,
    },
    /// The store of a placeholder does not say where its daemon listens.
    NoDaemonAddress(String),
    /// The daemon of a placeholder's store cannot be reached.
    Unreachable {
        /// Where it listens.
        address: String,
        /// What the system says.
        error: Arc<io::Error>,
    },
}

impl ClientError {
    pub(crate) fn connect(error: io::Error) -> Self {
        ClientError::Connect(Arc::new(error))
    }

    /// Whether the daemon refused for this reason.
    pub fn is(&self, reason: ErrorCode) -> bool {
        matches!(self, ClientError::Refused { code, .. } if *code == reason)
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Connect(error) => write!(f, "cannot connect to the daemon: {error}"),
            ClientError::Lost => f.write_str("the connection to the daemon was lost"),
            ClientError::Refused { text, .. } => f.write_str(&String::from_utf8_lossy(text)),
            ClientError::NotAnAnswer(what) => write!(f, "the daemon's answer is no {what}"),
            ClientError::LineBreak => {
                f.write_str("a line feed or NUL in a name or value cannot be sent to a daemon")
            }
            ClientError::AbsoluteName => {
                f.write_str("absolute path names not allowed when talking to a remote daemon")
            }
            ClientError::Path { name, error } => {
                write!(f, "cannot find the directory of {}: {error}", String::from_utf8_lossy(name))
            }
            ClientError::NoDaemonAddress(why) => f.write_str(why),
            ClientError::Unreachable { address, error } => {
                write!(f, "a store has it, and its daemon at {address} does not answer: {error}")
            }
        }
    }
}

impl std::error::Error for ClientError {}

impl From<DaemonAddressError> for ClientError {
    fn from(error: DaemonAddressError) -> Self {
        ClientError::NoDaemonAddress(error.to_string())
    }
}
