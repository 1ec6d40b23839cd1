//! Nodes that speak different versions of their protocol, and how old their answers are.

use std::sync::Arc;
use std::time::Duration;

use roundel_cluster::engine::ClusterOptions;
use rrd::definition::Cf;
use rrd::fetch::FetchRequest;
use store::engine::{Engine, StoreError};
use store::read_age::{Age, ReadAge};

use crate::trouble::Unsteady;
use crate::world::{START, World, create, name, options, stripes, update};

const ARGS: &[&str] = &["DS:a:GAUGE:100:U:U", "RRA:AVERAGE:0.5:1:1000"];
const NOW: Age = Age::AtMost(Duration::ZERO);

#[test]
fn nodes_of_two_versions_are_one_store() {
    let world = World::speaking(&[2, 3, 2, u8::MAX], 8, &options());
    let rrds: Vec<String> = (0..16).map(|number| format!("host-{number}/a.rrd")).collect();
    for (number, rrd) in rrds.iter().enumerate() {
        create(&world.engines[number % 4], rrd, ARGS, true).unwrap();
    }
    for (round, engine) in world.engines.iter().enumerate() {
        let time = START + 10 * (round as i64 + 1);
        let lines: Vec<_> = rrds.iter().map(|rrd| (rrd.clone(), format!("{time}:{round}"))).collect();
        assert!(update(engine, &lines).is_empty());
        let late = update(engine, &lines[..1]);
        assert!(matches!(late[0].error, StoreError::Update(_)), "{late:?}");
    }
    let seen = |engine: &dyn Engine| {
        let fetch = |rrd: &String| {
            let request = FetchRequest::new(Cf::Average, START, START + 40, 10);
            engine.fetch(&name(rrd), request).unwrap().values
        };
        let rows: Vec<_> = rrds.iter().map(fetch).collect();
        format!("{rows:?} {:?} {:?}", engine.list(b"", true), engine.read(&name(&rrds[3])))
    };
    let first = seen(&world.engines[0]);
    assert!(first.contains("3.0"), "{first}");
    for (node, engine) in world.engines.iter().enumerate() {
        assert_eq!(seen(engine), first, "of node {node}");
    }
    for (node, engine) in world.engines.iter().enumerate() {
        engine.rename(&name(&rrds[node]), &name(&format!("moved-{node}/a.rrd"))).unwrap();
        let error = engine.snapshot(&name(&rrds[node])).unwrap_err();
        assert!(matches!(error, StoreError::NoSuchRrd(_)), "{error}");
    }
    assert_eq!(world.engines[0].stats().rrd_count, 16);
}

/// How old what a node reads of an RRD, and of a directory, may be.
fn ages(engine: &dyn Engine) -> [Option<Age>; 2] {
    let (one, list) = (ReadAge::default(), ReadAge::default());
    one.during(|| engine.status(&name("d/a.rrd"))).unwrap();
    list.during(|| engine.list(b"", true)).unwrap();
    [one.greatest(), list.greatest()]
}

/// A node, and one that leads its only partition with a store that can be held up.
fn led_by_the_second(versions: &[u8]) -> (World, Arc<Unsteady>) {
    let quick = ClusterOptions { hedge: Duration::from_millis(100), ..options() };
    let world = World::speaking(versions, 1, &quick);
    let store = {
        let mut map = world.map.lock().unwrap();
        let store = Unsteady::new(map.stores[0][0].take().unwrap());
        map.stores[1][0] = Some(Arc::clone(&store) as _);
        map.leaders[0] = Some(1);
        store
    };
    create(&world.engines[0], "d/a.rrd", ARGS, true).unwrap();
    (world, store)
}

#[test]
fn an_answer_of_the_leader_is_of_now_and_one_of_a_follower_is_as_old_as_it_says() {
    let (world, store) = led_by_the_second(&[3, 3]);
    let engine = &world.engines[0];
    // The leader may be slow, but there is no one else.
    assert_eq!(ages(engine), [Some(NOW); 2]);
    assert_eq!(ages(&world.engines[1]), [Some(NOW); 2]);
    let directory = tempfile::tempdir().unwrap();
    let follower: Arc<dyn Engine> = Arc::new(stripes(directory.path()));
    create(&*follower, "d/a.rrd", ARGS, true).unwrap();
    let late = |late: Option<Duration>| world.map.lock().unwrap().late = late;
    {
        let mut map = world.map.lock().unwrap();
        map.stores[0][0] = Some(Arc::clone(&follower));
        map.followers[0] = vec![0];
    }
    store.hold(true);
    late(Some(Duration::from_secs(5)));
    assert_eq!(ages(engine), [Some(Age::AtMost(Duration::from_secs(5))); 2]);
    late(None);
    assert_eq!(ages(engine), [Some(Age::Unknown); 2]);
    // That it has no such RRD is what it knew then.
    let missing = ReadAge::default();
    assert!(missing.during(|| engine.status(&name("d/none.rrd"))).is_err());
    assert_eq!(missing.greatest(), Some(Age::Unknown));
    store.hold(false);
    // Another node's follower says it by the protocol.
    world.map.lock().unwrap().leaders[0] = None;
    world.map.lock().unwrap().followers[0] = vec![0, 1];
    late(Some(Duration::from_millis(7100)));
    assert_eq!(ages(&world.engines[1]), [Some(Age::AtMost(Duration::from_millis(7100))); 2]);
    world.map.lock().unwrap().stores[0][0] = None;
    assert_eq!(ages(engine), [Some(Age::AtMost(Duration::from_millis(7100))); 2]);
}

#[test]
fn how_old_an_answer_of_a_node_of_version_2_is_is_not_known() {
    for versions in [[2, 3], [3, 2]] {
        let (world, _store) = led_by_the_second(&versions);
        assert_eq!(ages(&world.engines[0]), [Some(Age::Unknown); 2]);
        assert_eq!(ages(&world.engines[1]), [Some(NOW); 2]);
    }
}
