//! Three brokers and four nodes in two zones, under load, of which some are killed, paused, stopped, cut off or left without room on their disks at random, by seed:
//! nothing acknowledged is lost, nothing is stored twice or in another order, all replicas are the same, and no query fails while a zone is left.
//!
//! `ROUNDEL_FAULTS=200` has so many faults in place of a few; `make bench-full` does so, and prints what `docs/cluster.md` says.

#[path = "cluster_faults/judge.rs"]
pub mod judge;
#[path = "cluster_faults/load.rs"]
pub mod load;
#[path = "cluster_faults/network.rs"]
mod network;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use testkit::random::{Random, seeds};
use testkit::{Client, Kafka, SmallDisk, free_port, wait_for, wait_until};

use self::judge::Verdict;
use self::load::{RRDS, Sent, Shared, WRITERS};
use self::network::{Cut, Network};
use super::server::Server;

/// Faults of a seed.
const FAULTS: u64 = 8;
const NODES: usize = 4;
const PARTITIONS: usize = 16;
/// Clients that ask.
const READERS: u64 = 2;

/// The size of a node's disk. Its store takes a small part of it.
const DISK: &str = "384M";
/// The same of a broker: more than all floods take together.
const BROKER_DISK_BYTES: u64 = 8 << 30;

/// More time for a store to need room: a log has some in advance.
const LONG: Duration = Duration::from_secs(5);
/// Small logs, so that a store soon needs more room.
const STRIPES: &str = "[stripes]\nlog_bytes = 262144\n";

/// What befalls a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blow {
    Kill,
    Pause,
    Stop,
    Cut(Cut),
    /// Nothing more fits on the disk of its store.
    Full,
    /// The same, and it is killed and started again at once.
    Restart,
}

/// One fault: what befalls which nodes, and which brokers, for how long.
#[derive(Clone, Debug, Default)]
struct Fault {
    nodes: Vec<(usize, Option<Blow>)>,
    killed: Vec<usize>,
    paused: Vec<usize>,
    /// Brokers with no room on their disks, which end by that.
    full: Vec<usize>,
    time: Duration,
}

impl Fault {
    fn random(random: &mut Random) -> Fault {
        let (node, zone) = (random.below(NODES as u64) as usize, random.below(2) as usize);
        let broker = 1 + random.below(3) as usize;
        let time = Duration::from_millis(random.between(100, 7000));
        let one = |blow| vec![(node, Some(blow))];
        let both = |blow| vec![(zone, Some(blow)), (zone + 2, Some(blow))];
        let fault = Fault { time, ..Fault::default() };
        match random.below(32) {
            0..4 => Fault { nodes: one(Blow::Kill), ..fault },
            4..6 => Fault { nodes: both(Blow::Kill), ..fault },
            6..8 => Fault { nodes: one(Blow::Pause), ..fault },
            8 => Fault { nodes: both(Blow::Pause), ..fault },
            9 => Fault { nodes: one(Blow::Stop), ..fault },
            10 => Fault { nodes: one(Blow::Cut(Cut::All)), ..fault },
            11 => Fault { nodes: one(Blow::Cut(Cut::Nodes)), ..fault },
            12 => Fault { nodes: one(Blow::Cut(Cut::Brokers)), ..fault },
            13 => Fault { nodes: both(Blow::Cut(Cut::All)), ..fault },
            14..16 => Fault { killed: vec![broker], ..fault },
            16 => Fault { paused: vec![broker], ..fault },
            17 => Fault { killed: vec![broker, broker % 3 + 1], ..fault },
            18 | 19 => Fault { nodes: one(Blow::Kill), killed: vec![broker], ..fault },
            20 => Fault { nodes: both(Blow::Kill), killed: vec![broker], ..fault },
            22 | 23 => Fault { nodes: one(Blow::Full), time: time + LONG, ..fault },
            24 => Fault { nodes: one(Blow::Restart), ..fault },
            25 => Fault { nodes: both(Blow::Full), time: time + LONG, ..fault },
            26 => Fault { nodes: one(Blow::Full), killed: vec![broker], ..fault },
            // One node of the zone has no room, the other is gone.
            27 => Fault { nodes: vec![(zone, Some(Blow::Full)), (zone + 2, Some(Blow::Kill))], ..fault },
            28 | 29 => Fault::full(broker, time),
            30 => Fault { nodes: one(Blow::Kill), ..Fault::full(broker, time) },
            31 => Fault { nodes: both(Blow::Kill), ..Fault::full(broker, time) },
            _ => Fault {
                nodes: (0..NODES).map(|node| (node, Some(Blow::Kill))).collect(),
                killed: vec![1, 2, 3],
                time: time / 10,
                ..fault
            },
        }
    }

