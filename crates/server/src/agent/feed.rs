//! From collectors to the spools: readings become blocks, in two lanes. All go into the first one while the store keeps up. When it
//! does not, readings of RRDs that have none waiting there go into the second one, so that they do not wait for others'. An RRD
//! stays in its lane until the store has all of its readings there.

mod lane;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use collect::inventory::{Inventory, RrdId};
use collect::reading::{Readings, Value};
use protocol::frames::agent::block::{BlockSink, BlockValue, RrdDefinition};
use rrd::time::Timestamp;
use tokio::sync::Notify;
use xxhash_rust::xxh3::xxh3_64;

use self::lane::LaneState;
use super::spool::{Cursor, Spool, SpoolOptions, WaitingSink};
use crate::collectors::recorder::Recorded;

/// Bytes of a block before compression from which on it is written, without waiting for the second to end.
const BLOCK_BYTES: usize = 1 << 20;
/// Blocks of the first lane that the store may lack before RRDs go into the second one: a block is made every second, or every
/// megabyte, and the store says twice a second what it has.
const BACKLOG_BLOCKS: u64 = 8;
/// The directory of the second lane's spool in that of the first.
const SECOND: &str = "live";

/// One of the two ways to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// The usual one.
    Bulk,
    /// Past a backlog of the other.
    Live,
}

impl Lane {
    /// Both.
    pub const BOTH: [Lane; 2] = [Lane::Bulk, Lane::Live];

    fn other(self) -> Lane {
        match self {
            Lane::Bulk => Lane::Live,
            Lane::Live => Lane::Bulk,
        }
    }
}

/// Takes readings and keeps them until the store has them.
#[derive(Debug)]
pub struct SpoolFeed {
    state: Mutex<FeedState>,
    /// There is something new to send, by lane.
    changed: [Notify; 2],
}

#[derive(Debug)]
struct FeedState {
    lanes: [LaneState; 2],
    /// Bytes that both spools may take together.
    bytes_max: u64,
    /// The places of RRDs, by the hash of their names.
    numbers: HashMap<u64, u32>,
    places: Vec<Place>,
    /// RRDs without readings that wait had their last one, in the first lane, not after this block when the process began.
    begun_after: u64,
}

/// Where the last reading of an RRD is.
#[derive(Clone, Copy, Debug)]
struct Place {
    lane: Lane,
    block: u64,
}

/// What is known of the RRDs of one inventory, by their index.
#[derive(Debug, Default)]
pub struct SpooledRrds(Vec<Option<SpooledRrd>>);

/// An RRD as a context knows it.
#[derive(Clone, Copy, Debug)]
struct SpooledRrd {
    /// Its place in the feed.
    place: u32,
    /// The lane and its context.
    lane: Lane,
    context: u32,
    /// Its number in the context.
    number: u32,
    assignment: u64,
    values: usize,
}

/// The spools' numbers.
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

/// One lane of a feed, for its sender.
#[derive(Clone, Debug)]
pub struct LaneFeed {
    feed: Arc<SpoolFeed>,
    lane: Lane,
}

