//! A sealed replica divided: the stores that it becomes in a log with more partitions.
//!
//! Each node divides what it has, without asking another. The RRDs of a part are imported in the order of their names, so that the parts of all replicas
//! have the same records at the same positions. A replica whose part ends elsewhere is found out by the first claim, and made again.

use std::io;
use std::path::Path;
use std::sync::Arc;

use store::disk::{Disk, RealDisk};
use store::engine::Engine;
use store::name::RrdName;
use store::replication::{Mark, Replica as _};
use store::stripes::{Options, ShardOptions, Stripes};

use super::Replica;
use crate::key;
use crate::message::NO_WRITER;

/// A part of a partition: one of those that it is divided into.
pub struct Part<'p> {
    /// Its number among the partitions of the next log.
    pub partition: u32,
    /// How many these are.
    pub partitions: u32,
    /// The identity of the next log.
    pub log: &'p str,
    /// That of the part's store.
    pub identity: store::identity::Identity,
}

impl Replica {
    /// Makes the store of a part in `directory`, which is not there, as it is opened with the next log. The replica is sealed for that. It is given
    /// up when `is_stopping`.
    ///
    /// # Errors
    /// When its store is not open; the system's. What was made then stays.
    pub fn divide(
        &self,
        part: &Part<'_>,
        directory: &Path,
        is_stopping: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        let shared = &self.shared;
        let (engine, epoch) = {
            let state = shared.state();
            let accepted = state.settled.accepted;
            let engine = state.engine.clone().filter(|_| accepted.is_sealed && accepted == state.accepted);
            (engine.ok_or_else(|| io::Error::other("the replica is not open"))?, accepted.epoch)
        };
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::create(directory)?);
        let options = &shared.options.store;
        let shard = ShardOptions {
            sync_always: false,
            replica_patience: None,
            log_end: None,
            confirmation: None,
            ..options.shard.clone()
        };
        let options = Options {
            shard_count: 1,
            identity: Some(part.identity),
            shard,
            directory: Some(directory.to_owned()),
            placeholder_tree: None,
            adopt_tree: None,
            adopt_unused: None,
            follow: false,
            ..options.clone()
        };
        let made = Stripes::open(Arc::clone(&disk), &options).map_err(io::Error::other)?;
        let filled = fill(&made, &engine, part, &|| is_stopping() || shared.is_stopping());
        let end = made.moment().first().copied().unwrap_or_default();
        let stopped = made.stop().map_err(io::Error::other);
        filled.and(stopped)?;
        let log = part.log.to_owned();
        Mark { log, next: 0, epoch, leader: NO_WRITER, end, sealed_for: None }.store(&*disk)
    }
}

/// Imports what belongs to a part.
fn fill(made: &Stripes, of: &Stripes, part: &Part<'_>, is_stopping: &dyn Fn() -> bool) -> io::Result<()> {
    let is_own = |name: &[u8]| key::partition_of(name, part.partitions) == part.partition;
    let names: Vec<RrdName> = of.all_names().map_err(io::Error::other)?;
    for name in names.into_iter().filter(|name| is_own(name.as_bytes())) {
        if is_stopping() {
            return Err(io::Error::other("the node stops"));
        }
        let rrd = of.read(&name).map_err(|error| io::Error::other(format!("\"{name}\": {error}")))?;
        made.import(name, rrd, true).map_err(io::Error::other)?;
    }
    for (name, position) in of.streams().map_err(io::Error::other)? {
        if key::of_directory(&name, part.partitions) == part.partition {
            made.set_stream_position(&name, position).map_err(io::Error::other)?;
        }
    }
    made.sync().map_err(io::Error::other)
}
