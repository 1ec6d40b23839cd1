//! Answers: they wait until the log holds what they answer for, and under `sync = "always"` for its fsync.

use std::time::{Duration, Instant};

use super::Worker;
use crate::engine::{Reply, StoreError};
use crate::log::LogError;
use crate::name::RrdName;
use crate::shard::checkpointer::tell_full;
use crate::shard::syncer::SyncRequest;

/// How long after a write that found the disk full the next attempt is made.
const FULL_RETRY: Duration = Duration::from_secs(1);

/// What most commands are answered with.
pub(super) type Done = Result<(), StoreError>;

/// An answer that waits for the log.
pub(super) struct Answer {
    /// The placeholder of a new RRD: it is written first.
    pub(super) placeholder: Option<NewPlaceholder>,
    /// Gives it, or the failure that kept the command out of the log.
    pub(super) give: Reply<Done>,
}

pub(super) struct NewPlaceholder {
    name: RrdName,
    /// Bytes its `.rrd` file would have.
    bytes: u64,
    /// A real `.rrd` file of the name may stay in its place: the RRD was imported from one.
    beside_file: bool,
}

impl Worker {
    /// Answers with `result` once it is in the log.
    pub(super) fn answer_later<T: Send + 'static>(
        &mut self,
        result: Result<T, StoreError>,
        reply: Reply<Result<T, StoreError>>,
    ) {
        let give: Reply<Done> = Box::new(move |logged| reply(logged.and(result)));
        self.answers.push(Answer { placeholder: None, give });
    }

    /// Answers for a new RRD of `result` bytes once it is in the log and its placeholder in place.
    pub(super) fn answer_new(
        &mut self,
        name: RrdName,
        result: Result<u64, StoreError>,
        beside_file: bool,
        reply: Reply<Done>,
    ) {
        match result {
            Ok(bytes) => {
                let placeholder = Some(NewPlaceholder { name, bytes, beside_file });
                self.answers.push(Answer { placeholder, give: reply });
            }
            Err(error) => self.answer_later(Err(error), reply),
        }
    }

    /// Writes what was applied to the log, then answers.
    pub(super) fn commit(&mut self) {
        if let Some(text) = self.shared.failure() {
            return self.refuse_answers(&StoreError::Poisoned(text));
        }
        if self.full_since.is_some_and(|since| since.elapsed() < FULL_RETRY) {
            return self.refuse_answers(&StoreError::DiskFull);
        }
        self.close_updates();
        if let Some(text) = self.shared.failure() {
            return self.refuse_answers(&StoreError::Poisoned(text));
        }
        match self.log.commit() {
            Ok(_) => {
                if self.full_since.take().is_some() {
                    tell_full(&self.shared.log_full, false, "");
                }
                self.give_answers();
            }
            Err(error) => {
                let error = self.commit_failed(&error);
                self.refuse_answers(&error);
            }
        }
    }

    fn commit_failed(&mut self, error: &LogError) -> StoreError {
        if matches!(error, LogError::Full(_)) {
            self.full_since = Some(Instant::now());
            tell_full(&self.shared.log_full, true, &error.to_string());
            return StoreError::DiskFull;
        }
        let text = format!("cannot write the log: {error}; no more updates until the store is restarted");
        self.shared.poison(text.clone());
        StoreError::Poisoned(text)
    }

    fn refuse_answers(&mut self, error: &StoreError) {
        for answer in self.answers.drain(..) {
            (answer.give)(Err(error.clone()));
        }
    }

    fn give_answers(&mut self) {
        let mut given: Vec<(Reply<Done>, Done)> = Vec::new();
        for Answer { placeholder, give } in std::mem::take(&mut self.answers) {
            let result = placeholder.map_or(Ok(()), |placeholder| self.place(&placeholder));
            if self.shared.options.sync_always {
                given.push((give, result));
            } else {
                give(result);
            }
        }
        if !given.is_empty() {
            let answer: Reply<Done> = Box::new(move |synced| {
                for (give, result) in given {
                    give(synced.clone().and(result));
                }
            });
            self.shared.syncer.send(SyncRequest { answers: vec![answer] });
        }
    }

    /// Writes the placeholder of a new RRD. Where it cannot stand the RRD goes again.
    fn place(
        &mut self,
        NewPlaceholder { name, bytes, beside_file }: &NewPlaceholder,
    ) -> Result<(), StoreError> {
        let result = self.shared.write_placeholder(name, *bytes, *beside_file);
        if result.is_err() {
            // Its record is committed with the next round; until then nothing was promised.
            let _ = self.delete(name);
        }
        result
    }
}
