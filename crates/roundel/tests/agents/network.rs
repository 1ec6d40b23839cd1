//! Networks that cut, delay and swallow.

use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// What a network does to a connection.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    /// Cuts it after so many bytes from the agent: mostly in the middle of a frame.
    Cut(u64),
    /// Passes each piece on after so many milliseconds.
    Delay(u64),
    /// Lets a kilobyte of the first stream pass, more once this is set, and all of the other.
    Hold(&'static AtomicBool),
    /// Swallows everything after so many bytes from the agent, and says nothing.
    Swallow(u64),
}

/// A network between the agent and the store on `store`, which does to its connections in turn what `next` says. Returns its port.
fn network(store: u16, mut next: impl FnMut() -> Trouble + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for agent in listener.incoming().map_while(Result::ok) {
            let trouble = next();
            let Ok(store) = TcpStream::connect(("127.0.0.1", store)) else { continue };
            let (to_agent, from_store) = (agent.try_clone().unwrap(), store.try_clone().unwrap());
            let back = if let Trouble::Delay(_) = trouble { trouble } else { Trouble::Delay(0) };
            std::thread::spawn(move || pass(from_store, to_agent, back));
            std::thread::spawn(move || pass(agent, store, trouble));
        }
    });
    port
}

fn pass(mut from: TcpStream, mut to: TcpStream, trouble: Trouble) {
    let (mut piece, mut passed) = ([0; 512], 0);
    let mut is_live = None;
    while let Ok(bytes @ 1..) = from.read(&mut piece) {
        // The name of the stream comes first.
        let is_live = *is_live.get_or_insert_with(|| piece[..bytes].windows(5).any(|part| part == b"/live"));
        let allowed = match trouble {
            Trouble::Cut(most) | Trouble::Swallow(most) => {
                (most.saturating_sub(passed)).min(bytes as u64) as usize
            }
            Trouble::Hold(is_over) => {
                while !is_live && passed > 1024 && !is_over.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                bytes
            }
            Trouble::Delay(milliseconds) => {
                std::thread::sleep(Duration::from_millis(milliseconds));
                bytes
            }
        };
        passed += bytes as u64;
        if to.write_all(&piece[..allowed]).is_err() || (allowed < bytes && matches!(trouble, Trouble::Cut(_)))
        {
            break;
        }
    }
    from.shutdown(std::net::Shutdown::Both).ok();
    to.shutdown(std::net::Shutdown::Both).ok();
}

#[test]
fn a_network_that_cuts_and_delays_loses_nothing_and_counts_nothing_twice() {
    const LAST: i64 = 1_000;
    const TROUBLED: usize = 10;
    for seed in seeds(2) {
        let mut random = Random::new(seed);
        let mut world = World::new(Kind::Stripes);
        let mut troubles = Random::new(seed + 1);
        // The agent waits longer after each cut, and resends the current file of its spool from the start. If every connection
        // were cut, it might never finish.
        let mut connections = 0;
        world.agent_port = network(world.port, move || {
            let trouble = match troubles.below(4) {
                0 => Trouble::Delay(troubles.below(30)),
                1 => Trouble::Cut(troubles.below(100)),
                _ => Trouble::Cut(troubles.below(20_000)),
            };
            connections += 1;
            if connections > TROUBLED { Trouble::Delay(0) } else { trouble }
        });
        world.daemon.start();
        world.start_agent(LAST);
        for _ in 0..4 {
            std::thread::sleep(Duration::from_millis(random.below(300)));
            if random.once_in(2) {
                world.kill_agent();
                world.start_agent(LAST);
            } else {
                world.daemon.kill();
                world.daemon.spawn();
            }
        }
        world.wait_until_done();
        world.check(1, LAST, &format!("seed {seed}"));
    }
}

#[test]
fn the_store_keeps_the_position_of_a_connection_that_is_cut() {
    const LAST: i64 = 1_000;
    let mut world = World::new(Kind::Stripes);
    let mut connections = 0;
    world.agent_port = network(world.port, move || {
        connections += 1;
        // Each lane has one.
        if connections <= 2 { Trouble::Cut(2_000) } else { Trouble::Delay(0) }
    });
    world.pause = 0;
    world.daemon.start();
    world.start_agent(LAST);
    world.wait_until_done();
    world.check(1, LAST, "after a cut");
    let log = world.daemon.log();
    let after: Vec<&str> = log
        .lines()
        .filter_map(|line| line.split_once("agent=\"hall-2\" after="))
        .map(|(_, after)| after)
        .collect();
    assert!(after.len() > 1 && after[0] == "0" && after[1] != "0", "{log}");
}

#[test]
fn a_network_that_swallows_everything_is_noticed() {
    const LAST: i64 = 300;
    let mut world = World::new(Kind::Stripes);
    let mut connections = 0;
    world.agent_port = network(world.port, move || {
        connections += 1;
        if connections == 1 { Trouble::Swallow(3_000) } else { Trouble::Delay(0) }
    });
    world.daemon.start();
    world.start_agent(LAST);
    world.wait_until_done();
    world.check(1, LAST, "after silence");
}

#[test]
fn a_reading_does_not_wait_for_the_backlog_of_another_rrd() {
    const LAST: i64 = 1_000;
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    let mut world = World::new(Kind::Stripes);
    world.agent_port = network(world.port, || Trouble::Hold(&IS_OVER));
    (world.pause, world.burst) = (0, LAST);
    world.daemon.start();
    world.start_agent(LAST);
    // All of the first RRD's readings came before those of the others. The first is looked at before the last, so a pause between the two
    // says nothing wrong.
    let rows = testkit::wait_for("the last readings of the last RRD", || {
        let rows = world.rows(LAST);
        rows.last().is_some_and(|rows| rows[LAST as usize].is_some()).then_some(rows)
    });
    assert_eq!(rows[0][LAST as usize], None, "{}", world.daemon.log());
    IS_OVER.store(true, Ordering::Relaxed);
    world.wait_until_done();
    world.check(1, LAST, "both lanes");
}
