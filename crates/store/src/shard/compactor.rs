//! The compactor: merges segments into fewer ones with longer runs, and drops rows that no fetch can reach
//! any more.
//!
//! [`plan`](mod@plan) chooses what to merge. Rows expire relative to the last update of their own RRD, not to
//! the clock: the history of a target that stopped reporting stays, as it does in a `.rrd` file.

mod plan;

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};

use self::plan::{Candidate, Plan, plan};
use crate::catalogue::RrdId;
use crate::engine::{Reply, StoreError};
use crate::group::{Group, SourceIndex};
use crate::lock::lock;
use crate::segment::merge;
use crate::segments::{SegmentFile, into_io, retention_class};
use crate::shard::Shared;
use crate::shard::checkpointer::{retry_while_full, write_segment};
use crate::shard::message::{Command, Event, Priority, Retired};
use crate::shard::view::View;

/// Ids per query: a quarter of a millisecond of the worker's time.
const IDS_A_QUERY: usize = 16 * 1024;

/// Wakes and stops the compactor.
#[derive(Debug, Default)]
pub struct CompactorHandle {
    request: Mutex<CompactionRequest>,
    requested: Condvar,
}

#[derive(Debug, Default)]
struct CompactionRequest {
    look: bool,
    stop: bool,
}

impl CompactorHandle {
    /// Signals that there may be something to merge.
    pub fn wake(&self) {
        lock(&self.request).look = true;
        self.requested.notify_one();
    }

    /// Stops the compactor after the block it is working on.
    pub fn stop(&self) {
        lock(&self.request).stop = true;
        self.requested.notify_one();
    }

    fn wait(&self) -> bool {
        let mut request = lock(&self.request);
        while !request.look && !request.stop {
            request = self.requested.wait(request).unwrap_or_else(PoisonError::into_inner);
        }
        request.look = false;
        !request.stop
    }
}

/// Segments to be replaced by one merge.
struct Job {
    inputs: Vec<Arc<SegmentFile>>,
    level: u8,
}

/// The next job that [`plan`] finds. Segments in `failed` are left alone.
fn next_job(shared: &Shared, failed: &BTreeSet<u64>) -> Option<Job> {
    if shared.options.merge_count == 0 {
        return None;
    }
    let groups = query(shared, |view| view.groups()).ok()?;
    let files = &shared.files.segments().files;
    let candidate = |file: &Arc<SegmentFile>| Candidate {
        level: file.name.level,
        class: file.name.class,
        bytes: file.name.bytes,
        sources: file.segment.sources().to_vec(),
        // Its summary does not know of the rows that are lost.
        failed: failed.contains(&file.name.number) || !file.segment.gaps().is_empty(),
    };
    let candidates: Vec<Candidate> = files.iter().map(candidate).collect();
    let Plan { inputs, level } = plan(&candidates, &groups, shared.options.merge_count)?;
    Some(Job { inputs: inputs.into_iter().map(|index| Arc::clone(&files[index])).collect(), level })
}

/// Runs until it is stopped.
pub fn run(shared: &Shared) {
    // Segments that could not be merged, usually damaged ones.
    let mut failed = BTreeSet::new();
    while shared.compactor.wait() {
        while let Some(job) = next_job(shared, &failed) {
            if shared.failure().is_some() || shared.stopping.load(Ordering::Relaxed) {
                break;
            }
            let retention = match Retention::ask(shared) {
                Ok(retention) => retention,
                Err(error) => {
                    tracing::debug!(%error, "nothing is merged while the store takes no commands");
                    break;
                }
            };
            match execute(shared, &job, &retention) {
                Ok(()) => {}
                Err(error) if shared.stopping.load(Ordering::Relaxed) => {
                    tracing::debug!(%error, "a merge was given up because the store stops");
                    return;
                }
                Err(error) => {
                    // Only time and space are lost.
                    tracing::error!(%error, inputs = ?job.inputs, "cannot merge segments; they stay as they are until the next start");
                    failed.extend(job.inputs.iter().map(|file| file.name.number));
                }
            }
        }
    }
}

/// Which rows must be kept, according to the state.
struct Retention {
    groups: Vec<Arc<Group>>,
    last_updates: Vec<Option<(i64, u32)>>,
    /// What of these RRDs must be kept is not known.
    lost: Vec<Range<RrdId>>,
}

