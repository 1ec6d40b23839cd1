//! One of an agent's two lanes: a spool, and the block that is being filled for it.

use std::collections::HashMap;
use std::io;

use collect::inventory::{Inventory, RrdId, RrdSpec};
use protocol::frames::agent::block::BlockWriter;

use super::super::spool::Spool;
use super::super::spool::order::Order;

/// A spool with the block that is being filled.
#[derive(Debug)]
pub struct LaneState {
    /// Its blocks.
    pub spool: Spool,
    /// What they wait for.
    pub order: Order,
    /// The block that is being filled.
    pub writer: BlockWriter,
    /// What the store must have of the other lane before it gets the block that is being filled; 0 = nothing.
    pub after: u64,
    /// Counts contexts.
    pub context: u32,
    /// The numbers of definitions in the context.
    definitions: HashMap<RrdSpec, u32>,
    /// Readings in the block that is being filled.
    pub waiting: u64,
    /// Readings lost because nothing could be written.
    pub lost: u64,
    is_failing: bool,
    /// What the spool says that the store has is true of the store to which the other lane is connected.
    pub is_known: bool,
    /// The store is to be asked what it has.
    pub asks: bool,
}

impl LaneState {
    /// The lane of a spool.
    ///
    /// # Errors
    /// When its order cannot be read.
    pub fn new(spool: Spool) -> io::Result<Self> {
        let order = Order::open(spool.directory())?;
        Ok(LaneState {
            spool,
            order,
            writer: BlockWriter::default(),
            after: 0,
            context: 1,
            definitions: HashMap::new(),
            waiting: 0,
            lost: 0,
            is_failing: false,
            is_known: false,
            asks: false,
        })
    }

    /// The number of the block that is being filled.
    pub fn next_block(&self) -> u64 {
        self.spool.last() + 1
    }

    /// Adds an RRD to the context, which may be a new one; returns its number there.
    pub fn add(&mut self, inventory: &Inventory, id: RrdId, values: usize) -> Option<u32> {
        self.try_add(inventory, id, values).or_else(|| {
            self.write();
            self.begin_context();
            self.try_add(inventory, id, values)
        })
    }

    fn try_add(&mut self, inventory: &Inventory, id: RrdId, values: usize) -> Option<u32> {
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

    /// Writes the block that is being filled. One that cannot be written is lost, and with it the context, because the store will
    /// not know what it held.
    pub fn write(&mut self) {
        if self.writer.is_empty() {
            return;
        }
        let (begins, number) = (self.writer.begins_context(), self.next_block());
        let mut frame = Vec::new();
        let ordered = if self.after > 0 { self.order.wait(number, self.after) } else { Ok(()) };
        let finished = self.writer.finish(number, &mut frame);
        let written = ordered.and(finished).and_then(|()| self.spool.append(&frame, begins));
        let is_lost = written.is_err();
        self.note(written);
        if is_lost {
            self.lost += self.waiting;
        }
        (self.waiting, self.after) = (0, 0);
        if is_lost || self.spool.wants_segment() {
            self.begin_context();
        }
    }

    /// Makes everything durable that was written.
    pub fn sync(&mut self) {
        let synced = self.spool.sync();
        self.note(synced);
    }

    /// Removes what is no longer kept, and makes room as [`Spool::tidy`].
    pub fn tidy(&mut self, bytes_max: u64, may_drop: bool) {
        let tidied =
            self.spool.tidy(bytes_max, may_drop).and_then(|()| self.order.forget_before(self.spool.first()));
        self.note(tidied);
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
