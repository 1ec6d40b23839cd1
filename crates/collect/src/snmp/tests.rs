//! The engine against agents in memory, in simulated time.

pub(crate) mod agent;
mod faults;
pub(crate) mod world;

use ::snmp::message::Version;
use ::snmp::oid::Oid;

use super::answer::Polled;
use super::engine::Now;
use super::plan::{Column, Plan, Row, Shape};
use agent::Agent;
use world::World;

fn oid(text: &str) -> Oid {
    Oid::parse(text).unwrap()
}

/// A plan for the 64-bit counters of some interfaces, each known by its name.
fn plan(interfaces: &[(u32, &str)], table_rows: Option<usize>) -> Plan {
    let shape = Shape::new(vec![
        Column::value(oid("1.3.6.1.2.1.31.1.1.1.6")),
        Column::value(oid("1.3.6.1.2.1.31.1.1.1.10")),
        Column::reference(oid("1.3.6.1.2.1.31.1.1.1.1")),
    ])
    .unwrap();
    let mut plan = Plan::default();
    let rows: Vec<(u32, Vec<u8>, &str)> = interfaces
        .iter()
        .map(|(index, name)| {
            let mut encoded = Vec::new();
            ::snmp::oid::push_arc(&mut encoded, *index);
            (*index, encoded, *name)
        })
        .collect();
    let rows = rows.iter().map(|(key, index, name)| Row { key: *key, index, expected: name.as_bytes() });
    plan.add(&shape, table_rows, rows);
    plan
}

fn agent(interfaces: u32) -> Agent {
    let mut agent = Agent::default();
    for index in 1..=interfaces {
        agent.interface(index, &format!("eth{index}"), (u64::from(index) * 1000, u64::from(index) * 7));
    }
    agent
}

fn names(interfaces: u32) -> Vec<(u32, String)> {
    (1..=interfaces).map(|index| (index, format!("eth{index}"))).collect()
}

fn borrowed(names: &[(u32, String)]) -> Vec<(u32, &str)> {
    names.iter().map(|(index, name)| (*index, name.as_str())).collect()
}

/// The outcomes of one pass over an agent of 100 interfaces.
fn check_all(world: &World, device: usize, interfaces: u32) {
    let mut seen: Vec<u32> = world.outcomes[device].iter().map(|outcome| outcome.key).collect();
    seen.sort_unstable();
    assert_eq!(seen, (1..=interfaces).collect::<Vec<_>>());
    for outcome in &world.outcomes[device] {
        let key = u64::from(outcome.key);
        assert_eq!(outcome.values, [Polled::Unsigned(key * 1000), Polled::Unsigned(key * 7)], "{key}");
        assert!(!outcome.is_moved && !outcome.is_reset);
    }
}

#[test]
fn all_rows_come_by_get_and_by_getbulk() {
    for (version, table_rows) in
        [(Version::V1, None), (Version::V2c, None), (Version::V2c, Some(100)), (Version::V1, Some(100))]
    {
        let mut world = World::new(1);
        let device = world.add(agent(100), version, 60);
        let names = names(100);
        world.set_plan(device, plan(&borrowed(&names), table_rows));
        world.run(60);
        check_all(&world, device, 100);
        let report = world.reports[device][0];
        assert_eq!((report.answered, report.missing, report.timeouts), (100, 0, 0), "{version:?}");
        assert!(report.uptime.is_some() && report.is_alive && !report.is_late);
        // 300 objects in 20, 30, 45 ...: far fewer than one request a row.
        assert!(report.requests <= 11, "{version:?} {table_rows:?}: {} requests", report.requests);
        world.run(60 * 5);
        assert!(world.reports[device].last().unwrap().requests <= 6, "{:?}", world.reports[device].last());
    }
}

/// Each device has the timers of its pass and its request, however long it is polled.
#[test]
fn timers_do_not_pile_up() {
    let mut world = World::new(1);
    let names = names(100);
    for _ in 0..10 {
        let device = world.add(agent(100), Version::V2c, 10);
        world.set_plan(device, plan(&borrowed(&names), None));
    }
    world.run(300);
    assert!(world.engine.timers() <= 40, "{} timers of 10 devices", world.engine.timers());
}

/// Readings are recorded when the engine rests.
#[test]
fn it_rests_when_no_answer_is_awaited_and_nothing_is_due_soon() {
    let mut world = World::new(1);
    let device = world.add(agent(1), Version::V2c, 10);
    world.set_plan(device, plan(&[(1, "eth1")], None));
    world.run(60);
    let at = |mono: u64| Now { wall: world::START + mono as i64, mono };
    let mut due = world.engine.next_tick().unwrap();
    assert!(world.engine.is_resting(at(due - 21_000)));
    assert!(!world.engine.is_resting(at(due - 19_000)), "something is due in 19 ms");
    while world.engine.in_flight() == 0 {
        due = world.engine.next_tick().unwrap();
        world.engine.tick(at(due), &mut world.log);
    }
    assert!(world.engine.next_tick().unwrap() > due + 100_000);
    assert!(!world.engine.is_resting(at(due)), "an answer is awaited");
}

#[test]
fn rows_that_are_missing_do_not_move_others() {
    let mut agent = agent(30);
    agent.objects.retain(|oid, _| !(oid.last() == Some(&7) && oid[oid.len() - 2] == 10));
    agent.remove(12);
    let mut world = World::new(1);
    let device = world.add(agent, Version::V2c, 60);
    let names = names(30);
    let wanted: Vec<(u32, &str)> = borrowed(&names).into_iter().filter(|(index, _)| index % 3 != 2).collect();
    world.set_plan(device, plan(&wanted, Some(30)));
    world.run(60);
    assert_eq!(world.outcomes[device].len(), 20);
    for outcome in &world.outcomes[device] {
        let key = u64::from(outcome.key);
        let want = match key {
            7 => [Polled::Unsigned(7000), Polled::Missing],
            12 => [Polled::Missing, Polled::Missing],
            _ => [Polled::Unsigned(key * 1000), Polled::Unsigned(key * 7)],
        };
        assert_eq!((outcome.values.as_slice(), outcome.is_moved), (&want[..], key == 12), "{key}");
    }
}

#[test]
fn passes_are_aligned_to_the_clock_and_stamped_with_the_arrival() {
    let mut world = World::new(1);
    let device = world.add(agent(1), Version::V2c, 10);
    world.set_plan(device, plan(&[(1, "eth1")], None));
    world.run(100);
    let dues: Vec<i64> = world.reports[device].iter().map(|report| report.due.whole % 10).collect();
    assert!(dues.len() >= 9 && dues.iter().all(|due| *due == dues[0]), "{dues:?}");
    for (outcome, report) in world.outcomes[device].iter().zip(&world.reports[device]) {
        let micros = |time: rrd::time::Timestamp| time.whole * 1_000_000 + i64::from(time.micros);
        let delay = micros(outcome.time) - micros(report.due);
        assert!((1_000..30_000).contains(&delay), "{delay}");
    }
}
