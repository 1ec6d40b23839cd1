//! What can be sent to a shard: commands, which wait their turn, and queries and events, which are taken first.

use std::sync::Arc;

use rrd::content::Rrd;

use crate::engine::{CreateRequest, Listed, Reply, StoreError, UpdateBatch, UpdateFailure};
use crate::name::RrdName;
use crate::open_rows::OpenRows;
use crate::segments::SegmentSet;
use crate::shard::view::View;

/// A batch with its failures.
pub type UpdateOutcome = (UpdateBatch, Vec<UpdateFailure>);

/// A change, which the log records, or something that must wait for the changes sent before it.
pub enum Command {
    /// Updates in order.
    Update(UpdateBatch, Reply<UpdateOutcome>),
    /// Updates of one RRD whose rows are listed: its name and the words.
    UpdateListed(RrdName, Vec<u8>, Reply<Result<Listed, StoreError>>),
    /// A new RRD.
    Create(RrdName, CreateRequest, Reply<Result<(), StoreError>>),
    /// A whole RRD.
    Import(RrdName, Box<Rrd>, bool, Reply<Result<(), StoreError>>),
    /// `tune`'s words.
    Tune(RrdName, Vec<String>, Reply<Result<(), StoreError>>),
    /// Removal.
    Delete(RrdName, Reply<Result<(), StoreError>>),
    /// Answered when everything before it is durable.
    Sync(Reply<Result<(), StoreError>>),
    /// Answered when everything before it is in segments and a checkpoint.
    Checkpoint(Reply<Result<(), StoreError>>),
}

impl Command {
    /// About how many bytes it holds back in memory while it waits.
    pub fn bytes(&self) -> usize {
        match self {
            Command::Update(batch, _) => batch.text.len() + batch.lines.len() * 20,
            Command::UpdateListed(_, values, _) => values.len() + 64,
            Command::Create(..) | Command::Tune(..) | Command::Delete(..) => 512,
            Command::Import(_, rrd, ..) => {
                rrd.archives.iter().map(|rows| rows.len() * 8).sum::<usize>() + 512
            }
            Command::Sync(_) | Command::Checkpoint(_) => 64,
        }
    }

    /// Answers it with a failure.
    pub fn refuse(self, error: StoreError) {
        match self {
            Command::Update(batch, reply) => reply(refuse_all(batch, &error)),
            Command::UpdateListed(.., reply) => reply(Err(error)),
            Command::Create(.., reply)
            | Command::Import(.., reply)
            | Command::Tune(.., reply)
            | Command::Delete(_, reply)
            | Command::Sync(reply)
            | Command::Checkpoint(reply) => reply(Err(error)),
        }
    }
}

/// The same failure for every line of a batch.
pub fn refuse_all(batch: UpdateBatch, error: &StoreError) -> UpdateOutcome {
    let failure = |line| UpdateFailure { line, accepted: 0, error: error.clone() };
    let failures = (0..batch.lines.len() as u32).map(failure).collect();
    (batch, failures)
}

/// Something the worker does before the commands that wait, and between any two updates.
pub enum Priority {
    /// Looks at the shard's memory and answers.
    Query {
        /// The only RRD it is about; `None` when it is about none in particular and may see old heads during recovery.
        about: Option<RrdName>,
        /// The look.
        look: Query,
    },
    /// A background thread has finished something.
    Event(Event),
}

/// A look at the shard's memory, which answers on its own.
pub type Query = Box<dyn FnOnce(&View<'_>) + Send>;

/// What changes the worker but not the RRDs, so that the log knows nothing of it.
pub enum Event {
    /// From the checkpointer: a cycle ended.
    CycleEnded(Result<(), StoreError>, Reply<Retired>),
    /// From the compactor: some segments were replaced by others with the same rows.
    SegmentsChanged(Reply<Retired>),
}

/// What the worker needs no longer. Dropping it frees an arena or closes removed files, which takes milliseconds:
/// a background thread does it, not the worker.
#[derive(Debug)]
#[expect(dead_code, reason = "kept only to be dropped elsewhere")]
pub struct Retired {
    /// Rows that a segment holds now.
    pub rows: Option<Arc<OpenRows>>,
    /// The segments as they were.
    pub segments: Arc<SegmentSet>,
}
