//! Whole nodes: who leads, what moves, and who takes over.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use roundel_cluster::log::{LogError, LogReader, ReplicatedLog};
use roundel_cluster::members::{Known, Note, Succession};
use roundel_cluster::node::{Node, NodeOptions};
use roundel_cluster::partition::Replica;
use roundel_cluster::routes::Routes;
use roundel_cluster::succession::{Move, SuccessionError, write_note};
use roundel_cluster::{key, node::NodeError};
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::when::Step;
use store::engine::{CreateRequest, Engine, StoreError, StreamPosition};
use store::name::RrdName;
use store::stripes::Options;

use crate::simulated::{NodeLog, SimLog};

const PARTITIONS: u32 = 4;

fn start(root: &Path, name: &str, zone: &str, log: &Arc<NodeLog>) -> Node {
    Node::start(options(root, name, zone), Arc::clone(log) as Arc<dyn ReplicatedLog>).unwrap()
}

fn options(root: &Path, name: &str, zone: &str) -> NodeOptions {
    NodeOptions {
        cluster: "test".into(),
        name: name.into(),
        zone: zone.into(),
        address: format!("{name}:1"),
        replication: 2,
        directory: root.join(name),
        store: Options::default(),
        patience: Duration::from_secs(5),
        beat: Duration::from_millis(20),
        backup: None,
    }
}

