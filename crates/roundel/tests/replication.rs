//! Two servers of one store: what is killed, cut off, promoted and brought back, with the daemon's own executable.
//!
//! `ROUNDEL_SEED=n` runs one seed of the kills, `ROUNDEL_SEEDS=n` sets how many there are.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

#[path = "replication/cable.rs"]
mod cable;
#[path = "replication/cluster.rs"]
mod cluster;
#[path = "replication/cluster_ages.rs"]
mod cluster_ages;
#[path = "replication/cluster_faults.rs"]
mod cluster_faults;
#[path = "replication/demo.rs"]
mod demo;
#[path = "replication/encrypted.rs"]
mod encrypted;
#[path = "replication/faults.rs"]
mod faults;
#[path = "replication/held.rs"]
mod held;
#[path = "replication/kills.rs"]
mod kills;
#[path = "replication/placeholders.rs"]
mod placeholders;
#[path = "replication/pollers.rs"]
mod pollers;
#[path = "replication/rows.rs"]
mod rows;
#[path = "replication/server.rs"]
mod server;
#[path = "wire/signer.rs"]
mod signer;
#[path = "wire/snmpd.rs"]
mod snmpd;
#[path = "replication/spool.rs"]
mod spool;

use std::io::Write;
use std::time::{Duration, Instant};

use cable::Cable;
use protocol::frames::replication::{FollowerHello, LogPosition, SessionKind, push_acknowledged, push_hello};
use server::{CREATE, Pair, Server};
use testkit::{free_port, wait_until};

#[test]
fn a_follower_copies_follows_and_takes_over() {
    let mut pair = Pair::start("");
    let [a, b] = &mut pair.servers;
    a.say(&format!("CREATE d/before.rrd {CREATE}"));
    a.say("UPDATE d/before.rrd 1000000010:1");
    b.start();
    wait_until("a copy that is followed", || b.status("connected") == "yes");
    a.say(&format!("CREATE d/later.rrd {CREATE}"));
    assert_eq!(a.say("UPDATE d/later.rrd 1000000010:7"), "0 errors, enqueued 1 value(s).");
    a.say("TUNE d/later.rrd -h v:33");
    assert_eq!(a.say("RENAME d/before.rrd e/renamed.rrd").split_once(' ').unwrap().0, "0");
    wait_until("the rename", || b.say("LAST e/renamed.rrd") == "0 1000000010");
    wait_until("the update", || b.say("LAST d/later.rrd") == "0 1000000010");
    assert_eq!(a.dump("d/later.rrd"), b.dump("d/later.rrd"));
    assert_eq!(a.dump("e/renamed.rrd"), b.dump("e/renamed.rrd"));
    assert_eq!(b.say("LAST d/before.rrd").split(' ').next(), Some("-1"));
    let age: u64 = b.status("age_ms").parse().unwrap();
    assert!(age < 10_000, "{age}");
    for change in [
        "UPDATE d/later.rrd 1000000020:1",
        &format!("CREATE d/own.rrd {CREATE}"),
        "REMOVE d/later.rrd",
        "TUNE d/later.rrd -h v:1",
        "RENAME d/later.rrd d/x.rrd",
    ] {
        let answer = b.say(change);
        assert!(answer.starts_with("-1 ") && answer.contains("roundel promote"), "{change}: {answer}");
    }
    assert!(a.say("PROMOTE").contains("is the primary already"));

    a.kill();
    let asked = Instant::now();
    assert!(b.run(&["promote"]).starts_with("the server at "));
    assert_eq!(b.say("UPDATE d/later.rrd 1000000020:9"), "0 errors, enqueued 1 value(s).");
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    wait_until("placeholders", || {
        b.base().join("d/later.rrd").exists() && b.base().join("e/renamed.rrd").exists()
    });
    assert!(!b.base().join("d/before.rrd").exists());

    // The old primary comes back, and follows.
    a.start();
    wait_until("the old primary follows", || {
        a.status("role") == "follower" && a.status("connected") == "yes"
    });
    wait_until("what it has missed", || a.say("LAST d/later.rrd") == "0 1000000020");
    assert_eq!(a.dump("d/later.rrd"), b.dump("d/later.rrd"));
    assert_eq!((a.status("epoch"), b.status("epoch")), ("1".to_string(), "1".to_string()));
    // And goes back.
    b.kill();
    a.run(&["promote"]);
    a.say("UPDATE d/later.rrd 1000000030:9");
    b.start();
    wait_until("the other follows again", || b.say("LAST d/later.rrd") == "0 1000000030");
    assert_eq!(b.status("epoch"), "2");
    assert_eq!(a.dump("d/later.rrd"), b.dump("d/later.rrd"));
    assert!(a.tool(&["inspect", a.store().to_str().unwrap()]).contains("role primary, epoch 2"));
    for server in &pair.servers {
        server.verify();
    }
}

