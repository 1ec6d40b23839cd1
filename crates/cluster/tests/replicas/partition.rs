//! One partition and its replicas.

#[path = "checks.rs"]
mod checks;
#[path = "seals.rs"]
mod seals;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use disk::sim::SimDisk;
use roundel_cluster::log::ReplicatedLog;
use roundel_cluster::partition::{Home, Replica, ReplicaOptions, ReplicaStatus, SharedCopier};
use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::when::Step;
use store::disk::Disk;
use store::engine::{CreateRequest, Engine, UpdateBatch};
use store::identity::Identity;
use store::name::RrdName;
use store::replication::{Mark, Position};
use store::stripes::{Options, ShardOptions, Stripes};
use testkit::random::{Random, each_seed};

use crate::simulated::{Faults, NodeLog, SimLog};

const START: i64 = 1_700_000_000;
const NODES: usize = 3;
const RRDS: u64 = 12;

/// How long anything may take that has to come about in the end.
const PATIENCE: Duration = Duration::from_secs(60);

static WRITERS: AtomicU64 = AtomicU64::new(1);

fn identity() -> Identity {
    Identity { id: *b"a partition's id", seed: 7, shard_count: 1 }
}

/// A simulated disk, another one once the replica's store was put aside; and how often it was.
#[derive(Clone)]
struct SimHome(Arc<Mutex<SimDisk>>, Arc<AtomicU64>);

impl Home for SimHome {
    fn open(&self) -> io::Result<Arc<dyn Disk>> {
        Ok(self.0.lock().unwrap().handle())
    }

    fn directory(&self) -> Option<PathBuf> {
        None
    }

    fn put_aside(&self) -> io::Result<String> {
        *self.0.lock().unwrap() = SimDisk::new(1);
        self.1.fetch_add(1, Ordering::Relaxed);
        Ok("nowhere".into())
    }
}

/// A node with a replica.
struct Node {
    home: SimHome,
    log: Arc<NodeLog>,
    replica: Replica,
}

impl Node {
    fn start(disk: SimDisk, log: Arc<NodeLog>, random: &mut Random) -> Node {
        let home = SimHome(Arc::new(Mutex::new(disk)), Arc::default());
        let shard = ShardOptions {
            sync_always: random.below(4) == 0,
            sync_interval: Duration::from_millis(20 << random.below(4)),
            open_bytes_min: 256 << random.below(6),
            log_bytes_max: 2048 << random.below(6),
            merge_count: 2 + random.below(3) as usize,
            ..ShardOptions::default()
        };
        let options = ReplicaOptions {
            partition: 0,
            partitions: 1,
            writer: WRITERS.fetch_add(1, Ordering::Relaxed),
            identity: identity(),
            store: Options { shard, ..Options::default() },
            home: Box::new(home.clone()),
            patience: Duration::from_millis(500),
            copier: SharedCopier::default(),
            backup: None,
        };
        let replica = Replica::start(options, Arc::clone(&log) as Arc<dyn ReplicatedLog>).unwrap();
        Node { home, log, replica }
    }

    /// The disk as the next process finds it.
    fn killed(&self, power: bool) -> SimDisk {
        let disk = self.home.0.lock().unwrap();
        if power { disk.crash() } else { disk.kill() }
    }
}

/// What was acknowledged: values by RRD and time.
type Acknowledged = Arc<Mutex<BTreeMap<(u64, i64), f64>>>;

struct Fleet {
    random: Random,
    log: Arc<SimLog>,
    nodes: Vec<Node>,
    /// Replicas of killed processes that have not noticed yet.
    zombies: Vec<Replica>,
    acknowledged: Acknowledged,
    now: i64,
}

fn name(number: u64) -> RrdName {
    RrdName::new(format!("host-{}/rrd-{number}.rrd", number % 3).as_bytes()).unwrap()
}