/// Waits until something is true of the nodes.
fn wait_for(what: &str, nodes: &[&Node], look: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !look() {
        let status = || {
            let of = |node: &&Node| {
                node.replicas()
                    .iter()
                    .map(|(partition, replica)| (*partition, replica.status()))
                    .collect::<Vec<_>>()
            };
            nodes.iter().map(of).collect::<Vec<_>>()
        };
        assert!(Instant::now() < until, "not {what}: {:#?} {:#?}", status(), nodes[0].members());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn leads(node: &Node) -> usize {
    node.replicas().values().filter(|replica| replica.leads()).count()
}

fn has(node: &Node) -> usize {
    node.replicas().len()
}

#[test]
fn nodes_share_the_partitions_and_take_over_from_each_other() {
    let root = tempfile::tempdir().unwrap();
    let log = SimLog::new(1, PARTITIONS as usize + 1);
    let (log_a, log_b, log_c) = (log.node(), log.node(), log.node());
    let a = start(root.path(), "a", "east", &log_a);
    let b = start(root.path(), "b", "west", &log_b);
    assert_eq!(a.partition_count(), PARTITIONS);
    wait_for("two leads each", &[&a, &b], || leads(&a) == 2 && leads(&b) == 2);
    wait_for("replicas of all", &[&a, &b], || has(&a) == 4 && has(&b) == 4);
    // A node that cannot be heard is replaced, and comes back.
    log_b.cut_off(true);
    wait_for("all with one", &[&a, &b], || leads(&a) == 4);
    log_b.cut_off(false);
    wait_for("two leads each again", &[&a, &b], || leads(&a) == 2 && leads(&b) == 2);
    // A third one gets its share, and the others give up theirs.
    let c = start(root.path(), "c", "west", &log_c);
    wait_for("shares", &[&a, &b, &c], || has(&a) == 4 && has(&b) == 2 && has(&c) == 2);
    wait_for("four leads", &[&a, &b, &c], || leads(&a) + leads(&b) + leads(&c) == 4 && leads(&a) == 2);
    wait_for("no files of what was given up", &[&a, &b, &c], || {
        // And the file that says which log they are of.
        std::fs::read_dir(root.path().join("b")).unwrap().count() == 2 + 1
    });
    // One that is emptied has nothing in the end, one that stops is missed at once.
    c.drain(true);
    wait_for("an empty node", &[&a, &b, &c], || has(&c) == 0 && has(&b) == 4);
    b.stop();
    wait_for("all with the last", &[&a, &b], || leads(&a) == 4);
    assert!(a.members().node("b").is_some_and(|known| !Known::is_alive(known)));
}

#[test]
fn a_leader_that_is_replaced_knows_at_once_by_whom() {
    let root = tempfile::tempdir().unwrap();
    let log = SimLog::new(4, PARTITIONS as usize + 1);
    // Beats so rare that none comes between the two looks.
    let rarely =
        |name, zone| NodeOptions { beat: Duration::from_millis(700), ..options(root.path(), name, zone) };
    let start = |options| Node::start(options, log.node() as Arc<dyn ReplicatedLog>).unwrap();
    let a = start(rarely("a", "east"));
    wait_for("all with one", &[&a], || leads(&a) == 4);
    let b = start(rarely("b", "west"));
    let replaced = || {
        let all = a.replicas();
        all.into_iter().find(|(_, replica)| !replica.leads()).map(|(partition, _)| a.route(partition).leader)
    };
    wait_for("a share", &[&a, &b], || replaced().is_some());
    assert_eq!(replaced().flatten().map(|leader| leader.name).as_deref(), Some("b"));
}

/// Some RRDs of two rows each in each partition, one of them in the trash, and the position of a stream.
fn fill(nodes: &[&Node], partitions: u32) {
    // The lead may move from one node to another meanwhile: an attempt whose answer was lost is made again, and refused if it was done.
    let until = |partition, done: &dyn Fn(&dyn Engine) -> bool| {
        let mut replicas = nodes.iter().filter_map(|node| node.replica(partition));
        let leader = replicas.find_map(|replica| replica.engine_and_epoch());
        leader.is_some_and(|(engine, _)| done(&*engine) && engine.sync().is_ok())
    };
    for number in 0..60 {
        let text = format!("host-{number}/x.rrd");
        let name = RrdName::new(text.as_bytes()).unwrap();
        let options = CreateOptions {
            step: Step { units: 1, units_per_second: 1 },
            limits: Limits::STORE,
            file_name: b"x.rrd",
        };
        let definition = parse_create(&options, &["DS:x:GAUGE:10:U:U", "RRA:LAST:0:1:100"]).unwrap();
        let is_filled = |engine: &dyn Engine| {
            let request = CreateRequest { definition: definition.clone(), start: 1000, no_overwrite: true };
            let (sender, made) = mpsc::channel();
            engine.create(name.clone(), request, Box::new(move |result| drop(sender.send(result))));
            let _ = made.recv();
            let _ = engine.updatev(&name, format!("1001:{number} 1002:7").as_bytes());
            engine.status(&name).is_ok_and(|status| status.last_update.whole == 1002)
        };
        wait_for("filled", nodes, || until(key::partition_of(text.as_bytes(), partitions), &is_filled));
    }
    let gone = RrdName::new(b"host-7/x.rrd").unwrap();
    let is_gone = |engine: &dyn Engine| {
        let _ = engine.delete(&gone);
        matches!(engine.status(&gone), Err(StoreError::NoSuchRrd(_)))
    };
    wait_for("deleted", nodes, || until(key::partition_of(gone.as_bytes(), partitions), &is_gone));
    let position = StreamPosition { epoch: 3, sequence: 9 };
    let is_noted = |engine: &dyn Engine| engine.set_stream_position(b"agent", position).is_ok();
    wait_for("noted", nodes, || until(key::of_directory(b"agent", partitions), &is_noted));
}

/// What the nodes have, by name; all replicas of a partition have the same.
fn contents(nodes: &[&Node], partitions: u32) -> Vec<String> {
    let mut all = Vec::new();
    for partition in 0..partitions {
        let has = |engine: Arc<dyn Engine>| {
            let names = engine.list(b"", true).unwrap();
            assert!(names.iter().all(|name| key::partition_of(name, partitions) == partition));
            let read = |name: &Vec<u8>| {
                let name = RrdName::new(name).unwrap();
                format!("{name} {:?}", engine.read(&name).unwrap())
            };
            names.iter().map(read).collect::<Vec<_>>()
        };
        let replicas: Vec<Arc<Replica>> = nodes.iter().filter_map(|node| node.replica(partition)).collect();
        let each: Vec<_> = replicas.iter().filter_map(|replica| replica.engine()).map(has).collect();
        assert!(!each.is_empty() && each.iter().all(|one| *one == each[0]), "partition {partition}");
        all.extend(each.into_iter().next().unwrap());
    }
    all.sort();
    all
}

/// Checks that a node that is new in a log that has ended gets nothing: what was copied now would come too late to be divided. Stops it.
fn gets_nothing(c: &Node) {
    let knows = |name| c.members().node(name).is_some();
    wait_for("the others to be known", &[c], || knows("a") && knows("b"));
    // With each own beat that it reads, a node looks what it should have.
    let own_beats = || c.members().node("c").map_or(0, |known| known.beat.number);
    let known_at = own_beats();
    wait_for("rounds of the node", &[c], || own_beats() >= known_at + 20);
    assert_eq!(has(c), 0);
    c.stop();
}

/// Moves two nodes to a log of some partitions, and checks that all is there, and that nothing is copied.
fn move_to(partitions: u32) {
    let root = tempfile::tempdir().unwrap();
    let (log, next) = (SimLog::new(2, PARTITIONS as usize + 1), SimLog::new(3, partitions as usize + 1));
    let (a, b) = (start(root.path(), "a", "east", &log.node()), start(root.path(), "b", "west", &log.node()));
    // The first to be ready leads all until the other one takes its share; what is on its way then fails.
    wait_for("two leads each", &[&a, &b], || leads(&a) == 2 && leads(&b) == 2);
    fill(&[&a, &b], PARTITIONS);
    let is_level = |partition| {
        let ends: Vec<_> =
            [&a, &b].map(|node| node.replica(partition).map(|replica| replica.status().end)).into();
        ends[0] == ends[1]
    };
    wait_for("level", &[&a, &b], || (0..PARTITIONS).all(is_level));
    let before = contents(&[&a, &b], PARTITIONS);
    assert_eq!(before.len(), 59);

    let [log, next] = [log.node(), next.node()];
    let splits = partitions != PARTITIONS;
    let refused = Move::begin(&*log, &*next, !splits).err();
    assert!(matches!(refused, Some(SuccessionError::Refused(_))), "{refused:?}");
    // What is not prepared for them is not begun with: nodes would have nothing there, and what they have would go.
    let mistyped = SimLog::new(5, PARTITIONS as usize + 1).node();
    let refused = Node::start(options(root.path(), "a", "east"), mistyped as Arc<dyn ReplicatedLog>).err();
    assert!(matches!(refused, Some(NodeError::OtherLog(_))), "{refused:?}");
    let mut moved = Move::begin(&*log, &*next, splits).unwrap();
    let other = SimLog::new(6, partitions as usize + 1).node();
    let refused = Move::begin(&*log, &*other, splits).err();
    assert!(matches!(refused, Some(SuccessionError::Refused(_))), "{refused:?}");
    wait_for_move(&mut moved);
    gets_nothing(&start(root.path(), "c", "west", &log));
    assert_eq!(contents(&[&a, &b], PARTITIONS), before, "what is sealed is read");
    a.stop();
    b.stop();
    drop((a, b));

    let a = start(root.path(), "a", "east", &next);
    // Said again, it only looks how far that is, although the next log has messages by now.
    wait_for("a leader", &[&a], || leads(&a) > 0);
    assert!(Move::begin(&*log, &*next, splits).is_ok());
    let b = start(root.path(), "b", "west", &next);
    let nodes = [&a, &b];
    wait_for("led", &nodes, || leads(&a) + leads(&b) == partitions as usize);
    wait_for("ready", &nodes, || {
        nodes.iter().all(|node| {
            has(node) == partitions as usize && node.replicas().values().all(|replica| replica.is_ready())
        })
    });
    assert_eq!(contents(&nodes, partitions), before);
    let copied = |node: &&Node| node.replicas().values().map(|replica| replica.counts().copied).sum::<u64>();
    assert_eq!(nodes.iter().map(copied).sum::<u64>(), 0);
    let engine = |partition| {
        let mut engines = nodes.iter().filter_map(|node| Routes::lead(*node, partition));
        engines.next().unwrap().0
    };
    let trash = engine(key::partition_of(b"host-7/x.rrd", partitions)).trash().unwrap();
    assert_eq!(trash.len(), 1);
    let position = engine(key::of_directory(b"agent", partitions)).stream_position(b"agent").unwrap();
    assert_eq!(position, Some(StreamPosition { epoch: 3, sequence: 9 }));
    // A node that was not divided does not begin with another number of partitions.
    a.stop();
    b.stop();
    let other = SimLog::new(4, partitions as usize * 2 + 1).node();
    let refused = Node::start(options(root.path(), "a", "east"), other as Arc<dyn ReplicatedLog>).err();
    assert!(matches!(refused, Some(NodeError::OtherLog(_))), "{refused:?}");
}

/// A log in which another command names another one to follow, just before this one does.
struct RacedLog {
    log: Arc<NodeLog>,
    rival: Succession,
}

impl ReplicatedLog for RacedLog {
    fn partition_count(&self) -> Result<u32, LogError> {
        self.log.partition_count()
    }

    fn identity(&self) -> Result<String, LogError> {
        self.log.identity()
    }

    fn append(&self, partition: u32, message: &[u8]) -> Result<(), LogError> {
        write_note(&*self.log, partition, 0, &Note::Succession(self.rival.clone()))?;
        self.log.append(partition, message)
    }

    fn bounds(&self, partition: u32) -> Result<Range<u64>, LogError> {
        self.log.bounds(partition)
    }

    fn reader(&self, partition: u32, from: u64) -> Result<Box<dyn LogReader>, LogError> {
        self.log.reader(partition, from)
    }
}

#[test]
fn of_two_logs_that_are_to_follow_one_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let [log, loser, winner] = [7, 8, 9].map(|seed| SimLog::new(seed, PARTITIONS as usize + 1).node());
    let a = start(root.path(), "a", "east", &log);
    wait_for("a leader", &[&a], || leads(&a) == PARTITIONS as usize);
    let rival = Succession { next: winner.identity().unwrap(), partitions: PARTITIONS };
    let raced = RacedLog { log: Arc::clone(&log), rival };
    let refused = Move::begin(&raced, &*loser, false).err();
    assert!(refused.is_some_and(|error| error.to_string().contains("\"simulated 9\"")));
    wait_for_move(&mut Move::begin(&*log, &*winner, false).unwrap());
    a.stop();
    // The other one was prepared by then, and says that it goes on after the same log.
    let refused = Node::start(options(root.path(), "a", "east"), loser as Arc<dyn ReplicatedLog>).err();
    assert!(
        matches!(&refused, Some(NodeError::OtherLog(why)) if why.contains("was sealed for the log \"simulated 9\"")),
        "{refused:?}"
    );
}

fn wait_for_move(moved: &mut Move) {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let status = moved.look(Duration::from_millis(200)).unwrap();
        if status.is_done {
            return;
        }
        assert!(Instant::now() < until, "{status:?}");
    }
}

