//! A feed and a simulated store: readings of an RRD arrive in order, whatever is killed or restored.

use std::path::Path;
use std::time::Duration;

use collect::inventory::RrdSpec;
use protocol::frames;
use protocol::frames::agent::AGENT_BODY_BYTES_MAX;
use protocol::frames::agent::block::{BlockHead, BlockReader};
use testkit::random::{Random, seeds};

use super::*;

const RRDS: usize = 50;

/// What a store has for good: it may be restored from a copy of that.
#[derive(Clone, Debug, Default)]
struct Data {
    /// By lane: the last block.
    positions: [u64; 2],
    /// The time of each RRD's last reading.
    last: HashMap<Vec<u8>, i64>,
}

/// A connection of a lane with a process of the store.
struct Session {
    process: u64,
    cursor: Cursor,
    applied: u64,
    reader: BlockReader,
    names: Vec<Vec<u8>>,
}

/// Applies a block to a store, or reads it for its context only.
struct Applying<'a> {
    data: Option<&'a mut Data>,
    names: &'a mut Vec<Vec<u8>>,
    what: &'a str,
}

impl BlockSink for Applying<'_> {
    fn begin_context(&mut self) {
        self.names.clear();
    }

    fn definition(&mut self, _: RrdDefinition<'_>) {}

    fn rrd(&mut self, _: u32, _: u64, name: &[u8], _: usize) {
        self.names.push(name.to_vec());
    }

    fn reading(&mut self, rrd: u32, time: Timestamp, _: &[BlockValue<'_>]) {
        let Some(data) = &mut self.data else { return };
        let last = data.last.entry(self.names[rrd as usize].clone()).or_default();
        // One that is not newer is a repetition.
        assert!(time.whole <= *last + 1, "{}: RRD {rrd}: {} comes after {last}", self.what, time.whole);
        *last = time.whole.max(*last);
    }
}

/// An agent and a store.
struct World<'d> {
    directory: &'d Path,
    feed: Option<Arc<SpoolFeed>>,
    inventory: Inventory,
    rrds: Vec<RrdId>,
    known: SpooledRrds,
    /// The times of the last readings, and of those in the spool.
    made: [i64; RRDS],
    spooled: [i64; RRDS],
    data: Data,
    /// The store's processes are numbered.
    process: u64,
    sessions: [Option<Session>; 2],
    what: String,
}

fn open(directory: &Path) -> Option<Arc<SpoolFeed>> {
    let keep = Duration::from_secs(3600);
    let options = SpoolOptions { directory: directory.to_path_buf(), bytes_max: 1 << 22, keep };
    Some(Arc::new(SpoolFeed::open(options).unwrap()))
}

