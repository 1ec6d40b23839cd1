//! Updates: applied one by one, gathered into one record, answered when the record is in the log.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rrd::time::Timestamp;
use rrd::update::UpdateError;

use super::Worker;
use super::answers::{Answer, Done};
use crate::catalogue::RrdId;
use crate::engine::{Reply, StoreError, UpdateBatch, UpdateFailure, UpdateLine, UpdatevOutcome};
use crate::log::Kind;
use crate::name::RrdName;
use crate::shard::message::{UpdateOutcome, refuse_all};
use crate::shard::state::{Applied, RESOLVED_AHEAD};
use rrd::updatev::{UpdateReport, WrittenRow};

/// Size at which an update record is closed: small enough for one write, large enough to compress.
const RECORD_BYTES: usize = 256 * 1024;

impl Worker {
    /// Applies a batch line by line; a line ends at its first refused argument.
    pub(super) fn update(&mut self, batch: UpdateBatch, reply: Reply<UpdateOutcome>) {
        let mut failures = Vec::new();
        let mut accepted_words = 0;
        let now = (self.clock)();
        let mut ids = [None; RESOLVED_AHEAD];
        for (ahead, lines) in batch.lines.chunks(RESOLVED_AHEAD).enumerate() {
            self.take_priority();
            for (id, line) in ids.iter_mut().zip(lines) {
                *id = self.state.catalogue.find_expected(batch.name(line), self.next_id);
                self.next_id = id.map_or(0, |id| id.wrapping_add(1));
            }
            ids[..lines.len()].iter().flatten().for_each(|&id| self.state.touch(id));
            for (index, (line, id)) in lines.iter().zip(ids).enumerate() {
                let (accepted, error) = self.update_line(&batch, line, id, now);
                accepted_words += u64::from(accepted);
                if let Some(error) = error {
                    let line = (ahead * RESOLVED_AHEAD + index) as u32;
                    failures.push(UpdateFailure { line, accepted, error });
                }
            }
        }
        let stats = &self.shared.stats;
        stats.updates_received.fetch_add(batch.lines.len() as u64, Ordering::Relaxed);
        stats.updates_written.fetch_add((batch.lines.len() - failures.len()) as u64, Ordering::Relaxed);
        stats.data_sets_written.fetch_add(accepted_words, Ordering::Relaxed);
        stats.updates_refused.fetch_add(failures.len() as u64, Ordering::Relaxed);
        let give: Reply<Done> = Box::new(move |result| match result {
            Ok(()) => reply((batch, failures)),
            Err(error) => reply(refuse_all(batch, &error)),
        });
        self.answers.get_mut().push(Answer { placeholder: None, give });
    }

    /// Applies arguments up to the first that is refused, and lists the rows they write.
    pub(super) fn updatev(&mut self, name: &RrdName, values: &[u8]) -> Result<UpdatevOutcome, StoreError> {
        let (id, entry) = self.view().find(name)?;
        let now = (self.clock)();
        let definition = Some(Arc::clone(self.state.catalogue.definition(entry.definition)));
        let mut report = UpdateReport { definition, ..UpdateReport::default() };
        let mut refused = None;
        let mut words = Some(values);
        while let Some(left) = words {
            match self.update_word(id, left, now, Some(&mut report.rows)) {
                Ok(rest) => words = rest,
                Err(error) => {
                    refused = Some(StoreError::Update(error));
                    break;
                }
            }
            report.applied += 1;
        }
        let stats = &self.shared.stats;
        stats.updates_received.fetch_add(1, Ordering::Relaxed);
        stats.updates_written.fetch_add(u64::from(refused.is_none()), Ordering::Relaxed);
        stats.data_sets_written.fetch_add(report.applied, Ordering::Relaxed);
        stats.updates_refused.fetch_add(u64::from(refused.is_some()), Ordering::Relaxed);
        Ok(UpdatevOutcome { report, refused })
    }

    /// Applies the arguments of a line up to the first that is refused; returns how many were applied.
    fn update_line(
        &mut self,
        batch: &UpdateBatch,
        line: &UpdateLine,
        id: Option<RrdId>,
        now: Timestamp,
    ) -> (u32, Option<StoreError>) {
        let Some(id) = id else { return (0, Some(no_such_rrd(batch.name(line)))) };
        let mut accepted = 0;
        let mut words = Some(batch.values(line));
        while let Some(left) = words {
            match self.update_word(id, left, now, None) {
                Ok(rest) => words = rest,
                Err(error) => return (accepted, Some(StoreError::Update(error))),
            }
            accepted += 1;
        }
        (accepted, None)
    }

    /// Applies the first of some arguments; returns the others.
    #[inline]
    fn update_word<'w>(
        &mut self,
        id: RrdId,
        words: &'w [u8],
        now: Timestamp,
        listed: Option<&mut Vec<WrittenRow>>,
    ) -> Result<Option<&'w [u8]>, UpdateError> {
        let Applied { time, values, rest } = self.state.update(id, words, now, listed)?;
        self.updates.push(id, time, values);
        if self.updates.bytes() >= RECORD_BYTES {
            self.close_updates();
        }
        Ok(rest)
    }

    /// Puts the updates gathered so far into the log's buffer, as one record.
    pub(super) fn close_updates(&mut self) {
        if self.updates.is_empty() {
            return;
        }
        let stamp = self.stamp();
        self.updates.finish(self.log.begin(Kind::Updates, stamp));
        // A record of updates is closed long before it is too large. If the log refused it all the same, the
        // state would hold what the log does not, and no further answer could be trusted.
        if let Err(error) = self.log.end() {
            self.shared
                .poison(format!("cannot log updates: {error}; no more updates until the store is restarted"));
        }
    }
}

fn no_such_rrd(name: &[u8]) -> StoreError {
    match RrdName::new(name) {
        Ok(name) => StoreError::NoSuchRrd(name),
        Err(error) => StoreError::Name(error),
    }
}
