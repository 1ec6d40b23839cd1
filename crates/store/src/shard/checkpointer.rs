//! The checkpointer: the background thread of a shard that moves memory to disk, one cycle at a time.
//!
//! A cycle writes the arena, frozen at some log position, to a segment, and the pages taken after it to a
//! checkpoint; then one manifest names both and the position. Until that manifest is in place, the old one
//! and the log from its position on are valid, so a crash at any point loses nothing. If the disk is full,
//! the same write is retried each second until there is room or the shard stops.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use disk::Shortage;

use crate::checkpoint::{CheckpointWriter, Label, RawFrame};
use crate::engine::StoreError;
use crate::filenames;
use crate::group::Group;
use crate::log::Position;
use crate::manifest::SegmentName;
use crate::open_rows::OpenRows;
use crate::segment::{SegmentSummary, SegmentWriter};
use crate::segments::{CLASS_MIXED, DiskSink, SegmentFile, into_io, open_segment};
use crate::shard::Shared;
use crate::shard::compactor::notify;
use crate::shard::files::{Files, NewCheckpoint};
use crate::shard::flush::write_rows;
use crate::shard::message::Event;

/// Pause before a write that found the disk full is retried.
const FULL_RETRY: Duration = Duration::from_secs(1);

/// Work for the checkpointer. A cycle is one `Begin`, then pages, then one `End`.
pub enum Job {
    /// A cycle starts.
    Begin {
        /// The rows to write.
        arena: Arc<OpenRows>,
        /// The groups they belong to, by index.
        groups: Vec<Arc<Group>>,
        /// The log position at which the arena was frozen: rows of earlier records are in it or in a segment.
        position: Position,
    },
    /// A page of the checkpoint.
    Page(RawFrame),
    /// The end of the checkpoint, of which no page says more than the log before this position.
    End(RawFrame, Position),
}

/// A cycle in progress.
struct Cycle {
    position: Position,
    segment: Option<Arc<SegmentFile>>,
    number: u64,
    writer: CheckpointWriter,
}

/// Runs until the shard drops its end of the channel.
pub fn run(shared: &Shared, jobs: &Receiver<Job>) {
    let mut cycle: Option<Cycle> = None;
    while let Ok(job) = jobs.recv() {
        if shared.failure().is_some() {
            continue;
        }
        if let Err(error) = work(shared, &mut cycle, job) {
            let error = if let Some(shortage) = Shortage::of(&error) {
                StoreError::Short(shortage)
            } else {
                let text = format!("cannot write the shard's files: {error}; restart once the disk is well");
                shared.poison(text.clone());
                StoreError::Poisoned(text)
            };
            cycle = None;
            end_cycle(shared, Err(error));
        }
    }
}

fn work(shared: &Shared, cycle: &mut Option<Cycle>, job: Job) -> io::Result<()> {
    match job {
        Job::Begin { arena, groups, position } => {
            let segment = if arena.is_empty() { None } else { Some(flush(shared, &arena, &groups)?) };
            let number = shared.files.next_number();
            let path = filenames::checkpoint(&shared.files.dir, number);
            let label = Label { owner: shared.files.owner, number };
            let writer =
                retry_while_full(shared, || CheckpointWriter::create(&*shared.files.disk, &path, label))?;
            *cycle = Some(Cycle { position, segment, number, writer });
        }
        Job::Page(frame) => {
            let Some(cycle) = cycle else { return Ok(()) };
            cycle.writer.push(&frame)?;
            retry_while_full(shared, || cycle.writer.write_if_large())?;
        }
        Job::End(frame, log_end) => {
            let Some(mut cycle) = cycle.take() else { return Ok(()) };
            cycle.writer.push(&frame)?;
            let (bytes, content) = retry_while_full(shared, || cycle.writer.finish())?;
            shared.stats.checkpoint_bytes_written.fetch_add(bytes, Ordering::Relaxed);
            shared.files.disk.sync_dir(&shared.files.dir)?;
            if !is_confirmed(shared, log_end)? {
                end_cycle(shared, Err(StoreError::Stopping));
                return Ok(());
            }
            let new: Vec<_> = cycle.segment.into_iter().collect();
            let checkpoint = Some(NewCheckpoint { number: cycle.number, position: cycle.position, content });
            retry_while_full(shared, || shared.files.commit(&[], new.clone(), checkpoint))?;
            end_cycle(shared, Ok(()));
        }
    }
    Ok(())
}