fn definition(rra: &str) -> Definition {
    let step = Step { units: 1, units_per_second: 1 };
    let options = CreateOptions { step, limits: Limits::STORE, file_name: b"x.rrd" };
    parse_create(&options, &["DS:x:GAUGE:1000000:U:U", rra]).unwrap()
}

impl Fleet {
    fn new(seed: u64, faults: Faults) -> Fleet {
        let mut random = Random::new(seed);
        let log = SimLog::new(random.next(), 1);
        log.set_faults(faults);
        let nodes =
            (0..NODES).map(|_| Node::start(SimDisk::new(random.next()), log.node(), &mut random)).collect();
        Fleet { random, log, nodes, zombies: Vec::new(), acknowledged: Acknowledged::default(), now: START }
    }

    fn lead(&self, wanted: usize) {
        for (index, node) in self.nodes.iter().enumerate() {
            node.replica.want_lead((index == wanted).then_some(u32::MAX));
        }
    }

    fn leader(&self) -> Option<Arc<dyn Engine>> {
        let leads = |node: &Node| node.replica.engine_and_lead().filter(|(_, leads)| *leads);
        self.nodes.iter().find_map(leads).map(|(engine, _)| engine)
    }

    fn wait_for_leader(&self) -> Arc<dyn Engine> {
        wait_or_tell("a leader", || self.leader(), || self.statuses())
    }

    fn create_all(&self) {
        for number in 0..RRDS {
            // Until it is there: an attempt whose answer was lost may have made it.
            wait_for("an RRD", || {
                let engine = self.leader()?;
                let request = CreateRequest {
                    definition: definition("RRA:LAST:0:1:20000"),
                    start: START,
                    no_overwrite: true,
                };
                let (sender, answer) = mpsc::channel();
                engine.create(name(number), request, Box::new(move |result| drop(sender.send(result))));
                let _ = answer.recv();
                engine.sync().ok()?;
                engine.status(&name(number)).ok()
            });
        }
    }

    /// Sends some updates to the leader, and does not wait for the answer.
    fn update(&mut self) {
        let Some(engine) = self.leader() else { return std::thread::sleep(Duration::from_millis(5)) };
        let mut batch = UpdateBatch::default();
        let mut lines = Vec::new();
        for _ in 0..=self.random.below(20) {
            self.now += 1;
            let (number, value) = (self.random.below(RRDS), self.random.below(1 << 20) as f64);
            batch.push(name(number).as_bytes(), format!("{}:{value}", self.now).as_bytes());
            lines.push((number, self.now, value));
        }
        let acknowledged = Arc::clone(&self.acknowledged);
        engine.update(
            batch,
            Box::new(move |failures| {
                let failed: Vec<u32> = failures.iter().map(|failure| failure.line).collect();
                let mut acknowledged = acknowledged.lock().unwrap();
                for (index, (number, time, value)) in lines.into_iter().enumerate() {
                    if !failed.contains(&(index as u32)) {
                        acknowledged.insert((number, time), value);
                    }
                }
            }),
        );
    }

    /// Does something to RRDs that are not updated: whether it was done is not known for sure, but all replicas must have done the same. One of
    /// them is long enough for several messages.
    fn change_names(&mut self) {
        let Some(engine) = self.leader() else { return };
        let other = |number: u64| RrdName::new(format!("other/rrd-{number}.rrd").as_bytes()).unwrap();
        let (from, to) = (other(self.random.below(3)), other(self.random.below(3)));
        let _ = match self.random.below(5) {
            0 => engine.delete(&from),
            1 => engine.rename(&from, &to),
            2 => engine.copy(&name(self.random.below(RRDS)), &to),
            3 => engine.tune(&name(self.random.below(RRDS)), &["-h".into(), "x:2000000".into()]),
            _ => engine.import(to, self.long_rrd(), false),
        };
    }

