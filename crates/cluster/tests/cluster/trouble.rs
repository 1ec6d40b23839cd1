//! Nodes that are lost, slow, or do not lead any more.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

use roundel_cluster::engine::ClusterOptions;
use rrd::content::Rrd;
use rrd::definition::{Cf, Definition};
use rrd::fetch::{FetchRequest, FetchRows};
use store::engine::{
    CreateRequest, Engine, Hold, Reply, Snapshot, Stats, StoreError, UpdateBatch, UpdateFailure,
    UpdatevOutcome,
};
use store::name::RrdName;

use crate::world::{START, World, create, name, options, stripes, update};

const ARGS: &[&str] = &["DS:a:GAUGE:100:U:U", "RRA:AVERAGE:0.5:1:1000"];

/// A store whose answers can be held up, refused, or lost after the store has done what was asked.
pub struct Unsteady {
    store: Arc<dyn Engine>,
    /// What updates get instead of their answers, once they are applied.
    pub lose: Mutex<Option<StoreError>>,
    /// What updates get instead of being applied.
    pub refuse: Mutex<Option<StoreError>>,
    is_held: Mutex<bool>,
    let_go: Condvar,
    pub reads: AtomicU64,
    pub updates: AtomicU64,
    pub deletions: AtomicU64,
    pub creations: AtomicU64,
}

impl Unsteady {
    pub fn new(store: Arc<dyn Engine>) -> Arc<Self> {
        Arc::new(Unsteady {
            store,
            lose: Mutex::default(),
            refuse: Mutex::default(),
            is_held: Mutex::new(false),
            let_go: Condvar::new(),
            reads: AtomicU64::new(0),
            updates: AtomicU64::new(0),
            deletions: AtomicU64::new(0),
            creations: AtomicU64::new(0),
        })
    }

    pub fn hold(&self, held: bool) {
        *self.is_held.lock().unwrap() = held;
        self.let_go.notify_all();
    }

    fn wait(&self) {
        self.reads.fetch_add(1, Ordering::SeqCst);
        let mut held = self.is_held.lock().unwrap();
        while *held {
            held = self.let_go.wait(held).unwrap();
        }
    }
}

impl Engine for Unsteady {
    fn update(&self, batch: UpdateBatch, reply: Reply<Vec<UpdateFailure>>) {
        self.updates.fetch_add(1, Ordering::SeqCst);
        let all = |batch: &UpdateBatch, error: &StoreError| {
            let failure = |line| UpdateFailure { line, accepted: 0, error: error.clone() };
            (0..batch.lines.len() as u32).map(failure).collect::<Vec<_>>()
        };
        if let Some(error) = &*self.refuse.lock().unwrap() {
            return reply(all(&batch, error));
        }
        let lost = self.lose.lock().unwrap().clone().map(|error| all(&batch, &error));
        self.store.update(batch, Box::new(move |failures| reply(lost.unwrap_or(failures))));
    }

    fn updatev(&self, name: &RrdName, values: &[u8]) -> Result<UpdatevOutcome, StoreError> {
        let outcome = self.store.updatev(name, values);
        self.lose.lock().unwrap().clone().map_or(outcome, Err)
    }

    fn create(&self, name: RrdName, request: CreateRequest, reply: Reply<Result<(), StoreError>>) {
        let lost = self.lose.lock().unwrap().clone();
        self.creations.fetch_add(1, Ordering::SeqCst);
        self.store.create(name, request, Box::new(move |result| reply(lost.map_or(result, Err))));
    }

    fn import(&self, name: RrdName, rrd: Rrd, no_overwrite: bool) -> Result<(), StoreError> {
        self.store.import(name, rrd, no_overwrite)
    }

    fn tune(&self, name: &RrdName, args: &[String]) -> Result<(), StoreError> {
        self.store.tune(name, args)
    }

    fn delete(&self, name: &RrdName) -> Result<(), StoreError> {
        let deleted = self.store.delete(name);
        self.deletions.fetch_add(1, Ordering::SeqCst);
        self.lose.lock().unwrap().clone().map_or(deleted, Err)
    }

