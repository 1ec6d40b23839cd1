//! Error codes: the reason of a refusal as a number, in addition to the text, since version 2 of frames.

/// The errors that programs distinguish; the text is for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum ErrorCode {
    /// None of the others. Also stands for errors of version 1 and of the text protocol, and for unknown
    /// codes.
    #[default]
    Other = 1,
    /// There is no RRD of that name.
    NoSuchRrd = 2,
    /// The RRD exists already.
    Exists = 3,
    /// The time of an update is not after the last one.
    IllegalTime = 4,
    /// The request is malformed.
    Syntax = 5,
    /// There is no such command.
    UnknownCommand = 6,
    /// The socket does not allow the request, or the name leads outside the base directory.
    Permission = 7,
    /// The disk is full; the daemon continues by itself once there is room.
    DiskFull = 8,
    /// A write has failed: the store accepts no updates until it is reopened.
    Poisoned = 9,
    /// Data on disk is damaged.
    Damaged = 10,
    /// This store does not support it.
    Unsupported = 11,
    /// The daemon is stopping.
    Stopping = 12,
    /// A later session or spool of the same agent has taken its place.
    Fenced = 13,
    /// The RRD is not in the state that the request is for.
    Changed = 14,
    /// The store takes no changes for now: another one is the primary, no follower has them, or too much waits to be written.
    Unavailable = 15,
}

impl ErrorCode {
    /// All codes, ordered by number.
    pub const ALL: [ErrorCode; 15] = [
        ErrorCode::Other,
        ErrorCode::NoSuchRrd,
        ErrorCode::Exists,
        ErrorCode::IllegalTime,
        ErrorCode::Syntax,
        ErrorCode::UnknownCommand,
        ErrorCode::Permission,
        ErrorCode::DiskFull,
        ErrorCode::Poisoned,
        ErrorCode::Damaged,
        ErrorCode::Unsupported,
        ErrorCode::Stopping,
        ErrorCode::Fenced,
        ErrorCode::Changed,
        ErrorCode::Unavailable,
    ];

    /// The code with this number; [`ErrorCode::Other`] for those of later versions.
    pub fn from_number(number: u16) -> Self {
        Self::ALL.into_iter().find(|code| code.number() == number).unwrap_or_default()
    }

    /// The number in frames.
    pub fn number(self) -> u16 {
        self as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip() {
        for (number, code) in (1..).zip(ErrorCode::ALL) {
            assert_eq!((code.number(), ErrorCode::from_number(number)), (number, code));
        }
        assert_eq!(ErrorCode::from_number(0), ErrorCode::Other);
        assert_eq!(ErrorCode::from_number(999), ErrorCode::Other);
    }
}