    /// A broker without room.
    fn full(broker: usize, time: Duration) -> Fault {
        Fault { full: vec![broker], time: time + LONG, ..Fault::default() }
    }

    /// What the table says of it.
    fn kind(&self) -> String {
        let nodes = match (self.nodes.len(), self.nodes.first().and_then(|(_, blow)| *blow)) {
            (0, _) | (_, None) => String::new(),
            (1, Some(blow)) => format!("a node: {blow:?}"),
            (2, Some(blow)) if self.nodes[1].1 != Some(blow) => {
                format!("a zone: {blow:?}, {:?}", self.nodes[1].1.expect("it has one"))
            }
            (2, Some(blow)) => format!("a zone: {blow:?}"),
            (_, Some(blow)) => format!("all nodes: {blow:?}"),
        };
        let brokers = match (self.killed.len(), self.paused.len(), self.full.len()) {
            (0, 0, 0) => return nodes,
            (0, 0, full) => format!("{full} broker: Full"),
            (0, paused, _) => format!("{paused} broker: Pause"),
            (killed, ..) => format!("{killed} broker(s): Kill"),
        };
        [nodes, brokers].iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>().join(", ")
    }
}

/// All of it.
struct World {
    nodes: Vec<Server>,
    /// Of each broker, if this user may mount some; before the brokers, which remove what is below.
    broker_disks: Vec<SmallDisk>,
    kafka: Kafka,
    network: Option<Network>,
    /// Of each node, in the same way.
    disks: Vec<SmallDisk>,
    shared: Arc<Shared>,
    /// Removed last.
    parent: tempfile::TempDir,
}

fn section(parent: &Path, node: usize, address: &str, brokers: &str) -> String {
    let brokers = brokers.replace(',', "', '");
    format!(
        "[cluster]\nname = 'test'\nnode = 'n{node}'\nzone = 'zone-{}'\nlisten = '{address}:{}'\n\
         secret_file = '{}/secret'\n[cluster.kafka]\nbrokers = ['{brokers}']\ntopic = 'roundel'\n",
        node % 2,
        free_port(),
        parent.display()
    )
}

