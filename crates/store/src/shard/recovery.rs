//! Replays the log in two passes, so that a shard answers long before every update has been applied again.
//!
//! 1. [`scan`], before the shard opens, reads and checks every record, finds the end of the log, and applies
//!    the records that create, rename and remove RRDs.
//! 2. [`Recovery`], in the worker's rounds, applies updates and tunes in order while commands wait. A query
//!    about an RRD first applies the remaining log for that RRD alone ([`Recovery::advance`]).
//!
//! Invariant: an update or a tune changes one RRD and depends on no other, so each RRD sees its records in
//! log order and the second pass ends in the same state as before the restart. It uses the same methods of
//! [`State`] as live updates. Records that a checkpoint page already contains are skipped by the page's
//! position.

mod affected;
mod scan;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rrd::time::Timestamp;

pub use scan::{Scanned, scan};

use crate::catalogue::RrdId;
use crate::checkpoint::{Loaded, PAGE_IDS};
use crate::codec::DecodeError;
use crate::disk::Disk;
use crate::exclusive::Exclusive;
use crate::log::catalogue::Tune;
use crate::log::{self, Kind, Known, Position, Record};
use crate::shard::spawn;
use crate::shard::state::{RESOLVED_AHEAD, State};

/// Updates decoded at once: with their texts about 200 KiB, which stay in a core's cache.
const CHUNK_UPDATES: usize = 4096;
/// Decoded chunks that may be queued.
const CHUNKS_AHEAD: usize = 8;
/// How long a round waits for the next chunk before it checks for queries.
const CHUNK_WAIT: Duration = Duration::from_millis(1);
/// The most RRDs brought up to date individually. Each costs a scan of the remaining log, some hundredths of a
/// second; a flood of queries must not stretch the recovery to minutes.
const ADVANCED_MAX: usize = 16;

/// What the pages of a checkpoint already contain.
#[derive(Clone, Debug)]
struct Covered {
    pages: Arc<[(RrdId, Position)]>,
    /// No page contains anything from this position on.
    until: Position,
}

impl Covered {
    fn by(loaded: &Loaded) -> Self {
        let until = loaded.pages.iter().map(|&(_, position)| position).max();
        Covered { pages: loaded.pages.as_slice().into(), until: until.unwrap_or_default() }
    }

    fn has(&self, id: RrdId, position: Position) -> bool {
        position < self.until
            && self
                .pages
                .get((id / PAGE_IDS) as usize)
                .is_some_and(|(next_id, taken_at)| id < *next_id && position < *taken_at)
    }
}

/// Progress of the second pass: all records before `position` are applied, and this many updates of the
/// record there.
#[derive(Clone, Copy, Debug)]
struct Place {
    position: Position,
    applied: usize,
}

/// What remains after a round of the recovery.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// More records follow.
    More,
    /// Everything is applied, except this many updates and tunes that could not be, which only damage can
    /// cause.
    Done {
        /// Their number.
        refused: u64,
    },
}

/// The second pass.
pub struct Recovery {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    covered: Covered,
    /// RRDs that a record of the log removes; their updates are skipped without being reported.
    gone: HashSet<RrdId>,
    /// RRDs that are up to date already.
    advanced: HashSet<RrdId>,
    at: Place,
    /// What was known of the log before it was opened.
    known: Known,
    end: Position,
    /// The log was damaged: a checkpoint soon makes it unnecessary.
    is_damaged: bool,
    /// `None` once the recovery is dropped or has failed.
    steps: Option<Exclusive<Receiver<Step>>>,
    used: Sender<Chunk>,
    reader: Option<JoinHandle<()>>,
    refused: u64,
}

