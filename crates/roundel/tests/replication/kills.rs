//! Both servers are killed at random under load with `ack = "replica"`: nothing acknowledged is lost, and there is one history.

use std::time::{Duration, Instant};

use testkit::random::{Random, seeds};
use testkit::wait_until;

use super::server::{CREATE, Pair, Server};

const RRDS: u64 = 6;
const BEGIN: u64 = 1_000_000_000;
/// Kills of a pair. `make test-all` has 40 pairs, so 480 of them.
const KILLS: u64 = 12;

/// What was sent and acknowledged of an RRD: the time of an update is also its value.
#[derive(Clone, Copy)]
struct Sent {
    sent: u64,
    acknowledged: u64,
}

struct Lane {
    pair: Pair,
    primary: usize,
    random: Random,
    rrds: Vec<Sent>,
    /// Times that were acknowledged, by RRD.
    kept: Vec<Vec<u64>>,
}

impl Lane {
    fn start(seed: u64) -> Lane {
        let mut pair = Pair::start("ack = 'replica'\nack_timeout = '2s'\n");
        pair.servers[1].start();
        wait_until("a follower", || pair.servers[1].status("connected") == "yes");
        for rrd in 0..RRDS {
            assert_eq!(pair.servers[0].say(&format!("CREATE {rrd}.rrd {CREATE}")), "0 RRD created OK");
        }
        let rrds = vec![Sent { sent: BEGIN, acknowledged: BEGIN }; RRDS as usize];
        Lane { pair, primary: 0, random: Random::new(seed), rrds, kept: vec![Vec::new(); RRDS as usize] }
    }

    fn primary(&self) -> &Server {
        &self.pair.servers[self.primary]
    }

    /// Updates, until one is not acknowledged or the time is over.
    fn load(&mut self, until: Instant) {
        let Ok(mut client) = testkit::Client::connect(&self.primary().path("sock")) else { return };
        while Instant::now() < until {
            let rrd = self.random.below(RRDS) as usize;
            let time = self.rrds[rrd].sent + 1;
            self.rrds[rrd].sent = time;
            match client.ask(&format!("UPDATE {rrd}.rrd {time}:{time}")) {
                Ok(answer) if answer.status == 0 => {
                    self.rrds[rrd].acknowledged = time;
                    self.kept[rrd].push(time);
                }
                _ => return,
            }
        }
    }

    /// Something is killed in the middle of updates, and what is left goes on.
    fn kill(&mut self) {
        let load = Duration::from_millis(20 + self.random.below(200));
        self.load(Instant::now() + load);
        let (primary, follower) = (self.primary, 1 - self.primary);
        match self.random.below(4) {
            0 => {
                self.pair.servers[follower].kill();
                self.load(Instant::now() + Duration::from_millis(30));
                self.pair.servers[follower].start();
            }
            1 => {
                self.pair.servers[primary].kill();
                self.pair.servers[primary].start();
            }
            2 => {
                self.pair.servers[primary].kill();
                self.pair.servers[follower].kill();
                self.pair.servers[primary].spawn_only();
                self.pair.servers[follower].start();
            }
            _ => {
                self.pair.servers[primary].kill();
                self.pair.servers[follower].run(&["promote"]);
                self.primary = follower;
                self.pair.servers[primary].start();
            }
        }
        let servers = &self.pair.servers;
        let (primary, follower) = (&servers[self.primary], &servers[1 - self.primary]);
        wait_until("a primary", || primary.status("role") == "primary");
        wait_until("a follower", || {
            follower.status("role") == "follower" && follower.status("connected") == "yes"
        });
        self.check();
    }

    /// All that was acknowledged is there, and nothing that was not sent; on both sides the same.
    fn check(&mut self) {
        for rrd in 0..RRDS as usize {
            let name = format!("{rrd}.rrd");
            let last: u64 =
                self.primary().say(&format!("LAST {name}")).split_once(' ').unwrap().1.parse().unwrap();
            let Sent { sent, acknowledged } = self.rrds[rrd];
            assert!(
                (acknowledged..=sent).contains(&last),
                "{name}: {acknowledged} to {sent}, and not {last}"
            );
            // What was not acknowledged may have gone in; it is not sent again.
            let dump = self.primary().dump(&name).concat();
            for time in self.kept[rrd].iter().rev().take(1500) {
                let row = format!(" / {time} -->");
                let at = dump.find(&row).unwrap_or_else(|| panic!("{name}: no row {time}"));
                let value =
                    dump[at..].split("<v>").nth(1).and_then(|rest| rest.split("</v>").next()).unwrap();
                assert_eq!(value.parse::<f64>().unwrap(), *time as f64, "{name}");
            }
            let follower = &self.pair.servers[1 - self.primary];
            wait_until("the same on both sides", || {
                follower.say(&format!("LAST {name}")) == format!("0 {last}")
            });
            assert_eq!(self.primary().dump(&name), follower.dump(&name), "{name}");
        }
    }
}

fn run(seeds: impl Iterator<Item = u64>) {
    for seed in seeds {
        let mut lane = Lane::start(seed);
        (0..KILLS).for_each(|_| lane.kill());
        lane.pair.servers.iter().filter(|server| server.is_running()).for_each(Server::verify);
    }
}

// Two tests, so that they run side by side.
#[test]
fn nothing_acknowledged_is_lost_with_even_seeds() {
    run(seeds(4).filter(|seed| seed % 2 == 0));
}

#[test]
fn nothing_acknowledged_is_lost_with_odd_seeds() {
    run(seeds(4).filter(|seed| seed % 2 == 1));
}
