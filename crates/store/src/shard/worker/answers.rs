//! Answers: they wait until the log holds the change, and under `sync = "always"` for the fsync.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Worker;
use disk::Shortage;

use super::catalogue::New;
use crate::catalogue::RrdId;
use crate::engine::{Reply, StoreError};
use crate::log::LogError;
use crate::name::RrdName;
use crate::shard::syncer::SyncRequest;

/// Pause before a write that found the disk full is retried.
const FULL_RETRY: Duration = Duration::from_secs(1);

/// The answer to most commands.
pub(super) type Done = Result<(), StoreError>;

/// An answer that waits for the log.
pub(super) struct Answer {
    /// The placeholder of a new RRD, written before the answer.
    pub(super) placeholder: Option<NewPlaceholder>,
    /// Sends the answer, or the failure that kept the command out of the log.
    pub(super) give: Reply<Done>,
}

pub(super) struct NewPlaceholder {
    name: RrdName,
    id: RrdId,
    /// Bytes that its `.rrd` file would have.
    bytes: u64,
    /// The RRD exists only if its placeholder can be written.
    is_new: bool,
    /// A real `.rrd` file of that name may stay there, because the RRD was imported from it or will replace it.
    beside_file: bool,
}

impl Worker {
    /// Answers with `result` once the change is in the log.
    pub(super) fn answer_later<T: Send + 'static>(
        &mut self,
        result: Result<T, StoreError>,
        reply: Reply<Result<T, StoreError>>,
    ) {
        let give: Reply<Done> = Box::new(move |logged| reply(logged.and(result)));
        self.answers.get_mut().push(Answer { placeholder: None, give });
    }

    /// Answers for a new RRD once it is in the log and its placeholder is written.
    pub(super) fn answer_new(
        &mut self,
        name: RrdName,
        result: Result<New, StoreError>,
        beside_file: bool,
        reply: Reply<Done>,
    ) {
        match result {
            Ok(New { id, bytes }) => {
                let placeholder = Some(NewPlaceholder { name, id, bytes, is_new: true, beside_file });
                self.answers.get_mut().push(Answer { placeholder, give: reply });
            }
            Err(error) => self.answer_later(Err(error), reply),
        }
    }

    /// Answers for an RRD that was imported in place of itself, with another number.
    pub(super) fn answer_rebuilt(
        &mut self,
        name: RrdName,
        result: Result<New, StoreError>,
        reply: Reply<Done>,
    ) {
        match result {
            Ok(New { id, bytes }) => {
                let placeholder = NewPlaceholder { name, id, bytes, is_new: false, beside_file: true };
                self.answers.get_mut().push(Answer { placeholder: Some(placeholder), give: reply });
            }
            Err(error) => self.answer_later(Err(error), reply),
        }
    }

    /// Writes everything applied to the log, then answers.
    pub(super) fn commit(&mut self) {
        if let Some(text) = self.shared.failure() {
            return self.refuse_answers(&StoreError::Poisoned(text));
        }
        if let Some((since, shortage)) = self.short_since
            && since.elapsed() < FULL_RETRY
        {
            return self.refuse_answers(&StoreError::Short(shortage));
        }
        self.close_updates();
        if let Some(text) = self.shared.failure() {
            return self.refuse_answers(&StoreError::Poisoned(text));
        }
        match self.log.commit() {
            Ok(_) => {
                self.publish_changes();
                if self.short_since.take().is_some() {
                    self.shared.log_waits.report(None, "");
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
        if let LogError::Full(cause) = error {
            let shortage = Shortage::of(cause).unwrap_or(Shortage::Space);
            self.short_since = Some((Instant::now(), shortage));
            self.shared.log_waits.report(Some(shortage), &error.to_string());
            return StoreError::Short(shortage);
        }
        let text = format!("cannot write the log: {error}; no more updates until the store is restarted");
        self.shared.poison(text.clone());
        StoreError::Poisoned(text)
    }

    fn refuse_answers(&mut self, error: &StoreError) {
        for answer in self.answers.get_mut().drain(..) {
            (answer.give)(Err(error.clone()));
        }
    }

    fn give_answers(&mut self) {
        let mut given: Vec<(Reply<Done>, Done)> = Vec::new();
        let waits_for_replica = self.shared.waits_for_replica();
        for Answer { placeholder, give } in std::mem::take(self.answers.get_mut()) {
            let result = placeholder.map_or(Ok(()), |placeholder| self.place(&placeholder));
            if self.shared.options.sync_always || waits_for_replica {
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
            let answer = match waits_for_replica {
                true => self.after_replica(answer),
                false => answer,
            };
            match self.shared.options.sync_always {
                true => self.shared.syncer.send(SyncRequest { answers: vec![answer] }),
                false => answer(Ok(())),
            }
        }
    }

    /// An answer that, once what is committed now is well here, waits until a follower has it, too.
    pub(super) fn after_replica(&self, answer: Reply<Done>) -> Reply<Done> {
        let (shared, position) = (Arc::clone(&self.shared), self.log.committed());
        Box::new(move |here| match here {
            Ok(()) => shared.replica_wait.wait(position, answer),
            Err(error) => answer(Err(error)),
        })
    }

    /// Writes the placeholder of an RRD. If that fails, a new RRD is deleted again.
    fn place(
        &mut self,
        NewPlaceholder { name, id, bytes, is_new, beside_file }: &NewPlaceholder,
    ) -> Result<(), StoreError> {
        let result = self.shared.write_placeholder(name, Some(*id), *bytes, *beside_file);
        if let (Err(error), false) = (&result, is_new) {
            tracing::warn!(%error, rrd = %name, "cannot write the placeholder of an RRD that was tuned again");
            return Ok(());
        }
        if result.is_err() {
            // Its record is committed with the next round; until then nothing was promised.
            let _ = self.delete(name);
        }
        result
    }
}
