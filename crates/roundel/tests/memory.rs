//! What clients may make the daemon hold: answers that are not read, and requests that never end.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use protocol::frames::request::{push_command, push_fetch};
use rrd::definition::Cf;
use rrd::fetch::FetchRequest;
use testkit::{Client, DEADLINE, Daemon, Kind, wait_until};

/// The budget of the daemon under test.
const MEMORY: u64 = 128_000_000;
/// Memory that may remain in use after the clients have gone: some buffers are kept for the next clients.
const KEPT: u64 = MEMORY / 8;
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
    memory: u64,
    http: u16,
    at_rest: u64,
    /// Pages of the program in memory at rest, in bytes. Their number grows as more of the program runs.
    program_at_rest: u64,
    /// Other memory at rest, in bytes.
    anonymous_at_rest: u64,
    _place: tempfile::TempDir,
}

fn start() -> Attacked {
    start_with(MEMORY)
}

fn start_with(memory: u64) -> Attacked {
    let place = tempfile::tempdir().unwrap();
    let mut daemon = testkit::daemon!(Kind::Stripes, place.path());
    let http = testkit::free_port();
    daemon.configure(&format!(
        "[http]\nlisten = [\"127.0.0.1:{http}\"]\n[limits]\nmemory = \"{memory} B\"\nidle = \"2s\"\n"
    ));
    let mut client = daemon.start();
    assert_eq!(client.ask(&format!("CREATE a.rrd {CREATE}")).unwrap().status, 0);
    assert_eq!(client.ask("UPDATE a.rrd 1000000001:1").unwrap().status, 0);
    let at_rest = bytes(daemon.process(), "VmRSS");
    let program_at_rest = bytes(daemon.process(), "RssFile");
    let anonymous_at_rest = bytes(daemon.process(), "RssAnon");
    Attacked { daemon, memory, http, at_rest, program_at_rest, anonymous_at_rest, _place: place }
}

impl Attacked {
    /// Checks that the memory stayed within the budget, and that others were and are served.
    fn check(&self, what: &str) {
        let mut client = Client::connect(&self.daemon.socket()).unwrap();
        assert_eq!(client.ask("FETCH a.rrd AVERAGE 1000000000 1000000001").unwrap().lines.len(), 8, "{what}");
        let program = bytes(self.daemon.process(), "RssFile").saturating_sub(self.program_at_rest);
        let grown = (bytes(self.daemon.process(), "VmHWM") - self.at_rest).saturating_sub(program);
        let [at_rest, program_mb, grown_mb] = [self.at_rest, program, grown].map(|bytes| bytes / 1_000_000);
        println!(
            "{what}: {at_rest} MB at rest, {grown_mb} MB more at most, and {program_mb} MB of the program"
        );
        // What clients may make the daemon take, beyond what it takes at rest.
        assert!(grown < self.memory / 5 * 6, "{what}: {grown} bytes more than at rest");
    }

    /// Checks that memory goes back to the system, although no client asks for anything any more.
    fn check_return(&self, what: &str) {
        let start = Instant::now();
        let more = || bytes(self.daemon.process(), "RssAnon").saturating_sub(self.anonymous_at_rest);
        while more() >= KEPT {
            if start.elapsed() > DEADLINE {
                let kept = more();
                let metrics = testkit::http_get(self.http, "/metrics").unwrap_or_default();
                let known =
                    metrics.lines().filter(|line| line.contains("memory") || line.contains("connections"));
                panic!("{what}: {kept} bytes are kept\n{}", known.collect::<Vec<_>>().join("\n"));
            }
            thread::sleep(Duration::from_millis(100));
        }
        println!("{what}: {} MB after {} idle ms", more() / 1_000_000, start.elapsed().as_millis());
    }

