//! What clients may make the daemon hold: answers that are not read, and requests that never end.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod wire;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use wire::{Client, Daemon, Kind};

/// The budget of the daemon under test.
const MEMORY: u64 = 128_000_000;
/// What a few answers take while they are made, however small the budget is.
const IN_PROGRESS: u64 = 64_000_000;
const CREATE: &str = "-b 1000000000 -s 1 DS:a:GAUGE:20:0:U RRA:AVERAGE:0.5:1:2000000";

/// A field of /proc/PID/status, in bytes.
fn bytes(process: u32, field: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    1024 * line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().unwrap()
}

/// A client that sends what the daemon takes and reads nothing.
fn attack(socket: &Path, text: &[u8]) -> Option<UnixStream> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    // The daemon may have closed it, or takes no more.
    stream.write_all(text).ok();
    Some(stream)
}

struct Attacked {
    daemon: Daemon,
    http: u16,
    at_rest: u64,
    _place: tempfile::TempDir,
}

fn start() -> Attacked {
    let place = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::new(Kind::Stripes, place.path());
    let http = oracle::free_port();
    daemon.configure(&format!(
        "[http]\nlisten = [\"127.0.0.1:{http}\"]\n[limits]\nmemory = \"{MEMORY} B\"\nidle = \"2s\"\n"
    ));
    let mut client = daemon.start();
    assert_eq!(client.ask(&format!("CREATE a.rrd {CREATE}")).unwrap().status, 0);
    assert_eq!(client.ask("UPDATE a.rrd 1000000001:1").unwrap().status, 0);
    let at_rest = bytes(daemon.process(), "VmRSS");
    Attacked { daemon, http, at_rest, _place: place }
}

impl Attacked {
    /// Checks that the memory stayed within the budget, and that others were and are served.
    fn check(&self, what: &str) {
        self.check_within(what, MEMORY / 5 * 6 + IN_PROGRESS);
    }

    fn check_within(&self, what: &str, most: u64) {
        let mut client = Client::connect(&self.daemon.socket()).unwrap();
        assert_eq!(client.ask("FETCH a.rrd AVERAGE 1000000000 1000000001").unwrap().lines.len(), 8, "{what}");
        let grown = bytes(self.daemon.process(), "VmHWM") - self.at_rest;
        println!("{what}: {} MB at rest, {} MB more at most", self.at_rest / 1_000_000, grown / 1_000_000);
        assert!(grown < most, "{what}: {grown} bytes more than at rest");
    }

    /// Checks that memory goes back to the system.
    fn check_return(&self, what: &str) {
        let start = Instant::now();
        loop {
            let more = bytes(self.daemon.process(), "VmRSS").saturating_sub(self.at_rest);
            // Some buffers are kept for the next connections.
            if more < MEMORY / 2 {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "{what}: {more} bytes are kept");
            // A thread gives its memory back when it next allocates.
            for _ in 0..16 {
                let mut client = Client::connect(&self.daemon.socket()).unwrap();
                client.ask("FETCH a.rrd AVERAGE 1000000000 1000002000").unwrap();
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn run(&self, what: &str, count: usize, text: &[u8]) {
        let socket = self.daemon.socket();
        let held: Vec<_> = thread::scope(|scope| {
            let clients: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..count / 4).map(|_| attack(&socket, text)).collect::<Vec<_>>()))
                .collect();
            clients.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        thread::sleep(Duration::from_millis(300));
        self.check(what);
        drop(held);
        self.check_return(what);
    }
}

#[test]
fn unread_fetches() {
    start().run("24 FETCHes", 24, b"FETCH a.rrd AVERAGE 1000000000 1002000000\n");
}

#[test]
fn unread_helps() {
    // What the first attack took is free for the second.
    let attacked = start();
    for round in ["200 HELPs", "200 HELPs again"] {
        attacked.run(round, 200, &b"HELP\n".repeat(50_000));
    }
}

#[test]
fn endless_lines() {
    start().run("800 half lines", 800, &[b'x'; 250_000]);
}

#[test]
fn batches_of_errors() {
    let line = [&[b'x'; 1000][..], b"\n"].concat();
    start().run("40 BATCHes", 40, &[&b"BATCH\n"[..], &line.repeat(8000)].concat());
}

/// 60 unread answers.
fn unread_over_http(target: &str) {
    let attacked = start();
    let get = format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut held: Vec<TcpStream> = (0..60)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", attacked.http)).unwrap();
            stream.write_all(get.as_bytes()).unwrap();
            stream
        })
        .collect();
    thread::sleep(Duration::from_millis(1500));
    let what = format!("60 of {target}");
    attacked.check_within(&what, MEMORY / 5 * 6);
    let heads: Vec<String> = held.iter_mut().map(first_bytes).collect();
    let served = heads.iter().filter(|head| head.contains(" 200 OK\r\n")).count();
    println!("{served} of 60 were answered");
    assert!(served > 0, "{heads:?}");
    assert!(
        heads.iter().all(|head| head.contains(" 200 OK\r\n") || head.contains("[limits] memory")),
        "{heads:?}"
    );
    drop(held);
    attacked.check_return(&what);
}

