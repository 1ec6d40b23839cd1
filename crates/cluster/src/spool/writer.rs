//! Writes what has gathered, with one fsync, and answers; notes how far the partitions were drained, and removes what nothing needs.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use disk::Shortage;
use store::engine::{Reply, StoreError, UpdateBatch};
use store::records::{LogError, LogSyncer, LogWriter, Position};

use super::opening::{GENERATION, file_bytes};
use super::queues::Spooled;
use super::{Gathered, SpoolState, Submission, now_ms, record};
use crate::lock::lock;

/// What was drained is noted so often, and what is drained removed.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);
/// Bytes of a record, of which there are several for one partition when more has gathered.
const RECORD_BYTES: usize = 4 << 20;

/// The writer's own.
struct Writer<'s> {
    shared: &'s SpoolState,
    log: LogWriter,
    syncer: LogSyncer,
    noted_at: Instant,
    /// Where all marks were written last.
    all_marks_at: u64,
    /// Everything before this was released.
    released: u64,
    /// How far it is drained could not be noted, which the log says.
    is_failing: bool,
}

/// Writes until the spool stops.
pub(super) fn run(shared: &SpoolState, log: LogWriter) {
    let (syncer, noted_at) = (log.syncer(), Instant::now());
    let (released, ..) = shared.extent();
    let mut writer = Writer { shared, log, syncer, noted_at, all_marks_at: 0, released, is_failing: false };
    while writer.round() {}
    writer.note(true);
    if let Err(error) = writer.write() {
        tracing::error!(%error, "the spool: how far it was drained could not be noted");
    }
}

/// Why updates are not spooled.
fn refusal(error: &LogError) -> StoreError {
    match error {
        LogError::Full(cause) => match Shortage::of(cause) {
            Some(shortage) => StoreError::Short(shortage),
            None => StoreError::Unavailable(format!("the spool: {error}")),
        },
        LogError::TooLarge { .. } => StoreError::TooLarge(format!("the spool: {error}")),
        _ => StoreError::Poisoned(format!("the spool of this node: {error}")),
    }
}

impl SpoolState {
    /// Waits for something to do, or a time.
    fn gathered(&self, until: Instant) -> MutexGuard<'_, Gathered> {
        let mut gathered = lock(&self.gathered);
        while gathered.submissions.is_empty() && !self.is_stopping() && !self.has_done(&gathered) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            gathered = self.work.wait_timeout(gathered, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        gathered
    }

    /// Whether a wait is to be looked at.
    fn has_done(&self, gathered: &Gathered) -> bool {
        !gathered.waits.is_empty() && gathered.waits.has_done(&self.queues())
    }
}

