//! A place in the log.

use std::fmt;

/// A place in the log: bytes since its generation began. Orders as the log does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Counts the logs this shard has had; a new one starts when the old one cannot go on.
    pub generation: u32,
    /// Bytes from the start of the generation, dense across its files.
    pub offset: u64,
}

impl Position {
    /// The place `bytes` further on in the same generation.
    pub fn plus(self, bytes: u64) -> Position {
        Position { generation: self.generation, offset: self.offset + bytes }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.generation, self.offset)
    }
}