impl World {
    fn start(faults: u64) -> Option<World> {
        let parent = tempfile::tempdir().unwrap();
        std::fs::write(parent.path().join("secret"), "a secret of the cluster in this test\n").unwrap();
        let network = Network::new(NODES);
        let loopback = || "127.0.0.1".to_string();
        let host = network.as_ref().map_or_else(loopback, Network::host);
        let mut broker_disks = Vec::new();
        let mount = |number: usize, data: &Path| {
            let image = parent.path().join(format!("broker-{number}.ext4"));
            broker_disks.extend(SmallDisk::mount_image(data, &image, BROKER_DISK_BYTES));
        };
        let kafka = Kafka::start_on(&host, 3, &[], mount)?;
        let (mut nodes, mut disks) = (Vec::new(), Vec::new());
        for node in 0..NODES {
            let address = network.as_ref().map_or_else(loopback, |network| network.address(node));
            let section = section(parent.path(), node, &address, &kafka.addresses());
            let mut server = Server::node(parent.path(), &format!("n{node}"), &section);
            server.more(STRIPES);
            if let Some(network) = &network {
                server.run_in(&network.wrapper(node));
            }
            disks.extend(SmallDisk::mount(&server.store(), DISK));
            nodes.push(server);
        }
        nodes[0].write_config();
        let config = nodes[0].path("roundel.toml");
        let partitions = PARTITIONS.to_string();
        nodes[0].tool(&[
            "cluster",
            "topic",
            "--config",
            config.to_str().unwrap(),
            "--partitions",
            &partitions,
        ]);
        nodes.iter_mut().for_each(Server::start);
        let sockets = nodes.iter().map(|server| server.path("sock")).collect();
        // A second or two for each update, of which there are some four a second.
        let end = load::BEGIN + 1000 + 150 * faults;
        let shared = Arc::new(Shared::new(sockets, end));
        let world = World { nodes, kafka, network, disks, broker_disks, shared, parent };
        wait_until("each node to have its share", || world.is_well());
        for rrd in 0..RRDS {
            let create = format!("CREATE {} {}", load::name(rrd), load::definition(world.rows()));
            assert!(world.nodes[rrd % NODES].say(&create).starts_with("0 "));
            let create = format!("CREATE {} {}", load::wide_name(rrd), load::wide_definition());
            assert!(world.nodes[rrd % NODES].say(&create).starts_with("0 "));
        }
        Some(world)
    }

    fn rows(&self) -> u64 {
        self.shared.end - load::BEGIN
    }

    /// Whether all nodes know a leader and two ready replicas of each partition.
    fn is_well(&self) -> bool {
        let is_well = |server: &Server| {
            let mut client = Client::connect(&server.path("sock")).ok()?;
            client.wait_at_most(Duration::from_secs(5)).ok()?;
            let lines = client.ask("CLUSTER").ok()?.lines;
            let partitions: Vec<&String> =
                lines.iter().filter(|line| line.starts_with("partition ")).collect();
            let ready = |line: &&String| line.matches(":ready").count() == 2 && !line.contains(" leader - ");
            let nodes = lines.iter().filter(|line| line.starts_with("node ") && line.contains(" alive "));
            let shared = nodes.filter(|line| line.contains(" of 8 ")).count() == NODES;
            Some(partitions.len() == PARTITIONS && partitions.iter().all(ready) && shared)
        };
        self.nodes.iter().all(|server| is_well(server).unwrap_or(false))
    }

    /// Without a network or a disk of its own, a node that is to be cut off, or without room, is paused.
    fn possible(&self, blow: Blow) -> Blow {
        match blow {
            Blow::Full | Blow::Restart if self.disks.len() < NODES => Blow::Pause,
            Blow::Cut(_) if self.network.is_none() => Blow::Pause,
            blow => blow,
        }
    }

    fn strike(&mut self, fault: &Fault) {
        for (node, blow) in &fault.nodes {
            match self.possible(blow.expect("a fault of nodes has one")) {
                Blow::Kill => self.nodes[*node].kill(),
                Blow::Stop => self.nodes[*node].stop(),
                Blow::Pause => self.nodes[*node].signal(testkit::Signal::STOP),
                Blow::Cut(cut) => self.network.as_ref().unwrap().cut(*node, cut, true),
                Blow::Full => self.disks[*node].fill(),
                Blow::Restart => {
                    self.disks[*node].fill();
                    self.nodes[*node].kill();
                    self.nodes[*node].spawn_only();
                }
            }
        }
        fault.killed.iter().for_each(|broker| self.kafka.kill(*broker));
        fault.paused.iter().for_each(|broker| self.kafka.pause(*broker));
        // Without a disk of its own, it is killed.
        for broker in &fault.full {
            match self.broker_disks.get(*broker - 1) {
                Some(disk) => disk.fill(),
                None => self.kafka.kill(*broker),
            }
        }
    }

