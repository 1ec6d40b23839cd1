//! From collectors to the spool: readings become blocks.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use collect::inventory::{Inventory, RrdId, RrdSpec};
use collect::reading::{Readings, Value};
use protocol::frames::agent::block::{BlockValue, BlockWriter};
use tokio::sync::Notify;

use super::spool::{Cursor, Spool};
use crate::collectors::recorder::Recorded;

/// Bytes of a block before compression from which on it is written, without waiting for the second to end.
const BLOCK_BYTES: usize = 1 << 20;

/// Takes readings and keeps them until the store has them.
#[derive(Debug)]
pub struct SpoolFeed {
    state: Mutex<FeedState>,
    /// There is something new to send.
    changed: Notify,
}

#[derive(Debug)]
struct FeedState {
    spool: Spool,
    writer: BlockWriter,
    /// Counts contexts.
    context: u32,
    /// The numbers of definitions in the context.
    definitions: HashMap<RrdSpec, u32>,
    waiting: u64,
    /// Readings lost because nothing could be written.
    lost: u64,
    is_failing: bool,
}

/// What is known of the RRDs of one inventory, by their index.
#[derive(Debug, Default)]
pub struct SpooledRrds(Vec<Option<SpooledRrd>>);

/// An RRD as a context knows it.
#[derive(Clone, Copy, Debug)]
struct SpooledRrd {
    context: u32,
    /// Its number in the context.
    number: u32,
    assignment: u64,
    values: usize,
}

/// The spool's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpoolCounts {
    /// Bytes on disk.
    pub bytes: u64,
    /// Of these, bytes that the store does not have for good.
    pub waiting: u64,
    /// Readings dropped because the spool was full.
    pub dropped: u64,
    /// Readings lost because nothing could be written.
    pub lost: u64,
    /// Blocks made so far.
    pub last: u64,
}

impl SpoolFeed {
    /// A feed into a spool.
    pub fn new(spool: Spool) -> Self {
        let state = FeedState {
            spool,
            writer: BlockWriter::default(),
            context: 1,
            definitions: HashMap::new(),
            waiting: 0,
            lost: 0,
            is_failing: false,
        };
        SpoolFeed { state: Mutex::new(state), changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes readings of an inventory's RRDs.
    pub fn take(&self, inventory: &Inventory, readings: &Readings, known: &mut SpooledRrds) -> Recorded {
        let mut state = self.lock();
        known.0.resize(inventory.len(), None);
        let mut recorded = Recorded::default();
        for reading in readings.iter() {
            let values = readings.values(reading);
            let Some(rrd) = state.rrd(inventory, reading.rrd, values.len(), known) else {
                recorded.refused += 1;
                continue;
            };
            state.writer.push(rrd, reading.time, values.map(block_value));
            state.waiting += 1;
            recorded.accepted += 1;
            if state.writer.bytes() >= BLOCK_BYTES {
                state.write();
                state.sync();
                self.changed.notify_one();
            }
        }
        recorded
    }

    /// Writes what waits, makes it durable, and makes room: every second.
    pub fn flush(&self) {
        let mut state = self.lock();
        state.write();
        state.sync();
        let tidied = state.spool.tidy();
        state.note(tidied);
        drop(state);
        self.changed.notify_one();
    }

    /// Waits until there may be something new to send.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The spool's numbers.
    pub fn counts(&self) -> SpoolCounts {
        let state = self.lock();
        let spool = &state.spool;
        SpoolCounts {
            bytes: spool.bytes(),
            waiting: spool.waiting_bytes(),
            dropped: spool.dropped(),
            lost: state.lost,
            last: spool.last(),
        }
    }

    /// True while the store does not have everything for good.
    pub fn waits(&self) -> bool {
        let state = self.lock();
        state.waiting > 0 || state.spool.waiting_bytes() > 0
    }

    /// The spool's number, and its last block.
    pub fn identity(&self) -> (u64, u64) {
        let state = self.lock();
        (state.spool.epoch(), state.spool.last())
    }

    /// A new session: the store has all blocks up to this one. Returns where to go on and how many blocks are gone; `None` when
    /// the store has more than there is, so that a new epoch had to begin.
    ///
    /// # Errors
    /// When the spool cannot note what the store says.
    pub fn resume(&self, number: u64) -> io::Result<Option<(Cursor, u64)>> {
        let mut state = self.lock();
        if number > state.spool.last() {
            state.spool.begin_epoch()?;
            return Ok(None);
        }
        state.spool.resume(number).map(Some)
    }

    /// The store knows a later spool of this agent; true when this one has taken a higher number.
    ///
    /// # Errors
    /// When the new number cannot be written.
    pub fn overtake(&self, later: u64) -> io::Result<bool> {
        self.lock().spool.overtake(later)
    }

    /// The store has all blocks up to this one for good.
    pub fn acknowledge(&self, number: u64) {
        self.lock().spool.acknowledge(number);
    }

    /// Appends the next durable blocks to `out`.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn read(&self, cursor: &mut Cursor, bytes_max: usize, out: &mut Vec<u8>) -> io::Result<()> {
        self.lock().spool.read(cursor, bytes_max, out)
    }
}

impl FeedState {
    /// The number of an RRD in the context, which may be a new one.
    fn rrd(
        &mut self,
        inventory: &Inventory,
        id: RrdId,
        values: usize,
        known: &mut SpooledRrds,
    ) -> Option<u32> {
        let assignment = inventory.assignment(id);
        if let Some(rrd) = known.0[id.index()]
            && (rrd.context, rrd.assignment, rrd.values) == (self.context, assignment, values)
        {
            return Some(rrd.number);
        }
        let number = self.add(inventory, id, values).or_else(|| {
            self.write();
            self.begin_context();
            self.add(inventory, id, values)
        })?;
        known.0[id.index()] = Some(SpooledRrd { context: self.context, number, assignment, values });
        Some(number)
    }