    /// An RRD of five megabytes that does not compress.
    fn long_rrd(&mut self) -> Rrd {
        const ROWS: usize = 650_000;
        let definition = definition(&format!("RRA:LAST:0:1:{ROWS}"));
        let live = rrd::create::new_live(&definition, START);
        let archive = (0..ROWS).map(|_| f64::from_bits(self.random.next() >> 2)).collect();
        Rrd { definition, live, archives: vec![archive] }
    }

    /// One random step.
    fn step(&mut self) {
        let node = self.random.below(NODES as u64) as usize;
        match self.random.below(200) {
            0..4 => self.lead(node),
            4..6 => {
                let power = self.random.below(2) == 0;
                let (disk, log) = (self.nodes[node].killed(power), self.log.node());
                let new = Node::start(disk, log, &mut self.random);
                let old = std::mem::replace(&mut self.nodes[node], new);
                self.zombies.push(old.replica);
                self.lead((node + 1) % NODES);
            }
            6..8 => {
                self.nodes[node].log.cut_off(true);
                self.lead((node + 1) % NODES);
            }
            8..14 => self.nodes[node].log.cut_off(false),
            14 => self.log.be_silent(Duration::from_millis(50 << self.random.below(4))),
            15..17 => self.nodes[node].replica.stop(),
            17..20 => {
                // What was stopped is started again, with what it had.
                let disk = self.nodes[node].killed(false);
                let log = self.log.node();
                let new = Node::start(disk, log, &mut self.random);
                drop(std::mem::replace(&mut self.nodes[node], new));
            }
            20..40 => std::thread::sleep(Duration::from_millis(self.random.below(20))),
            40..44 => self.change_names(),
            _ => self.update(),
        }
        if self.zombies.len() > 3 {
            self.zombies.remove(0);
        }
    }

    /// Ends all faults, and starts what was stopped.
    fn repair(&mut self) {
        self.log.set_faults(Faults::default());
        self.zombies.clear();
        for index in 0..NODES {
            self.nodes[index].log.cut_off(false);
            if self.nodes[index].replica.engine().is_none() {
                let disk = self.nodes[index].killed(false);
                let new = Node::start(disk, self.log.node(), &mut self.random);
                drop(std::mem::replace(&mut self.nodes[index], new));
            }
        }
    }

    /// Ends all faults, and waits until all replicas have everything.
    fn settle(&mut self) {
        let last = self.random.below(NODES as u64) as usize;
        self.settle_on(last);
    }

    /// The same; who leads in the end is said.
    fn settle_on(&mut self, last: usize) {
        self.repair();
        self.lead(last);
        wait_for("the last leader", || self.nodes[last].replica.leads().then_some(()));
        wait_for("the last updates", || {
            let synced = self.nodes[last].replica.engine()?.sync();
            synced.inspect_err(|error| println!("{error}: {:?}", self.statuses())).ok()
        });
        let are_same = || {
            let engines = self.nodes.iter().filter(|node| node.replica.engine().is_some()).count();
            let ends =
                self.statuses().into_iter().map(|status| (status.end, status.next, status.is_caught_up));
            let ends: Vec<_> = ends.collect();
            (engines == NODES && ends.iter().all(|end| end.2 && *end == ends[0])).then_some(())
        };
        wait_or_tell("replicas of the same length", are_same, || self.statuses());
    }

    fn statuses(&self) -> Vec<ReplicaStatus> {
        self.nodes.iter().map(|node| node.replica.status()).collect()
    }

