//! Why a request was refused, as a number beside the text: since version 2 of frames.

/// The kinds of error that a program tells apart; the text is for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum ErrorCode {
    /// None of the others. What version 1 and the text protocol say, and what is read of a code that is not known.
    #[default]
    Other = 1,
    /// There is no RRD of that name.
    NoSuchRrd = 2,
    /// There is one already.
    Exists = 3,
    /// The time of an update is not after the last one.
    IllegalTime = 4,
    /// The request cannot be understood.
    Syntax = 5,
    /// There is no such command.
    UnknownCommand = 6,
    /// The socket does not allow the request, or the name leads out of the base directory.
    Permission = 7,
    /// The disk is full; the daemon goes on by itself when there is room.
    DiskFull = 8,
    /// A write has failed: the store takes no more until it is opened again.
    Poisoned = 9,
    /// What the store has on disk cannot be read.
    Damaged = 10,
    /// This store cannot do it.
    Unsupported = 11,
    /// The daemon is stopping.
    Stopping = 12,
}

impl ErrorCode {
    /// All of them, in the order of their numbers.
    pub const ALL: [ErrorCode; 12] = [
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
    ];

    /// The code of a number; [`ErrorCode::Other`] for those of later versions.
    pub fn from_number(number: u16) -> Self {
        Self::ALL.into_iter().find(|code| code.number() == number).unwrap_or_default()
    }

    /// Its number on the wire.
    pub fn number(self) -> u16 {
        self as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_codes_and_back() {
        for (number, code) in (1..).zip(ErrorCode::ALL) {
            assert_eq!((code.number(), ErrorCode::from_number(number)), (number, code));
        }
        assert_eq!(ErrorCode::from_number(0), ErrorCode::Other);
        assert_eq!(ErrorCode::from_number(999), ErrorCode::Other);
    }
}