impl Recovery {
    /// Starts reading ahead from `from` on.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        from: Position,
        loaded: &Loaded,
        scanned: Scanned,
    ) -> std::io::Result<Recovery> {
        let (sender, steps) = sync_channel(CHUNKS_AHEAD);
        let (used, spare) = channel();
        let known = scanned.known;
        let (for_reader, dir_of_reader) = (Arc::clone(&disk), dir.clone());
        let reader = spawn("replay", move || {
            let decoder = Decoder { sender, spare };
            let end =
                log::replay(&*for_reader, &dir_of_reader, from, known, &mut |record| decoder.take(&record));
            let _ = decoder.sender.send(Step::End(end.map(|end| end.end).map_err(|error| error.to_string())));
        })?;
        Ok(Recovery {
            disk,
            dir,
            covered: Covered::by(loaded),
            gone: scanned.gone,
            advanced: HashSet::new(),
            at: Place { position: from, applied: 0 },
            known,
            end: scanned.end.end,
            is_damaged: !scanned.end.damage.is_empty(),
            steps: Some(Exclusive::new(steps)),
            used,
            reader: Some(reader),
            refused: scanned.refused,
        })
    }

    /// True when the log was damaged.
    pub fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// False once it has failed: what memory holds is then old, and nothing may be read from it.
    pub fn is_running(&self) -> bool {
        self.steps.is_some()
    }

    /// Applies the next updates, if any arrive within a millisecond.
    ///
    /// # Errors
    /// Why the log could not be read a second time; the recovery has then failed.
    pub fn apply_some(&mut self, state: &mut State) -> Result<Progress, String> {
        let Some(steps) = &mut self.steps else { return Err("the recovery has failed".into()) };
        if let Err(error) = state.open().check_room() {
            return Err(self.fail(error.to_string()));
        }
        let step = match steps.get_mut().recv_timeout(CHUNK_WAIT) {
            Ok(step) => step,
            Err(RecvTimeoutError::Timeout) => return Ok(Progress::More),
            Err(RecvTimeoutError::Disconnected) => return Err(self.fail("the reader has ended early".into())),
        };
        match step {
            Step::Updates(position, chunk) => {
                self.update(state, position, &chunk);
                let _ = self.used.send(chunk);
            }
            Step::Tune(position, body) => {
                self.tune(state, position, &body, None).map_err(|error| self.fail(error.to_string()))?;
                self.at = Place { position, applied: 1 };
            }
            Step::End(Ok(end)) if end >= self.end => return Ok(Progress::Done { refused: self.refused }),
            Step::End(Ok(_)) => return Err(self.fail("it has become shorter since it was checked".into())),
            Step::End(Err(error)) => return Err(self.fail(error)),
        }
        Ok(Progress::More)
    }

    fn fail(&mut self, error: String) -> String {
        self.steps = None;
        error
    }

    fn update(&mut self, state: &mut State, position: Position, chunk: &Chunk) {
        chunk.each(state, |state, id, time, values| {
            if self.advanced.is_empty() || !self.advanced.contains(&id) {
                self.apply(state, position, id, time, values);
            }
        });
        self.at = Place { position, applied: chunk.first + chunk.updates.len() };
    }

    #[inline]
    fn apply(&mut self, state: &mut State, position: Position, id: RrdId, time: Timestamp, values: &[u8]) {
        if self.covered.has(id, position) {
            return;
        }
        let applied = match state.catalogue.get(id) {
            Some(_) => state.replay_update(id, time, values).is_ok(),
            None => self.gone.contains(&id),
        };
        self.refused += u64::from(!applied);
    }

    /// Applies a tune to its RRD; with `only`, if it is that one.
    fn tune(
        &mut self,
        state: &mut State,
        position: Position,
        body: &[u8],
        only: Option<RrdId>,
    ) -> Result<(), DecodeError> {
        let Tune { id, args } = Tune::decode(body)?;
        let is_wanted = only.map_or(!self.advanced.contains(&id), |only| only == id);
        if is_wanted && !self.covered.has(id, position) {
            let applied = match state.catalogue.get(id) {
                Some(_) => state.tune(id, &args).is_ok(),
                None => self.gone.contains(&id),
            };
            self.refused += u64::from(!applied);
        }
        Ok(())
    }

    /// Applies the rest of the log for one RRD, so that it can be read. Returns false when the limit of such
    /// RRDs is used up; this one is then up to date only at the end of the recovery.
    ///
    /// # Errors
    /// Why the log could not be read a second time; the recovery has then failed.
    pub fn advance(&mut self, state: &mut State, id: RrdId) -> Result<bool, String> {
        if self.steps.is_none() {
            return Err("the recovery has failed".into());
        }
        if self.advanced.contains(&id) {
            return Ok(true);
        }
        if self.advanced.len() >= ADVANCED_MAX {
            return Ok(false);
        }
        let (disk, dir, at, end) = (Arc::clone(&self.disk), self.dir.clone(), self.at, self.end);
        let replayed = log::replay(&*disk, &dir, at.position, self.known, &mut |record: Record<'_>| {
            let position = record.position;
            let applied = if position == at.position { at.applied } else { 0 };
            match record.kind {
                _ if position >= end => Ok(()),
                Kind::Updates => log::updates::decode_of(record.body, id, applied, &mut |time, values| {
                    self.apply(state, position, id, time, values);
                }),
                Kind::Tune if applied == 0 => self.tune(state, position, record.body, Some(id)),
                _ => Ok(()),
            }
        });
        replayed.map_err(|error| self.fail(error.to_string()))?;
        self.advanced.insert(id);
        Ok(true)
    }
}

