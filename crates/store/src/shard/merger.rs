//! The merger: fewer, longer runs, and no rows that nobody can ask for any more.
//!
//! Segments as flushed hold rows of every retention; eight of them are merged into one segment a
//! *retention class*, and eight of a class into one of the next level, until a segment spans a quarter of
//! its retention. From then on it is left alone until all its rows have expired. So a value is written
//! about three times in its life, and expired rows take at most a quarter beyond what is promised.
//!
//! Rows expire by the last update of their own RRD, not by the clock: the history of a target that went
//! silent stays, as it does in a `.rrd` file.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};

use crate::engine::StoreError;
use crate::group::{Group, SourceIndex};
use crate::segment::{SourceSummary, merge};
use crate::segments::{CLASS_MIXED, SegmentFile, SegmentSet, class_seconds, into_io, retention_class};
use crate::shard::Shared;
use crate::shard::keeper::{when_full_wait, write_segment};
use crate::shard::message::{Change, Question};

/// Level of a segment with what was left of expired ones: rows of RRDs that went silent.
const LEVEL_SILENT: u8 = 200;
/// A segment is not merged further once it spans this part of its retention.
const SPAN_PARTS: u64 = 4;
/// Ids asked for in one question: a quarter of a millisecond of the shard's time.
const IDS_A_QUESTION: usize = 16 * 1024;

/// Wakes and stops the merger.
#[derive(Debug, Default)]
pub struct MergerHandle {
    wish: Mutex<Wish>,
    wished: Condvar,
}

#[derive(Debug, Default)]
struct Wish {
    look: bool,
    stop: bool,
}

impl MergerHandle {
    /// There may be something to merge.
    pub fn wake(&self) {
        self.wish.lock().unwrap_or_else(PoisonError::into_inner).look = true;
        self.wished.notify_one();
    }

    /// Ends the merger after the block it is at.
    pub fn stop(&self) {
        self.wish.lock().unwrap_or_else(PoisonError::into_inner).stop = true;
        self.wished.notify_one();
    }

    fn wait(&self) -> bool {
        let mut wish = self.wish.lock().unwrap_or_else(PoisonError::into_inner);
        while !wish.look && !wish.stop {
            wish = self.wished.wait(wish).unwrap_or_else(PoisonError::into_inner);
        }
        wish.look = false;
        !wish.stop
    }
}

/// Segments to be replaced.
#[derive(Debug)]
struct Job {
    inputs: Vec<Arc<SegmentFile>>,
    level: u8,
}

/// Runs until stopped.
pub fn run(shared: &Shared) {
    // Segments that could not be merged: damaged ones, mostly. They stay as they are, and others go on.
    let mut left_alone = BTreeSet::new();
    while shared.merger.wait() {
        while let Some(job) = plan(&shared.files.segments(), &left_alone, shared.options.merge_count) {
            if shared.failure().is_some() || shared.stopping.load(Ordering::Relaxed) {
                break;
            }
            let keep = match Keep::ask(shared) {
                Ok(keep) => keep,
                Err(error) => {
                    tracing::debug!(%error, "nothing is merged while the store takes no changes");
                    break;
                }
            };
            match execute(shared, &job, &keep) {
                Ok(()) => {}
                Err(error) if shared.stopping.load(Ordering::Relaxed) => {
                    tracing::debug!(%error, "a merge was given up because the store stops");
                    return;
                }
                Err(error) => {
                    // Nothing is lost but time and room.
                    tracing::error!(%error, inputs = ?job.inputs, "cannot merge segments; they stay as they are until the next start");
                    left_alone.extend(job.inputs.iter().map(|file| file.number));
                }
            }
        }
    }
}

/// What to merge next.
fn plan(segments: &SegmentSet, left_alone: &BTreeSet<u64>, merge_count: usize) -> Option<Job> {
    let newest = newest_rows(segments);
    let mut kinds: BTreeSet<(u8, u8)> = segments.files.iter().map(|file| (file.level, file.class)).collect();
    while let Some((level, class)) = kinds.pop_first() {
        let of_kind = segments.files.iter().filter(|file| (file.level, file.class) == (level, class));
        let mut inputs = Vec::new();
        for file in of_kind {
            // Inputs follow each other in time: a segment that stays as it is ends the row of them.
            let ended = level < LEVEL_SILENT && class != CLASS_MIXED && is_long(file, class);
            if ended || left_alone.contains(&file.number) {
                inputs.clear();
                continue;
            }
            inputs.push(Arc::clone(file));
            if inputs.len() == merge_count {
                break;
            }
        }
        if inputs.len() >= merge_count {
            let level = if level >= LEVEL_SILENT { level } else { level + 1 };
            return Some(Job { inputs, level });
        }
    }
    let mut candidates = segments.files.iter().filter(|file| !left_alone.contains(&file.number));
    let expired = candidates.find(|file| file.level < LEVEL_SILENT && is_expired(file, &newest))?;
    Some(Job { inputs: vec![Arc::clone(expired)], level: LEVEL_SILENT })
}