fn first_bytes(stream: &mut TcpStream) -> String {
    let mut bytes = [0; 600];
    let count = stream.read(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes[..count]).into_owned()
}

const SHORT: &str = "start=1000000000&end=1000300000";

#[test]
fn unread_rows_over_http() {
    unread_over_http(&format!("/api/v1/fetch/a.rrd?format=json&{SHORT}"));
}

#[test]
fn unread_long_rows_over_http() {
    unread_over_http("/api/v1/fetch/a.rrd?format=csv&start=1000000000&end=1002000000");
}

#[test]
fn unread_tables_over_http() {
    let arguments = "arg=DEF:a=a.rrd:a:AVERAGE&arg=CDEF:b=a,2,*&arg=XPORT:a&arg=XPORT:b";
    unread_over_http(&format!("/api/v1/xport?step=1&maxrows=1000000&{SHORT}&{arguments}"));
}

#[test]
fn unread_pictures_over_http() {
    let size = "arg=--width=2500&arg=--height=2500&arg=--full-size-mode";
    let range = "arg=--start=1000000000&arg=--end=1000300000";
    unread_over_http(&format!("/graph?{size}&{range}&arg=DEF:a=a.rrd:a:AVERAGE&arg=LINE:a%23f00"));
}

#[test]
fn half_requests_over_http() {
    for bytes in [7_000, 100_000] {
        let attacked = start();
        let half = format!("GET /metrics HTTP/1.1\r\nHost: x\r\nX: {}", "x".repeat(bytes));
        let held: Vec<TcpStream> = (0..3_000)
            .filter_map(|_| {
                let mut stream = TcpStream::connect(("127.0.0.1", attacked.http)).ok()?;
                stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
                // Those that are too many are closed.
                stream.write_all(half.as_bytes()).ok();
                Some(stream)
            })
            .collect();
        let mut stream = TcpStream::connect(("127.0.0.1", attacked.http)).unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert!(first_bytes(&mut stream).contains(" 200 OK\r\n"));
        let what = format!("3000 half requests of {bytes} bytes");
        attacked.check_within(&what, MEMORY / 5 * 6);
        drop(held);
        attacked.check_return(&what);
    }
}

#[test]
fn a_client_that_is_silent_in_the_middle_of_something_is_closed_and_no_other() {
    let attacked = start();
    let socket = attacked.daemon.socket();
    let mut quiet = Client::connect(&socket).unwrap();
    assert_eq!(quiet.ask("PING").unwrap().status, 0);
    for half in ["UPDATE a.rrd", "BATCH\nUPDATE a.rrd 1:1\n", "IMPORT b.rrd 100 0 AAAA\n"] {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(half.as_bytes()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
    }
    // It was silent for longer, but not in the middle of anything.
    assert_eq!(quiet.ask("PING").unwrap().status, 0);
}
