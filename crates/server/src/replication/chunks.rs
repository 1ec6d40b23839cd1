//! What a follower's store is given of the records that come, and when.
//!
//! Frames may end in the middle of an import, which is applied as one. And a record that says how far a stream has been applied speaks of
//! all shards: it waits until everything up to its moment is applied.

use store::replication::{Position, survey};

use crate::limits::FOLLOWER_DEFERRED_BYTES;

/// Records of a shard that are to be applied.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) shard: usize,
    pub(super) from: Position,
    pub(super) bytes: Vec<u8>,
}

/// Records that have come and are not given to the store yet.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    /// Those whose end has not come yet, by shard.
    incomplete: Vec<Option<Chunk>>,
    /// Those that wait for the others of their moment, in order.
    deferred: Vec<Chunk>,
    deferred_bytes: usize,
}

/// The primary sent records that do not follow those before.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misplaced;

impl Chunk {
    fn end(&self) -> Position {
        self.from.plus(self.bytes.len() as u64)
    }
}

impl Chunks {
    /// Nothing has come yet, of so many shards.
    pub(super) fn new(shards: usize) -> Self {
        Chunks { incomplete: (0..shards).map(|_| None).collect(), ..Chunks::default() }
    }

    /// Takes records of a shard; returns what is to be applied now, in order.
    pub(super) fn take(
        &mut self,
        shard: usize,
        from: Position,
        bytes: &[u8],
    ) -> Result<Vec<Chunk>, Misplaced> {
        let before = self.incomplete.get_mut(shard).ok_or(Misplaced)?.take();
        let mut chunk = before.unwrap_or(Chunk { shard, from, bytes: Vec::new() });
        if chunk.end() != from {
            return Err(Misplaced);
        }
        chunk.bytes.extend_from_slice(bytes);
        let found = survey(&chunk.bytes, chunk.from);
        let rest = chunk.bytes.split_off(found.applicable);
        if !rest.is_empty() {
            self.incomplete[shard] = Some(Chunk { shard, from: chunk.end(), bytes: rest });
        }
        if chunk.bytes.is_empty() {
            return Ok(Vec::new());
        }
        if !found.tells_streams && !self.deferred.iter().any(|other| other.shard == shard) {
            return Ok(vec![chunk]);
        }
        self.deferred_bytes += chunk.bytes.len();
        self.deferred.push(chunk);
        // So much waits only while it catches up, when what it has is of no one moment anyway.
        Ok(if self.deferred_bytes >= FOLLOWER_DEFERRED_BYTES { self.deferred() } else { Vec::new() })
    }

    /// What has waited, to be applied once all that was returned before is.
    pub(super) fn deferred(&mut self) -> Vec<Chunk> {
        self.deferred_bytes = 0;
        std::mem::take(&mut self.deferred)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::testing::log::{Kind, Stamp, envelope};

    fn at(offset: u64) -> Position {
        Position { generation: 0, offset }
    }

    fn record(kind: Kind, from: Position) -> Vec<u8> {
        let mut bytes = Vec::new();
        envelope::open(&mut bytes, 1, kind, Stamp::default(), from, 0);
        bytes.extend_from_slice(b"body");
        envelope::close(&mut bytes);
        bytes
    }

    #[test]
    fn a_position_of_a_stream_waits_for_its_moment_and_what_follows_it_too() {
        let mut chunks = Chunks::new(2);
        let tells = record(Kind::Stream, at(0));
        let end = at(tells.len() as u64);
        let after = record(Kind::Delete, end);
        assert_eq!(chunks.take(0, at(0), &tells), Ok(Vec::new()));
        assert_eq!(chunks.take(0, end, &after), Ok(Vec::new()));
        let other = record(Kind::Delete, at(0));
        let want = Chunk { shard: 1, from: at(0), bytes: other.clone() };
        assert_eq!(chunks.take(1, at(0), &other), Ok(vec![want]), "another shard does not wait");
        let waited = [(at(0), tells), (end, after)];
        let waited = waited.map(|(from, bytes)| Chunk { shard: 0, from, bytes });
        assert_eq!(chunks.deferred(), waited);
        assert_eq!(chunks.deferred(), []);
    }

    #[test]
    fn halves_of_a_record_are_joined_and_gaps_are_noticed() {
        let whole = record(Kind::Delete, at(0));
        for cut in 1..whole.len() {
            let mut chunks = Chunks::new(1);
            let (first, second) = whole.split_at(cut);
            assert_eq!(chunks.take(0, at(0), first), Ok(Vec::new()));
            let want = vec![Chunk { shard: 0, from: at(0), bytes: whole.clone() }];
            assert_eq!(chunks.take(0, at(cut as u64), second), Ok(want));
            assert_eq!(chunks.take(0, at(0), first), Ok(Vec::new()));
            assert_eq!(chunks.take(0, at(cut as u64 + 1), second), Err(Misplaced));
            assert_eq!(chunks.take(1, at(0), first), Err(Misplaced));
        }
    }
}
