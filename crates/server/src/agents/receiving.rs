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
    /// How many readings the agent dropped, by RRD.
    pub dropped: BTreeMap<RrdId, u64>,
    /// Of the context, by number.
    specs: Vec<Arc<RrdSpec>>,
    rrds: Vec<Option<RrdId>>,
    name_bytes: usize,
}

impl Default for Receiving {
    fn default() -> Self {
        let received = Received {
            inventory: Inventory::new(CONTEXT_RRDS_MAX),
            readings: Readings::default(),
            nameless: 0,
            dropped: BTreeMap::new(),
            specs: Vec::new(),
            rrds: Vec::new(),
            name_bytes: 0,
        };
        Receiving { reader: BlockReader::default(), received }
    }
}

impl Receiving {
    /// Reads a block; its readings replace those of the last one.
    ///
    /// # Errors
    /// [`BlockError`]: the session cannot go on.
    pub fn read(&mut self, body: &[u8]) -> Result<&Received, BlockError> {
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

    fn rrd(&mut self, definition: u32, name: &[u8], _values: usize) {
        let spec = Arc::clone(&self.specs[definition as usize]);
        let is_new = !self.inventory.contains(name);
        let found =
            RrdName::is_normal(name).then(|| self.inventory.find_or_add(name, || spec).ok()).flatten();
        if is_new && found.is_some() {
            self.name_bytes += name.len();
        }
        self.rrds.push(found);
    }

    fn reading(&mut self, rrd: u32, time: Timestamp, values: &[BlockValue<'_>]) {
        let Some(rrd) = self.rrds[rrd as usize] else {
            self.nameless += 1;
            return;
        };
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