#[test]
fn nodes_go_on_in_another_log() {
    move_to(PARTITIONS);
}

#[test]
fn partitions_are_divided_where_they_are() {
    move_to(PARTITIONS * 3);
}

#[test]
fn a_node_that_is_cut_off_says_that_its_answers_become_older() {
    let root = tempfile::tempdir().unwrap();
    let log = SimLog::new(3, PARTITIONS as usize + 1);
    let (log_a, log_b) = (log.node(), log.node());
    let a = start(root.path(), "a", "east", &log_a);
    let b = start(root.path(), "b", "west", &log_b);
    wait_for("two leads each", &[&a, &b], || leads(&a) == 2 && leads(&b) == 2);
    wait_for("replicas of all", &[&a, &b], || has(&a) == 4 && has(&b) == 4);
    let led_by = |node: &Node| (0..PARTITIONS).find(|partition| node.route(*partition).leads_here).unwrap();
    let (of_a, of_b) = (led_by(&a), led_by(&b));
    wait_for("leaders of now", &[&a, &b], || {
        a.age(of_a) == Some(Duration::ZERO) && b.age(of_b) == Some(Duration::ZERO)
    });
    let is_young = |age: Option<Duration>| age.is_some_and(|age| age < Duration::from_secs(1));
    wait_for("young followers", &[&a, &b], || is_young(a.age(of_b)) && is_young(b.age(of_a)));
    assert!(a.age(of_b) > Some(Duration::ZERO), "a follower that says it is of now");
    assert_eq!(a.age(PARTITIONS), None);
    // A node that is cut off cannot know that another one leads. Its leader says how long it heard nothing from the log, or, once it gave up
    // the lead because the log does not answer, that it does not know.
    log_b.cut_off(true);
    let is_old = |age: Option<Duration>| age > Some(Duration::from_secs(1));
    let is_old_leader = || match b.age(of_b) {
        None => !b.route(of_b).leads_here,
        age => is_old(age),
    };
    wait_for("an old follower and an old leader", &[&a, &b], || is_old(b.age(of_a)) && is_old_leader());
    wait_for("all with one", &[&a, &b], || leads(&a) == 4 && a.age(of_b) == Some(Duration::ZERO));
    let before = b.age(of_a);
    wait_for("it to become older", &[&a, &b], || b.age(of_a) > before && is_old_leader());
    log_b.cut_off(false);
    wait_for("a young one again", &[&a, &b], || is_young(b.age(of_a)));
}
