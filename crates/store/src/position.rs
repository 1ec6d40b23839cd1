//! A position in the log.

use std::fmt;
use std::str::FromStr;

/// A position in the log: an offset within a generation. Positions are ordered as in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Counts the logs that this shard has had; a new one starts when the old one cannot be continued.
    pub generation: u32,
    /// Bytes from the start of the generation, dense across its files.
    pub offset: u64,
}

impl Position {
    /// The position `bytes` further on in the same generation.
    pub fn plus(self, bytes: u64) -> Position {
        Position { generation: self.generation, offset: self.offset + bytes }
    }
}

impl FromStr for Position {
    type Err = ();

    /// Reads what [`fmt::Display`] writes.
    fn from_str(text: &str) -> Result<Position, ()> {
        let (generation, offset) = text.split_once(':').ok_or(())?;
        Ok(Position {
            generation: generation.parse().map_err(|_| ())?,
            offset: offset.parse().map_err(|_| ())?,
        })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.generation, self.offset)
    }
}