    /// `count` clients that send this and read nothing.
    fn attack(&self, count: usize, text: &[u8]) -> Vec<Option<UnixStream>> {
        let socket = self.daemon.socket();
        thread::scope(|scope| {
            let attack = || (0..count / 4).map(|_| attack(&socket, text)).collect::<Vec<_>>();
            let clients: Vec<_> = (0..4).map(|_| scope.spawn(attack)).collect();
            clients.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        })
    }

    /// The same over HTTP.
    fn attack_http(&self, text: &str) -> Option<TcpStream> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.http)).ok()?;
        stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
        // Those that are too many are closed.
        stream.write_all(text.as_bytes()).ok();
        Some(stream)
    }

    /// A number of `/metrics`; `None` while no connection is free for it.
    fn metric(&self, name: &str) -> Option<u64> {
        let metrics = testkit::http_get(self.http, "/metrics")?;
        metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    }

    /// Waits until so many clients were let in, and the daemon has begun with what they sent.
    fn wait_until_let_in(&self, clients: usize) {
        wait_until("clients to be let in", || {
            self.metric("roundel_connections_total").is_some_and(|let_in| let_in > clients as u64)
        });
        // No number says that an answer fills its buffers, or that a line does not go on.
        thread::sleep(Duration::from_millis(300));
    }

    fn run(&self, what: &str, count: usize, text: &[u8]) {
        let held = self.attack(count, text);
        self.wait_until_let_in(held.iter().flatten().count());
        self.check(what);
        drop(held);
        self.check_return(what);
    }
}

