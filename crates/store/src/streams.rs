//! How far streams of changes have been applied.
//!
//! A stream is what one sender, such as an agent, numbers and sends again after a lost connection. Its position is recorded in
//! the log (in the files layout: in the journal) after everything up to it is durable, so it never says more than the
//! store has, and it goes back with the store when that is restored from a copy.

use std::collections::BTreeMap;

use crate::engine::StoreError;

/// The longest name of a stream.
pub const STREAM_NAME_BYTES_MAX: usize = 255;
/// Streams of a shard. Each is a machine with an agent; names that are not used any more stay.
pub const STREAMS_MAX: usize = 16_384;

/// How far a stream has been applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamPosition {
    /// Which numbering of its sender: a later one has a higher number.
    pub epoch: u64,
    /// Everything up to this number is applied.
    pub sequence: u64,
}

/// The positions of streams by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Streams(BTreeMap<Box<[u8]>, StreamPosition>);

impl Streams {
    /// Checks that a stream may have a position.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`].
    pub fn check(&self, name: &[u8]) -> Result<(), StoreError> {
        if name.len() > STREAM_NAME_BYTES_MAX {
            let text = format!("the name of a stream has at most {STREAM_NAME_BYTES_MAX} bytes");
            return Err(StoreError::TooLarge(text));
        }
        if self.0.len() >= STREAMS_MAX && !self.0.contains_key(name) {
            let text = format!("the store knows {STREAMS_MAX} streams of agents already, its limit");
            return Err(StoreError::TooLarge(text));
        }
        Ok(())
    }

    /// Records a position, unless a later one is known: a checkpoint may be ahead of the log that is replayed over it.
    pub fn advance(&mut self, name: &[u8], position: StreamPosition) {
        match self.0.get_mut(name) {
            Some(known) => *known = position.max(*known),
            None => drop(self.0.insert(name.into(), position)),
        }
    }

    /// The position of a stream.
    pub fn get(&self, name: &[u8]) -> Option<StreamPosition> {
        self.0.get(name).copied()
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], StreamPosition)> {
        self.0.iter().map(|(name, position)| (&**name, *position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_never_goes_back() {
        let mut streams = Streams::default();
        let position = |epoch, sequence| StreamPosition { epoch, sequence };
        for (next, want) in [
            (position(5, 9), position(5, 9)),
            (position(5, 8), position(5, 9)),
            (position(4, 10), position(5, 9)),
            (position(6, 0), position(6, 0)),
        ] {
            streams.advance(b"a", next);
            assert_eq!(streams.get(b"a"), Some(want));
        }
        assert_eq!(streams.get(b"b"), None);
    }

    #[test]
    fn there_is_a_limit_but_not_for_those_that_are_known() {
        let mut streams = Streams::default();
        for number in 0..STREAMS_MAX {
            let name = number.to_le_bytes();
            streams.check(&name).unwrap();
            streams.advance(&name, StreamPosition::default());
        }
        assert!(matches!(streams.check(b"new"), Err(StoreError::TooLarge(_))));
        assert_eq!(streams.check(&7usize.to_le_bytes()), Ok(()));
        assert!(Streams::default().check(&[b'a'; STREAM_NAME_BYTES_MAX + 1]).is_err());
    }
}
