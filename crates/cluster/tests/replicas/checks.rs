//! Replicas compared row by row: what is the same is found to be, whatever happens meanwhile, and one row that is not, too.

use std::sync::Mutex;

use roundel_cluster::check::{
    CheckAnswer, CheckRequest, Compared, Finding, PlacedReplica, PlacedState, Placement, Replicas, compare,
};
use roundel_cluster::routes::NodeAddress;

use super::*;

/// A fleet that is asked, and what happens to it before each question.
struct Asked<'f> {
    fleet: Mutex<&'f mut Fleet>,
    meanwhile: Box<dyn Fn(&mut Fleet) + Send + Sync + 'f>,
}

impl Replicas for Asked<'_> {
    fn partition_count(&self) -> u32 {
        1
    }

    fn rrd_count(&self) -> u64 {
        0
    }

    fn placement(&self, _partition: u32) -> Placement {
        let fleet = self.fleet.lock().unwrap();
        let placed = |(index, node): (usize, &Node)| {
            let status = node.replica.status();
            let state = match node.replica.engine().is_some() {
                false => PlacedState::Gone,
                true if status.is_caught_up && status.fault.is_none() => PlacedState::Ready,
                true => PlacedState::CatchingUp,
            };
            let node = NodeAddress { name: index.to_string(), address: String::new() };
            PlacedReplica { node, is_own: false, state }
        };
        let leader = fleet.nodes.iter().position(|node| node.replica.leads());
        let replicas = fleet.nodes.iter().enumerate().map(placed).collect();
        Placement { leader: leader.map(|index| index.to_string()), replicas }
    }

    fn ask(&self, placed: &PlacedReplica, _: u32, request: CheckRequest) -> Result<CheckAnswer, String> {
        let mut fleet = self.fleet.lock().unwrap();
        (self.meanwhile)(&mut fleet);
        let node: usize = placed.node.name.parse().unwrap();
        fleet.nodes[node].replica.check(request).map_err(|error| error.to_string())
    }
}

fn compared(fleet: &mut Fleet, meanwhile: impl Fn(&mut Fleet) + Send + Sync) -> Finding {
    let number = fleet.random.next();
    let asked = Asked { fleet: Mutex::new(fleet), meanwhile: Box::new(meanwhile) };
    compare(&asked, 0, number, true, &mut |_| true)
}

/// Some more RRDs, so that there are several ranges.
fn create_more(fleet: &Fleet, count: u64) {
    let engine = fleet.wait_for_leader();
    for number in 0..count {
        let name = RrdName::new(format!("other/more-{number}.rrd").as_bytes()).unwrap();
        let request =
            CreateRequest { definition: definition("RRA:LAST:0:1:50"), start: START, no_overwrite: true };
        engine.create(name, request, Box::new(drop));
    }
    engine.sync().unwrap();
}

/// Waits until a node has all of the leader's log up to now.
fn wait_for_all(fleet: &Fleet, node: usize) -> Position {
    let engine = fleet.wait_for_leader();
    engine.sync().unwrap();
    let end = engine.replica().unwrap().moment()[0];
    wait_for("all of the log", || (fleet.nodes[node].replica.status().end >= end).then_some(()));
    end
}

