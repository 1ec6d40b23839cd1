//! What can be sent to a shard: changes, which the log records, and questions, which it does not.

use std::sync::Arc;

use rrd::content::Rrd;

use crate::catalogue::RrdId;
use crate::engine::{
    CreateRequest, FetchRequest, Listed, Reply, Snapshot, StoreError, UpdateBatch, UpdateFailure,
};
use crate::group::Group;
use crate::name::RrdName;
use crate::open_rows::OpenRows;
use crate::read::{FetchTicket, ReadTicket};
use crate::segments::SegmentSet;

/// A batch with its failures.
pub type UpdateOutcome = (UpdateBatch, Vec<UpdateFailure>);

/// Something the log records, or that must wait for what was sent before it.
pub enum Change {
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

impl Change {
    /// About how many bytes it holds back in memory while it waits.
    pub fn bytes(&self) -> usize {
        match self {
            Change::Update(batch, _) => batch.text.len() + batch.lines.len() * 20,
            Change::UpdateListed(_, values, _) => values.len() + 64,
            Change::Create(..) | Change::Tune(..) | Change::Delete(..) => 512,
            Change::Import(_, rrd, ..) => rrd.archives.iter().map(|rows| rows.len() * 8).sum::<usize>() + 512,
            Change::Sync(_) | Change::Checkpoint(_) => 64,
        }
    }

    /// Answers it with a failure.
    pub fn refuse(self, error: StoreError) {
        match self {
            Change::Update(batch, reply) => reply(refuse_all(batch, &error)),
            Change::UpdateListed(.., reply) => reply(Err(error)),
            Change::Create(.., reply)
            | Change::Import(.., reply)
            | Change::Tune(.., reply)
            | Change::Delete(_, reply)
            | Change::Sync(reply)
            | Change::Checkpoint(reply) => reply(Err(error)),
        }
    }
}

/// The same failure for every line of a batch.
pub fn refuse_all(batch: UpdateBatch, error: &StoreError) -> UpdateOutcome {
    let failure = |line| UpdateFailure { line, accepted: 0, error: error.clone() };
    let failures = (0..batch.lines.len() as u32).map(failure).collect();
    (batch, failures)
}

/// Something to be answered from memory, between two changes.
pub enum Question {
    /// Definition and head.
    Snapshot(RrdName, Reply<Result<Snapshot, StoreError>>),
    /// What memory has of a fetch, and where the rest is.
    Fetch(RrdName, FetchRequest, Reply<Result<FetchTicket, StoreError>>),
    /// What memory has of everything, and where the rest is.
    Read(RrdName, Reply<Result<ReadTicket, StoreError>>),
    /// Names that start with these bytes.
    Names(Vec<u8>, Reply<Vec<Vec<u8>>>),
    /// For ids from the first on, up to a number of them: last update in units and group; `None` = removed.
    LastUpdates(RrdId, usize, Reply<Vec<Option<(i64, u32)>>>),
    /// The stripe groups, by index.
    Groups(Reply<Vec<Arc<Group>>>),
    /// From the keeper: a cycle ended.
    CycleEnded(Result<(), StoreError>, Reply<Leftovers>),
    /// From the merger: some segments were replaced by others with the same rows.
    SegmentsChanged(Reply<Leftovers>),
}

/// What the worker needs no longer. To let go of it frees an arena or closes removed files: milliseconds, which
/// are the background's and not the worker's.
#[derive(Debug)]
pub struct Leftovers {
    /// Rows that a segment holds now.
    pub rows: Option<Arc<OpenRows>>,
    /// The segments as they were.
    pub segments: Arc<SegmentSet>,
}