/// Clients that hold as much as they can: how many, and what each sends.
fn attackers() -> [(&'static str, usize, Vec<u8>); 9] {
    let fetch = "a.rrd AVERAGE 1000000000 1002000000\n";
    let error = [&[b'x'; 1000][..], b"\n"].concat();
    let mut frames = b"FRAMES 2\n".to_vec();
    for number in 0..4 {
        push_command(&mut frames, number, b"FETCH a.rrd AVERAGE 1000000000 1002000000");
        push_fetch(
            &mut frames,
            number,
            b"a.rrd",
            &FetchRequest::new(Cf::Average, 1_000_000_000, 1_002_000_000, 1),
        );
    }
    [
        ("24 FETCHes", 24, format!("FETCH {fetch}").into_bytes()),
        ("24 FETCHBINs", 24, format!("FETCHBIN {fetch}").into_bytes()),
        ("24 DUMPs", 24, b"DUMP a.rrd\n".to_vec()),
        ("24 EXPORTs", 24, b"EXPORT a.rrd\n".to_vec()),
        ("24 connections in frames", 24, frames),
        ("200 HELPs", 200, b"HELP\n".repeat(50_000)),
        ("3,000 half lines", 3000, vec![b'x'; 250_000]),
        (
            "3,000 half frames",
            3000,
            [&b"FRAMES 2\n\xff\xff\x0f\0\x01\0\0\0\x01\0\0\0"[..], &[b'x'; 250_000]].concat(),
        ),
        ("60 BATCHes", 60, [&b"BATCH\n"[..], &error.repeat(8000)].concat()),
    ]
}

#[test]
fn unread_answers() {
    for (what, count, text) in &attackers()[..5] {
        start().run(what, *count, text);
    }
}

#[test]
fn unread_helps() {
    // What the first attack took is free for the second.
    let attacked = start();
    let (what, count, text) = &attackers()[5];
    for round in ["", " again"] {
        attacked.run(&format!("{what}{round}"), *count, text);
    }
}

#[test]
fn endless_lines_and_frames() {
    for (what, count, text) in &attackers()[6..8] {
        start().run(what, *count, text);
    }
}

#[test]
fn batches_of_errors() {
    let (what, count, text) = &attackers()[8];
    start().run(what, *count, text);
}

/// Those over HTTP.
fn http_attackers() -> [(usize, String); 6] {
    let arguments = "arg=DEF:a=a.rrd:a:AVERAGE&arg=CDEF:b=a,2,*&arg=XPORT:a&arg=XPORT:b";
    let half = |bytes: usize| format!("GET /metrics HTTP/1.1\r\nHost: x\r\nX: {}", "x".repeat(bytes));
    [
        (60, get(&format!("/api/v1/fetch/a.rrd?format=json&{SHORT}"))),
        (60, get("/api/v1/fetch/a.rrd?format=csv&start=1000000000&end=1002000000")),
        (60, get(&format!("/api/v1/xport?step=1&maxrows=1000000&{SHORT}&{arguments}"))),
        (60, get(&format!("/graph?{PICTURE}"))),
        (500, half(7_000)),
        (500, half(100_000)),
    ]
}

#[test]
fn all_of_them_at_once() {
    raise_descriptor_limit();
    let attacked = start();
    // What was sent is done even when its client has gone, so not many of these.
    let slow = b"FLUSHALL\nFLUSH a.rrd\nTUNE a.rrd --heartbeat a:20\nLIST /\n".repeat(20);
    let others = [("idle", 4000, Vec::new()), ("slow commands", 200, slow)];
    let held = thread::scope(|scope| {
        let attacked = &attacked;
        let clients: Vec<_> = attackers()
            .into_iter()
            .chain(others)
            .map(|(_, count, text)| scope.spawn(move || attacked.attack(count, &text)))
            .collect();
        let http = scope.spawn(|| {
            let all = http_attackers();
            let clients = all.iter().flat_map(|(count, text)| (0..*count).map(move |_| text));
            clients.filter_map(|text| attacked.attack_http(text)).collect::<Vec<_>>()
        });
        let others: Vec<_> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
        let count = others.iter().flatten().count();
        assert!(count > 9_500, "{count} connections");
        (others, http.join().unwrap())
    });
    // Not until all are let in: the daemon lets many wait.
    thread::sleep(Duration::from_millis(300));
    attacked.check("all at once");
    drop(held);
    attacked.check_return("all at once");
}

#[test]
fn ten_thousand_connections() {
    raise_descriptor_limit();
    for (what, text) in [("idle connections", Vec::new()), ("short half lines", vec![b'x'; 2000])] {
        start().run(&format!("10,000 {what}"), 10_000, &text);
    }
}

#[test]
fn more_connections_than_there_is_memory_for_wait() {
    raise_descriptor_limit();
    let attacked = start_with(32_000_000);
    // Each holds what none is refused.
    let held = attacked.attack(6_500, &[b'x'; 2000]);
    let open = attacked.metric("roundel_connections_open").unwrap();
    // Three quarters of the memory, 7 KiB each, and some are left to HTTP.
    assert!((1_000..32_000_000 / 4 * 3 / 7_168).contains(&open), "{open} connections");
    drop(held);
    attacked.check("6,500 connections");
    attacked.check_return("6,500 connections");
}

/// Lets this process have as many connections as the daemon.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    assert!(maximum.is_none_or(|most| most > 12_000), "the limit of open files is {maximum:?}");
}

#[test]
fn slow_commands_take_few_threads_and_others_do_not_wait_for_them() {
    let attacked = start();
    let mut client = Client::connect(&attacked.daemon.socket()).unwrap();
    let before = threads(attacked.daemon.process());
    let held =
        attacked.attack(400, &b"FLUSHALL\nFLUSH a.rrd\nTUNE a.rrd --heartbeat a:20\nLIST /\n".repeat(200));
    let cores = thread::available_parallelism().unwrap().get() as u64;
    let mut most = 0;
    let mut tuned = 0;
    wait_until("some slow commands to be done", || {
        for _ in 0..10 {
            most = most.max(threads(attacked.daemon.process()));
            let asked = Instant::now();
            assert_eq!(client.ask("PING").unwrap().status, 0);
            assert!(asked.elapsed() < Duration::from_secs(1), "PING took {:?}", asked.elapsed());
        }
        tuned = attacked.metric("roundel_commands_total{command=\"TUNE\"}").unwrap_or_default();
        tuned >= 100
    });
    assert!(tuned < 400 * 200, "all slow commands were done before");
    println!("{before} threads before, {most} at most");
    assert!(most <= before + 9 * cores + 16, "{before} threads before, {most} at most");
    drop(held);
}

