//! Updates of one connection on their way to the store, in chunks.
//!
//! A session fills a chunk, sends it, and fills the next one while the store works on the first.

use protocol::rrdcached::update::PlainUpdate;
use store::engine::{StoreError, UpdateBatch, UpdateFailure};

use super::refusal::Refusal;
use crate::limits::{CHUNK_BYTES_MAX, CHUNK_UPDATES_MAX};

/// Bytes of a short UPDATE: a guess, for how many lines to make room.
const UPDATE_BYTES: usize = 32;

/// A chunk being filled.
#[derive(Debug, Default)]
pub struct UpdateChunk {
    batch: UpdateBatch,
    updates: SentChunk,
    /// Bytes of the texts of refusals.
    refused_bytes: usize,
}

/// The updates of a chunk that was sent, in order.
#[derive(Debug, Default)]
pub struct SentChunk {
    /// For each update, a number that means something to its session.
    tags: Vec<u32>,
    refused: Vec<Refused>,
}

/// An update that was refused, entirely or in part, before the store saw it.
#[derive(Debug)]
struct Refused {
    /// Its index in the chunk.
    index: u32,
    /// The store gets the arguments before the invalid one.
    has_line: bool,
    refusal: Refusal,
}

impl UpdateChunk {
    /// A chunk for the updates of one frame, which stay together.
    pub fn with_capacity(count: usize) -> Self {
        let mut chunk = UpdateChunk::default();
        chunk.updates.tags.reserve(count);
        chunk.batch.lines.reserve(count);
        chunk
    }

    /// True when it should be sent.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.updates.tags.len() >= CHUNK_UPDATES_MAX
            || self.batch.text.len() + self.refused_bytes >= CHUNK_BYTES_MAX
    }

    /// True when it has no updates.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.updates.tags.is_empty()
    }

    /// Adds an ordinary update.
    #[inline]
    pub fn push(&mut self, update: &PlainUpdate<'_>, tag: u32) {
        self.batch.push_joined(update.text, update.name_length);
        self.updates.tags.push(tag);
    }

    /// Adds an update with a name in normal form and arguments separated by single spaces.
    #[inline]
    pub fn push_words(&mut self, name: &[u8], values: &[u8], tag: u32) {
        self.batch.push(name, values);
        self.updates.tags.push(tag);
    }

    /// Prepares for the updates of `bytes`, so that those of many lines are added without moving them, and a single one
    /// takes no more than it needs: ten thousand connections may have one each.
    #[inline]
    pub fn reserve(&mut self, bytes: usize) {
        if self.updates.tags.capacity() == 0 {
            let lines = (bytes / UPDATE_BYTES + 1).min(CHUNK_UPDATES_MAX);
            self.batch.text.reserve(bytes.min(CHUNK_BYTES_MAX + 4096));
            self.batch.lines.reserve(lines);
            self.updates.tags.reserve(lines);
        }
    }

    /// Adds an update, or another line that is answered in order with them, that the store does not see.
    pub fn refuse(&mut self, refusal: Refusal, tag: u32) {
        self.updates.tags.push(tag);
        self.note(refusal, false);
    }

    /// Records why the argument after those of the last update is invalid.
    pub fn refuse_rest(&mut self, refusal: Refusal) {
        self.note(refusal, true);
    }

    fn note(&mut self, refusal: Refusal, has_line: bool) {
        self.refused_bytes += refusal.text.len();
        let index = self.updates.tags.len() as u32 - 1;
        self.updates.refused.push(Refused { index, has_line, refusal });
    }

    /// Splits into what the store gets, and what is needed to answer.
    pub fn into_parts(self) -> (UpdateBatch, SentChunk) {
        (self.batch, self.updates)
    }
}

/// The outcome of an update.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// All arguments were accepted.
    Accepted,
    /// The store refused an argument; those before it were accepted.
    Failed(&'a StoreError),
    /// An argument was refused before the store saw it; those before it were accepted.
    Refused(&'a Refusal),
}

impl SentChunk {
    /// Calls `each` with every update's tag and outcome, in order. `failures` is `None` when the store
    /// dropped the chunk because it is stopping or a shard has failed.
    pub fn settle(self, failures: Option<Vec<UpdateFailure>>, mut each: impl FnMut(u32, Outcome<'_>)) {
        let dropped = failures.is_none();
        let mut failures = failures.unwrap_or_default();
        if failures.is_empty() && self.refused.is_empty() && !dropped {
            self.tags.iter().for_each(|&tag| each(tag, Outcome::Accepted));
            return;
        }
        failures.sort_by_key(|failure| failure.line);
        let mut failures = failures.iter().peekable();
        let mut refused = self.refused.iter().peekable();
        let mut line = 0;
        for (index, &tag) in (0u32..).zip(&self.tags) {
            let refused = refused.next_if(|refused| refused.index == index);
            let mut failure = None;
            if refused.is_none_or(|refused| refused.has_line) {
                failure = failures.next_if(|failure| failure.line == line).map(|failure| &failure.error);
                line += 1;
                if dropped {
                    failure = Some(&StoreError::Stopping);
                }
            }
            let outcome = match (failure, refused) {
                (Some(error), _) => Outcome::Failed(error),
                (None, Some(refused)) => Outcome::Refused(&refused.refusal),
                (None, None) => Outcome::Accepted,
            };
            each(tag, outcome);
        }
    }
}
