//! A partition that goes on in another log: nothing acknowledged is lost, whatever happens while it is sealed, and whichever replica begins with the next log.

use roundel_cluster::message::{Content, Message};

use super::*;

impl Fleet {
    /// Has all replicas seal the partition for a log, also those that were started since.
    fn seal(&self, next: &str) {
        self.nodes.iter().for_each(|node| node.replica.seal(next));
    }

    /// Waits until all replicas are sealed at one place.
    fn wait_until_sealed(&self, next: &str) -> Position {
        let are_sealed = || {
            let statuses = self.statuses();
            let is_sealed = |status: &ReplicaStatus| {
                status.sealed_for.as_deref() == Some(next) && status.end == statuses[0].end
            };
            statuses.iter().all(is_sealed).then_some(statuses[0].end)
        };
        wait_or_tell("sealed replicas", are_sealed, || self.statuses())
    }

    /// All of them with another log, which begins as `roundel cluster seal` has it begin.
    fn enter(&mut self, next: &Arc<SimLog>) {
        let log = next.node();
        let writer = 0;
        let continues =
            Message { partition: 0, epoch: 0, writer, content: Content::Continues { of: "the log before" } };
        log.append(0, &continues.encode()).unwrap();
        self.log = Arc::clone(next);
        for node in &mut self.nodes {
            let disk = node.killed(false);
            node.replica.stop();
            let new = Node::start(disk, next.node(), &mut self.random);
            drop(std::mem::replace(node, new));
        }
    }
}

fn identity_of(log: &Arc<SimLog>) -> String {
    log.node().identity().unwrap()
}

#[test]
fn what_was_acknowledged_before_a_seal_is_there_after_it() {
    each_seed(4, |seed| {
        let mut fleet = Fleet::new(seed + 100, Faults::MANY);
        fleet.lead(0);
        fleet.wait_for_leader();
        fleet.create_all();
        let next = SimLog::new(seed + 1000, 1);
        let identity = identity_of(&next);
        for step in 0..500 {
            fleet.step();
            if step > 200 {
                fleet.seal(&identity);
            }
        }
        fleet.repair();
        fleet.lead(0);
        // Those that were started again by the repair do not know it.
        fleet.seal(&identity);
        let end = fleet.wait_until_sealed(&identity);
        assert!(fleet.nodes.iter().all(|node| !node.replica.leads()));
        let before = fleet.acknowledged.lock().unwrap().len();
        assert!(before > 0);
        // Reads go on.
        let engine = wait_for("a store", || fleet.nodes[0].replica.engine());
        assert_eq!(engine.list(b"host-0", true).unwrap().len() as u64, RRDS / 3);
        drop(engine);

        fleet.enter(&next);
        let enters = |status: &ReplicaStatus| status.end >= end && status.sealed_for.is_none();
        wait_or_tell(
            "replicas in the next log",
            || fleet.statuses().iter().all(enters).then_some(()),
            || fleet.statuses(),
        );
        next.set_faults(Faults::MANY);
        for _ in 0..200 {
            fleet.step();
        }
        fleet.settle();
        fleet.check();
        println!("seed {seed}: {before} acknowledged before, {}", fleet.acknowledged.lock().unwrap().len());
    });
}

#[test]
fn who_was_not_there_when_the_log_was_sealed_does_not_begin_with_the_next() {
    let mut fleet = small_fleet(90);
    let next = SimLog::new(91, 1);
    let identity = identity_of(&next);
    // One that misses the seal, and lacks updates.
    fleet.nodes[2].replica.stop();
    for _ in 0..20 {
        fleet.update();
    }
    fleet.wait_for_leader().sync().unwrap();
    fleet.seal(&identity);
    wait_for("a seal", || {
        fleet.nodes[..2].iter().all(|node| node.replica.status().sealed_for.is_some()).then_some(())
    });
    fleet.enter(&next);
    let fault = wait_for("a fault", || fleet.nodes[2].replica.status().fault);
    assert!(fault.contains("simulated 91") && fault.contains("former log"), "{fault}");
    // One that has nothing does not take itself for a replica of the whole.
    let new = Node::start(SimDisk::new(5), next.node(), &mut fleet.random);
    drop(std::mem::replace(&mut fleet.nodes[2], new));
    fleet.lead(2);
    let fault = wait_for("a fault", || fleet.nodes[2].replica.status().fault);
    assert!(fault.contains("after another log"), "{fault}");
    fleet.lead(0);
    let engine = fleet.wait_for_leader();
    engine.sync().unwrap();
    assert_eq!(engine.list(b"", true).unwrap().len() as u64, RRDS);
    assert!(!fleet.nodes[2].replica.leads());
}

#[test]
fn a_replica_that_was_sealed_elsewhere_is_made_again() {
    let mut fleet = small_fleet(92);
    let next = SimLog::new(93, 1);
    let identity = identity_of(&next);
    fleet.seal(&identity);
    fleet.wait_until_sealed(&identity);
    // As if it had been sealed earlier, or divided otherwise.
    tamper(&mut fleet, None, &name(0), &format!("{}:1", START + 1_000_000));
    fleet.nodes[2].replica.stop();
    fleet.enter(&next);
    fleet.lead(0);
    fleet.wait_for_leader();
    let aside = Arc::clone(&fleet.nodes[2].home.1);
    wait_for("a copy that is put aside", || (aside.load(Ordering::Relaxed) == 1).then_some(()));
}