    fn mend(&mut self, fault: &Fault) {
        fault.paused.iter().for_each(|broker| self.kafka.resume(*broker));
        for broker in &fault.full {
            if let Some(disk) = self.broker_disks.get(*broker - 1) {
                assert!(!self.kafka.runs(*broker), "a broker goes on without room on its disk");
                disk.empty();
            }
            self.kafka.kill(*broker);
        }
        self.kafka.restart_all().unwrap();
        for (node, blow) in &fault.nodes {
            match self.possible(blow.expect("a fault of nodes has one")) {
                Blow::Kill | Blow::Stop => self.nodes[*node].spawn_only(),
                Blow::Pause => self.nodes[*node].signal(testkit::Signal::CONT),
                Blow::Cut(cut) => self.network.as_ref().unwrap().cut(*node, cut, false),
                Blow::Full | Blow::Restart => self.disks[*node].empty(),
            }
        }
    }

    /// One fault from beginning to end; how long it took until all was well.
    fn suffer(&mut self, fault: &Fault) -> Duration {
        let all = (fault.nodes.len() == NODES).then_some(NODES);
        // Without room, a node answers queries as before.
        let is_hit = |blow: &Option<Blow>| blow.is_some_and(|blow| self.possible(blow) != Blow::Full);
        let hit = fault.nodes.iter().filter(|(_, blow)| is_hit(blow)).map(|(node, _)| *node);
        let hit: Vec<usize> = hit.chain(all).collect();
        let turn = || hit.iter().for_each(|at| _ = self.shared.states[*at].fetch_add(1, Ordering::SeqCst));
        turn();
        let fault = fault.clone();
        self.strike(&fault);
        let is_full = !fault.full.is_empty() || fault.nodes.iter().any(|(_, blow)| *blow == Some(Blow::Full));
        self.shared.flood.store(is_full, Ordering::Relaxed);
        std::thread::sleep(fault.time);
        self.shared.flood.store(false, Ordering::Relaxed);
        let begun = Instant::now();
        self.mend(&fault);
        wait_until("all to be well again", || self.is_well());
        hit.iter().for_each(|at| _ = self.shared.states[*at].fetch_add(1, Ordering::SeqCst));
        begun.elapsed()
    }
}

/// The files that the replicas of each RRD are exported to, of nodes that are stopped.
pub fn export(nodes: &[Server]) -> Vec<Vec<PathBuf>> {
    let mut files = vec![Vec::new(); RRDS];
    for server in nodes {
        for entry in server.store().read_dir().unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.file_name().unwrap().to_string_lossy().into_owned();
            if !name.starts_with("partition-") {
                continue;
            }
            assert!(!name.contains("differs"), "a replica differed: {}", entry.display());
            let (from, to) = (entry.to_str().unwrap(), server.path("exported").join(name));
            server.tool(&["export", "--all", "--from", from, "--to", to.to_str().unwrap()]);
            let exported = (0..RRDS).map(|rrd| to.join(load::name(rrd)));
            exported
                .enumerate()
                .filter(|(_, file)| file.exists())
                .for_each(|(rrd, file)| files[rrd].push(file));
        }
    }
    files
}

/// What a kind of fault did.
#[derive(Default)]
struct Row {
    count: u64,
    /// The longest times: of a batch of updates that was acknowledged, and until all was well after the end of the fault.
    batch: Duration,
    well: Duration,
}

/// Clients that run until they are told to stop.
struct Clients {
    writers: Vec<JoinHandle<Vec<Sent>>>,
    /// And the flood.
    readers: Vec<JoinHandle<()>>,
}

impl Clients {
    fn start(shared: &Arc<Shared>, seed: u64) -> Clients {
        let writer = |number: usize| {
            let shared = Arc::clone(shared);
            std::thread::spawn(move || shared.write(number, seed * 100 + number as u64))
        };
        let reader = |number: u64| {
            let shared = Arc::clone(shared);
            std::thread::spawn(move || shared.read(seed * 100 + 50 + number))
        };
        let mut readers: Vec<_> = (0..READERS).map(reader).collect();
        let flood = Arc::clone(shared);
        readers.push(std::thread::spawn(move || flood.flood()));
        Clients { writers: (0..WRITERS).map(writer).collect(), readers }
    }