impl Retention {
    fn ask(shared: &Shared) -> Result<Retention, StoreError> {
        let groups = query(shared, |view| view.groups())?;
        let mut last_updates = Vec::new();
        loop {
            let first = last_updates.len() as u32;
            let more = query(shared, move |view| view.last_updates(first, IDS_A_QUERY))?;
            let ended = more.len() < IDS_A_QUERY;
            last_updates.extend(more);
            if ended {
                break;
            }
        }
        // Rows are dropped on the strength of these times, which must therefore survive a crash: the updates
        // have to be durable first. Some may not even be in the log yet, so the sync is requested after the
        // queries.
        let (sender, receiver) = mpsc::channel();
        let answer = Box::new(move |result| {
            let _ = sender.send(result);
        });
        let sync = Command::Sync(answer);
        let bytes = sync.bytes();
        shared.mailbox.send_command(sync, bytes).map_err(|_| StoreError::Stopping)?;
        receiver.recv().unwrap_or(Err(StoreError::Stopping))?;
        Ok(Retention { groups, last_updates, lost: shared.lost.ids().to_vec() })
    }

    fn class(&self, group: u32, source: SourceIndex) -> u8 {
        self.groups.get(group as usize).map_or(0, |group| retention_class(group.retention_seconds(source)))
    }

    fn oldest_row(&self, group: u32, source: SourceIndex, id: u32) -> Option<i64> {
        if self.lost.iter().any(|ids| ids.contains(&id)) {
            return Some(i64::MIN);
        }
        let (last_update, of_group) = (*self.last_updates.get(id as usize)?)?;
        let known = self.groups.get(group as usize).filter(|_| of_group == group)?;
        Some(known.oldest_row(source, last_update))
    }
}

/// Runs a query in the worker's next round.
fn query<T: Send + 'static>(
    shared: &Shared,
    look: impl FnOnce(&View<'_>) -> T + Send + 'static,
) -> Result<T, StoreError> {
    ask(shared, |reply| Priority::Query { about: None, look: Box::new(move |view| reply(look(view))) })
}

/// Sends an event to the worker; returns what the worker no longer needs.
pub(super) fn notify(
    shared: &Shared,
    event: impl FnOnce(Reply<Retired>) -> Event,
) -> Result<Retired, StoreError> {
    ask(shared, |reply| Priority::Event(event(reply)))
}

fn ask<T: Send + 'static>(
    shared: &Shared,
    message: impl FnOnce(Reply<T>) -> Priority,
) -> Result<T, StoreError> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let reply = Box::new(move |answer| {
        let _ = sender.send(answer);
    });
    shared.mailbox.send_priority(message(reply)).map_err(|_| StoreError::Stopping)?;
    receiver.recv().map_err(|_| StoreError::Stopping)
}

fn execute(shared: &Shared, job: &Job, retention: &Retention) -> io::Result<()> {
    let sources = job.inputs.iter().flat_map(|file| file.segment.sources());
    let classes: BTreeSet<u8> =
        sources.map(|summary| retention.class(summary.group, summary.source)).collect();
    let inputs: Vec<_> = job.inputs.iter().map(|file| &file.segment).collect();
    let mut outputs = Vec::new();
    for class in classes {
        let number = shared.files.next_number();
        let output = retry_while_full(shared, || {
            write_segment(shared, &shared.files, number, job.level, class, &mut |writer| {
                writer.set_merging();
                merge::merge(
                    &inputs,
                    &|group, source| retention.class(group, source) == class,
                    &|group, source, id| retention.oldest_row(group, source, id),
                    &shared.stopping,
                    writer,
                )
                .map_err(into_io)
            })
        })?;
        if output.segment.entry_count() > 0 {
            outputs.push(output);
        } else {
            shared.files.disk.remove(&output.path)?;
        }
    }
    shared.files.disk.sync_dir(&shared.files.dir)?;
    let gone: Vec<u64> = job.inputs.iter().map(|file| file.name.number).collect();
    retry_while_full(shared, || shared.files.commit(&gone, outputs.clone(), None))?;
    // Dropped on this thread: closing a removed file takes milliseconds.
    drop(notify(shared, Event::SegmentsChanged));
    Ok(())
}
