//! Two servers with `ack = "replica"` under faults of the machine: a network that is cut by the kernel, disks that are full, clocks that
//! jump. Nothing acknowledged is lost, and both have the same in the end.

use std::process::Command;
use std::time::{Duration, Instant};

use testkit::{SmallDisk, wait_for, wait_until};

use super::server::{CREATE, Pair, Server};

const REPLICATION: &str = "ack = 'replica'\nack_timeout = '1s'\nopen = true\n";
const BEGIN: u64 = 1_000_000_000;

/// Sends updates, and knows which were acknowledged: the time of each is also its value.
struct Updates {
    sent: u64,
    kept: Vec<u64>,
}

impl Updates {
    fn begin(primary: &Server) -> Updates {
        assert_eq!(primary.say(&format!("CREATE x.rrd {CREATE}")), "0 RRD created OK");
        Updates { sent: BEGIN, kept: Vec::new() }
    }

    fn send(&mut self, primary: &Server) -> bool {
        self.sent += 1;
        let sent = self.sent;
        let answer = primary.client().ask(&format!("UPDATE x.rrd {sent}:{sent}"));
        let is_kept = answer.is_ok_and(|answer| answer.status == 0);
        if is_kept {
            self.kept.push(sent);
        }
        is_kept
    }

    /// Sends updates for this time, and then until six of them were acknowledged: one that waits for a slow disk may be refused.
    fn keep_for(&mut self, primary: &Server, time: Duration) {
        let before = self.kept.len();
        self.send_for(primary, time);
        wait_until("six acknowledged updates", || {
            let is_enough = self.kept.len() >= before + 6;
            if !is_enough {
                self.send(primary);
            }
            is_enough
        });
    }

    fn send_for(&mut self, primary: &Server, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.send(primary);
        }
    }

    /// All that was acknowledged is on both, once, and nothing else than what was sent.
    fn check(&self, primary: &Server, follower: &Server) {
        wait_until("the same on both sides", || {
            let last = primary.say("LAST x.rrd");
            last.starts_with("0 ") && last == follower.say("LAST x.rrd")
        });
        let dump = primary.dump("x.rrd");
        assert_eq!(dump, follower.dump("x.rrd"));
        let dump = dump.concat();
        for time in self.kept.iter().rev().take(1500) {
            let row = format!(" / {time} -->");
            let at = dump.find(&row).unwrap_or_else(|| panic!("no row {time}"));
            let value = dump[at..].split("<v>").nth(1).and_then(|rest| rest.split("</v>").next()).unwrap();
            assert_eq!(value.parse::<f64>().unwrap(), *time as f64);
        }
        assert!(self.kept.len() > 5, "{} of {}", self.kept.len(), self.sent - BEGIN);
    }
}

fn ip(words: &str) -> bool {
    Command::new("ip").args(words.split(' ')).output().is_ok_and(|output| output.status.success())
}

/// Two namespaces of the network with a cable between them; removed in the end.
struct Namespaces([String; 2]);

impl Namespaces {
    /// `None`, and the test is skipped, when this user may not make any.
    fn new() -> Option<Namespaces> {
        testkit::stale::remove_networks("rdl-", "rdl");
        let names = ["a", "b"].map(|side| format!("rdl-{}-{side}", std::process::id()));
        let all = Namespaces(names);
        let [a, b] = &all.0;
        let is_made = ip(&format!("netns add {a}"))
            && ip(&format!("netns add {b}"))
            && ip(&format!("link add v0 netns {a} type veth peer name v0 netns {b}"));
        if !is_made {
            testkit::skip("this user may not make namespaces of the network");
            return None;
        }
        for (side, name) in all.0.iter().enumerate() {
            assert!(ip(&format!("-n {name} addr add {}/30 dev v0", Namespaces::address(side))));
            assert!(ip(&format!("-n {name} link set lo up")));
            assert!(ip(&format!("-n {name} link set v0 up")));
        }
        Some(all)
    }

    fn address(side: usize) -> String {
        format!("10.231.77.{}", side + 1)
    }

    /// Drops what this side sends, or no longer.
    fn mute(&self, side: usize, is_mute: bool) {
        let what = if is_mute { "add" } else { "del" };
        let to = Namespaces::address(1 - side);
        assert!(ip(&format!("-n {} route {what} blackhole {to}/32", self.0[side])));
    }

    /// Takes the cable away, or puts it back.
    fn link(&self, is_up: bool) {
        assert!(ip(&format!("-n {} link set v0 {}", self.0[0], if is_up { "up" } else { "down" })));
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            ip(&format!("netns del {name}"));
        }
    }
}

