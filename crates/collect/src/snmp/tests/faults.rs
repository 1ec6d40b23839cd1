//! Networks and agents that are not as they should be.

use std::net::SocketAddr;

use ::snmp::message::Version;

use super::world::{Network, World};
use super::{agent, borrowed, check_all, names, plan};
use crate::snmp::answer::{Polled, Trouble};

#[test]
fn an_agent_that_takes_little_is_asked_for_little_and_this_is_remembered() {
    for faults in 0..3 {
        for table_rows in [None, Some(50)] {
            let mut world = World::new(3);
            let device = world.add(agent(50), Version::V2c, 60);
            let given = &mut world.agents[device].faults;
            match faults {
                0 => given.too_big = Some(10),
                1 => given.cut = Some(10),
                _ => given.drops_above = Some(2),
            }
            let names = names(50);
            world.set_plan(device, plan(&borrowed(&names), table_rows));
            world.run(180);
            let first = world.reports[device][0];
            world.clear();
            world.run(60);
            check_all(&world, device, 50);
            let report = world.reports[device][0];
            assert_eq!((report.timeouts, report.missing), (0, 0), "{faults} {table_rows:?} {first:?}");
            assert!(report.too_big == 0, "{faults} {table_rows:?} {report:?}");
        }
    }
}

#[test]
fn loss_delay_and_copies_change_no_value() {
    for seed in 1..40 {
        let mut world = World::new(seed);
        world.network = Network { lost: 30, doubled: 100, delay: (1_000, 400_000) };
        let names = names(60);
        for device in 0..4 {
            world.add(agent(60), Version::V2c, 30);
            world.set_plan(device, plan(&borrowed(&names), (device % 2 == 0).then_some(60)));
        }
        world.run(600);
        let mut missing = 0;
        for device in 0..4 {
            for outcome in &world.outcomes[device] {
                let key = u64::from(outcome.key);
                let want = [Polled::Unsigned(key * 1000), Polled::Unsigned(key * 7)];
                assert!(outcome.values == want || outcome.values == [Polled::Missing; 2], "{outcome:?}");
                missing += usize::from(outcome.values != want);
            }
            let times =
                world.outcomes[device].iter().filter(|outcome| outcome.key == 1).map(|outcome| outcome.time);
            assert!(times.clone().is_sorted_by(|a, b| a < b), "seed {seed}");
            assert!(times.count() >= 19);
        }
        assert!(missing < 4 * 20 * 60 / 20, "seed {seed}: {missing}");
    }
}

#[test]
fn a_silent_device_is_unknown_and_costs_one_small_request_a_step() {
    let mut world = World::new(1);
    let device = world.add(agent(50), Version::V2c, 30);
    let names = names(50);
    world.set_plan(device, plan(&borrowed(&names), None));
    world.run(60);
    world.agents[device].faults.is_dead = true;
    world.run(60);
    world.clear();
    let before = world.agents[device].requests;
    world.run(300);
    assert_eq!(world.agents[device].requests - before, 10);
    assert_eq!(world.outcomes[device].len(), 500, "unknown is said, not left out");
    for (outcome, report) in world.outcomes[device].iter().step_by(50).zip(&world.reports[device]) {
        assert_eq!(outcome.values, [Polled::Missing; 2]);
        assert!((outcome.time.whole - report.due.whole).abs() <= 1, "{outcome:?}");
    }
    world.agents[device].faults.is_dead = false;
    world.clear();
    world.run(30);
    check_all(&world, device, 50);
    assert_eq!(world.wells, [device]);
}

#[test]
fn a_restart_and_moved_rows_are_told() {
    let mut world = World::new(1);
    let device = world.add(agent(20), Version::V2c, 30);
    let names = names(20);
    world.set_plan(device, plan(&borrowed(&names), Some(20)));
    world.run(90);
    world.agents[device].booted = world.now;
    world.agents[device].interface(3, "eth4", (1, 1));
    world.clear();
    world.run(30);
    assert!(world.outcomes[device].iter().all(|outcome| outcome.is_reset));
    let moved: Vec<u32> =
        world.outcomes[device].iter().filter(|outcome| outcome.is_moved).map(|outcome| outcome.key).collect();
    assert_eq!(moved, [3]);
    world.clear();
    world.run(30);
    assert!(world.outcomes[device].iter().all(|outcome| !outcome.is_reset));
}

