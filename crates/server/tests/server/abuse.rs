//! Misbehaving clients, and many of them at once: no other connection is affected.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::common::Roundel;
use crate::common::engine::Recorder;
use protocol::rrdcached::command::Permissions;
use protocol::rrdcached::limits::LINE_BYTES_MAX;
use roundel_server::service::CreatePolicy;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use testkit::random::Random;
use testkit::{Client, wait_until};

fn start() -> (Arc<Recorder>, Roundel) {
    let engine = Recorder::new(&["a.rrd", "b.rrd", "d/c.rrd"]);
    (Arc::clone(&engine), Roundel::with_engine(engine))
}

#[test]
fn lines_up_to_the_limit_are_accepted() {
    let (engine, roundel) = start();
    let mut client = Client::open(&roundel.socket());
    let words = " 1000000001:1".repeat(10_000);
    assert_eq!(client.say(format!("UPDATE a.rrd{words}")), "0 errors, enqueued 10000 value(s).\n");
    assert_eq!(engine.words.load(Ordering::Relaxed), 10_000);
    for length in [LINE_BYTES_MAX + 1, 1_000_000, 3_000_000] {
        let line = vec![b'x'; length];
        let want = format!("-1 Line too long ({LINE_BYTES_MAX} bytes at most)\n");
        assert_eq!(client.say(line), want);
        assert_eq!(client.say("PING"), "0 PONG\n");
    }
    client.write(b"BATCH\nUPDATE a.rrd 1:1\n");
    client.write(vec![b'x'; 1_000_000]);
    client.write(b"\nUPDATE none.rrd 1:1\n.\n");
    client.read();
    let answer = client.read();
    let base = roundel.base().display().to_string();
    let want = format!(
        "2 errors\n2 Line too long ({LINE_BYTES_MAX} bytes at most)\n3 No such file: {base}/none.rrd\n"
    );
    assert_eq!(answer, want);
}

#[test]
fn a_create_that_fails_loses_nothing() {
    let roundel = Roundel::stripes(CreatePolicy::default(), Permissions::ALL);
    let mut client = Client::open(&roundel.socket());
    let create = "CREATE a.rrd -b 1000000000 -s 10 DS:x:GAUGE:20:0:U RRA:AVERAGE:0.5:1:20";
    assert_eq!(client.say(create), "0 RRD created OK\n");
    assert!(client.say("UPDATE a.rrd 1000000010:1").starts_with("0 "));
    let last = client.say("LAST a.rrd");
    // Another program has put something else where the placeholder was: as with a file, the RRD is gone, but can be restored.
    std::fs::remove_file(roundel.base().join("a.rrd")).unwrap();
    std::fs::create_dir(roundel.base().join("a.rrd")).unwrap();
    let answer = client.say(create);
    assert!(answer.starts_with("-1 ") && answer.contains("move it away"), "{answer}");
    assert!(client.say("LAST a.rrd").starts_with("-1 "));
    std::fs::remove_dir(roundel.base().join("a.rrd")).unwrap();
    let trash = client.say("TRASH LIST");
    let removed = trash.lines().nth(1).unwrap();
    assert_eq!(client.say(format!("TRASH RESTORE {removed}")), "0 1 RRDs\n");
    assert_eq!(client.say("LAST a.rrd"), last);
    let answer = client.say("FETCH a.rrd AVERAGE 1000000000 1000000010");
    assert!(answer.contains("1000000010: 1.0"), "{answer}");
}

#[test]
fn garbage_gets_errors_and_keeps_the_connection() {
    let (_, roundel) = start();
    for seed in 1..=20 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let mut client = Client::open(&roundel.socket());
        let mut lines = 0;
        let mut noise = Vec::new();
        for _ in 0..2000 {
            let byte = if random.below(8) == 0 {
                *random.pick(&[&b' ', &b'\\', &b'\0', &b'.', &b'/', &b'\n', &b'\r'])
            } else {
                random.next() as u8
            };
            lines += usize::from(byte == b'\n');
            noise.push(byte);
        }
        noise.push(b'\n');
        client.write(&noise);
        for _ in 0..=lines {
            let line = client.line();
            assert!(line.starts_with("-1 "), "{line:?}");
        }
        assert_eq!(client.say("PING"), "0 PONG\n");
    }
}

