//! The merger: fewer, longer runs, and no rows that nobody can ask for any more.
//!
//! Segments as flushed hold rows of every retention; eight of them are merged into one segment a
//! *retention class*, and eight of a class into one of the next level, until a segment spans an eighth to a
//! quarter of its retention. From then on it is left alone until half its rows have expired, is written once more
//! without those, and goes when all have. So a value is written about three times in its life, and expired rows
//! take an eighth beyond what is promised at most, half of that on the average.
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
/// Level of a segment that was trimmed: half its rows had expired. It is not joined with others.
const LEVEL_TRIMMED: u8 = 100;
/// Of segments smaller than this (one block) [`TINY_COUNT`] are worth a merge, because a file takes whole pages.
const TINY_BYTES: u64 = 16 * 1024;
const TINY_COUNT: usize = 4;
/// Inputs of one merge, at most: each has a block in memory.
const INPUTS_MAX: usize = 64;
/// A segment is not merged further once it spans this part of its retention; at most twice that.
const SPAN_PARTS: u64 = 8;
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
        while let Some(job) = ask(shared, Question::Groups).ok().and_then(|groups| {
            plan(&shared.files.segments(), &groups, &left_alone, shared.options.merge_count)
        }) {
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

/// What to merge next: where most files wait, so that no kind piles up while the merger is behind.
fn plan(
    segments: &SegmentSet,
    groups: &[Arc<Group>],
    left_alone: &BTreeSet<u64>,
    merge_count: usize,
) -> Option<Job> {
    let kinds: BTreeSet<(u8, u8)> = segments.files.iter().map(|file| (file.level, file.class)).collect();
    let joined = kinds.iter().filter_map(|&kind| {
        let of_kind = segments.files.iter().filter(|file| (file.level, file.class) == kind);
        join(of_kind, groups, left_alone, merge_count)
    });
    let newest = newest_rows(segments);
    let candidates = || segments.files.iter().filter(|file| !left_alone.contains(&file.number));
    let expired = |file: &&Arc<SegmentFile>| {
        file.level < LEVEL_SILENT && is_expired(file, groups, &newest, &|summary| summary.end_row)
    };
    let classes: BTreeSet<u8> = kinds.iter().map(|(_, class)| *class).collect();
    let gone = classes.iter().filter_map(|&class| {
        let of_class = candidates().filter(|file| file.class == class).filter(expired);
        let inputs: Vec<_> = of_class.take(INPUTS_MAX).cloned().collect();
        (!inputs.is_empty()).then_some(Job { inputs, level: LEVEL_SILENT })
    });
    let middle = |summary: &SourceSummary| summary.first_row + (summary.end_row - summary.first_row) / 2;
    let half =
        |file: &&Arc<SegmentFile>| file.level < LEVEL_TRIMMED && is_expired(file, groups, &newest, &middle);
    let trimmed = |file: &Arc<SegmentFile>| Job { inputs: vec![Arc::clone(file)], level: LEVEL_TRIMMED };
    joined.chain(gone).max_by_key(|job| job.inputs.len()).or_else(|| candidates().find(half).map(trimmed))
}

/// Segments of one level and class, following each other in time, that are worth one merge: `merge_count` of them
/// at least, or fewer that together are long enough to be left alone from then on. More when the merger is behind:
/// then what has expired by now is never written at all.
fn join<'a>(
    of_kind: impl Iterator<Item = &'a Arc<SegmentFile>>,
    groups: &[Arc<Group>],
    left_alone: &BTreeSet<u64>,
    merge_count: usize,
) -> Option<Job> {
    let (mut inputs, mut seconds, mut worth) = (Vec::new(), 0, false);
    for file in of_kind {
        let timed = file.level < LEVEL_SILENT && file.class != CLASS_MIXED;
        let trimmed = (LEVEL_TRIMMED..LEVEL_SILENT).contains(&file.level);
        let enough = class_seconds(file.class) / SPAN_PARTS;
        let span = file.segment.sources().iter().map(span_seconds).max().unwrap_or(0);
        if trimmed || (timed && span >= enough) || left_alone.contains(&file.number) {
            if worth {
                break;
            }
            (inputs, seconds) = (Vec::new(), 0);
            continue;
        }
        inputs.push(Arc::clone(file));
        seconds += span;
        let long = timed && seconds >= enough;
        let mostly_old = file.class == CLASS_MIXED && spans_part_of_shortest(file, groups);
        let tiny = timed && file.bytes < TINY_BYTES && inputs.len() >= TINY_COUNT;
        worth |= inputs.len() >= merge_count || long || mostly_old || tiny;
        if long || inputs.len() == INPUTS_MAX {
            break;
        }
    }
    let first = inputs.first().filter(|_| worth)?;
    let level = match first.level {
        silent @ LEVEL_SILENT.. => silent,
        level => (level + 1).min(LEVEL_TRIMMED - 1),
    };
    Some(Job { inputs, level })
}

/// True when a segment as flushed holds so many rows of some source that they expire before seven more such
/// segments have come: few RRDs, updated fast. It is then taken apart at once.
fn spans_part_of_shortest(file: &SegmentFile, groups: &[Arc<Group>]) -> bool {
    file.segment.sources().iter().any(|summary| {
        let group = groups.get(summary.group as usize);
        let kept = group.map_or(u64::MAX, |group| group.retention_seconds(summary.source));
        span_seconds(summary) >= kept / SPAN_PARTS
    })
}

fn span_seconds(summary: &SourceSummary) -> u64 {
    let rows = (summary.end_row - summary.first_row).max(0) as u64;
    rows.saturating_mul(summary.hint.step * summary.hint.pdp_per_row)
        / u64::from(summary.hint.units_per_second.max(1))
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

/// True when every row before `row` is older than its source keeps, measured from the newest row of the source.
/// What silent RRDs still need of such a segment is copied when it goes.
fn is_expired(
    file: &SegmentFile,
    groups: &[Arc<Group>],
    newest: &NewestRows,
    row: &dyn Fn(&SourceSummary) -> i64,
) -> bool {
    file.class != CLASS_MIXED
        && file.segment.sources().iter().all(|summary| {
            let kept = groups
                .get(summary.group as usize)
                .and_then(|group| group.sources.get(usize::from(summary.source)))
                .map_or(u64::MAX, |source| source.row_count);
            let newest = newest.get(&(summary.group, summary.source)).copied().unwrap_or(i64::MIN);
            newest.saturating_sub(row(summary)) > kept.min(i64::MAX as u64) as i64
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

/// Asks the worker from a thread of the shard.
pub(super) fn ask<T: Send + 'static>(
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
                writer.set_merging();
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
    // What the worker gives back is let go of here: to close a removed file takes milliseconds.
    drop(ask(shared, Question::SegmentsChanged));
    Ok(())
}