impl SpoolFeed {
    /// Opens the spools in a directory, or makes them.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn open(options: SpoolOptions) -> Result<Self, String> {
        let second = SpoolOptions { directory: options.directory.join(SECOND), ..options.clone() };
        let bytes_max = options.bytes_max;
        let open = |options: SpoolOptions| {
            let directory = options.directory.display().to_string();
            let lane = LaneState::new(Spool::open(options)?);
            lane.map_err(|error| format!("cannot read the spool \"{directory}\": {error}"))
        };
        let lanes = [open(options)?, open(second)?];
        let mut state =
            FeedState { lanes, bytes_max, numbers: HashMap::new(), places: Vec::new(), begun_after: 0 };
        state.recall().map_err(|error| format!("cannot read the spool: {error}"))?;
        Ok(SpoolFeed { state: Mutex::new(state), changed: Default::default() })
    }

    fn lock(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One lane, for its sender.
    pub fn lane(self: &Arc<Self>, lane: Lane) -> LaneFeed {
        LaneFeed { feed: Arc::clone(self), lane }
    }

    /// Takes readings of an inventory's RRDs.
    pub fn take(&self, inventory: &Inventory, readings: &Readings, known: &mut SpooledRrds) -> Recorded {
        let mut state = self.lock();
        known.0.resize(inventory.len(), None);
        let mut recorded = Recorded::default();
        let mut usual = state.usual();
        for reading in readings.iter() {
            let values = readings.values(reading);
            let Some(rrd) = state.rrd(inventory, reading.rrd, values.len(), usual, known) else {
                recorded.refused += 1;
                continue;
            };
            let lane = &mut state.lanes[rrd.lane as usize];
            lane.writer.push(rrd.number, reading.time, values.map(block_value));
            lane.waiting += 1;
            let is_full = lane.writer.bytes() >= BLOCK_BYTES;
            let block = lane.next_block();
            state.places[rrd.place as usize] = Place { lane: rrd.lane, block };
            recorded.accepted += 1;
            if is_full {
                state.lanes[rrd.lane as usize].write();
                state.lanes[rrd.lane as usize].sync();
                usual = state.usual();
                self.changed[rrd.lane as usize].notify_one();
            }
        }
        recorded
    }

    /// Writes what waits, makes it durable, and makes room: every second.
    pub fn flush(&self) {
        let mut state = self.lock();
        let bytes_max = state.bytes_max;
        for lane in &mut state.lanes {
            lane.write();
            lane.sync();
        }
        let bytes = |state: &FeedState, lane: Lane| state.lanes[lane as usize].spool.bytes();
        let is_bulk_larger = bytes(&state, Lane::Bulk) >= bytes(&state, Lane::Live);
        let (larger, smaller) =
            if is_bulk_larger { (Lane::Bulk, Lane::Live) } else { (Lane::Live, Lane::Bulk) };
        // What the store has makes room first, in both; then the larger one drops.
        for (lane, may_drop) in [(smaller, false), (larger, true)] {
            let room = bytes_max.saturating_sub(bytes(&state, lane.other()));
            state.lanes[lane as usize].tidy(room, may_drop);
        }
        drop(state);
        self.changed.iter().for_each(Notify::notify_one);
    }

    /// The spools' numbers.
    pub fn counts(&self) -> SpoolCounts {
        let state = self.lock();
        let mut counts = SpoolCounts::default();
        for LaneState { spool, lost, .. } in &state.lanes {
            counts.bytes += spool.bytes();
            counts.waiting += spool.waiting_bytes();
            counts.dropped += spool.dropped();
            counts.lost += lost;
            counts.last += spool.last();
        }
        counts
    }

    /// True while the store does not have everything for good.
    pub fn waits(&self) -> bool {
        self.lock().lanes.iter().any(|lane| lane.waiting > 0 || lane.spool.waiting_bytes() > 0)
    }
}

impl LaneFeed {
    fn lock(&self) -> MutexGuard<'_, FeedState> {
        self.feed.lock()
    }

    /// Which lane it is.
    pub fn lane(&self) -> Lane {
        self.lane
    }

    /// Waits until there may be something new to send.
    pub async fn changed(&self) {
        self.feed.changed[self.lane as usize].notified().await;
    }

    /// The spool's number, and its last block.
    pub fn identity(&self) -> (u64, u64) {
        let state = self.lock();
        let spool = &state.lanes[self.lane as usize].spool;
        (spool.epoch(), spool.last())
    }

    /// A new session: the store has all blocks up to this one. Returns where to go on and how many blocks are gone; `None` when
    /// the store has more than there is, so that a new epoch had to begin.
    ///
    /// # Errors
    /// When the spool cannot note what the store says.
    pub fn resume(&self, number: u64) -> io::Result<Option<(Cursor, u64)>> {
        let mut state = self.lock();
        let lane = &mut state.lanes[self.lane as usize];
        if number > lane.spool.last() {
            lane.spool.begin_epoch()?;
            return Ok(None);
        }
        let resumed = lane.spool.resume(number)?;
        lane.is_known = true;
        // The other lane's session may be one with the store before it was restored from a copy, and not know that yet.
        let other = &mut state.lanes[self.lane.other() as usize];
        (other.is_known, other.asks) = (false, true);
        drop(state);
        self.feed.changed[self.lane.other() as usize].notify_one();
        Ok(Some(resumed))
    }

    /// The session has ended.
    pub fn disconnected(&self) {
        self.lock().lanes[self.lane as usize].is_known = false;
    }

    /// Whether the store is to be asked what it has, which it answers with APPLIED.
    pub fn takes_question(&self) -> bool {
        std::mem::take(&mut self.lock().lanes[self.lane as usize].asks)
    }

    /// The store knows a later spool of this agent; true when this one has taken a higher number.
    ///
    /// # Errors
    /// When the new number cannot be written.
    pub fn overtake(&self, later: u64) -> io::Result<bool> {
        self.lock().lanes[self.lane as usize].spool.overtake(later)
    }

    /// The store has all blocks up to this one for good.
    pub fn acknowledge(&self, number: u64) {
        let mut state = self.lock();
        let lane = &mut state.lanes[self.lane as usize];
        lane.spool.acknowledge(number);
        lane.is_known = true;
        drop(state);
        self.feed.changed[self.lane.other() as usize].notify_one();
    }

    /// Appends the next durable blocks to `out`, but none that waits for the other lane.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn read(&self, cursor: &mut Cursor, bytes_max: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let state = self.lock();
        let (lane, other) = (&state.lanes[self.lane as usize], &state.lanes[self.lane.other() as usize]);
        // A store that was restored from a copy may have less of the other lane than it had.
        let there = if other.is_known { other.spool.acknowledged() } else { 0 };
        let last_allowed = lane.order.last_allowed(cursor.before() + 1, there, other.spool.last());
        lane.spool.read(cursor, bytes_max, last_allowed, out)
    }
}

