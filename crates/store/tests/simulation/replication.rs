//! A follower: whatever crashes on its side, it becomes what its primary is, and takes the primary's place with all of it.

use roundel_store::capture::LogHold;
use roundel_store::disk::sim::SimDisk;
use roundel_store::engine::{Engine, StoreError, UpdateBatch};
use roundel_store::position::Position;
use roundel_store::replication::{Comparison, LogEnd, Replica, Role, survey};
use roundel_store::stripes::{Options, Stripes};
use std::sync::mpsc;
use testkit::random::{Random, each_seed};

use super::{World, check_rrd, rrd_name};

/// A store that follows that of a world.
struct Follower {
    disk: SimDisk,
    store: Stripes,
    options: Options,
    /// What keeps the primary's log for it.
    held: Option<LogHold>,
}

fn replica(store: &Stripes) -> &dyn Replica {
    store.replica().expect("a striped store has a log")
}

fn positions(ends: &[LogEnd]) -> Vec<Position> {
    ends.iter().map(|end| end.position).collect()
}

impl Follower {
    /// A copy of a world's store, which is opened again for it.
    fn of(world: &mut World) -> Follower {
        world.store.stop().expect("a clean stop");
        let disk = world.disk.kill();
        world.reopen(world.disk.kill());
        let options = Options { follow: true, ..world.options.clone() };
        let store = Stripes::open(disk.handle(), &options).expect("a copy opens");
        let held = Some(world.store.capture().expect("a moment").into_log_hold());
        Follower { disk, store, options, held }
    }

    fn reopen(&mut self, disk: SimDisk) {
        self.store = Stripes::open(disk.handle(), &self.options).expect("a crashed follower opens");
        self.disk = disk;
    }

    /// Begins a session, as after every lost connection.
    fn connect(&self, primary: &Stripes) {
        let (mine, theirs) = (replica(&self.store), replica(primary));
        assert_eq!(mine.identity(), theirs.identity());
        let ends = mine.ends().expect("the ends of the logs");
        assert_eq!(theirs.compare(mine.history().epoch(), &ends), Ok(Comparison::Beginning));
        mine.follow(&theirs.history()).expect("it may follow");
    }

    /// Takes what the primary has logged, or some of it.
    fn take(&mut self, primary: &Stripes, random: &mut Random, all: bool) {
        let capture = primary.capture().expect("a moment");
        let ends = replica(&self.store).ends().expect("the ends of the logs");
        for (shard, (captured, end)) in capture.shards.iter().zip(positions(&ends)).enumerate() {
            let there = captured.log_end().offset - end.offset;
            let bytes = if all { there } else { random.below(there + 1) };
            let mut records = captured.read_log(end, bytes as usize).expect("the log is held");
            records.truncate(survey(&records, end).applicable);
            let (sender, receiver) = mpsc::channel();
            let reply = Box::new(move |result| sender.send(result).expect("the test waits"));
            let want = end.plus(records.len() as u64);
            replica(&self.store).replicate(shard, end, records, reply);
            assert_eq!(receiver.recv().expect("an answer"), Ok(want));
        }
        if all {
            self.held = Some(capture.into_log_hold());
        }
    }
}

fn check_same(world: &World, store: &Stripes) {
    let names: Vec<Vec<u8>> = world.model.0.keys().map(|name| name.clone().into_bytes()).collect();
    assert_eq!(store.list(b"", true).expect("a list"), names);
    world.model.0.keys().for_each(|name| check_rrd(store, &world.model, name));
}

fn refuses_changes(store: &Stripes) {
    let mut batch = UpdateBatch::default();
    batch.push(b"host-0/0.rrd", b"N:1");
    let (sender, receiver) = mpsc::channel();
    store.update(batch, Box::new(move |failures| sender.send(failures).expect("the test waits")));
    let failures = receiver.recv().expect("an answer");
    assert!(matches!(failures[0].error, StoreError::NotPrimary(_)), "{failures:?}");
    assert!(matches!(
        store.delete(&rrd_name("host-0/0.rrd")),
        Err(StoreError::NotPrimary(_) | StoreError::NoSuchRrd(_))
    ));
}

fn run(seed: u64) {
    let mut world = World::sharded(seed);
    (0..5).for_each(|_| world.step());
    let mut follower = Follower::of(&mut world);
    follower.connect(&world.store);
    for _ in 0..12 {
        (0..world.random.below(40)).for_each(|_| world.step());
        follower.take(&world.store, &mut world.random, false);
        match world.random.below(8) {
            0 => follower.reopen(follower.disk.kill()),
            1 => follower.reopen(follower.disk.crash()),
            2 => follower.store.checkpoint().expect("a checkpoint on a good disk"),
            3 => refuses_changes(&follower.store),
            4 => world.kill(),
            _ => continue,
        }
        follower.connect(&world.store);
    }
    follower.take(&world.store, &mut world.random, true);
    check_same(&world, &follower.store);
    take_over(world, follower);
}

/// The primary is lost, and the follower takes its place; then the old one follows it.
fn take_over(mut world: World, mut follower: Follower) {
    let is_late = world.random.once_in(2);
    let old_model = world.model.clone();
    if is_late {
        (0..30).for_each(|_| world.update());
    }
    let diverged = replica(&world.store).moment() != replica(&follower.store).moment();
    let is_like_before = !diverged;
    let old = world.disk.kill();
    assert!(replica(&follower.store).fence(u32::MAX).is_err(), "numbers must not run out");
    assert_eq!(replica(&follower.store).promote(), Ok(1));
    let role = |store: &Stripes| replica(store).role();
    assert_eq!(role(&follower.store), Role::Primary);
    assert!(replica(&follower.store).promote().is_err(), "it is the primary already");
    // It goes on as the store of this world, with what it had.
    if diverged {
        world.model = old_model;
    }
    let mut options = world.options.clone();
    world.options = Options { follow: false, ..follower.options.clone() };
    world.store = follower.store;
    world.disk = follower.disk;
    world.uncertain.clear();
    check_same(&world, &world.store);
    (0..30).for_each(|_| world.update());
    world.kill();
    assert_eq!((role(&world.store), replica(&world.store).history().epoch()), (Role::Primary, 1));
    options.follow = true;
    let store = Stripes::open(old.handle(), &options).expect("the old primary opens");
    follower = Follower { disk: old, store, options, held: None };
    if is_like_before {
        follower.connect(&world.store);
        follower.take(&world.store, &mut world.random, true);
        check_same(&world, &follower.store);
    } else {
        let (mine, theirs) = (replica(&follower.store), replica(&world.store));
        let compared = theirs.compare(mine.history().epoch(), &mine.ends().expect("ends"));
        assert!(matches!(compared, Ok(Comparison::Diverged { .. })), "{compared:?}");
        mine.fence(1).expect("it is fenced");
        drop(follower.store);
        let options = Options { follow: false, ..follower.options };
        let fenced = Stripes::open(follower.disk.kill().handle(), &options).expect("it opens");
        let refused = replica(&fenced).role();
        assert_eq!(refused, if refused == Role::Follower { Role::Follower } else { Role::Fenced });
        refuses_changes(&fenced);
    }
}

#[test]
fn a_follower_becomes_what_its_primary_is() {
    each_seed(150, run);
}