    fn rename(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        self.store.rename(from, to)
    }

    fn copy(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        self.store.copy(from, to)
    }

    fn snapshot(&self, name: &RrdName) -> Result<Snapshot, StoreError> {
        self.wait();
        self.store.snapshot(name)
    }

    fn fetch(&self, name: &RrdName, request: FetchRequest) -> Result<FetchRows, StoreError> {
        self.wait();
        self.store.fetch(name, request)
    }

    fn read(&self, name: &RrdName) -> Result<Rrd, StoreError> {
        self.wait();
        self.store.read(name)
    }

    fn rows(
        &self,
        name: &RrdName,
        of: &Arc<Definition>,
        rra: usize,
        rows: Range<i64>,
    ) -> Result<Vec<f64>, StoreError> {
        self.store.rows(name, of, rra, rows)
    }

    fn list_within(
        &self,
        directory: &[u8],
        recursive: bool,
        hold: Hold<'_>,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        self.wait();
        self.store.list_within(directory, recursive, hold)
    }

    fn flush(&self, name: Option<&RrdName>) -> Result<(), StoreError> {
        self.store.flush(name)
    }

    fn stats(&self) -> Stats {
        self.store.stats()
    }

    fn stop(&self) -> Result<(), StoreError> {
        self.store.stop()
    }
}

/// Node 0 leads nothing, node 1 the only partition, through an unsteady store.
fn two_nodes(options: &ClusterOptions) -> (World, Arc<Unsteady>) {
    let world = World::new(2, 1, options);
    let mut map = world.map.lock().unwrap();
    let store = Unsteady::new(map.stores[0][0].take().unwrap());
    map.stores[1][0] = Some(Arc::clone(&store) as _);
    map.leaders[0] = Some(1);
    drop(map);
    (world, store)
}

fn lines(count: usize, time: i64) -> Vec<(String, String)> {
    (0..count).map(|number| (format!("d/{number}.rrd"), format!("{}:1 {}:2", time, time + 10))).collect()
}

fn texts(failures: &[UpdateFailure]) -> Vec<(u32, u32, String)> {
    failures.iter().map(|failure| (failure.line, failure.accepted, failure.error.to_string())).collect()
}

#[test]
fn updates_whose_answers_were_lost_are_applied_once() {
    for error in [StoreError::NotReplicated("no follower"), StoreError::Stopping] {
        let (world, store) = two_nodes(&options());
        for number in 0..5 {
            create(&world.engines[0], &format!("d/{number}.rrd"), ARGS, true).unwrap();
        }
        let mut mixed = lines(5, START + 10);
        mixed.push(("d/0.rrd".to_owned(), format!("{}:7", START + 15)));
        mixed.push(("d/none.rrd".to_owned(), "5:7".to_owned()));
        *store.lose.lock().unwrap() = Some(error);
        let (engine, started) = (&world.engines[0], store.updates.load(Ordering::SeqCst));
        let failures = std::thread::scope(|scope| {
            let sent = scope.spawn(|| update(engine, &mixed));
            // The second attempt comes only when the answer of the first was lost.
            while store.updates.load(Ordering::SeqCst) < started + 2 {
                std::thread::yield_now();
            }
            *store.lose.lock().unwrap() = None;
            sent.join().unwrap()
        });
        // The line at START + 15 is refused like those that were applied: its outcome is as little known.
        assert_eq!(texts(&failures), [(6, 0, "No such file or directory".to_owned())]);
        for number in 0..5 {
            let snapshot = engine.snapshot(&name(&format!("d/{number}.rrd"))).unwrap();
            assert_eq!(snapshot.last_update().whole, START + 20);
        }
        // Without a lost answer, the same updates are refused.
        assert_eq!(update(engine, &lines(5, START + 10)).len(), 5);
    }
}

