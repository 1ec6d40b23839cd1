//! What a machine has too little of for the moment. Such a failure is waited out: no client is at fault, and it passes.

use std::fmt;
use std::io;

/// What there is too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// Space on the disk.
    Space,
    /// The disk quota of the user.
    Quota,
    /// The largest file that the process or the file system may have.
    FileSize,
    /// File descriptors, of the process or of the machine.
    Descriptors,
    /// Memory.
    Memory,
}

impl Shortage {
    /// All of them.
    pub const ALL: [Shortage; 5] =
        [Shortage::Space, Shortage::Quota, Shortage::FileSize, Shortage::Descriptors, Shortage::Memory];

    /// What an error complains of, if it is a shortage.
    pub fn of(error: &io::Error) -> Option<Shortage> {
        let of_kind = || Shortage::ALL.into_iter().find(|shortage| shortage.kind() == error.kind());
        match error.raw_os_error() {
            Some(MFILE | NFILE) => Some(Shortage::Descriptors),
            // Its kind stands for descriptors only in errors of this disk.
            Some(BUSY) => None,
            _ => of_kind(),
        }
    }

    /// The kind that errors of this disk have for it. The system's error for descriptors has none, so that
    /// [`io::ErrorKind::ResourceBusy`] stands for it.
    pub fn kind(self) -> io::ErrorKind {
        match self {
            Shortage::Space => io::ErrorKind::StorageFull,
            Shortage::Quota => io::ErrorKind::QuotaExceeded,
            Shortage::FileSize => io::ErrorKind::FileTooLarge,
            Shortage::Descriptors => io::ErrorKind::ResourceBusy,
            Shortage::Memory => io::ErrorKind::OutOfMemory,
        }
    }
}

/// `EMFILE`, `ENFILE` and `EBUSY`.
const MFILE: i32 = rustix::io::Errno::MFILE.raw_os_error();
const NFILE: i32 = rustix::io::Errno::NFILE.raw_os_error();
const BUSY: i32 = rustix::io::Errno::BUSY.raw_os_error();

/// The system's texts.
impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Shortage::Space => "No space left on device",
            Shortage::Quota => "Disk quota exceeded",
            Shortage::FileSize => "File too large",
            Shortage::Descriptors => "Too many open files",
            Shortage::Memory => "Cannot allocate memory",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortages_are_found_by_the_systems_number_and_by_their_kind() {
        use rustix::io::Errno;
        for (errno, want) in [
            (Errno::NOSPC, Some(Shortage::Space)),
            (Errno::DQUOT, Some(Shortage::Quota)),
            (Errno::FBIG, Some(Shortage::FileSize)),
            (Errno::MFILE, Some(Shortage::Descriptors)),
            (Errno::NFILE, Some(Shortage::Descriptors)),
            (Errno::NOMEM, Some(Shortage::Memory)),
            (Errno::BUSY, None),
            (Errno::IO, None),
            (Errno::NOENT, None),
        ] {
            assert_eq!(Shortage::of(&io::Error::from(errno)), want, "{errno:?}");
        }
        for shortage in Shortage::ALL {
            assert_eq!(Shortage::of(&io::Error::new(shortage.kind(), "wrapped")), Some(shortage));
        }
    }
}
