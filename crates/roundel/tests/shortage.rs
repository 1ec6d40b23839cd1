//! Limits of the system: descriptors, sizes of files. The daemon says which one it meets, and goes on when it passes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::collections::VecDeque;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use testkit::{Client, Daemon, Kind};

const CREATE: &str = "-b 1000000000 -s 10 DS:a:GAUGE:20:0:U RRA:AVERAGE:0.5:1:9";

/// Starts a daemon under `limits`, words of the shell's `ulimit`.
fn start_under(limits: &str, daemon: &mut Daemon) {
    let own = daemon.roundel();
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit {limits}; exec \"$0\" \"$@\"")])
        .arg(own.get_program())
        .args(own.get_args());
    daemon.spawn_as(command);
}

#[test]
fn silent_connections_leave_the_store_its_descriptors() {
    for kind in [Kind::Stripes, Kind::Files] {
        let place = tempfile::tempdir().unwrap();
        let mut daemon = testkit::daemon!(kind, place.path());
        start_under("-n 256", &mut daemon);
        let mut client = daemon.wait_for_answer();
        let silent: Vec<_> = (0..400).filter_map(|_| UnixStream::connect(daemon.socket()).ok()).collect();
        std::thread::sleep(Duration::from_millis(100));
        for round in 0..40 {
            let answer = client.ask(&format!("CREATE {round}.rrd {CREATE}")).unwrap();
            assert_eq!(answer.status, 0, "{answer:?}");
            let answer = client.ask(&format!("UPDATE {round}.rrd 1000000010:1")).unwrap();
            assert_eq!(answer.status, 0, "{answer:?}");
            assert_eq!(client.ask(&format!("FLUSH {round}.rrd")).unwrap().status, 0);
        }
        drop(silent);
        // Those who waited are served.
        assert_eq!(Client::connect(&daemon.socket()).unwrap().ask("PING").unwrap().status, 0);
        assert!(daemon.log().contains("all places for connections are taken"), "{}", daemon.log());
        assert!(!daemon.log().contains("Too many open files"), "{}", daemon.log());
    }
}

#[test]
fn a_listener_at_its_limit_says_so_once() {
    let place = tempfile::tempdir().unwrap();
    let mut daemon = testkit::daemon!(Kind::Stripes, place.path());
    let http = testkit::free_port();
    daemon.configure(&format!("[http]\nlisten = [\"127.0.0.1:{http}\"]\n[limits]\nconnections = 16\n"));
    daemon.start();
    let connect = |daemon: &Daemon| Client::connect(&daemon.socket()).unwrap();
    // More than there are places for: the last ones wait from here on, whatever comes and goes.
    let mut clients: VecDeque<Client> = (0..20).map(|_| connect(&daemon)).collect();
    for _ in 0..60 {
        clients.push_back(connect(&daemon));
        let mut oldest = clients.pop_front().unwrap();
        assert_eq!(oldest.ask("PING").unwrap().status, 0);
    }
    while let Some(mut client) = clients.pop_front() {
        assert_eq!(client.ask("PING").unwrap().status, 0);
    }
    assert_eq!(daemon.log().matches("all places for connections are taken").count(), 1, "{}", daemon.log());
    // They waited, and none was refused.
    let metrics = testkit::http_get(http, "/metrics").unwrap();
    assert!(metrics.contains("roundel_connections_refused_total 0\n"), "{metrics}");
}

#[test]
fn the_soft_limit_of_descriptors_is_raised_and_too_few_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let mut daemon = testkit::daemon!(Kind::Stripes, place.path());
    start_under("-Sn 100; ulimit -Hn 2000", &mut daemon);
    daemon.wait_for_answer();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", daemon.process())).unwrap();
    let open = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(open.split_whitespace().nth(3), Some("2000"), "{open}");
    daemon.kill();
    start_under("-n 12", &mut daemon);
    let ended = daemon.take().wait();
    let log = daemon.log();
    assert_eq!(ended.code(), Some(1), "{log}");
    assert!(log.contains("the limit of open files is 12, 128 are needed"), "{log}");
}

#[test]
fn a_limit_of_file_sizes_is_waited_out() {
    for kind in [Kind::Stripes, Kind::Files] {
        let place = tempfile::tempdir().unwrap();
        let mut daemon = testkit::daemon!(kind, place.path());
        start_under("-n 1024", &mut daemon);
        let mut client = daemon.wait_for_answer();
        assert_eq!(client.ask(&format!("CREATE a.rrd {CREATE}")).unwrap().status, 0);
        let process = daemon.process().to_string();
        let limit = |bytes: &str| {
            let words = ["--pid", &process, &format!("--fsize={bytes}:unlimited")];
            assert!(Command::new("prlimit").args(words).status().unwrap().success());
        };
        limit("1");
        let mut time = 1_000_000_000;
        let mut update = |client: &mut Client| {
            time += 10;
            client.ask(&format!("UPDATE a.rrd {time}:1")).unwrap()
        };
        let refused = (0..20_000).map(|_| update(&mut client)).find(|answer| answer.status < 0);
        let refused = refused.expect("what cannot be written is not acknowledged");
        assert!(refused.message.contains("File too large"), "{refused:?}");
        limit("unlimited");
        let accepted = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            update(&mut client).status == 0
        });
        assert!(accepted, "{}", daemon.log());
    }
}