fn span_seconds(summary: &SourceSummary) -> u64 {
    let rows = (summary.end_row - summary.first_row).max(0) as u64;
    rows.saturating_mul(summary.hint.step * summary.hint.pdp_per_row)
        / u64::from(summary.hint.units_per_second.max(1))
}

/// The longest span of any source is what expires last; silent RRDs aside it is the same for all.
fn is_long(file: &SegmentFile, class: u8) -> bool {
    let span = file.segment.sources().iter().map(span_seconds).max().unwrap_or(0);
    span * SPAN_PARTS >= class_seconds(class)
}

type NewestRows = HashMap<(u32, SourceIndex), i64>;

fn newest_rows(segments: &SegmentSet) -> NewestRows {
    let mut newest = NewestRows::new();
    for summary in segments.files.iter().flat_map(|file| file.segment.sources()) {
        let row = newest.entry((summary.group, summary.source)).or_insert(i64::MIN);
        *row = (*row).max(summary.end_row);
    }
    newest
}

/// True when every row is older than its class keeps, measured from the newest row of its source.
fn is_expired(file: &SegmentFile, newest: &NewestRows) -> bool {
    if file.class == CLASS_MIXED {
        return false;
    }
    file.segment.sources().iter().all(|summary| {
        let newest = newest.get(&(summary.group, summary.source)).copied().unwrap_or(i64::MAX);
        let old = SourceSummary { first_row: summary.end_row, end_row: newest, ..*summary };
        // The class is a lower bound of the retention, at most 25 % under it.
        span_seconds(&old) > class_seconds(file.class) / 4 * 5
    })
}

/// What the state says about the rows to keep.
struct Keep {
    groups: Vec<Arc<Group>>,
    last_updates: Vec<Option<(i64, u32)>>,
}

impl Keep {
    fn ask(shared: &Shared) -> Result<Keep, StoreError> {
        let groups = ask(shared, Question::Groups)?;
        let mut last_updates = Vec::new();
        loop {
            let first = last_updates.len() as u32;
            let more = ask(shared, |reply| Question::LastUpdates(first, IDS_A_QUESTION, reply))?;
            let ended = more.len() < IDS_A_QUESTION;
            last_updates.extend(more);
            if ended {
                break;
            }
        }
        // What is dropped by these times must not be missed after a crash took the newest updates. They were
        // told between two changes, so some may not even be in the log yet: the sync goes behind them.
        let (sender, receiver) = mpsc::channel();
        let answer = Box::new(move |result| {
            let _ = sender.send(result);
        });
        let sync = Change::Sync(answer);
        let bytes = sync.bytes();
        shared.mailbox.send_change(sync, bytes).map_err(|_| StoreError::Stopping)?;
        receiver.recv().unwrap_or(Err(StoreError::Stopping))?;
        Ok(Keep { groups, last_updates })
    }

    fn class(&self, group: u32, source: SourceIndex) -> u8 {
        self.groups.get(group as usize).map_or(0, |group| retention_class(group.retention_seconds(source)))
    }

    fn oldest_row(&self, group: u32, source: SourceIndex, id: u32) -> Option<i64> {
        let (last_update, of_group) = (*self.last_updates.get(id as usize)?)?;
        let known = self.groups.get(group as usize).filter(|_| of_group == group)?;
        Some(known.oldest_row(source, last_update))
    }
}

fn ask<T: Send + 'static>(
    shared: &Shared,
    question: impl FnOnce(crate::engine::Reply<T>) -> Question,
) -> Result<T, StoreError> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let reply = Box::new(move |answer| {
        let _ = sender.send(answer);
    });
    shared.mailbox.send_question(question(reply)).map_err(|_| StoreError::Stopping)?;
    receiver.recv().map_err(|_| StoreError::Stopping)
}

fn execute(shared: &Shared, job: &Job, keep: &Keep) -> io::Result<()> {
    let sources = job.inputs.iter().flat_map(|file| file.segment.sources());
    let classes: BTreeSet<u8> = sources.map(|summary| keep.class(summary.group, summary.source)).collect();
    let inputs: Vec<_> = job.inputs.iter().map(|file| &file.segment).collect();
    let mut outputs = Vec::new();
    for class in classes {
        let number = shared.files.next_number();
        let output = when_full_wait(shared, || {
            write_segment(shared, &shared.files, number, job.level, class, &mut |writer| {
                merge::merge(
                    &inputs,
                    &|group, source| keep.class(group, source) == class,
                    &|group, source, id| keep.oldest_row(group, source, id),
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
    let gone: Vec<u64> = job.inputs.iter().map(|file| file.number).collect();
    when_full_wait(shared, || shared.files.commit(&gone, outputs.clone(), None))?;
    let _ = shared.mailbox.send_question(Question::SegmentsChanged);
    Ok(())
}