/// A page of any site can make a browser send this to a port on loopback, with a body of its own.
#[test]
fn a_request_of_http_ends_the_connection_before_its_body_is_read() {
    let (engine, roundel) = start();
    for first in ["POST / HTTP/1.1", "GET /x HTTP/1.0", "PUT /a%20b HTTP/1.1"] {
        let mut client = Client::open(&roundel.socket());
        client.write(format!(
            "{first}\r\nHost: 127.0.0.1:42217\r\n\r\nREMOVE a.rrd\nUPDATE b.rrd 1000000001:1\n"
        ));
        assert_eq!(client.line(), "-1 This port does not speak HTTP.\n");
        assert_eq!(client.line(), "", "the connection has ended");
    }
    // A path may be longer than any line; the connection may have ended before all of it is sent.
    for length in [LINE_BYTES_MAX, 3 * LINE_BYTES_MAX] {
        let mut client = Client::open(&roundel.socket());
        let path = "x".repeat(length);
        let head = format!("POST /{path} HTTP/1.1\r\nHost: 127.0.0.1:42217\r\n\r\n");
        let _ = client.send(format!("{head}UPDATE b.rrd 1000000001:1\n"));
        while client.answer().is_ok() {}
        assert!(engine.updates("b.rrd").is_empty(), "{length}");
    }
    let mut client = Client::open(&roundel.socket());
    assert_eq!(client.say("UPDATE b.rrd 1000000001:1"), "0 errors, enqueued 1 value(s).\n");
    // What may be a name is not taken for it.
    assert!(client.say("INFO HTTP/1.1").starts_with("-1 "));
    assert_eq!(client.say("PING"), "0 PONG\n");
}

#[test]
fn names_may_contain_any_bytes() {
    let (_, roundel) = start();
    let mut client = Client::open(&roundel.socket());
    for name in [&b"\xff\xfe.rrd"[..], b"two\\ words.rrd", b"back\\\\slash", "\u{20ac}/\u{f6}".as_bytes()] {
        let create = [b"CREATE ", name, b" DS:a:GAUGE:20:U:U RRA:AVERAGE:0.5:1:10"].concat();
        assert_eq!(client.say(create), "0 RRD created OK\n");
        assert_eq!(client.say([b"UPDATE ", name, b" 5:1"].concat()), "0 errors, enqueued 1 value(s).\n");
    }
    let long = "x".repeat(256);
    assert!(client.say(format!("UPDATE {long} 5:1")).starts_with("-1 No such file: "));
    let deep = "x/".repeat(3000);
    assert!(client.say(format!("UPDATE {deep}y 5:1")).starts_with("-1 No such file: "));
    assert!(client.say("UPDATE d/../../etc/passwd 5:1").ends_with(": Permission denied\n"));
}

#[test]
fn answers_to_a_burst_come_in_order_in_one_write() {
    let (_, roundel) = start();
    let mut script = Vec::new();
    let mut want = String::new();
    let base = roundel.base().display().to_string();
    for index in 0..5000 {
        match index % 5 {
            0 => {
                writeln!(script, "UPDATE a.rrd {index}:1 {index}.5:2").unwrap();
                want.push_str("0 errors, enqueued 2 value(s).\n");
            }
            1 => {
                writeln!(script, "UPDATE none.rrd {index}:1").unwrap();
                want.push_str(&format!("-1 No such file: {base}/none.rrd\n"));
            }
            2 => {
                writeln!(script, "UPDATE b.rrd {index}:1 x").unwrap();
                want.push_str("-1 Cannot find timestamp in 'x'!\n");
            }
            3 if index % 50 == 3 => {
                writeln!(script, "PING").unwrap();
                want.push_str("0 PONG\n");
            }
            3 => {
                writeln!(script, "UPDATE d/c.rrd {index}:1").unwrap();
                want.push_str("0 errors, enqueued 1 value(s).\n");
            }
            _ => {
                writeln!(script, "what {index}").unwrap();
                want.push_str("-1 Unknown command: what\n");
            }
        }
    }
    script.extend_from_slice(b"QUIT\n");
    let mut writer = UnixStream::connect(roundel.socket()).unwrap();
    let mut reader = writer.try_clone().unwrap();
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut reader, &mut text).unwrap();
        text
    });
    writer.write_all(&script).unwrap();
    assert!(reading.join().unwrap() == want, "the answers are not those of the script");
    // gmetad expects one answer per read.
    let mut once = [0; 65536];
    let stream = UnixStream::connect(roundel.socket()).unwrap();
    (&stream).write_all(b"HELP\n").unwrap();
    let count = std::io::Read::read(&mut (&stream), &mut once).unwrap();
    assert!(once[..count].ends_with(b"QUIT\n"), "HELP came in pieces");
}

