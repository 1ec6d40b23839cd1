//! The messages a shard accepts: commands, which wait their turn, and queries and events, which are handled
//! first.

use std::ops::Range;
use std::sync::Arc;

use rrd::content::Rrd;

use crate::catalogue::RrdId;
use crate::engine::{
    CreateRequest, Reply, StoreError, StreamPosition, UpdateBatch, UpdateFailure, UpdatevOutcome,
};
use crate::log::Position;
use crate::name::RrdName;
use crate::open_rows::OpenRows;
use crate::replication::BegunCheck;
use crate::segments::SegmentSet;
use crate::shard::view::View;

/// A batch with its failures.
pub type UpdateOutcome = (UpdateBatch, Vec<UpdateFailure>);

/// A change that the log records, or a request that must wait for the changes sent before it.
pub enum Command {
    /// Updates in order.
    Update(UpdateBatch, Reply<UpdateOutcome>),
    /// UPDATEV: updates of one RRD, given by its name and arguments, with the rows they write.
    Updatev(RrdName, Vec<u8>, Reply<Result<UpdatevOutcome, StoreError>>),
    /// Creates an RRD; the flag permits that a real `.rrd` file stands at its name.
    Create(RrdName, CreateRequest, bool, Reply<Result<(), StoreError>>),
    /// Imports a whole RRD; the flag is `no_overwrite`.
    Import(RrdName, Box<Rrd>, bool, Reply<Result<(), StoreError>>),
    /// Changes an RRD by the arguments of `tune`.
    Tune(RrdName, Vec<String>, Reply<Result<(), StoreError>>),
    /// Another command, about the RRD of this name, if that is of this version; the reply gets the version that follows.
    IfUnchanged(RrdName, u64, Box<Command>, Reply<u64>),
    /// Removes an RRD.
    Delete(RrdName, Reply<Result<(), StoreError>>),
    /// Gives an RRD a name that no RRD of the shard has.
    Rename(RenameCommand, Reply<Result<Renamed, StoreError>>),
    /// Records how far a stream has been applied; answered when that is durable.
    Stream(Box<[u8]>, StreamPosition, Reply<Result<(), StoreError>>),
    /// Record what some RRDs are, for copies to compare.
    Check(Reply<Result<(), StoreError>>),
    /// Have copies hash the RRDs of some ids with their rows, under a number.
    RowCheck(u64, Range<RrdId>, Reply<Result<BegunCheck, StoreError>>),
    /// Applies records of the primary's log, whole ones from this position on, where the shard's own log ends; answers
    /// where that ends then.
    Replicate(Position, Vec<u8>, Reply<Result<Position, StoreError>>),
    /// Answered when everything before it is durable.
    Sync(Reply<Result<(), StoreError>>),
    /// Answered when everything before it is in segments and a checkpoint.
    Checkpoint(Reply<Result<(), StoreError>>),
}

impl Command {
    /// About how many bytes the command takes in memory while it is queued.
    pub fn bytes(&self) -> usize {
        match self {
            Command::Update(batch, _) => batch.text.len() + batch.lines.len() * 20,
            Command::Updatev(_, values, _) => values.len() + 64,
            Command::Create(..) | Command::Tune(..) | Command::Delete(..) | Command::Rename(..) => 512,
            Command::Import(_, rrd, ..) => {
                rrd.archives.iter().map(|rows| rows.len() * 8).sum::<usize>() + 512
            }
            Command::IfUnchanged(_, _, command, _) => command.bytes(),
            Command::Stream(name, ..) => name.len() + 64,
            Command::Replicate(_, records, _) => records.len(),
            Command::Check(_) | Command::RowCheck(..) | Command::Sync(_) | Command::Checkpoint(_) => 64,
        }
    }

    /// Answers the command with an error.
    pub fn refuse(self, error: StoreError) {
        match self {
            Command::Update(batch, reply) => reply(refuse_all(batch, &error)),
            Command::Updatev(.., reply) => reply(Err(error)),
            Command::Rename(_, reply) => reply(Err(error)),
            Command::IfUnchanged(_, _, command, _) => command.refuse(error),
            Command::Replicate(.., reply) => reply(Err(error)),
            Command::RowCheck(.., reply) => reply(Err(error)),
            Command::Create(.., reply)
            | Command::Import(.., reply)
            | Command::Tune(.., reply)
            | Command::Delete(_, reply)
            | Command::Stream(.., reply)
            | Command::Check(reply)
            | Command::Sync(reply)
            | Command::Checkpoint(reply) => reply(Err(error)),
        }
    }
}

/// A change of name.
pub struct RenameCommand {
    /// The name now.
    pub from: RrdName,
    /// The name then.
    pub to: RrdName,
    /// Whether it is still wanted; called when all changes sent before it are complete, with their placeholders.
    pub is_wanted: Option<Box<dyn FnOnce() -> bool + Send>>,
}

/// What became of a change of name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renamed {
    /// It is made.
    Done,
    /// It was not wanted any more.
    Unwanted,
}

/// The same error for every line of a batch.
pub fn refuse_all(batch: UpdateBatch, error: &StoreError) -> UpdateOutcome {
    let failure = |line| UpdateFailure { line, accepted: 0, error: error.clone() };
    let failures = (0..batch.lines.len() as u32).map(failure).collect();
    (batch, failures)
}

/// A message that the worker handles before queued commands, and between any two updates.
pub enum Priority {
    /// Reads the shard's memory and answers.
    Query {
        /// The only RRD the query reads; `None` when it reads none in particular and may see outdated heads
        /// during recovery.
        about: Option<RrdName>,
        /// The look.
        look: Query,
    },
    /// A background thread has finished something.
    Event(Event),
}

/// A read of the shard's memory; it sends the answer itself.
pub type Query = Box<dyn FnOnce(&View<'_>) + Send>;

/// A change of the worker's own state that affects no RRD, so the log does not record it.
pub enum Event {
    /// From the checkpointer: a cycle ended.
    CycleEnded(Result<(), StoreError>, Reply<Retired>),
    /// From the compactor: some segments were replaced by others with the same rows.
    SegmentsChanged(Reply<Retired>),
}

/// What the worker no longer needs. Dropping it frees an arena or closes removed files, which takes
/// milliseconds, so a background thread does that instead of the worker.
#[derive(Debug)]
#[expect(dead_code, reason = "kept only to be dropped elsewhere")]
pub struct Retired {
    /// Rows that a segment now holds.
    pub rows: Option<Arc<OpenRows>>,
    /// The previous set of segments.
    pub segments: Arc<SegmentSet>,
}