/// What only the old primary had is kept beside, and its own files stay.
#[test]
fn what_the_new_primary_does_not_have_is_set_aside() {
    let mut pair = Pair::start("");
    let [a, b] = &mut pair.servers;
    b.start();
    a.say(&format!("CREATE x.rrd {CREATE}"));
    wait_until("the RRD", || b.say("LAST x.rrd").starts_with("0 "));
    b.kill();
    a.say("UPDATE x.rrd 1000000010:1");
    std::fs::write(a.store().join("tokens.mine"), "").unwrap();
    a.kill();
    b.start();
    assert!(b.run(&["promote"]).contains("it had not caught up"));
    b.say("UPDATE x.rrd 1000000020:2");
    a.start();
    wait_until("the old primary follows", || a.say("LAST x.rrd") == "0 1000000020");
    assert_eq!(a.dump("x.rrd"), b.dump("x.rrd"));
    assert!(a.store().join("tokens.mine").exists());
    let aside = std::fs::read_dir(a.store()).unwrap().map(|entry| entry.unwrap().path());
    let aside = aside.filter(|path| path.to_string_lossy().contains("/before-copy-")).collect::<Vec<_>>();
    assert_eq!(aside.len(), 1);
    let exported = a.path("exported");
    a.tool(&["export", "--from", aside[0].to_str().unwrap(), "--all", "--to", exported.to_str().unwrap()]);
    let kept =
        std::process::Command::new("rrdtool").arg("last").arg(exported.join("x.rrd")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&kept.stdout).trim(), "1000000010");
}

/// The two cannot reach each other: with `ack = "replica"` the old primary answers nothing as done any more, and once they can, it
/// knows why.
#[test]
fn a_primary_that_is_cut_off_acknowledges_nothing_and_is_fenced() {
    let mut pair = Pair::start("ack = 'replica'\nack_timeout = '5s'\n");
    let [a, b] = &mut pair.servers;
    let cable = Cable::new(free_port(), a.followers_port);
    b.follow_through(cable.port);
    b.start();
    wait_until("a follower", || b.status("connected") == "yes");
    assert_eq!(a.say(&format!("CREATE x.rrd {CREATE}")), "0 RRD created OK");
    assert_eq!(a.say("UPDATE x.rrd 1000000010:1"), "0 errors, enqueued 1 value(s).");
    assert_eq!(b.say("LAST x.rrd"), "0 1000000010", "it was answered when the follower had it");
    let mut second = 1_000_000_010;
    let mut update = |server: &Server| {
        second += 10;
        server.say(&format!("UPDATE x.rrd {second}:2"))
    };
    for direction in [0, 1] {
        cable.cut(direction);
        let refused = update(a);
        assert!(refused.contains("no follower has taken this"), "{refused}");
        cable.mend(direction);
        wait_until("the follower again", || update(a).starts_with("0 "));
    }
    cable.cut(0);
    cable.cut(1);
    b.run(&["promote"]);
    assert_eq!(
        b.say("UPDATE x.rrd 2000000000:4"),
        "0 errors, enqueued 1 value(s).",
        "it is the only one now"
    );
    assert_eq!(b.status("alone"), "yes");
    assert!(a.say("UPDATE x.rrd 2000000010:5").contains("no follower has taken this"));
    cable.mend(0);
    cable.mend(1);
    wait_until("the old primary knows", || a.status("role") == "fenced");
    assert!(a.say("UPDATE x.rrd 2000000020:5").contains("another one was made the primary"));
    // It is so after a restart, too, and the new one still answers alone.
    a.follow_none();
    for server in [&mut *a, &mut *b] {
        server.kill();
        server.start();
    }
    assert!(a.say("UPDATE x.rrd 2000000020:5").contains("another one was made the primary"));
    wait_until("the primary as before", || b.status("role") == "primary");
    assert_eq!(
        (b.status("alone").as_str(), b.say("UPDATE x.rrd 2000000030:6").as_str()),
        ("yes", "0 errors, enqueued 1 value(s).")
    );
    // Once it has a follower, it waits for that one.
    a.kill();
    a.follow(b.followers_port);
    a.start();
    wait_until("a follower that has caught up", || {
        b.status("alone").is_empty() && a.status("connected") == "yes"
    });
    // An update that the follower's disk delays for too long is refused.
    let mut second = 2_000_000_030;
    wait_until("an acknowledged update", || {
        second += 1;
        b.say(&format!("UPDATE x.rrd {second}:7")) == "0 errors, enqueued 1 value(s)."
    });
    assert_eq!(a.say("LAST x.rrd"), format!("0 {second}"));
    assert_eq!(a.dump("x.rrd"), b.dump("x.rrd"));
    a.kill();
    assert!(b.say("UPDATE x.rrd 2000000050:8").contains("no follower has taken this"));
}

