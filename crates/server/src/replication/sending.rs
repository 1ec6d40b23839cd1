//! The thread that reads the log for one follower.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use protocol::frames::replication::{Ending, FromPrimary, push_from_primary};
use store::engine::Engine;
use store::replication::{Position, Replica, Role};
use store::tail::{LogTail, Piece};
use tokio::sync::mpsc;

use super::copying::send_copy;
use super::kept::keep_for;
use super::state::now_ms;
use super::wire_position;

/// Bytes of records in a frame, but for a longer record.
const RECORD_BYTES: usize = 1 << 20;
/// How often a follower is told that nothing has happened.
const MOMENT_EVERY: Duration = Duration::from_millis(100);

/// From where on a follower gets the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// From where its own ends.
    Log(Vec<Position>),
    /// From where a copy of the store ends, which comes first.
    Copy,
}

impl Start {
    /// Where the follower's logs end; nothing while it has none.
    pub(super) fn positions(&self) -> &[Position] {
        match self {
            Start::Log(from) => from,
            Start::Copy => &[],
        }
    }
}

/// Reads the log, and passes on frames.
pub(super) struct LogSender {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) tail: LogTail,
    /// What the follower has.
    pub(super) acknowledged: Arc<Mutex<Vec<Position>>>,
    pub(super) frames: mpsc::Sender<Vec<u8>>,
    pub(super) name: String,
}

/// Why it ends.
pub(super) enum End {
    /// The follower has left.
    Left,
    /// The follower is told.
    Told(Ending, String),
}

impl LogSender {
    /// Sends until the follower has left; returns what keeps the log.
    pub(super) fn run(mut self, start: Start) -> LogTail {
        if let Err(End::Told(ending, text)) = self.send_all(start) {
            tracing::warn!(follower = self.name, "the session of a follower ends: {text}");
            // It may have left meanwhile.
            let _ = self.send(&FromPrimary::Ended(ending, text.as_bytes()));
        }
        self.tail
    }

    fn send_all(&mut self, start: Start) -> Result<(), End> {
        let engine = Arc::clone(&self.engine);
        let no_log = || End::Told(Ending::Other, "the store has no log".to_string());
        let replica = engine.replica().ok_or_else(no_log)?;
        let from = match start {
            Start::Log(from) => from,
            Start::Copy => send_copy(self)?,
        };
        for (shard, position) in self.tail.shards_mut().iter_mut().zip(&from) {
            shard.seek(*position).map_err(|error| End::Told(Ending::Gone, error.to_string()))?;
            keep_for(shard, *position);
        }
        self.send(&FromPrimary::Welcome(replica.history().encode().as_bytes()))?;
        self.follow(replica)
    }

    fn follow(&mut self, replica: &dyn Replica) -> Result<(), End> {
        let mut told = Instant::now() - MOMENT_EVERY;
        loop {
            if replica.role() != Role::Primary {
                let text = "this server takes no changes itself any more, and is not to be followed";
                return Err(End::Told(Ending::NotPrimary, text.to_string()));
            }
            let (time, moment) = (now_ms(), replica.moment());
            let mut has_sent = false;
            for (index, end) in moment.into_iter().enumerate() {
                has_sent |= self.send_shard(index, end)?;
            }
            if has_sent || told.elapsed() >= MOMENT_EVERY {
                told = Instant::now();
                self.send(&FromPrimary::Moment(time))?;
            }
            let has = self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner).clone();
            self.tail.shards().iter().zip(has).for_each(|(shard, position)| keep_for(shard, position));
            self.tail.wait(MOMENT_EVERY);
        }
    }

    /// Sends a shard's records up to a moment; whether there were any.
    fn send_shard(&mut self, index: usize, end: Position) -> Result<bool, End> {
        let mut has_sent = false;
        loop {
            let piece = self.tail.shards_mut()[index].read_before(end, RECORD_BYTES);
            match piece.map_err(|error| End::Told(Ending::Other, error.to_string()))? {
                None => return Ok(has_sent),
                Some(Piece::Records(raw)) => {
                    let (from, bytes) = (wire_position(raw.from), &raw.bytes);
                    self.send(&FromPrimary::Records { shard: index as u16, from, bytes })?;
                    has_sent = true;
                }
                Some(Piece::Lost { from, to }) => {
                    let text = format!("the log of shard {index} from {from} to {to} is no longer there");
                    return Err(End::Told(Ending::Gone, text));
                }
            }
        }
    }

    /// Passes on a frame; waits while the follower is slow.
    pub(super) fn send(&self, frame: &FromPrimary<'_>) -> Result<(), End> {
        let mut bytes = Vec::new();
        push_from_primary(&mut bytes, frame);
        self.frames.blocking_send(bytes).map_err(|_| End::Left)
    }
}