impl Drop for Recovery {
    fn drop(&mut self) {
        // Without a receiver, the reader stops at its next record.
        self.steps = None;
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// What the reader sends to the worker.
enum Step {
    /// Updates of the record at a position.
    Updates(Position, Chunk),
    /// The body of the tune at a position.
    Tune(Position, Vec<u8>),
    /// The log ended here, or could not be read.
    End(Result<Position, String>),
}

/// Decoded updates in order.
#[derive(Default)]
pub(super) struct Chunk {
    /// The index of the first one in its record.
    first: usize,
    updates: Vec<DecodedUpdate>,
    /// The texts of their values, concatenated.
    text: Vec<u8>,
}

impl Chunk {
    /// Appends an update.
    pub(super) fn push(&mut self, id: RrdId, time: Timestamp, values: &[u8]) {
        self.text.extend_from_slice(values);
        self.updates.push(DecodedUpdate { id, time, text_end: self.text.len() });
    }

    /// Forgets them, and keeps their memory.
    pub(super) fn clear(&mut self) {
        self.updates.clear();
        self.text.clear();
    }

    /// Visits the updates in order; the heads of those to come are in the cache by then.
    pub(super) fn each(&self, state: &mut State, mut visit: impl FnMut(&mut State, RrdId, Timestamp, &[u8])) {
        let mut from = 0;
        for updates in self.updates.chunks(RESOLVED_AHEAD) {
            updates.iter().for_each(|update| state.touch(update.id));
            for &DecodedUpdate { id, time, text_end } in updates {
                visit(state, id, time, &self.text[from..text_end]);
                from = text_end;
            }
        }
    }
}

struct DecodedUpdate {
    id: RrdId,
    time: Timestamp,
    /// Where its text ends.
    text_end: usize,
}

/// The reading side. Decoding an update costs about as much as applying it, so it has its own thread.
struct Decoder {
    sender: SyncSender<Step>,
    /// Applied chunks, to be reused.
    spare: Receiver<Chunk>,
}

impl Decoder {
    fn take(&self, record: &Record<'_>) -> Result<(), DecodeError> {
        match record.kind {
            Kind::Updates => self.take_updates(record),
            Kind::Tune => self.send(Step::Tune(record.position, record.body.to_vec())),
            // The scan has applied it.
            _ => Ok(()),
        }
    }

    fn take_updates(&self, record: &Record<'_>) -> Result<(), DecodeError> {
        let mut chunk = self.empty_chunk(0);
        log::updates::decode(record.body, &mut |id, time, values: &[u8]| {
            chunk.push(id, time, values);
            if chunk.updates.len() == CHUNK_UPDATES {
                let next = self.empty_chunk(chunk.first + CHUNK_UPDATES);
                // If the worker is gone, sending the record's last chunk reports it.
                let _ = self.send(Step::Updates(record.position, std::mem::replace(&mut chunk, next)));
            }
        })?;
        self.send(Step::Updates(record.position, chunk))
    }

    fn empty_chunk(&self, first: usize) -> Chunk {
        let mut chunk = self.spare.try_recv().unwrap_or_default();
        chunk.first = first;
        chunk.clear();
        chunk
    }

    /// Fails when the recovery was given up; the error itself is never shown.
    fn send(&self, step: Step) -> Result<(), DecodeError> {
        self.sender.send(step).map_err(|_| DecodeError { offset: 0, expected: "a recovery under way" })
    }
}

#[cfg(test)]
mod tests;
