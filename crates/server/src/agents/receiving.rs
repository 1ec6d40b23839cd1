//! What has been received of an agent's blocks: the RRDs of its context, and the readings of one block.

use std::collections::BTreeMap;
use std::sync::Arc;

use collect::inventory::{Inventory, RrdId, RrdSpec};
use collect::reading::{Readings, Value};
use protocol::frames::agent::block::{
    BlockError, BlockReader, BlockSink, BlockValue, CONTEXT_RRDS_MAX, RrdDefinition,
};
use rrd::time::Timestamp;
use store::name::RrdName;

use super::assignments::Assignments;

/// Bytes that an RRD takes in an inventory beside its name, roughly.
const RRD_BYTES: usize = 160;

/// The state of a session's blocks.
pub struct Receiving {
    reader: BlockReader,
    received: Received,
}

/// What blocks fill.
pub struct Received {
    /// The RRDs of all contexts.
    pub inventory: Inventory,
    /// The readings of the last block.
    pub readings: Readings,
    /// Readings of the last block whose RRD has a name that none can have.
    pub nameless: u32,
    /// Readings of the last block that were not the agent's to make, and the first RRD of them.
    pub fenced: u32,
    pub fenced_first: Option<RrdId>,
    /// How many readings the agent dropped, by RRD.
    pub dropped: BTreeMap<RrdId, u64>,
    /// Of the context, by number.
    specs: Vec<Arc<RrdSpec>>,
    /// With the assignment that it is polled for.
    rrds: Vec<Option<(RrdId, u64)>>,
    agent: Box<[u8]>,
    assignments: Arc<Assignments>,
    name_bytes: usize,
}

impl Receiving {
    /// Of an agent that has sent nothing yet.
    pub fn new(agent: &[u8]) -> Self {
        let received = Received {
            inventory: Inventory::new(CONTEXT_RRDS_MAX),
            readings: Readings::default(),
            nameless: 0,
            fenced: 0,
            fenced_first: None,
            dropped: BTreeMap::new(),
            specs: Vec::new(),
            rrds: Vec::new(),
            agent: agent.into(),
            assignments: Arc::new(Assignments::new(0)),
            name_bytes: 0,
        };
        Receiving { reader: BlockReader::default(), received }
    }

    /// Reads a block; its readings replace those of the last one. What is not the agent's to poll is left out.
    ///
    /// # Errors
    /// [`BlockError`]: the session cannot go on.
    pub fn read(&mut self, body: &[u8], assignments: Arc<Assignments>) -> Result<&Received, BlockError> {
        self.received.assignments = assignments;
        (self.received.fenced, self.received.fenced_first) = (0, None);
        self.received.readings.clear();
        self.received.nameless = 0;
        self.received.dropped.clear();
        self.reader.read(body, &mut self.received)?;
        Ok(&self.received)
    }

    /// Bytes in memory, roughly.
    pub fn memory(&self) -> usize {
        let received = &self.received;
        let rrds = received.inventory.len() * RRD_BYTES + received.name_bytes * 2;
        self.reader.memory() + rrds + received.readings.len() * 64
    }
}

impl BlockSink for Received {
    fn begin_context(&mut self) {
        self.specs.clear();
        self.rrds.clear();
    }

    fn definition(&mut self, definition: RrdDefinition<'_>) {
        let RrdDefinition { step, starts_before, args } = definition;
        let args = args.into_iter().map(str::to_owned).collect();
        self.specs.push(Arc::new(RrdSpec { step, starts_before, args }));
    }

    fn rrd(&mut self, definition: u32, assignment: u64, name: &[u8], _values: usize) {
        let spec = Arc::clone(&self.specs[definition as usize]);
        let before = self.inventory.len();
        let found =
            RrdName::is_normal(name).then(|| self.inventory.find_or_define(name, spec).ok()).flatten();
        if self.inventory.len() > before {
            self.name_bytes += name.len();
        }
        self.rrds.push(found.map(|rrd| (rrd, assignment)));
    }

    fn reading(&mut self, rrd: u32, time: Timestamp, values: &[BlockValue<'_>]) {
        let Some((rrd, assignment)) = self.rrds[rrd as usize] else {
            self.nameless += 1;
            return;
        };
        if !self.assignments.admits(assignment, &self.agent, time) {
            self.fenced += 1;
            self.fenced_first.get_or_insert(rrd);
            return;
        }
        for value in values {
            if let BlockValue::Dropped(count) = value {
                *self.dropped.entry(rrd).or_default() += count;
            }
        }
        let values = values.iter().map(|value| match *value {
            BlockValue::Unknown | BlockValue::Dropped(_) => Value::Unknown,
            BlockValue::Unsigned(number) => Value::Unsigned(number),
            BlockValue::Signed(number) => Value::Signed(number),
            BlockValue::Float(number) => Value::Float(number),
            BlockValue::Text(text) => Value::Text(text),
        });
        self.readings.push(rrd, time, values);
    }
}