    fn check(&self) {
        let engines: Vec<_> = self.nodes.iter().map(|node| node.replica.engine().unwrap()).collect();
        let content = |engine: &Arc<dyn Engine>| {
            let names = engine.list(b"", true).unwrap();
            let whole = |name: &Vec<u8>| format!("{:?}", engine.read(&RrdName::new(name).unwrap()).unwrap());
            names.iter().map(|name| (name.clone(), whole(name))).collect::<Vec<_>>()
        };
        let first = content(&engines[0]);
        let others = first.iter().filter(|(name, _)| name.starts_with(b"other/")).count();
        assert_eq!((first.len() - others) as u64, RRDS);
        for engine in &engines[1..] {
            for ((name, want), (other, found)) in first.iter().zip(content(engine)) {
                let at = want
                    .bytes()
                    .zip(found.bytes())
                    .position(|(a, b)| a != b)
                    .unwrap_or(0)
                    .saturating_sub(300);
                let cut = |text: &str| text[at..text.len().min(at + 600)].to_owned();
                assert!(
                    *name == other && *want == found,
                    "replicas differ: {} {}\n{}\n{}\n{:?}",
                    name.escape_ascii(),
                    other.escape_ascii(),
                    cut(want),
                    cut(&found),
                    self.statuses()
                );
            }
        }
        let acknowledged = self.acknowledged.lock().unwrap();
        for number in 0..RRDS {
            let name = name(number);
            let status = engines[0].status(&name).unwrap();
            let rows = engines[0].rows(&name, &status.definition, 0, START..self.now + 1).unwrap();
            for ((_, time), value) in acknowledged.range((number, 0)..(number + 1, 0)) {
                let stored = rows[(time - START) as usize];
                assert_eq!(stored, *value, "{name} at {time}");
            }
        }
    }
}

/// Waits until something is there.
fn wait_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    wait_or_tell(what, look, Vec::new)
}

fn wait_or_tell<T>(
    what: &str,
    mut look: impl FnMut() -> Option<T>,
    tell: impl Fn() -> Vec<ReplicaStatus>,
) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "{what} did not come: {:#?}", tell());
        std::thread::sleep(Duration::from_millis(3));
    }
}

#[test]
fn what_was_acknowledged_is_on_all_replicas_whatever_happens() {
    each_seed(6, |seed| {
        let mut fleet = Fleet::new(seed, Faults::MANY);
        fleet.lead(0);
        fleet.wait_for_leader();
        fleet.create_all();
        let until = Instant::now() + PATIENCE;
        let count = |fleet: &Fleet| fleet.acknowledged.lock().unwrap().len();
        let mut steps = 0;
        while steps < 600 || count(&fleet) < 100 {
            steps += 1;
            fleet.step();
            assert!(Instant::now() < until, "only {} were acknowledged", count(&fleet));
        }
        fleet.settle();
        fleet.check();
        println!("seed {seed}: {} acknowledged in {steps} steps", count(&fleet));
    });
}

#[test]
fn a_replica_stands_still_and_says_so_when_the_log_has_forgotten_what_it_lacks() {
    let mut fleet = Fleet::new(3, Faults::default());
    fleet.lead(0);
    fleet.wait_for_leader();
    fleet.create_all();
    fleet.nodes[2].replica.stop();
    for _ in 0..100 {
        fleet.update();
        std::thread::sleep(Duration::from_millis(1));
    }
    fleet.wait_for_leader().sync().unwrap();
    fleet.log.forget(0, 1);
    let disk = fleet.nodes[2].killed(false);
    let new = Node::start(disk, fleet.log.node(), &mut fleet.random);
    drop(std::mem::replace(&mut fleet.nodes[2], new));
    let fault = wait_for("a fault", || fleet.nodes[2].replica.status().fault);
    assert!(fault.contains("begins at offset") && fleet.nodes[2].replica.engine().is_none(), "{fault}");
    // The others are not concerned.
    fleet.update();
    fleet.wait_for_leader().sync().unwrap();
}

#[test]
fn a_leader_that_was_replaced_does_not_claim_again_before_it_is_told_to() {
    let fleet = Fleet::new(5, Faults::default());
    let replica = |index: usize| &fleet.nodes[index].replica;
    replica(0).want_lead(Some(0));
    wait_for("the first leader", || replica(0).leads().then_some(()));
    replica(1).want_lead(Some(1));
    wait_for("the second leader", || replica(1).leads().then_some(()));
    // When it has read all there is, a replica looks for something to claim.
    let looks = fleet.nodes[0].log.reads_in_vain() + 3;
    wait_for("the first to look around", || (fleet.nodes[0].log.reads_in_vain() >= looks).then_some(()));
    assert!(replica(1).leads() && replica(0).is_ready());
    replica(0).want_lead(Some(2));
    wait_for("the first to lead again", || replica(0).leads().then_some(()));
    assert_eq!(replica(0).status().epoch, 3);
}

