//! Whole nodes: who leads, what moves, and who takes over.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use roundel_cluster::log::ReplicatedLog;
use roundel_cluster::members::Known;
use roundel_cluster::node::{Node, NodeOptions};
use roundel_cluster::routes::Routes;
use store::stripes::Options;

use crate::simulated::{NodeLog, SimLog};

const PARTITIONS: u32 = 4;

fn start(root: &Path, name: &str, zone: &str, log: &Arc<NodeLog>) -> Node {
    let options = NodeOptions {
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
    };
    Node::start(options, Arc::clone(log) as Arc<dyn ReplicatedLog>).unwrap()
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
        std::fs::read_dir(root.path().join("b")).unwrap().count() == 2
    });
    // One that is emptied has nothing in the end, one that stops is missed at once.
    c.drain(true);
    wait_for("an empty node", &[&a, &b, &c], || has(&c) == 0 && has(&b) == 4);
    b.stop();
    wait_for("all with the last", &[&a, &b], || leads(&a) == 4);
    assert!(a.members().node("b").is_some_and(|known| !Known::is_alive(known)));
}