#[test]
fn a_row_that_differs_is_found_by_name_and_its_replica_made_again() {
    each_seed(4, |seed| {
        let mut fleet = small_fleet(seed + 20);
        let flipped = name(fleet.random.below(RRDS));
        let before = wait_for_all(&fleet, NODES - 1);
        // One row of another value, and a later update that makes the heads the same again. Nothing else is written meanwhile.
        let time = fleet.now + 5;
        let engine = fleet.wait_for_leader();
        engine.updatev(&flipped, format!("{time}:111 {}:5", time + 1).as_bytes()).unwrap();
        drop(engine);
        let after = wait_for_all(&fleet, NODES - 1);
        tamper(&mut fleet, Some(before), &flipped, &format!("{time}:112 {}:5", time + 1));
        let mark = Mark::load(&*fleet.nodes[NODES - 1].home.0.lock().unwrap().handle()).unwrap().unwrap();
        assert_eq!(mark.end, after, "records of the same length");
        fleet.now = time + 1;
        // Those who lead have no other word than those who follow: most are right.
        fleet.lead(if seed % 2 == 0 { 0 } else { NODES - 1 });
        fleet.settle_on(if seed % 2 == 0 { 0 } else { NODES - 1 });
        let until = Instant::now() + Duration::from_millis(2500);
        while Instant::now() < until {
            fleet.update();
            std::thread::sleep(Duration::from_millis(20));
        }
        let aside = Arc::clone(&fleet.nodes[NODES - 1].home.1);
        assert_eq!(aside.load(Ordering::Relaxed), 0, "the heads are the same");

        let finding = compared(&mut fleet, |fleet| fleet.update());
        let differs = Compared::Differs { rrds: 1, put_aside: Ok(()) };
        let verdicts: Vec<_> = finding.replicas.iter().map(|replica| &replica.verdict).collect();
        assert_eq!(verdicts, [&Compared::Equal, &Compared::Equal, &differs], "{finding:?}");
        let named = BTreeMap::from([(flipped.as_bytes().to_vec(), vec![(NODES - 1).to_string()])]);
        assert_eq!((finding.differing, finding.rrds, finding.rows), (named, RRDS, RRDS * 20_000));
        wait_for("a copy that is put aside", || (aside.load(Ordering::Relaxed) == 1).then_some(()));
        fleet.settle();
        fleet.check();
        assert!(compared(&mut fleet, |_| ()).is_well());
        assert_eq!(aside.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn equal_replicas_are_found_equal_while_they_are_updated() {
    each_seed(4, |seed| {
        let mut fleet = small_fleet(seed + 40);
        create_more(&fleet, 600);
        fleet.log.set_faults(Faults { damaged_read: 0, ..Faults::MANY });
        let finding = compared(&mut fleet, |fleet| match fleet.random.below(40) {
            0 => fleet.change_names(),
            1 => {
                let node = fleet.random.below(NODES as u64) as usize;
                fleet.lead(node);
            }
            _ => fleet.update(),
        });
        assert!(finding.is_well(), "{finding:?}");
        assert!(finding.rrds >= 600 && finding.replicas.len() == NODES, "{finding:?}");
        fleet.settle();
        fleet.check();
    });
}

/// Replicas that are killed, stopped and cut off may not be compared to the end; but none is ever said to differ.
#[test]
fn whatever_happens_no_replica_is_said_to_differ() {
    each_seed(3, |seed| {
        let mut fleet = small_fleet(seed + 60);
        create_more(&fleet, 300);
        fleet.log.set_faults(Faults::MANY);
        let until = Instant::now() + Duration::from_secs(5);
        let finding = compared(&mut fleet, move |fleet| {
            match Instant::now() < until {
                true => fleet.step(),
                false => fleet.repair(),
            };
        });
        assert!(finding.differing.is_empty(), "{finding:?}");
        fleet.settle();
        fleet.check();
        assert!(compared(&mut fleet, |_| ()).is_well());
    });
}

#[test]
fn a_replica_that_joins_in_the_middle_is_compared_as_a_whole() {
    let mut fleet = small_fleet(80);
    create_more(&fleet, 600);
    fleet.nodes[NODES - 1].replica.stop();
    let asked = std::sync::atomic::AtomicU64::new(0);
    let finding = compared(&mut fleet, |fleet| {
        fleet.update();
        // The first range was begun and read of both others by then, and there are two more.
        if asked.fetch_add(1, Ordering::Relaxed) == 3 {
            let new = Node::start(SimDisk::new(7), fleet.log.node(), &mut fleet.random);
            // Until its store is open, it counts as gone, and is not waited for.
            wait_for("its store", || new.replica.engine().map(drop));
            drop(std::mem::replace(&mut fleet.nodes[NODES - 1], new));
            wait_for("its store", || fleet.nodes[NODES - 1].replica.engine());
        }
    });
    assert!(finding.is_well() && finding.replicas.len() == NODES, "{finding:?}");
    assert_eq!(finding.rrds, 600 + RRDS);
    fleet.settle();
    fleet.check();
}

#[test]
fn what_is_not_there_is_not_said_to_be_equal() {
    let mut fleet = small_fleet(81);
    fleet.nodes[NODES - 1].replica.stop();
    let finding = compared(&mut fleet, |_| ());
    assert_eq!(finding.replicas[NODES - 1].verdict, Compared::NotCompared("the node is silent".into()));
    assert!(!finding.is_well() && finding.replicas[0].verdict == Compared::Equal, "{finding:?}");
    fleet.nodes[1].replica.stop();
    let finding = compared(&mut fleet, |_| ());
    assert!(finding.replicas.iter().all(|replica| replica.verdict != Compared::Equal), "{finding:?}");
    assert!(!finding.is_well());
}