impl Writer<'_> {
    /// Takes what there is to do, and does it; false at the end.
    fn round(&mut self) -> bool {
        let (submissions, waits_below, is_over) = {
            let mut gathered = self.shared.gathered(self.noted_at + INTERVAL);
            gathered.is_writing = true;
            gathered.bytes = 0;
            let submissions = std::mem::take(&mut gathered.submissions);
            let is_over = self.shared.is_stopping() && submissions.is_empty();
            (submissions, gathered.waits.next_number(), is_over)
        };
        self.shared.room.notify_all();
        let has_news = !submissions.is_empty();
        let answers = self.keep(submissions);
        let (done, needs_marks) = {
            let mut gathered = lock(&self.shared.gathered);
            gathered.is_writing = false;
            let queues = self.shared.queues();
            gathered.waits.aim(waits_below, &queues);
            gathered.waits.take_done(&queues)
        };
        if has_news {
            self.shared.ready.notify_all();
        }
        answers.into_iter().for_each(|answer| answer());
        let is_noted = !needs_marks || {
            self.note(false);
            self.write().is_ok()
        };
        done.into_iter().for_each(|then| then(is_noted));
        if self.noted_at.elapsed() >= INTERVAL {
            self.noted_at = Instant::now();
            self.note(false);
            self.release();
        }
        !is_over
    }

    /// Makes batches durable and has them drained; returns the answers.
    fn keep(&mut self, submissions: Vec<Submission>) -> Vec<Box<dyn FnOnce()>> {
        if submissions.is_empty() {
            return Vec::new();
        }
        let mut answers: Vec<Box<dyn FnOnce()>> = Vec::new();
        let answer = |reply: Reply<Result<(), StoreError>>, result| -> Box<dyn FnOnce()> {
            Box::new(move || reply(result))
        };
        let (mut gathering, mut replies) = (Gathering::default(), Vec::new());
        let (oldest, ..) = self.shared.extent();
        let mut bytes = self.log.position().offset - oldest;
        for Submission { parts, reply } in submissions {
            let more: usize = parts.iter().map(|(_, batch)| batch.text.len()).sum();
            if bytes + more as u64 > self.shared.options.bytes_max {
                answers.push(answer(reply, Err(full(self.shared.options.bytes_max))));
                continue;
            }
            bytes += more as u64;
            let mut lines = 0;
            for (partition, batch) in parts {
                lines += batch.lines.len() as u64;
                gathering.add(partition, batch);
            }
            replies.push((reply, lines));
        }
        let kept = self.append(gathering.batches);
        for (reply, lines) in replies {
            if kept.is_ok() {
                self.shared.counts.spooled.fetch_add(lines, Ordering::Relaxed);
            }
            answers.push(answer(reply, kept.clone()));
        }
        answers
    }

    fn append(&mut self, batches: Vec<(u32, UpdateBatch)>) -> Result<(), StoreError> {
        let (time_ms, count) = (now_ms(), self.shared.partition_count);
        let mut spooled = Vec::with_capacity(batches.len());
        for (partition, batch) in batches {
            match record::append_batch(&mut self.log, (partition, count), time_ms, &batch) {
                Ok((start, end)) => {
                    spooled.push((partition, Spooled { start, end, time_ms, is_again: false, batch }));
                }
                Err(error) => {
                    self.discard();
                    return Err(refusal(&error));
                }
            }
        }
        let tip = self.write().map_err(|error| refusal(&error))?;
        let mut queues = self.shared.queues();
        spooled.into_iter().for_each(|(partition, spooled)| queues.push(partition, spooled));
        queues.advance(tip);
        Ok(())
    }

    /// Writes what was appended, and makes it durable.
    fn write(&mut self) -> Result<u64, LogError> {
        let written = self.log.commit().and_then(|_| self.syncer.sync());
        if written.is_err() {
            self.discard();
        }
        written.map(|position| position.offset)
    }

    /// Drops what was appended; what was to be noted in it is noted again.
    fn discard(&mut self) {
        self.log.discard();
        self.shared.queues().forget_marks();
    }

    /// Appends how far partitions were drained: those that have changed, or all. It is durable with the next batch, or the next second.
    fn note(&mut self, all: bool) {
        let marks = self.shared.queues().marks(all);
        let count = self.shared.partition_count;
        for (partition, drained) in marks {
            // The log says so for itself when it can take no more, with the next batch.
            let _ = record::append_mark(&mut self.log, (partition, count), drained);
        }
    }

    /// Removes files in which nothing waits. Marks that were in them are written again first.
    fn release(&mut self) {
        let (oldest, ..) = self.shared.extent();
        let is_due = oldest - self.released >= file_bytes(self.shared.options.bytes_max);
        if is_due && self.all_marks_at < oldest {
            self.all_marks_at = self.log.position().offset;
            self.note(true);
        }
        let released = self.write().and_then(|tip| {
            self.shared.queues().advance(tip);
            if is_due {
                self.released = oldest;
                self.log.release_before(Position { generation: GENERATION, offset: oldest })?;
            }
            Ok(())
        });
        // Once, and again after it was well.
        if let Err(error) = &released
            && !self.is_failing
        {
            tracing::error!(%error, "the spool cannot note how far it is drained");
        }
        self.is_failing = released.is_err();
    }
}

/// Why nothing more is taken.
fn full(bytes_max: u64) -> StoreError {
    StoreError::Unavailable(format!(
        "the spool of this node is full: {bytes_max} bytes of updates wait for the replicated log; try again later"
    ))
}

/// Batches of many callers, put together by partition in their order.
#[derive(Default)]
struct Gathering {
    batches: Vec<(u32, UpdateBatch)>,
    /// For each partition, the batch that more is added to.
    open: BTreeMap<u32, usize>,
}

impl Gathering {
    fn add(&mut self, partition: u32, batch: UpdateBatch) {
        let open = self.open.get(&partition).map(|&index| &mut self.batches[index].1);
        match open.filter(|open| open.text.len() + batch.text.len() <= RECORD_BYTES) {
            Some(open) => batch.lines.iter().for_each(|line| open.push_copy(&batch, line)),
            None => {
                self.open.insert(partition, self.batches.len());
                self.batches.push((partition, batch));
            }
        }
    }
}
