//! Reads from the disk what found no room in memory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use store::engine::UpdateBatch;
use store::records::{Kind, Known, Position, Record, ReplayError, replay};

use super::opening::{GENERATION, HERE};
use super::queues::{OnDisk, ReadPlan, Spooled};
use super::{SpoolState, record};
use crate::key;

/// Bytes of the spool that are read at once.
const READ_BYTES: u64 = 4 << 20;
/// How long it waits when the disk fails.
const PAUSE: Duration = Duration::from_secs(1);

/// A reading has read enough; where it goes on.
struct Enough(u64);

/// What a reading finds for a partition.
struct Wanted {
    from: u64,
    room: usize,
    found: Vec<Spooled>,
    /// The first record that has no room.
    missing: Option<OnDisk>,
}

/// Reads the next part, if some partition wants it; false when none does.
pub(super) fn read(shared: &Arc<SpoolState>) -> bool {
    let Some(plan) = shared.queues().plan() else { return false };
    let ReadPlan { from, tip, wanted } = plan;
    let mut wanted: Vec<Option<Wanted>> = wanted
        .into_iter()
        .map(|wanted| wanted.map(|(from, room)| Wanted { from, room, found: Vec::new(), missing: None }))
        .collect();
    let mut time_ms = None;
    let mut see = |record: Record<'_>| {
        let start = record.position.offset;
        if start >= tip || start - from >= READ_BYTES {
            return Err(Enough(start));
        }
        if record.kind == Kind::Named {
            time_ms = Some(record.stamp.time_ms);
            add(&record, &mut wanted, shared);
        }
        // What comes after the last one is being written.
        if record.end.offset >= tip { Err(Enough(tip)) } else { Ok(()) }
    };
    let place = Position { generation: GENERATION, offset: from };
    let end = match replay(&*shared.disk, Path::new(HERE), place, Known::default(), &mut see) {
        Ok(end) => {
            let (from, to) = (end.end.offset, tip);
            tracing::error!(from, to, "a part of the spool cannot be read: the updates in it are lost");
            tip
        }
        Err(ReplayError::Visitor(Enough(at))) => at,
        Err(ReplayError::Log(error)) => {
            tracing::error!(%error, "the spool cannot be read; it is tried again");
            std::thread::sleep(PAUSE);
            return false;
        }
    };
    let mut queues = shared.queues();
    for (partition, wanted) in (0..).zip(wanted) {
        let Some(Wanted { from, found, missing, .. }) = wanted else { continue };
        let rest = missing.unwrap_or(OnDisk { from: from.max(end), time_ms });
        queues.fill(partition, found, rest);
    }
    true
}

/// Takes what is wanted of a record.
fn add(record: &Record<'_>, wanted: &mut [Option<Wanted>], shared: &SpoolState) {
    let partition_count = shared.partition_count;
    let start = record.position.offset;
    let hint = record::partition_of(record, partition_count);
    if hint.is_some_and(|partition| wanted[partition as usize].is_none()) {
        return;
    }
    let drained = shared.earlier.get(&record::numbers_of(record));
    if hint.is_none() && drained.is_some_and(|drained| record.end.offset <= *drained) {
        return;
    }
    let batch = match record::batch_of(record) {
        Ok(batch) => batch,
        Err(error) => {
            tracing::error!(%error, start, "a record of the spool is none of this program's: it is left out");
            return;
        }
    };
    let parts = match hint {
        Some(partition) => vec![(partition, batch)],
        None => by_partition(&batch, partition_count),
    };
    for (partition, batch) in parts {
        let Some(wanted) = &mut wanted[partition as usize] else { continue };
        if start < wanted.from || wanted.missing.is_some() {
            continue;
        }
        let time_ms = record.stamp.time_ms;
        if wanted.room == 0 {
            wanted.missing = Some(OnDisk { from: start, time_ms: Some(time_ms) });
            continue;
        }
        wanted.room = wanted.room.saturating_sub(batch.text.len());
        wanted.found.push(Spooled { start, end: record.end.offset, time_ms, is_again: false, batch });
    }
}

/// A batch that was spooled when the cluster had another number of partitions.
fn by_partition(batch: &UpdateBatch, partition_count: u32) -> Vec<(u32, UpdateBatch)> {
    let mut parts: Vec<(u32, UpdateBatch)> = Vec::new();
    for line in &batch.lines {
        let partition = key::partition_of(batch.name(line), partition_count);
        match parts.iter_mut().find(|(known, _)| *known == partition) {
            Some((_, part)) => part.push_copy(batch, line),
            None => {
                let mut part = UpdateBatch::default();
                part.push_copy(batch, line);
                parts.push((partition, part));
            }
        }
    }
    parts
}