/// Both forward to a third server; a follower leaves that to its primary, until it is promoted.
#[test]
fn a_follower_forwards_only_what_comes_once_it_is_promoted() {
    let mut pair = Pair::start("");
    let place = tempfile::tempdir().unwrap();
    let mut target = Server::new(place.path(), "target", "");
    target.start();
    let [a, b] = &mut pair.servers;
    for server in [&mut *a, &mut *b] {
        let to = target.path("sock");
        server.more(&format!("[[forward]]\nto = 'unix:{}'\nname = 'target'\n", to.display()));
    }
    let positions = b.store().join("forward/target");
    b.start();
    a.say(&format!("CREATE x.rrd {CREATE}"));
    a.say("UPDATE x.rrd 1000000010:1");
    wait_until("the update", || b.say("LAST x.rrd") == "0 1000000010");
    a.kill();
    assert!(!positions.exists());
    assert!(target.say("LAST x.rrd").starts_with("-1 "));
    b.run(&["promote"]);
    b.say("UPDATE x.rrd 1000000020:2");
    wait_until("what b has taken", || target.say("LAST x.rrd") == "0 1000000020");
    let rows = target.dump("x.rrd").into_iter().filter(|line| line.contains("<v>") && !line.contains("NaN"));
    assert_eq!(rows.count(), 1, "b has taken one update as the primary");
}

/// Makes log: 20,000 updates of `x.rrd`, of the seconds after `second`.
fn update_much(server: &Server, second: &mut u64) {
    let update = |_| {
        *second += 1;
        format!("UPDATE x.rrd {second}:{second}.1234567890123456789012345")
    };
    let lines: Vec<String> = (0..20_000).map(update).collect();
    let answer = server.client().batch(&lines).unwrap();
    assert_eq!(answer.status, 0, "{answer:?}");
}

