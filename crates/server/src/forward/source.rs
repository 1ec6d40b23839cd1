//! Reads the log for one target: the readings of the RRDs that it is to get, in batches.

use std::sync::Arc;
use std::time::Duration;

use access::PathSet;
use rrd::live::HeadShape;
use store::identity::Identity;
use store::name::RrdName;
use store::position::Position;
use store::tail::{ChangeKind, LogTail, LoggedChange, Piece, RawRecords, ShardTail, TailError};

use super::batch::{CreatedRrd, ForwardBatch};
use crate::limits::{FORWARD_BATCH_BYTES, FORWARD_BATCH_READINGS};

/// Bytes of log read at once: some thousand readings.
const PIECE_BYTES: usize = 16 << 10;
/// Bytes of log dropped at once.
const DROPPED_BYTES: usize = 1 << 20;

/// The log, as one target gets it.
pub struct ForwardSource {
    tail: LogTail,
    names: PathSet,
    /// The shard whose turn it is: each gets its share of a batch.
    turn: usize,
}

/// What was left out because too much was waiting, or cannot be read any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Readings that were dropped.
    pub readings: u64,
    /// Bytes of log that are gone or damaged; what was in them is not known.
    pub lost_bytes: u64,
}

impl ForwardSource {
    /// What `tail` has of RRDs whose names are among `names`.
    pub fn new(tail: LogTail, names: PathSet) -> Self {
        ForwardSource { tail, names, turn: 0 }
    }

    /// Whose log it is.
    pub fn identity(&self) -> Identity {
        self.tail.identity()
    }

    /// The log, for it to be kept.
    pub fn into_tail(self) -> LogTail {
        self.tail
    }

    /// Waits until there is more, it is told to stop, or `timeout` is over.
    pub fn wait(&self, timeout: Duration) {
        self.tail.wait(timeout);
    }

    /// Bytes of log that were not read.
    pub fn bytes_left(&self) -> u64 {
        self.tail.shards().iter().map(ShardTail::bytes_left).sum()
    }

    /// Where the log ends, in each shard.
    pub fn ends(&self) -> Vec<Position> {
        self.tail.shards().iter().map(ShardTail::end).collect()
    }

    /// From where on the rest has to be read, in each shard.
    pub fn positions(&self) -> Vec<Position> {
        self.tail.shards().iter().map(ShardTail::resume_from).collect()
    }

    /// Goes (back) to positions.
    ///
    /// # Errors
    /// When the log does not have one of them.
    pub fn seek(&mut self, positions: &[Position]) -> Result<(), TailError> {
        for (shard, position) in self.tail.shards_mut().iter_mut().zip(positions) {
            shard.seek(*position)?;
        }
        Ok(())
    }

    /// Lets go of the log before positions.
    pub fn keep_from(&self, positions: &[Position]) {
        for (shard, position) in self.tail.shards().iter().zip(positions) {
            shard.keep_from(*position);
        }
    }

    /// Reads on into `batch`, until that is full or nothing is left. Returns when the first of it was logged, in
    /// milliseconds since the epoch, and what could not be read.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn read(&mut self, batch: &mut ForwardBatch) -> Result<(Option<i64>, LeftOut), TailError> {
        let (mut first_ms, mut left_out) = (None, LeftOut::default());
        let shard_count = self.tail.shards().len();
        let mut idle = 0;
        while idle < shard_count
            && batch.len() < FORWARD_BATCH_READINGS
            && batch.bytes() < FORWARD_BATCH_BYTES
        {
            let shard = &mut self.tail.shards_mut()[self.turn];
            self.turn = (self.turn + 1) % shard_count;
            match shard.read(PIECE_BYTES)? {
                None => idle += 1,
                Some(Piece::Lost { from, to }) => {
                    left_out.lost_bytes += lost(from, to);
                    idle = 0;
                }
                Some(Piece::Records(raw)) => {
                    first_ms = first_ms.min(raw.logged_ms()).or(first_ms).or(raw.logged_ms());
                    take(shard, &raw, &self.names, batch)?;
                    idle = 0;
                }
            }
        }
        Ok((first_ms, left_out))
    }

    /// Leaves out the oldest of what waits until no more than `bytes_max` are left. Returns what was left out.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn drop_oldest(&mut self, bytes_max: u64) -> Result<LeftOut, TailError> {
        let mut left_out = LeftOut::default();
        let mut unsent = ForwardBatch::default();
        while self.bytes_left() > bytes_max {
            let longest = self.tail.shards_mut().iter_mut().max_by_key(|shard| shard.bytes_left());
            let Some(shard) = longest else { break };
            match shard.read(DROPPED_BYTES)? {
                None => break,
                Some(Piece::Lost { from, to }) => left_out.lost_bytes += lost(from, to),
                Some(Piece::Records(raw)) => take(shard, &raw, &self.names, &mut unsent)?,
            }
            left_out.readings += unsent.len() as u64;
            unsent.clear();
        }
        Ok(left_out)
    }
}

fn lost(from: Position, to: Position) -> u64 {
    tracing::error!(%from, %to, "a part of the log is gone or damaged before it was forwarded: the readings in it are not sent");
    to.offset.saturating_sub(from.offset)
}

/// Adds to `batch` what records say of RRDs among `names`.
fn take(
    shard: &mut ShardTail,
    raw: &RawRecords,
    names: &PathSet,
    batch: &mut ForwardBatch,
) -> Result<(), TailError> {
    shard.decode(raw, &mut |change| add(change, names, batch))
}

fn add(change: LoggedChange<'_>, names: &PathSet, batch: &mut ForwardBatch) {
    let Some(mut name) = change.name else { return };
    let revealed = RrdName::revealed(name).map(|(_, name)| name);
    // A copy or an import is made under a hidden name that says which it gets.
    if let Some(revealed) = &revealed {
        name = revealed.as_bytes();
    }
    if !names.contains(name) {
        return;
    }
    if let ChangeKind::Update { time, values } = change.what {
        return batch.push(name, time, values);
    }
    let Ok(name) = RrdName::new(name) else { return };
    batch.redefined.push(name.clone());
    let (definition, start) = match change.what {
        ChangeKind::Create { definition, start } => (definition, start),
        ChangeKind::Import(rrd) => {
            let last = HeadShape::of(&rrd.definition).split(&rrd.live.words).last_update;
            let start = last.in_seconds(rrd.definition.units_per_second).whole;
            (rrd.definition, start)
        }
        _ => return,
    };
    batch.created.push(CreatedRrd { name, definition: Arc::new(definition), start });
}