/// Whether a checkpoint may say what the log does up to `log_end`: not before a replicated log, if there is one, has accepted that.
fn is_confirmed(shared: &Shared, log_end: Position) -> io::Result<bool> {
    let Some(confirmation) = &shared.options.confirmation else { return Ok(true) };
    let sync = || shared.files.log().sync().map(|_| ()).map_err(|error| io::Error::other(error.to_string()));
    confirmation.0.confirm(log_end, &sync, &shared.stopping)
}

/// Reports the result to the worker and drops what the worker returns.
fn end_cycle(shared: &Shared, result: Result<(), StoreError>) {
    drop(notify(shared, |reply| Event::CycleEnded(result, reply)));
}

/// Writes an arena to a new segment, which is durable when this returns.
fn flush(shared: &Shared, arena: &OpenRows, groups: &[Arc<Group>]) -> io::Result<Arc<SegmentFile>> {
    let number = shared.files.next_number();
    retry_while_full(shared, || {
        write_segment(shared, &shared.files, number, 0, CLASS_MIXED, &mut |writer| {
            write_rows(arena, groups, writer)
        })
    })
}

/// Writes a segment whose content `fill` produces, replacing any file left by a failed attempt.
///
/// # Errors
/// When the disk fails or the shard stops while the disk is full.
pub fn write_segment(
    shared: &Shared,
    files: &Files,
    number: u64,
    level: u8,
    class: u8,
    fill: &mut dyn FnMut(&mut SegmentWriter<DiskSink>) -> io::Result<()>,
) -> io::Result<Arc<SegmentFile>> {
    let path = filenames::segment(&files.dir, number);
    let attempt: io::Result<_> = (|| {
        let file = files.disk.create(&path)?;
        let sink = DiskSink::new(Arc::clone(&file));
        let name = path.display().to_string();
        let mut writer = SegmentWriter::of_shard(sink, &name, number, files.owner).map_err(into_io)?;
        fill(&mut writer)?;
        let (summary, mut sink) = writer.finish().map_err(into_io)?;
        sink.flush()?;
        file.sync()?;
        let SegmentSummary { file_bytes: bytes, content, .. } = summary;
        let name = SegmentName { number, level, class, bytes, content: Some(content) };
        Ok((name, open_segment(&*files.disk, &path).map_err(into_io)?))
    })();
    let (name, segment) = match attempt {
        Ok(written) => written,
        Err(error) => {
            let _ = files.disk.remove(&path);
            return Err(error);
        }
    };
    shared.stats.segment_bytes_written.fetch_add(name.bytes, Ordering::Relaxed);
    Ok(Arc::new(SegmentFile { name, path, segment }))
}

/// Runs `attempt`, and again each second while the disk is full or the machine is short of something else.
///
/// # Errors
/// Any other error of `attempt`; a shortage only when the shard stops.
pub fn retry_while_full<T>(shared: &Shared, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match attempt() {
            Err(error) if Shortage::of(&error).is_some() && !shared.stopping.load(Ordering::Relaxed) => {
                shared.checkpointer_waits.report(Shortage::of(&error), &error.to_string());
                std::thread::sleep(FULL_RETRY);
            }
            other => {
                if other.is_ok() {
                    shared.checkpointer_waits.report(None, "");
                }
                return other;
            }
        }
    }
}
