//! The daemon's defences: privileges, links, clients that do not read, and its addresses.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

#[path = "hardening/encryption.rs"]
mod encryption;
#[path = "wire/signer.rs"]
mod signer;

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{Ipv6Addr, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use testkit::{Client, DEADLINE, Kind};

const ROUNDEL: &str = env!("CARGO_BIN_EXE_roundel");
const CREATE: &str = "-b 1000000000 -s 10 DS:a:GAUGE:20:0:U RRA:AVERAGE:0.5:1:9";

/// A field of /proc/PID/status.
fn status(process: u32, field: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_start_matches(':').split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The number of an entry of /etc/passwd or /etc/group.
fn number_of(file: &str, name: &str) -> Option<u32> {
    let text = fs::read_to_string(file).unwrap();
    let line = text.lines().find(|line| line.starts_with(&format!("{name}:")))?.to_string();
    line.split(':').nth(2)?.parse().ok()
}

#[test]
fn root_privileges_are_dropped_for_good() {
    let (Some(user), Some(group)) = (number_of("/etc/passwd", "nobody"), number_of("/etc/group", "daemon"))
    else {
        return testkit::skip("there is no user nobody or no group daemon");
    };
    let place = tempfile::tempdir().unwrap();
    if fs::metadata(place.path()).unwrap().uid() != 0 {
        return testkit::skip("only root can become another user");
    }
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for layout in ["stripes", "files"] {
        let mut daemon = testkit::daemon!(Kind::Stripes, &place.path().join(layout));
        let (root, base) = (daemon.directory().to_path_buf(), daemon.base());
        for directory in [&root, &base] {
            std::os::unix::fs::chown(directory, Some(user), Some(group)).unwrap();
        }
        let words = ["rrdcached", "-g", "-B", "-U", "nobody", "-G", "daemon", "--layout", layout];
        let mut command = Command::new(ROUNDEL);
        command.args(words).arg("-b").arg(&base).arg("-l").arg(daemon.socket());
        command.arg("-j").arg(root.join("journal")).arg("-p").arg(root.join("pid"));
        daemon.spawn_as(command);
        let mut client = daemon.wait_for_answer();
        assert_eq!(client.ask(&format!("CREATE x.rrd {CREATE}")).unwrap().status, 0);
        let (process, many) = (daemon.process(), |id: u32| vec![id.to_string(); 4].join(" "));
        let found = ["Uid", "Gid", "Groups", "CapEff"].map(|field| status(process, field));
        let made = fs::metadata(base.join("x.rrd")).unwrap();
        let want = [many(user), many(group), group.to_string(), "0000000000000000".to_string()];
        assert_eq!(found, want, "{layout}");
        assert_eq!((made.uid(), made.gid()), (user, group), "{layout}");
    }
}

#[test]
fn a_client_of_ipv6_is_served() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        return testkit::skip("this machine has no ::1");
    }
    let port = testkit::free_port();
    let place = tempfile::tempdir().unwrap();
    let mut daemon = testkit::daemon!(Kind::Stripes, place.path());
    daemon
        .configure(&format!("[[listen]]\naddress = \"[::1]:{port}\"\npermissions = [\"PING\", \"STATS\"]\n"));
    daemon.start();
    let mut stream = TcpStream::connect((Ipv6Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.write_all(b"PING\nLIST /\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "0 PONG");
    assert_eq!(lines.next().unwrap(), "-1 Permission denied.");
}

/// Makes attacks on memory harder, and distributions demand it.
#[test]
fn executables_are_position_independent() {
    for executable in [ROUNDEL, env!("CARGO_BIN_EXE_rrdtool")] {
        let header = fs::read(executable).unwrap();
        // The type in the ELF header: ET_DYN.
        assert_eq!(header[16..18], [3, 0], "{executable} is linked for a fixed address");
    }
}

/// Resident kilobytes of a process.
fn resident(process: u32) -> u64 {
    status(process, "VmRSS").split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn clients_that_never_read_block_no_others_and_use_no_memory() {
    let place = tempfile::tempdir().unwrap();
    let mut daemon = testkit::daemon!(Kind::Stripes, place.path());
    let mut client = daemon.start();
    let create = "CREATE x.rrd -b 1000000000 -s 1 DS:a:GAUGE:20:0:U RRA:AVERAGE:0.5:1:5000";
    assert_eq!(client.ask(create).unwrap().status, 0);
    let before = resident(daemon.process());
    // Each answer has a hundred kilobytes; each client sends as many requests as it can.
    let question = "FETCH x.rrd AVERAGE 999995000 1000000000\n".repeat(100);
    let mut stalled = Vec::new();
    for _ in 0..4 {
        let mut stream = UnixStream::connect(daemon.socket()).unwrap();
        stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        let mut sent = 0;
        let refused = loop {
            match stream.write(question.as_bytes()) {
                Ok(count) => sent += count,
                Err(error) => break error,
            }
            assert!(sent < 64 << 20, "the daemon takes questions without end");
        };
        assert!(matches!(refused.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{refused}");
        stalled.push(stream);
    }
    // All other clients are still served.
    for second in 1..50 {
        let update = format!("UPDATE x.rrd {}:1", 1_000_000_000 + second);
        assert_eq!(client.ask(&update).unwrap().status, 0);
        assert_eq!(client.ask("PING").unwrap().message, "PONG");
    }
    assert!(client.ask("FETCH x.rrd AVERAGE 1000000000 1000000040").unwrap().status > 40);
    let mut newcomer = Client::connect(&daemon.socket()).unwrap();
    assert_eq!(newcomer.ask("PING").unwrap().message, "PONG");
    // What each of them holds: a read buffer and an answer, but no queue of requests.
    let grown = resident(daemon.process()).saturating_sub(before);
    assert!(grown < 4 * 8 * 1024, "{grown} kB for 4 clients");
    drop(stalled);
    assert_eq!(client.ask("LAST x.rrd").unwrap().message, "1000000049");
}

#[test]
fn links_that_lead_out_of_the_base_directory_are_not_followed() {
    for kind in [Kind::Stripes, Kind::Files] {
        let place = tempfile::tempdir().unwrap();
        let mut daemon = testkit::daemon!(kind, place.path());
        let outside = place.path().join("outside");
        fs::create_dir(&outside).unwrap();
        let base = daemon.base();
        let made = Command::new("/usr/bin/rrdtool")
            .args(["create", "secret.rrd"])
            .args(CREATE.split(' '))
            .current_dir(&outside)
            .status()
            .unwrap();
        assert!(made.success());
        symlink(&outside, base.join("way")).unwrap();
        symlink("../outside", base.join("relative")).unwrap();
        symlink(outside.join("secret.rrd"), base.join("file.rrd")).unwrap();
        symlink(outside.join("new.rrd"), base.join("dangling.rrd")).unwrap();
        let secret = fs::read(outside.join("secret.rrd")).unwrap();
        let mut client = daemon.start();
        for command in [
            "UPDATE way/secret.rrd 1000000010:1",
            "UPDATE relative/secret.rrd 1000000010:1",
            "UPDATE file.rrd 1000000010:1",
            "INFO way/secret.rrd",
            "INFO file.rrd",
            "FETCH way/secret.rrd AVERAGE",
            "FETCH file.rrd AVERAGE",
            "FETCHBIN file.rrd AVERAGE",
            "DUMP way/secret.rrd",
            "LAST file.rrd",
            "FLUSH way/secret.rrd",
            "TUNE file.rrd -h a:5",
        ] {
            let answer = client.ask(command).unwrap();
            assert!(answer.status < 0, "{kind:?} {command}: {answer:?}");
        }
        for directory in ["way", "relative", "way/deeper"] {
            client.ask(&format!("CREATE {directory}/x.rrd {CREATE}")).unwrap();
        }
        // A file of that name may be replaced by one in the base directory.
        for name in ["dangling.rrd", "file.rrd"] {
            client.ask(&format!("CREATE {name} {CREATE}")).unwrap();
            client.ask(&format!("UPDATE {name} 1000000010:1")).unwrap();
            client.ask(&format!("FLUSH {name}")).unwrap();
        }
        for command in ["LIST /way", "LIST RECURSIVE /", "LIST /relative"] {
            let answer = client.ask(command).unwrap();
            assert!(
                !answer.lines.iter().any(|line| line.contains("secret")),
                "{kind:?} {command}: {answer:?}"
            );
        }
        client.ask("FLUSHALL").unwrap();
        daemon.kill();
        assert_eq!(names(&outside), ["secret.rrd"], "{kind:?}");
        assert!(fs::read(outside.join("secret.rrd")).unwrap() == secret, "{kind:?}");
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn systemd_is_notified_of_readiness_and_stop() {
    let place = tempfile::tempdir().unwrap();
    let systemd = UnixDatagram::bind(place.path().join("notify")).unwrap();
    systemd.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut daemon = testkit::daemon!(Kind::Stripes, place.path());
    let mut command = Command::new(ROUNDEL);
    command
        .args(["serve", "--base", "rrd", "--store", "store", "--listen", "unix:sock"])
        .current_dir(place.path())
        .env("NOTIFY_SOCKET", place.path().join("notify"));
    daemon.spawn_as(command);
    let heard = || {
        let mut bytes = [0; 256];
        let count = systemd.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..count]).trim().to_string()
    };
    assert_eq!(heard(), "READY=1");
    // Ready means that it answers.
    let mut client = Client::connect(&daemon.socket()).unwrap();
    assert_eq!(client.ask("PING").unwrap().message, "PONG");
    assert!(Command::new("kill").arg(daemon.process().to_string()).status().unwrap().success());
    assert_eq!(heard(), "STOPPING=1");
    assert!(daemon.take().wait().success());
}