#[test]
fn big_batches_report_by_command_number() {
    let (engine, roundel) = start();
    let mut client = Client::open(&roundel.socket());
    client.write(b"BATCH\n");
    client.read();
    let mut script = Vec::new();
    for number in 1..=20_000 {
        let name = if number % 4000 == 0 { "none.rrd" } else { "d/c.rrd" };
        writeln!(script, "UPDATE {name} {number}:1").unwrap();
    }
    script.extend_from_slice(b".\n");
    client.write(&script);
    let base = roundel.base().display().to_string();
    let mut want = "5 errors\n".to_string();
    for number in [4000, 8000, 12_000, 16_000, 20_000] {
        want.push_str(&format!("{number} No such file: {base}/none.rrd\n"));
    }
    assert_eq!(client.read(), want);
    let updates = engine.updates("d/c.rrd");
    assert_eq!((updates.len(), updates[0].as_str(), updates[19_994].as_str()), (19_995, "1:1", "19999:1"));
}

#[test]
fn updates_of_clients_that_disconnect_are_kept() {
    let (engine, roundel) = start();
    for round in 0..50 {
        let mut stream = UnixStream::connect(roundel.socket()).unwrap();
        stream.write_all(b"BATCH\n").unwrap();
        for index in 0..100 {
            writeln!(stream, "UPDATE a.rrd {}:1", round * 1000 + index).unwrap();
        }
        stream.write_all(b"UPDATE a.rrd 12345").unwrap();
    }
    wait_until("all updates to be done", || engine.words.load(Ordering::Relaxed) == 5000);
    let mut client = Client::open(&roundel.socket());
    assert_eq!(client.say("PING"), "0 PONG\n");
}

#[test]
fn a_panic_ends_one_connection() {
    let (_, roundel) = start();
    let mut other = Client::open(&roundel.socket());
    assert_eq!(other.say("PING"), "0 PONG\n");
    let mut client = Client::open(&roundel.socket());
    client.write(b"INFO panic\n");
    assert_eq!(client.rest(), "");
    assert_eq!(other.say("PING"), "0 PONG\n");
    wait_until("the panic to be counted", || roundel.service().metrics.panics.get() > 0);
    assert!(roundel.get("/metrics").contains("roundel_connection_panics_total 1\n"));
}

#[test]
fn ten_thousand_connections_are_served() {
    let hard = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard }).unwrap();
    let (_, roundel) = start();
    let hard = hard.unwrap_or(u64::MAX);
    // Both ends are in this process.
    let count = 10_000.min((hard.saturating_sub(500) / 2) as usize);
    assert!(count >= 1000, "the limit of open files is {hard}");
    let mut clients: Vec<Client> = (0..count).map(|_| Client::open(&roundel.socket())).collect();
    for client in &mut clients {
        client.write(b"UPDATE a.rrd 5:1\n");
    }
    for client in &mut clients {
        assert_eq!(client.read(), "0 errors, enqueued 1 value(s).\n");
    }
    assert!(roundel.get("/metrics").contains(&format!("roundel_connections_open {count}\n")));
}

#[test]
fn starting_and_stopping_under_load_leaves_nothing_behind() {
    for round in 0..50 {
        let engine = Recorder::new(&["a.rrd"]);
        let roundel = Roundel::with_engine(Arc::clone(&engine) as _);
        let socket = roundel.socket();
        let end = Arc::new(AtomicBool::new(false));
        let acknowledged = Arc::new(AtomicU64::new(0));
        let clients: Vec<_> = (0..4)
            .map(|_| {
                let (socket, end, acknowledged) =
                    (socket.clone(), Arc::clone(&end), Arc::clone(&acknowledged));
                std::thread::spawn(move || {
                    while !end.load(Ordering::Relaxed) {
                        let Ok(mut stream) = UnixStream::connect(&socket) else { return };
                        if stream.write_all(b"UPDATE a.rrd 5:1\nUPDATE a.rrd 6:1\nQUIT\n").is_err() {
                            return;
                        }
                        let mut text = String::new();
                        if std::io::Read::read_to_string(&mut stream, &mut text).is_err() {
                            return;
                        }
                        acknowledged.fetch_add(text.matches("enqueued 1").count() as u64, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        // Certainly under load, and at another moment in each round.
        wait_until("a first answer", || acknowledged.load(Ordering::Relaxed) > 0);
        std::thread::sleep(Duration::from_millis(round % 20));
        let service = Arc::clone(roundel.service());
        roundel.stop();
        assert_eq!(service.metrics.connections_open.get(), 0, "a connection had to be cut off");
        end.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().unwrap();
        }
        assert!(engine.words.load(Ordering::Relaxed) >= acknowledged.load(Ordering::Relaxed));
        assert!(!socket.exists());
    }
}