    fn add(&mut self, inventory: &Inventory, id: RrdId, values: usize) -> Option<u32> {
        let spec = inventory.spec(id);
        let definition = match self.definitions.get(spec) {
            Some(number) => *number,
            None => {
                let number = self.writer.add_definition(spec.step, spec.starts_before, &spec.args)?;
                self.definitions.insert(RrdSpec::clone(spec), number);
                number
            }
        };
        self.writer.add_rrd(definition, inventory.assignment(id), inventory.name(id), values)
    }

    fn begin_context(&mut self) {
        self.writer.begin_context();
        self.definitions.clear();
        self.context += 1;
    }

    /// Writes the block that waits. One that cannot be written is lost, and with it the context, because the store will not
    /// know what it held.
    fn write(&mut self) {
        if self.writer.is_empty() {
            return;
        }
        let begins = self.writer.begins_context();
        let mut frame = Vec::new();
        let finished = self.writer.finish(self.spool.last() + 1, &mut frame);
        let written = finished.and_then(|()| self.spool.append(&frame, begins));
        let is_lost = written.is_err();
        self.note(written);
        if is_lost {
            self.lost += self.waiting;
        }
        self.waiting = 0;
        if is_lost || self.spool.wants_segment() {
            self.begin_context();
        }
    }

    fn sync(&mut self) {
        let synced = self.spool.sync();
        self.note(synced);
    }

    /// Logs when the spool begins or ceases to fail.
    fn note(&mut self, result: io::Result<()>) {
        match result {
            Ok(()) if self.is_failing => {
                tracing::info!(lost = self.lost, "the spool can be written again");
                self.is_failing = false;
            }
            Err(error) if !self.is_failing => {
                tracing::error!(%error, "cannot write the spool: readings are lost until that has passed");
                self.is_failing = true;
            }
            _ => {}
        }
    }
}

fn block_value(value: Value<'_>) -> BlockValue<'_> {
    match value {
        Value::Unknown => BlockValue::Unknown,
        Value::Unsigned(number) => BlockValue::Unsigned(number),
        Value::Signed(number) => BlockValue::Signed(number),
        Value::Float(number) => BlockValue::Float(number),
        Value::Text(text) => match text.iter().all(|&byte| byte.is_ascii_graphic() && byte != b':') {
            true => BlockValue::Text(text),
            // No number; the store would refuse it.
            false => BlockValue::Unknown,
        },
    }
}
