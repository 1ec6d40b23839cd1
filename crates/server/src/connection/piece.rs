//! Updates on their way to the store, in pieces.
//!
//! A connection fills a piece, hands it over and fills the next while shards work on the first. What is
//! handed over is answered in its order, so a queue of pieces is the order of the answers.

use protocol::rrdcached::update::PlainUpdate;
use store::engine::{Engine, StoreError, UpdateBatch, UpdateFailure, UpdateLine};
use tokio::sync::oneshot;

use crate::limits::{PIECE_BYTES_MAX, PIECE_LINES_MAX};

/// A piece being filled.
#[derive(Debug, Default)]
pub struct Piece {
    batch: UpdateBatch,
    /// For each line: its words when it came alone, its command number in a BATCH.
    tags: Vec<u32>,
    /// Lines of which only the first words could be read, and what was wrong with the next one.
    spoiled: Vec<(u32, Vec<u8>)>,
}

impl Piece {
    /// For the updates of one frame, which stay together; a line's tag is its index there.
    pub fn of_frame(count: usize) -> Self {
        let mut piece = Piece { tags: Vec::with_capacity(count), ..Piece::default() };
        piece.batch.lines.reserve(count);
        piece
    }

    /// True when it should go.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.tags.len() >= PIECE_LINES_MAX || self.batch.text.len() >= PIECE_BYTES_MAX
    }

    /// True when there is nothing in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tags.is_empty()
    }

    /// Adds an ordinary line.
    #[inline]
    pub fn push(&mut self, update: &PlainUpdate<'_>, tag: u32) {
        self.push_words(update.name, update.values, tag);
    }

    /// Adds a line of a name in normal form and words parted by single spaces.
    #[inline]
    pub fn push_words(&mut self, name: &[u8], values: &[u8], tag: u32) {
        if self.tags.capacity() == 0 {
            self.batch.text.reserve(PIECE_BYTES_MAX + 4096);
            self.batch.lines.reserve(PIECE_LINES_MAX);
            self.tags.reserve(PIECE_LINES_MAX);
        }
        let text = &mut self.batch.text;
        // A line is bounded and so is a piece before it is full: far below 4 GiB.
        let name_start = text.len() as u32;
        text.extend_from_slice(name);
        let values_start = text.len() as u32;
        text.extend_from_slice(values);
        let values_end = text.len() as u32;
        let line = UpdateLine { name: name_start..values_start, values: values_start..values_end };
        self.batch.lines.push(line);
        self.tags.push(tag);
    }

    /// Notes what was wrong with the word behind those of the last line.
    pub fn spoil_last(&mut self, text: Vec<u8>) {
        self.spoiled.push((self.tags.len() as u32 - 1, text));
    }

    /// What the store would get.
    pub fn into_batch(self) -> UpdateBatch {
        self.batch
    }

    /// Hands it to the store.
    pub fn send(self, engine: &dyn Engine) -> SentPiece {
        let (sender, receiver) = oneshot::channel();
        // A connection that has gone does not want the answer.
        let reply = Box::new(move |failures| drop(sender.send(failures)));
        engine.update(self.batch, reply);
        SentPiece { receiver, tags: self.tags, spoiled: self.spoiled }
    }
}

/// A piece the store has not answered yet.
#[derive(Debug)]
pub struct SentPiece {
    receiver: oneshot::Receiver<Vec<UpdateFailure>>,
    tags: Vec<u32>,
    spoiled: Vec<(u32, Vec<u8>)>,
}

/// What became of one line of a piece.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// All words went in.
    Accepted,
    /// The store refused a word.
    Failed(&'a StoreError),
    /// The words before a malformed one went in.
    Spoiled(&'a [u8]),
}

impl SentPiece {
    /// Waits for the store, then calls `each` with every line's tag and outcome, in order.
    pub async fn settle(self, mut each: impl FnMut(u32, Outcome<'_>)) {
        let Ok(mut failures) = self.receiver.await else {
            // The store dropped the piece: it is stopping, or a shard has failed.
            for &tag in &self.tags {
                each(tag, Outcome::Failed(&StoreError::Stopping));
            }
            return;
        };
        if failures.is_empty() && self.spoiled.is_empty() {
            self.tags.iter().for_each(|&tag| each(tag, Outcome::Accepted));
            return;
        }
        failures.sort_by_key(|failure| failure.line);
        let mut failures = failures.iter().peekable();
        let mut spoiled = self.spoiled.iter().peekable();
        for (index, &tag) in (0u32..).zip(&self.tags) {
            let failure = failures.next_if(|failure| failure.line == index);
            let malformed = spoiled.next_if(|(line, _)| *line == index);
            let outcome = match (failure, malformed) {
                (Some(failure), _) => Outcome::Failed(&failure.error),
                (None, Some((_, text))) => Outcome::Spoiled(text),
                (None, None) => Outcome::Accepted,
            };
            each(tag, outcome);
        }
    }
}