#[test]
fn updates_that_were_not_applied_wait_for_a_leader() {
    let (world, store) = two_nodes(&options());
    for number in 0..3 {
        create(&world.engines[0], &format!("d/{number}.rrd"), ARGS, true).unwrap();
    }
    *store.refuse.lock().unwrap() = Some(StoreError::NotPrimary("it lost its lead"));
    let engine = &world.engines[0];
    let failures = std::thread::scope(|scope| {
        let sent = scope.spawn(|| update(engine, &lines(3, START + 10)));
        let before = store.updates.load(Ordering::SeqCst);
        while store.updates.load(Ordering::SeqCst) < before + 2 {
            std::thread::yield_now();
        }
        *store.refuse.lock().unwrap() = None;
        sent.join().unwrap()
    });
    assert_eq!(texts(&failures), []);
    // A refusal counts as applied only where the outcome was not known.
    *store.refuse.lock().unwrap() = None;
    let failures = update(engine, &lines(3, START + 10));
    assert!(failures.iter().all(|failure| failure.error.to_string().starts_with("illegal attempt")));
    assert_eq!(failures.len(), 3);
}

/// Number, and what failed.
type Ended = (i64, Vec<(u32, u32, String)>);

/// Sends a batch for all RRDs of a directory, without waiting; how it ended comes by the channel.
fn send(engine: &dyn Engine, rrds: usize, step: i64, ended: &mpsc::Sender<Ended>) {
    let mut batch = UpdateBatch::default();
    for number in 0..rrds {
        batch.push(format!("d/{number}.rrd").as_bytes(), format!("{}:{step}", START + step * 10).as_bytes());
    }
    let ended = ended.clone();
    engine.update(batch, Box::new(move |failures| drop(ended.send((step, texts(&failures))))));
}

#[test]
fn batches_that_follow_one_another_keep_their_order_while_the_leader_changes() {
    let world = World::new(3, 1, &options());
    let engine = &world.engines[0];
    (0..3).for_each(|number| create(engine, &format!("d/{number}.rrd"), ARGS, true).unwrap());
    let (ended, ends) = mpsc::channel();
    for step in 1..=600 {
        send(engine, 3, step, &ended);
        if step % 7 == 0 {
            world.lead(0, (step / 7) as usize % 3);
        }
        if step > 20 {
            assert_eq!(ends.recv().unwrap().1, []);
        }
    }
    drop(ended);
    assert!(ends.iter().all(|(_, failures)| failures.is_empty()));
    for number in 0..3 {
        let request = FetchRequest::new(Cf::Average, START, START + 6000, 10);
        let rows = world.engines[1].fetch(&name(&format!("d/{number}.rrd")), request).unwrap();
        assert_eq!(rows.values[..600], (1..=600).map(f64::from).collect::<Vec<_>>());
    }
}

#[test]
fn a_batch_does_not_overtake_one_that_waits_for_a_leader() {
    let (world, store) = two_nodes(&options());
    let engine = &world.engines[0];
    create(engine, "d/0.rrd", ARGS, true).unwrap();
    *store.refuse.lock().unwrap() = Some(StoreError::NotPrimary("it lost its lead"));
    let (ended, ends) = mpsc::channel();
    (1..=20).for_each(|step| send(engine, 1, step, &ended));
    let before = store.updates.load(Ordering::SeqCst);
    while store.updates.load(Ordering::SeqCst) < before + 2 {
        std::thread::yield_now();
    }
    (21..=40).for_each(|step| send(engine, 1, step, &ended));
    *store.refuse.lock().unwrap() = None;
    drop(ended);
    let mut all: Vec<_> = ends.iter().collect();
    all.sort();
    assert_eq!(all, (1..=40).map(|step| (step, Vec::new())).collect::<Vec<_>>());
}