/// Stops the last node; its store is opened as one that no log is followed by, up to `end`, gets an update, and the mark says that all of it was accepted.
fn tamper(fleet: &mut Fleet, end: Option<Position>, name: &RrdName, values: &str) {
    let node = NODES - 1;
    fleet.nodes[node].replica.stop();
    let disk = fleet.nodes[node].killed(false);
    let mark = Mark::load(&*disk.handle()).unwrap().unwrap();
    let shard = ShardOptions { log_end: Some(end.unwrap_or(mark.end)), ..ShardOptions::default() };
    let options = Options { identity: Some(identity()), shard, ..Options::default() };
    let store = Stripes::open(disk.handle(), &options).unwrap();
    store.updatev(name, values.as_bytes()).unwrap();
    let end = store.replica().unwrap().moment()[0];
    store.stop().unwrap();
    Mark { end, ..mark }.store(&*disk.handle()).unwrap();
    let new = Node::start(disk, fleet.log.node(), &mut fleet.random);
    drop(std::mem::replace(&mut fleet.nodes[node], new));
}

/// Updates until the last node's store was put aside, and all are the same again.
fn updated_until_it_is_made_again(fleet: &mut Fleet) {
    let aside = Arc::clone(&fleet.nodes[NODES - 1].home.1);
    wait_for("a copy that is put aside", || {
        fleet.update();
        std::thread::sleep(Duration::from_millis(20));
        (aside.load(Ordering::Relaxed) > 0).then_some(())
    });
    fleet.settle();
    fleet.check();
    assert_eq!(aside.load(Ordering::Relaxed), 1);
}

fn small_fleet(seed: u64) -> Fleet {
    let mut fleet = Fleet::new(seed, Faults::default());
    fleet.lead(0);
    fleet.wait_for_leader();
    fleet.create_all();
    fleet.update();
    fleet.settle();
    fleet.lead(0);
    wait_for("the first node to lead", || fleet.nodes[0].replica.leads().then_some(()));
    fleet
}

#[test]
fn a_replica_that_has_more_than_was_accepted_is_made_again() {
    let mut fleet = small_fleet(4);
    tamper(&mut fleet, None, &name(0), &format!("{}:1", START + 1_000_000));
    updated_until_it_is_made_again(&mut fleet);
}

#[test]
fn a_replica_whose_rrds_differ_is_made_again() {
    let mut fleet = small_fleet(5);
    let engine = fleet.wait_for_leader();
    // One that gets no more updates, which would make the newest values the same again: that is what is compared.
    let still = RrdName::new(b"other/still.rrd").unwrap();
    engine.copy(&name(0), &still).unwrap();
    engine.sync().unwrap();
    let before = engine.replica().unwrap().moment()[0];
    wait_for("the copy", || (fleet.nodes[NODES - 1].replica.status().end == before).then_some(()));
    fleet.now += 1;
    engine.updatev(&still, format!("{}:111", fleet.now).as_bytes()).unwrap();
    // A node that does not lead any more closes its store, which must not be held.
    drop(engine);
    wait_for("the update", || (fleet.nodes[NODES - 1].replica.status().end > before).then_some(()));
    let after = fleet.nodes[NODES - 1].replica.status().end;
    let other = format!("{}:222", fleet.now);
    tamper(&mut fleet, Some(before), &still, &other);
    let mark = Mark::load(&*fleet.nodes[NODES - 1].home.0.lock().unwrap().handle()).unwrap().unwrap();
    assert_eq!(mark.end, after, "a record of the same length");
    updated_until_it_is_made_again(&mut fleet);
}