/// Threads of a process.
fn threads(process: u32) -> u64 {
    fs::read_dir(format!("/proc/{process}/task")).unwrap().count() as u64
}

/// 60 unread answers.
fn unread_over_http(target: &str) {
    let attacked = start();
    let text = get(target);
    let mut held: Vec<TcpStream> = (0..60).map(|_| attacked.attack_http(&text).unwrap()).collect();
    for stream in &held {
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        assert!(stream.peek(&mut [0]).unwrap() > 0, "the begin of an answer");
    }
    let what = format!("60 of {target}");
    attacked.check(&what);
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
/// A picture that takes most of the memory for clients.
const PICTURE: &str = "arg=--width=2100&arg=--height=2100&arg=--full-size-mode&arg=--start=1000000000&\
                       arg=--end=1000300000&arg=DEF:a=a.rrd:a:AVERAGE&arg=LINE:a%23f00";

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n")
}

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
    unread_over_http(&format!("/graph?{PICTURE}"));
}

#[test]
fn half_requests_over_http() {
    for bytes in [7_000, 100_000] {
        let attacked = start();
        let half = format!("GET /metrics HTTP/1.1\r\nHost: x\r\nX: {}", "x".repeat(bytes));
        let held: Vec<TcpStream> = (0..3_000).filter_map(|_| attacked.attack_http(&half)).collect();
        let mut stream = TcpStream::connect(("127.0.0.1", attacked.http)).unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert!(first_bytes(&mut stream).contains(" 200 OK\r\n"));
        let what = format!("3000 half requests of {bytes} bytes");
        attacked.check(&what);
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
    let halves = [
        &b"UPDATE a.rrd"[..],
        b"BATCH\nUPDATE a.rrd 1:1\n",
        b"IMPORT b.rrd 100 0 AAAA\n",
        b"FRAMES 2\n\x05",
        b"FRAMES 2\n\x05\0\0\0\x03\0\0\0\x01\0\0\0PI",
    ];
    for half in halves {
        let start = Instant::now();
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(half).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
        assert!(start.elapsed() > Duration::from_secs(1), "{half:?} was closed at once");
    }
    // A client that does not read on is silent in the middle of its answer, and is closed: the rest of the answer does not come. An
    // answer in frames has at most 135 MB, so the RRD for it is smaller; its dump has 7 MB.
    assert_eq!(
        quiet.ask(&format!("CREATE small.rrd {}", CREATE.replace("2000000", "100000"))).unwrap().status,
        0
    );
    let mut frames = b"FRAMES 2\n".to_vec();
    push_command(&mut frames, 1, b"DUMP small.rrd");
    for (what, text) in [("DUMP", &b"DUMP a.rrd\n"[..]), ("DUMP in frames", &frames)] {
        let count = |name: &str| attacked.metric(&format!("roundel_connections_{name}"));
        let before = count("total").unwrap();
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(text).unwrap();
        // Only the first client is still there.
        wait_until("the daemon to close the connection", || {
            count("total").is_some_and(|total| total > before) && count("open") == Some(1)
        });
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut bytes = Vec::new();
        // The daemon hung up with what it had not sent.
        stream.read_to_end(&mut bytes).ok();
        assert!(bytes.len() > 20_000, "{what}: the begin of the answer is missing: {} bytes", bytes.len());
        assert!(bytes.len() < 2_000_000, "{what}: {} bytes", bytes.len());
    }
    // It was silent for longer, but not in the middle of anything.
    assert_eq!(quiet.ask("PING").unwrap().status, 0);
}