#[test]
fn a_network_that_is_cut_loses_nothing_acknowledged() {
    let Some(network) = Namespaces::new() else { return };
    let mut pair = Pair::placed(REPLICATION, |side, server| {
        server.run_in(&["ip", "netns", "exec", &network.0[side]]);
        server.listen_at(&Namespaces::address(side));
        server.follow_at(&Namespaces::address(1 - side));
    });
    pair.servers[1].start();
    let [a, b] = &pair.servers;
    wait_until("a follower", || b.status("connected") == "yes");
    let mut updates = Updates::begin(a);
    updates.keep_for(a, Duration::from_millis(300));
    for side in [0, 1] {
        network.mute(side, true);
        wait_until("a refusal", || !updates.send(a));
        network.mute(side, false);
        wait_until("it goes on", || updates.send(a));
        updates.keep_for(a, Duration::from_millis(200));
        updates.check(a, b);
    }
    network.link(false);
    wait_until("a refusal", || !updates.send(a));
    b.run(&["promote"]);
    let own = updates.kept.len();
    // The old one, alone, acknowledges nothing; the new one does.
    updates.send_for(a, Duration::from_millis(1500));
    assert_eq!(updates.kept.len(), own);
    wait_until("the new primary", || updates.send(b));
    network.link(true);
    wait_until("the old one knows", || a.status("role") == "fenced" || a.status("role") == "follower");
    pair.servers[0].kill();
    pair.servers[0].start();
    let [a, b] = &pair.servers;
    wait_until("the old one follows", || a.status("role") == "follower" && a.status("connected") == "yes");
    updates.keep_for(b, Duration::from_millis(200));
    updates.check(b, a);
}

/// A reading of 40 sources that does not compress.
fn reading(time: &mut u64) -> String {
    *time += 1;
    let value = |source: u64| (*time * 40 + source).wrapping_mul(0x9e37_79b9_7f4a_7c15) as f64 / 1e3;
    let values: String = (0..40).map(|source| format!(":{}", value(source))).collect();
    format!(" {time}{values}")
}

#[test]
fn a_full_disk_on_either_side_loses_nothing_acknowledged() {
    let place = tempfile::tempdir().unwrap();
    for full in [1, 0] {
        let mut disk = None;
        let at = place.path().join(full.to_string());
        let mut pair = Pair::placed(REPLICATION, |side, server| {
            if side == full {
                disk = SmallDisk::mount(&at, "96M");
                server.move_to(&at);
            }
        });
        let Some(disk) = disk else { return };
        pair.servers[1].start();
        let [a, b] = &pair.servers;
        wait_until("a follower", || b.status("connected") == "yes");
        let mut updates = Updates::begin(a);
        updates.keep_for(a, Duration::from_millis(300));
        disk.fill();
        // What is in memory or was there already may still be acknowledged, and then must not be lost.
        let wide: String = (0..40).map(|source| format!("DS:v{source}:GAUGE:1000000000:U:U ")).collect();
        a.say(&format!("CREATE wide.rrd -b 1000000000 -s 1 {wide}RRA:LAST:0:1:2000"));
        let mut time = BEGIN;
        wait_until("a refusal", || {
            let readings: String = (0..100).map(|_| reading(&mut time)).collect();
            updates.send(a);
            !a.say(&format!("UPDATE wide.rrd{readings}")).starts_with("0 ")
        });
        updates.send_for(a, Duration::from_secs(1));
        for server in &mut pair.servers {
            server.kill();
        }
        disk.empty();
        pair.servers[0].spawn_only();
        pair.servers[1].spawn_only();
        let [a, b] = &pair.servers;
        wait_until("both again", || a.status("role") == "primary" && b.status("connected") == "yes");
        wait_until("it goes on", || updates.send(a));
        updates.keep_for(a, Duration::from_millis(200));
        updates.check(a, b);
        pair.servers.iter().for_each(Server::verify);
        pair.servers.iter_mut().for_each(Server::kill);
    }
}

#[test]
fn clocks_that_jump_lose_nothing_acknowledged() {
    let library = testkit::faketime();
    let Some(library) = testkit::peer::debian("faketime", library.to_str().unwrap()) else { return };
    let place = tempfile::tempdir().unwrap();
    let clock = |side: usize| place.path().join(format!("clock-{side}"));
    let set = |side: usize, seconds: i64| std::fs::write(clock(side), format!("{seconds:+}\n")).unwrap();
    (0..2).for_each(|side| set(side, 0));
    let mut pair = Pair::placed(REPLICATION, |side, server| {
        let file = format!("FAKETIME_TIMESTAMP_FILE={}", clock(side).display());
        let preload = format!("LD_PRELOAD={}", library.display());
        server.run_in(&[
            "env",
            &preload,
            &file,
            "FAKETIME_NO_CACHE=1",
            "FAKETIME_DONT_FAKE_MONOTONIC=1",
            "DONT_FAKE_MONOTONIC=1",
        ]);
    });
    pair.servers[1].start();
    let [a, b] = &pair.servers;
    wait_until("a follower", || b.status("connected") == "yes");
    let mut updates = Updates::begin(a);
    for (side, seconds) in [(0, 86_400), (1, -86_400), (0, -400 * 86_400), (1, 90_000), (0, 0), (1, 0)] {
        set(side, seconds);
        updates.keep_for(a, Duration::from_millis(300));
        wait_until("the follower stays", || b.status("connected") == "yes");
        updates.check(a, b);
    }
    // Started again with clocks that differ by a year, the other way round.
    set(0, -365 * 86_400);
    pair.servers[0].kill();
    pair.servers[1].run(&["promote"]);
    pair.servers[0].start();
    let [a, b] = &pair.servers;
    wait_for("the old primary follows", || {
        (a.status("role") == "follower" && a.status("connected") == "yes").then_some(())
    });
    updates.keep_for(b, Duration::from_millis(300));
    updates.check(b, a);
}