#[test]
fn a_node_that_is_killed_in_the_middle_of_updates_loses_none() {
    let mut world = World::new(3, 6, &options());
    for number in 0..60 {
        create(&world.engines[0], &format!("h{number}/a.rrd"), ARGS, true).unwrap();
    }
    let engines = std::mem::take(&mut world.engines);
    let round = AtomicU64::new(0);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for step in 1..=400_i64 {
                let lines: Vec<_> = (0..60)
                    .map(|number| (format!("h{number}/a.rrd"), format!("{}:{step}", START + step * 10)))
                    .collect();
                assert_eq!(texts(&update(&engines[0], &lines)), [], "step {step}");
                round.store(step as u64, Ordering::SeqCst);
            }
            is_done.store(true, Ordering::SeqCst);
        });
        while round.load(Ordering::SeqCst) < 100 && !writer.is_finished() {
            std::thread::yield_now();
        }
        // Node 2 is gone, and its partitions have no leader until others lead them.
        world.kill(2);
        let orphans: Vec<usize> = (0..6).filter(|partition| partition % 3 == 2).collect();
        orphans.iter().for_each(|&partition| world.map.lock().unwrap().leaders[partition] = None);
        orphans.iter().for_each(|&partition| world.lead(partition, partition % 2));
        writer.join().unwrap();
    });
    assert!(is_done.load(Ordering::SeqCst));
    for number in 0..60 {
        let request = FetchRequest::new(Cf::Average, START, START + 4000, 10);
        let rows = engines[1].fetch(&name(&format!("h{number}/a.rrd")), request).unwrap();
        let want: Vec<f64> = (1..=400).map(f64::from).collect();
        assert_eq!(rows.values[..400], want, "h{number}");
    }
}

#[test]
fn a_node_that_does_not_lead_says_who_does() {
    let world = World::new(3, 1, &options());
    create(&world.engines[0], "d/a.rrd", ARGS, true).unwrap();
    // Node 2 believes that node 1 leads; that one knows better.
    let wrong = Arc::new(Mutex::new(crate::world::Map {
        addresses: world.map.lock().unwrap().addresses.clone(),
        leaders: vec![Some(1)],
        followers: vec![Vec::new()],
        stores: vec![vec![None], vec![None], vec![None]],
        late: None,
        old: None,
    }));
    let routes = Arc::new(crate::world::NodeRoutes { node: 2, map: wrong });
    let member = crate::world::member(2, crate::world::SECRET);
    let engine = roundel_cluster::engine::ClusterEngine::start(routes, member, options()).unwrap();
    let line = [("d/a.rrd".to_owned(), format!("{}:1", START + 10))];
    assert_eq!(texts(&update(&engine, &line)), []);
    create(&engine, "d/b.rrd", ARGS, true).unwrap();
    assert_eq!(engine.list(b"d", true).unwrap(), [b"d/a.rrd".to_vec(), b"d/b.rrd".to_vec()]);
}

#[test]
fn the_leader_that_another_node_names_is_asked_before_a_follower() {
    let slow = ClusterOptions { hedge: Duration::from_secs(10), ..options() };
    let world = World::new(3, 1, &slow);
    create(&world.engines[0], "d/a.rrd", ARGS, true).unwrap();
    let line = [("d/a.rrd".to_owned(), format!("{}:1", START + 10))];
    assert_eq!(texts(&update(&world.engines[0], &line)), []);
    // Node 2 has a replica without that update, and believes that node 1 leads, which knows better.
    let directory = tempfile::tempdir().unwrap();
    let late: Arc<dyn Engine> = Arc::new(stripes(directory.path()));
    create(&*late, "d/a.rrd", ARGS, true).unwrap();
    let wrong = Arc::new(Mutex::new(crate::world::Map {
        addresses: world.map.lock().unwrap().addresses.clone(),
        leaders: vec![Some(1)],
        followers: vec![vec![2]],
        stores: vec![vec![None], vec![None], vec![Some(late)]],
        late: None,
        old: None,
    }));
    let routes = Arc::new(crate::world::NodeRoutes { node: 2, map: wrong });
    let member = crate::world::member(2, crate::world::SECRET);
    let engine = roundel_cluster::engine::ClusterEngine::start(routes, member, slow).unwrap();
    assert_eq!(engine.snapshot(&name("d/a.rrd")).unwrap().last_update().whole, START + 10);
}