impl World<'_> {
    fn new(directory: &Path, what: String) -> World<'_> {
        let mut inventory = Inventory::new(RRDS);
        let spec = Arc::new(RrdSpec { step: 1, starts_before: 1, args: Vec::new() });
        let rrds = (0..RRDS)
            .map(|rrd| inventory.find_or_add(format!("{rrd}.rrd").as_bytes(), || Arc::clone(&spec)).unwrap());
        let rrds = rrds.collect();
        World {
            directory,
            feed: open(directory),
            inventory,
            rrds,
            known: SpooledRrds::default(),
            made: [0; RRDS],
            spooled: [0; RRDS],
            data: Data::default(),
            process: 1,
            sessions: [None, None],
            what,
        }
    }

    fn feed(&self) -> &Arc<SpoolFeed> {
        self.feed.as_ref().unwrap()
    }

    fn make(&mut self, random: &mut Random) {
        let mut readings = Readings::default();
        for _ in 0..1 + random.below(3) {
            // The first RRDs are often fed, and the others seldom.
            let rrd = random.below(RRDS as u64).min(random.below(RRDS as u64)) as usize;
            self.made[rrd] += 1;
            let value = Value::Unsigned(random.below(1 << 40));
            readings.push(self.rrds[rrd], Timestamp::whole(self.made[rrd]), [value]);
        }
        let feed = self.feed.as_ref().unwrap();
        feed.take(&self.inventory, &readings, &mut self.known);
    }

    fn flush(&mut self) {
        self.feed().flush();
        self.spooled = self.made;
    }

    /// The agent is killed and starts again.
    fn restart(&mut self) {
        self.sessions = [None, None];
        self.known = SpooledRrds::default();
        self.made = self.spooled;
        // Its lock is free after that.
        self.feed = None;
        self.feed = open(self.directory);
    }

    fn connect(&mut self, lane: Lane) {
        let position = self.data.positions[lane as usize];
        let (cursor, gone) = self.feed().lane(lane).resume(position).unwrap().unwrap();
        assert_eq!(gone, 0);
        let (reader, names) = (BlockReader::default(), Vec::new());
        self.sessions[lane as usize] =
            Some(Session { process: self.process, cursor, applied: position, reader, names });
    }

    /// A lane's connection, unless its process is gone, which is noticed now.
    fn connected(&mut self, lane: Lane) -> Option<&mut Session> {
        let process = self.process;
        if self.sessions[lane as usize].as_ref().is_some_and(|session| session.process != process) {
            self.sessions[lane as usize] = None;
            self.feed().lane(lane).disconnected();
        }
        self.sessions[lane as usize].as_mut()
    }

    fn send(&mut self, lane: Lane) {
        let feed = self.feed().lane(lane);
        let mut out = Vec::new();
        // What is read for a process that is gone leads nowhere.
        if let Some(session) = &mut self.sessions[lane as usize] {
            feed.read(&mut session.cursor, 400, &mut out).unwrap();
        }
        if self.connected(lane).is_none() {
            return;
        }
        let Some(session) = &mut self.sessions[lane as usize] else { return };
        let mut rest = out.as_slice();
        while let Some((frame, used)) = frames::scan(rest, AGENT_BODY_BYTES_MAX).unwrap() {
            rest = &rest[used..];
            let number = BlockHead::parse(frame.body).unwrap().sequence;
            let data = (number > session.applied).then_some(&mut self.data);
            let mut applying = Applying { data, names: &mut session.names, what: &self.what };
            session.reader.read(frame.body, &mut applying).unwrap();
            session.applied = session.applied.max(number);
        }
        if feed.takes_question() {
            self.acknowledge(lane);
        }
    }

    fn acknowledge(&mut self, lane: Lane) {
        if let Some(session) = self.connected(lane) {
            let applied = session.applied;
            self.data.positions[lane as usize] = applied;
            self.feed().lane(lane).acknowledge(applied);
        }
    }
}

#[test]
fn readings_of_an_rrd_arrive_in_order_whatever_is_killed_or_restored() {
    let (mut live_blocks, mut seeds_run) = (0, 0);
    for seed in seeds(12) {
        let mut random = Random::new(seed);
        let directory = tempfile::tempdir().unwrap();
        let mut world = World::new(directory.path(), format!("seed {seed}"));
        let mut copy = Data::default();
        for _ in 0..600 {
            let lane = Lane::BOTH[random.below(2) as usize];
            match random.below(100) {
                0..30 => world.make(&mut random),
                30..55 => world.flush(),
                55..72 => world.send(lane),
                72..88 => world.acknowledge(lane),
                88..94 => world.connect(lane),
                94..96 => world.restart(),
                96..98 => copy = world.data.clone(),
                98 => world.process += 1,
                _ => (world.data, world.process) = (copy.clone(), world.process + 1),
            }
        }
        world.flush();
        Lane::BOTH.into_iter().for_each(|lane| world.connect(lane));
        for _ in 0..20_000 {
            Lane::BOTH.into_iter().for_each(|lane| {
                world.send(lane);
                world.acknowledge(lane);
            });
            if !world.feed().waits() {
                break;
            }
        }
        assert!(!world.feed().waits(), "seed {seed}: a lane waits for ever: {:?}", world.feed().counts());
        for (rrd, made) in world.made.iter().enumerate() {
            let last = world.data.last.get(format!("{rrd}.rrd").as_bytes()).copied().unwrap_or(0);
            assert_eq!(last, *made, "seed {seed}, RRD {rrd}");
        }
        live_blocks += world.feed().lock().lanes[Lane::Live as usize].spool.last();
        seeds_run += 1;
    }
    assert!(live_blocks > 17 * seeds_run, "{live_blocks} blocks in the live lane");
}