/// A snmpd of Debian that was asked 1.6 s after its start said 0 for all packets so far, and 2 s later 17,153.
#[test]
fn counters_of_an_agent_that_has_just_started_are_not_compared() {
    let mut world = World::new(1);
    let device = world.add(agent(1), Version::V2c, 5);
    world.agents[device].booted = world.now;
    world.set_plan(device, plan(&[(1, "eth1")], None));
    world.run(40);
    let uptimes = world.reports[device].iter().map(|report| report.uptime.unwrap());
    let resets = world.outcomes[device].iter().map(|outcome| outcome.is_reset);
    let seen: Vec<(u32, bool)> = uptimes.zip(resets).collect();
    assert!(seen[0].0 < 500 && !seen[0].1, "{seen:?}");
    for pair in seen.windows(2) {
        assert_eq!(pair[1].1, pair[0].0 < 1_000, "{seen:?}");
    }
}

#[test]
fn answers_from_elsewhere_or_with_wrong_ids_are_refused() {
    let mut world = World::new(1);
    let device = world.add(agent(2), Version::V2c, 30);
    world.set_plan(device, plan(&[(1, "eth1")], None));
    let elsewhere: SocketAddr = "192.0.2.1:161".parse().unwrap();
    world.answers_from = Some(elsewhere);
    world.run(60);
    assert!(world.troubles.contains(&(device, Trouble::WrongAddress(elsewhere))));
    assert!(world.outcomes[device].iter().all(|outcome| outcome.values == [Polled::Missing; 2]));
    world.answers_from = None;
    world.agents[device].faults.wrong_id = true;
    world.clear();
    world.run(60);
    assert!(world.outcomes[device].iter().all(|outcome| outcome.values == [Polled::Missing; 2]));
    assert!(world.engine.totals().unexpected > 0);
}

#[test]
fn walks_that_go_round_end() {
    let mut world = World::new(1);
    let device = world.add(agent(30), Version::V2c, 30);
    world.agents[device].faults.loops = true;
    let names = names(30);
    world.set_plan(device, plan(&borrowed(&names), Some(30)));
    world.walk(device, &["1.3.6.1.2.1.31.1.1.1.1"]);
    world.run(60);
    assert!(world.walked.iter().all(|(_, token, rows)| *token == 7 && rows.is_none()));
    assert!(world.troubles.iter().any(|(_, trouble)| matches!(trouble, Trouble::NotIncreasing(_))));
    world.clear();
    world.run(30);
    check_all(&world, device, 30);
}

#[test]
fn walks_find_all_rows_of_all_versions() {
    for version in [Version::V1, Version::V2c] {
        let mut world = World::new(1);
        let mut agent = agent(70);
        agent.faults.too_big = (version == Version::V2c).then_some(2);
        agent.objects.retain(|oid, _| !(oid.last() == Some(&7) && oid[oid.len() - 2] == 15));
        let device = world.add(agent, version, 30);
        world.walk(device, &["1.3.6.1.2.1.31.1.1.1.1", "1.3.6.1.2.1.31.1.1.1.15", "1.3.6.1.2.1.31.1.1.1.99"]);
        world.engine.tick(
            crate::snmp::engine::Now { wall: super::world::START + world.now as i64, mono: world.now },
            &mut world.log,
        );
        world.run(60);
        let (_, _, rows) = &world.walked[0];
        let rows = rows.as_ref().unwrap();
        assert_eq!(rows.len(), 70);
        for (nth, row) in rows.iter().enumerate() {
            assert_eq!(row.index_text(), (nth + 1).to_string());
            assert!(
                row.values[0].is_some() && row.values[1].is_some() == (nth != 6) && row.values[2].is_none()
            );
        }
    }
}

#[test]
fn thousands_of_devices_are_polled_in_time_and_dead_ones_cost_little() {
    let mut world = World::with_window(5, 1024);
    world.log.keeps = false;
    world.network.delay = (200, 5_000);
    let names = names(8);
    for number in 0..3000 {
        let mut agent = agent(8);
        agent.faults.is_dead = number % 10 == 0;
        let device = world.add(agent, Version::V2c, 30);
        world.set_plan(device, plan(&borrowed(&names), Some(8)));
    }
    world.run(60);
    world.clear();
    let sent = world.engine.totals().sent;
    let dead = |world: &World| world.agents.iter().step_by(10).map(|agent| agent.requests).sum::<u64>();
    let dead_before = dead(&world);
    world.run(300);
    let late = world.reports.iter().flatten().filter(|report| report.is_late).count();
    assert_eq!(late, 0);
    assert!(world.reports.iter().all(|reports| reports.len() == 10));
    let all = world.engine.totals().sent - sent;
    assert_eq!(dead(&world) - dead_before, 300 * 10);
    assert!(all <= (2700 * 2 + 300) * 10, "{all}");
}