#[test]
fn a_follower_answers_while_the_leader_is_slow_or_unknown() {
    // A hedge of no time: whether the leader is slow is not measured.
    let quick = ClusterOptions { hedge: Duration::ZERO, ..options() };
    let (world, store) = two_nodes(&quick);
    let engine = &world.engines[0];
    create(engine, "d/a.rrd", ARGS, true).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let follower: Arc<dyn Engine> = Arc::new(stripes(directory.path()));
    create(&*follower, "d/a.rrd", ARGS, true).unwrap();
    {
        let mut map = world.map.lock().unwrap();
        map.stores[0][0] = Some(Arc::clone(&follower));
        map.followers[0] = vec![0];
    }
    store.hold(true);
    assert_eq!(engine.snapshot(&name("d/a.rrd")).unwrap().last_update().whole, START);
    assert_eq!(engine.list(b"", true).unwrap(), [b"d/a.rrd".to_vec()]);
    // No node leads.
    world.map.lock().unwrap().leaders[0] = None;
    assert!(engine.fetch(&name("d/a.rrd"), FetchRequest::new(Cf::Average, START, START + 100, 10)).is_ok());
    assert!(matches!(engine.snapshot(&name("d/none.rrd")), Err(StoreError::NoSuchRrd(_))));
    store.hold(false);
}

#[test]
fn a_replica_that_has_not_caught_up_answers_only_when_no_other_one_does() {
    // A hedge of no time: the leader never answers within it. A replica that has not caught up may answer after a third of the
    // timeout: no thread of this test is 10 seconds late.
    let slow = ClusterOptions {
        hedge: Duration::ZERO,
        patience: Duration::from_secs(30),
        ..ClusterOptions::default()
    };
    let (world, _store) = two_nodes(&slow);
    let engine = &world.engines[0];
    create(engine, "d/a.rrd", ARGS, true).unwrap();
    create(engine, "d/later.rrd", ARGS, true).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let old: Arc<dyn Engine> = Arc::new(stripes(directory.path()));
    create(&*old, "d/a.rrd", ARGS, true).unwrap();
    let lead = |leader| {
        let mut map = world.map.lock().unwrap();
        map.stores[0][0] = Some(Arc::clone(&old));
        (map.followers[0], map.old, map.leaders[0]) = (vec![0], Some(0), leader);
    };
    lead(Some(1));
    let whole = [b"d/a.rrd".to_vec(), b"d/later.rrd".to_vec()];
    assert_eq!(engine.list(b"", true).unwrap(), whole, "a list without what is missing here");
    // This node has just started, and does not know yet who leads.
    lead(None);
    std::thread::scope(|scope| {
        let read = scope.spawn(|| engine.list(b"", true));
        std::thread::sleep(Duration::from_millis(100));
        lead(Some(1));
        assert_eq!(read.join().unwrap().unwrap(), whole);
    });
    // There is no other. An engine with a shorter timeout asks that replica after a second.
    lead(None);
    let routes = Arc::new(crate::world::NodeRoutes { node: 0, map: Arc::clone(&world.map) });
    let member = crate::world::member(0, crate::world::SECRET);
    let quick = ClusterOptions { patience: Duration::from_secs(3), ..slow };
    let engine = roundel_cluster::engine::ClusterEngine::start(routes, member, quick).unwrap();
    assert_eq!(engine.list(b"", true).unwrap(), [b"d/a.rrd".to_vec()]);
}

#[test]
fn what_a_follower_does_not_find_the_leader_may_have() {
    // After the follower's answer, the leader has ten times as long.
    let (world, store) = two_nodes(&ClusterOptions { hedge: Duration::from_millis(500), ..options() });
    let engine = &world.engines[0];
    create(engine, "d/a.rrd", ARGS, true).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let follower = Unsteady::new(Arc::new(stripes(directory.path())));
    {
        let mut map = world.map.lock().unwrap();
        map.stores[0][0] = Some(Arc::clone(&follower) as _);
        map.followers[0] = vec![0];
    }
    store.hold(true);
    std::thread::scope(|scope| {
        let read = scope.spawn(|| engine.snapshot(&name("d/a.rrd")));
        while follower.reads.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        store.hold(false);
        assert_eq!(read.join().unwrap().unwrap().last_update().whole, START);
    });
}