impl FeedState {
    /// The lane of RRDs of which the store has everything.
    fn usual(&self) -> Lane {
        let spool = &self.lanes[Lane::Bulk as usize].spool;
        if spool.last().saturating_sub(spool.acknowledged()) > BACKLOG_BLOCKS {
            Lane::Live
        } else {
            Lane::Bulk
        }
    }

    /// An RRD in the context of its lane, which may be a new one. One of which the store has everything goes to the lane `usual`.
    fn rrd(
        &mut self,
        inventory: &Inventory,
        id: RrdId,
        values: usize,
        usual: Lane,
        known: &mut SpooledRrds,
    ) -> Option<SpooledRrd> {
        let place = match known.0[id.index()] {
            Some(rrd) => rrd.place,
            None => self.number(inventory.name(id)),
        };
        let Place { lane: before, block } = self.places[place as usize];
        let waits = block > self.lanes[before as usize].spool.acknowledged();
        let lane = if waits { before } else { usual };
        if lane != before {
            // Should the store be restored from a copy, both lanes are sent again.
            let after = &mut self.lanes[lane as usize].after;
            *after = (*after).max(block);
        }
        let assignment = inventory.assignment(id);
        let context = self.lanes[lane as usize].context;
        if let Some(rrd) = known.0[id.index()]
            && (rrd.lane, rrd.context, rrd.assignment, rrd.values) == (lane, context, assignment, values)
        {
            return Some(rrd);
        }
        let number = self.lanes[lane as usize].add(inventory, id, values)?;
        let context = self.lanes[lane as usize].context;
        let rrd = SpooledRrd { place, lane, context, number, assignment, values };
        known.0[id.index()] = Some(rrd);
        Some(rrd)
    }

    fn number(&mut self, name: &[u8]) -> u32 {
        let places = &mut self.places;
        *self.numbers.entry(xxh3_64(name)).or_insert_with(|| {
            places.push(Place { lane: Lane::Bulk, block: self.begun_after });
            (places.len() - 1) as u32
        })
    }

    /// Finds out which RRDs have readings that a process before this one has left.
    fn recall(&mut self) -> io::Result<()> {
        // All others have theirs in blocks that the store has: of the first lane, or of the second.
        self.begun_after = self.lanes[Lane::Bulk as usize].spool.acknowledged();
        self.lanes[Lane::Bulk as usize].after = self.lanes[Lane::Live as usize].spool.acknowledged();
        for lane in Lane::BOTH {
            let mut found = Recalled::default();
            self.lanes[lane as usize].spool.for_each_waiting(&mut found)?;
            for (name, block) in found.blocks {
                let place = self.numbers.get(&name).copied().unwrap_or_else(|| {
                    self.places.push(Place { lane, block });
                    (self.places.len() - 1) as u32
                });
                self.numbers.insert(name, place);
                if self.places[place as usize].lane != lane {
                    // The store was restored from a copy: it waits in both lanes. It goes on in the first, after the second.
                    let after = &mut self.lanes[Lane::Bulk as usize].after;
                    *after = (*after).max(block);
                }
            }
        }
        Ok(())
    }
}

/// The RRDs of blocks that wait.
#[derive(Default)]
struct Recalled {
    /// The context's RRDs, by the hashes of their names.
    rrds: Vec<u64>,
    /// The block that is read, if it counts.
    block: Option<u64>,
    /// The last block of each.
    blocks: HashMap<u64, u64>,
}

impl WaitingSink for Recalled {
    fn begin_block(&mut self, number: u64, counts: bool) {
        self.block = counts.then_some(number);
    }
}

impl BlockSink for Recalled {
    fn begin_context(&mut self) {
        self.rrds.clear();
    }

    fn definition(&mut self, _definition: RrdDefinition<'_>) {}

    fn rrd(&mut self, _definition: u32, _assignment: u64, name: &[u8], _values: usize) {
        self.rrds.push(xxh3_64(name));
    }

    fn reading(&mut self, rrd: u32, _time: Timestamp, _values: &[BlockValue<'_>]) {
        if let Some(block) = self.block {
            self.blocks.insert(self.rrds[rrd as usize], block);
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

#[cfg(test)]
mod tests;