    fn stop(self, shared: &Shared) -> Vec<Sent> {
        shared.stop.store(true, Ordering::Relaxed);
        self.readers.into_iter().for_each(|reader| reader.join().unwrap());
        self.writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    }
}

fn print(table: &BTreeMap<String, Row>, shared: &Shared, verdict: &Verdict) {
    println!("| fault | times | longest batch acknowledged | well again after at most |\n|---|---|---|---|");
    for (kind, row) in table {
        println!("| {kind} | {} | {:.1?} | {:.1?} |", row.count, row.batch, row.well);
    }
    let tally = shared.tally.lock().unwrap();
    println!("updates: {} sent, {} acknowledged", tally.updates, tally.updates_acknowledged);
    println!("updates not acknowledged: {:#?}", tally.refused);
    println!(
        "queries to nodes that were not hit: {}, longest {:.1?}, late {}, failed {:#?}",
        tally.queries, tally.longest_query, tally.late, tally.failed
    );
    println!(
        "queries to nodes that were: {}, late {}, failed {:#?}",
        tally.queries_at_hit, tally.late_at_hit, tally.failed_at_hit
    );
    println!("{verdict:?}");
}

fn run(seed: u64, faults: u64) {
    let Some(mut world) = World::start(faults) else { return };
    let shared = Arc::clone(&world.shared);
    let clients = Clients::start(&shared, seed);
    let mut random = Random::new(seed);
    let mut table: BTreeMap<String, Row> = BTreeMap::new();
    for number in 1..=faults {
        std::thread::sleep(Duration::from_millis(random.between(100, 1000)));
        // However few there are, a broker without room is among them.
        let fault = match number {
            1 => Fault::full(1 + random.below(3) as usize, Duration::ZERO),
            _ => Fault::random(&mut random),
        };
        shared.tally.lock().unwrap().longest_batch = Duration::ZERO;
        let well = world.suffer(&fault);
        let batch = shared.tally.lock().unwrap().longest_batch;
        let row = table.entry(fault.kind()).or_default();
        (row.count, row.batch, row.well) = (row.count + 1, row.batch.max(batch), row.well.max(well));
        let failed: u64 = shared.tally.lock().unwrap().failed.values().sum();
        let kind = fault.kind();
        println!(
            "{number}: {kind}, {:.1?}; well after {well:.1?}, batch {batch:.1?}, failed {failed}",
            fault.time
        );
    }
    let sent = clients.stop(&shared);
    // Followers read what leaders have appended; then nothing comes any more.
    wait_for("all to be well", || world.is_well().then_some(()));
    std::thread::sleep(Duration::from_secs(2));
    world.nodes.iter_mut().for_each(Server::stop);
    let files = export(&world.nodes);
    let place = world.parent.path().join("expected");
    std::fs::create_dir(&place).unwrap();
    let mut verdict = Verdict::default();
    for sent in &sent {
        verdict.take(sent, world.rows(), &files[sent.rrd], &place);
    }
    print(&table, &shared, &verdict);
    let Verdict { acknowledged, applied_besides, .. } = verdict;
    assert_eq!(verdict, Verdict { acknowledged, applied_besides, ..Verdict::default() });
    let tally = shared.tally.lock().unwrap();
    assert!(acknowledged > 100 && tally.queries > 100, "{acknowledged} {}", tally.queries);
    assert_eq!(tally.failed, BTreeMap::new());
    assert!(!tally.refused.keys().any(|text| text.contains("illegal attempt")), "{:?}", tally.refused);
}

#[test]
fn nodes_zones_and_brokers_are_lost_at_random_and_nothing_else_is() {
    let faults = std::env::var("ROUNDEL_FAULTS").map_or(FAULTS, |text| text.parse().unwrap());
    for seed in seeds(1) {
        println!("seed {seed}, {faults} faults");
        run(seed, faults);
    }
}