#[test]
fn changes_that_cannot_be_repeated_are_not_when_their_outcome_is_unknown() {
    let (world, store) = two_nodes(&options());
    let engine = &world.engines[0];
    create(engine, "d/a.rrd", ARGS, true).unwrap();
    *store.lose.lock().unwrap() = Some(StoreError::NotReplicated("no follower"));
    let outcome = engine.updatev(&name("d/a.rrd"), format!("{}:1", START + 10).as_bytes());
    let error = outcome.err().map(|error| error.to_string()).unwrap();
    assert!(error.contains("it is not known whether that was done"), "{error}");
    // A removal can: it is removed, once or twice.
    let deleted = std::thread::scope(|scope| {
        let sent = scope.spawn(|| engine.delete(&name("d/a.rrd")));
        while store.deletions.load(Ordering::SeqCst) < 2 {
            std::thread::yield_now();
        }
        *store.lose.lock().unwrap() = None;
        sent.join().unwrap()
    });
    assert_eq!(deleted, Ok(()));
    assert!(matches!(engine.delete(&name("d/a.rrd")), Err(StoreError::NoSuchRrd(_))));
}

/// The second attempt finds that the first one did it, and waits until that is in the log: not on the thread of the store, which would wait for itself.
#[test]
fn a_creation_whose_answer_was_lost_is_done_by_a_store_of_this_node() {
    let (mut world, store) = two_nodes(&options());
    *store.lose.lock().unwrap() = Some(StoreError::NotReplicated("no follower"));
    let engine = Arc::new(world.engines.remove(1));
    let (sender, ended) = mpsc::channel();
    let creating = Arc::clone(&engine);
    std::thread::spawn(move || sender.send(create(&*creating, "d/a.rrd", ARGS, true)));
    while store.creations.load(Ordering::SeqCst) < 1 {
        std::thread::yield_now();
    }
    *store.lose.lock().unwrap() = None;
    let created = ended.recv_timeout(Duration::from_secs(20));
    if created.is_err() {
        // They would wait for the store, too.
        std::mem::forget((world, engine));
    }
    assert_eq!(created, Ok(Ok(())));
}

#[test]
fn an_error_names_partition_and_node_when_the_time_is_over() {
    let short = ClusterOptions { patience: Duration::from_millis(300), ..options() };
    let (mut world, _store) = two_nodes(&short);
    world.kill(1);
    let address = world.map.lock().unwrap().addresses[1].address.clone();
    let failures = update(&world.engines[0], &[("d/a.rrd".to_owned(), "5:1".to_owned())]);
    let want = format!("partition 0: node \"node 1\" ({address}) does not answer: ");
    assert!(matches!(failures[0].error, StoreError::Unavailable(_)));
    assert!(failures[0].error.to_string().starts_with(&want), "{}", failures[0].error);
    let error = world.engines[0].snapshot(&name("d/a.rrd")).unwrap_err().to_string();
    assert!(error.starts_with(&want), "{error}");
    world.map.lock().unwrap().leaders[0] = None;
    let error = world.engines[0].delete(&name("d/a.rrd")).unwrap_err().to_string();
    assert_eq!(error, "partition 0 has no leader now; try again later");
}

#[test]
fn a_stopped_engine_answers_all_that_waits() {
    let (mut world, _store) = two_nodes(&options());
    world.kill(1);
    let (sender, receiver) = mpsc::channel();
    let mut batch = UpdateBatch::default();
    batch.push(b"d/a.rrd", b"5:1");
    world.engines[0].update(batch, Box::new(move |failures| sender.send(failures).unwrap()));
    world.engines[0].stop().unwrap();
    assert_eq!(receiver.recv().unwrap()[0].error, StoreError::Stopping);
}