/// The primary knows after a restart, too, from where on a follower that is away needs its log: whether it was stopped or killed, and whatever
/// checkpoints there were.
#[test]
fn a_follower_that_was_away_over_restarts_of_the_primary_catches_up() {
    let mut pair = Pair::start("");
    let [a, b] = &mut pair.servers;
    a.more("[stripes]\nlog_bytes = 32768\n");
    a.follow_none();
    a.stop();
    a.start();
    b.start();
    a.say(&format!("CREATE x.rrd {CREATE}"));
    let mut second = 1_000_000_000;
    update_much(a, &mut second);
    wait_until("the updates", || b.say("LAST x.rrd") == format!("0 {second}"));
    b.kill();
    wait_until("it has left", || a.run(&["replication"]).contains(" away lacks"));
    for restart in [Server::stop, Server::kill, Server::stop, Server::stop] {
        for _ in 0..20 {
            update_much(a, &mut second);
        }
        restart(a);
        a.start();
        wait_until("what it lacks", || {
            let said = a.run(&["replication"]);
            let lacks = said.lines().find_map(|line| line.split_once(" away lacks "));
            lacks.is_some_and(|(_, rest)| rest.split(' ').next().unwrap().parse::<u64>().unwrap() > 1000)
        });
    }
    b.start();
    wait_until("what it has missed", || b.say("LAST x.rrd") == format!("0 {second}"));
    assert!(!b.log().contains("it is copied again"), "{}", b.log());
    assert_eq!(a.dump("x.rrd"), b.dump("x.rrd"));

    // With nothing to send, too, and after a loss of the file.
    for lost in [false, true] {
        b.stop();
        a.stop();
        if lost {
            std::fs::write(a.store().join("followers"), "x").unwrap();
        }
        a.start();
        b.start();
        update_much(a, &mut second);
        wait_until("what is new", || b.say("LAST x.rrd") == format!("0 {second}"));
        assert!(lost || !b.log().contains("it is copied again"), "{}", b.log());
    }
    assert!(a.log().contains("may have to copy the store again"));
}

/// A follower whose place in the log is gone begins with a copy; tokens, and a store that is another one.
#[test]
fn a_follower_without_its_log_is_copied_again_and_another_store_is_refused() {
    let mut pair = Pair::start("log = '1 MB'\n");
    let [a, b] = &mut pair.servers;
    b.start();
    a.say(&format!("CREATE x.rrd {CREATE}"));
    wait_until("the RRD", || b.say("LAST x.rrd").starts_with("0 "));
    b.kill();
    a.kill();
    a.more("[stripes]\nlog_bytes = 32768\n");
    a.follow_none();
    a.start();
    let mut second = 1_000_000_000;
    for _ in 0..100 {
        update_much(a, &mut second);
    }
    let beginning = |shard: std::io::Result<std::fs::DirEntry>| {
        shard.unwrap().path().join("log-00000000-0000000000000000").exists()
    };
    wait_until("the end of the log that it lacks", || !std::fs::read_dir(a.store()).unwrap().any(beginning));
    b.start();
    wait_until("a new copy", || b.say("LAST x.rrd") == format!("0 {second}"));
    assert!(b.log().contains("it is copied again"), "{}", b.log());
    assert_eq!(a.dump("x.rrd"), b.dump("x.rrd"));

    let directory = tempfile::tempdir().unwrap();
    let mut other = Server::new(directory.path(), "other", "");
    other.start();
    other.kill();
    other.follow(a.followers_port);
    assert!(other.fails().contains("is another one"), "{}", other.log());
}

/// A client that connects and says nothing takes no follower's place, and what a follower says that it has cannot be more than there is.
#[test]
fn silent_clients_keep_no_follower_out() {
    let mut pair = Pair::start("");
    let [a, b] = &mut pair.servers;
    a.say(&format!("CREATE x.rrd {CREATE}"));
    let port = a.followers_port;
    let silent: Vec<_> =
        (0..300).map(|_| std::net::TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
    b.start();
    wait_until("a copy that is followed", || b.status("connected") == "yes");
    drop(silent);

    let mut liar = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut out = b"FRAMES 5\n".to_vec();
    let hello = FollowerHello {
        kind: SessionKind::Copy,
        epoch: 0,
        store: [0; 16],
        name: b"liar".to_vec(),
        ends: Vec::new(),
    };
    push_hello(&mut out, &hello);
    let shards = a.status("positions").split(',').count();
    let beyond = vec![LogPosition { generation: 9, offset: 1 << 60 }; shards];
    push_acknowledged(&mut out, &beyond);
    liar.write_all(&out).unwrap();
    // The session ends, whatever is still to be read.
    std::io::copy(&mut liar, &mut std::io::sink()).ok();
    wait_until("it has left", || a.run(&["replication"]).contains("liar away"));
    assert!(!std::fs::read_to_string(a.store().join("followers")).unwrap().contains("liar"));
}
