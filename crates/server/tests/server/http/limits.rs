//! Clients that leave HTTP requests half done or answers unread: they are closed, and others do not wait for them.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::Roundel;
use roundel_server::settings::LimitSettings;
use testkit::{Client, wait_until};

fn idle_after(idle: Duration) -> Roundel {
    Roundel::stripes_with(LimitSettings { idle, connections: 40, ..LimitSettings::default() })
}

fn impatient() -> Roundel {
    idle_after(Duration::from_millis(300))
}

/// A fetch of [`fill`]'s RRD: 300,000 rows, 5 MB of text.
const FETCH: &str = "GET /api/v1/fetch/a.rrd?start=1000000000&end=1000300000 HTTP/1.1\r\nHost: x\r\n\r\n";

/// Makes an RRD of many rows.
fn fill(roundel: &Roundel) {
    let create = "CREATE a.rrd -b 1000000000 -s 1 DS:x:GAUGE:20:0:U RRA:AVERAGE:0.5:1:2000000";
    assert_eq!(Client::open(&roundel.socket()).say(create), "0 RRD created OK\n");
}

fn connect(roundel: &Roundel) -> TcpStream {
    let stream = TcpStream::connect(std::fs::read_to_string(roundel.path("http")).unwrap()).unwrap();
    stream.set_read_timeout(Some(testkit::DEADLINE)).unwrap();
    stream
}

/// Waits until the daemon has closed a connection; what it said before.
fn rest(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    match stream.read_to_end(&mut text) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn half_requests_are_closed() {
    let roundel = impatient();
    let post = "POST /graph HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\narg=";
    for half in ["", "GET /healthz HT", "GET /healthz HTTP/1.1\r\nHost: x\r\n", post] {
        let mut stream = connect(&roundel);
        stream.write_all(half.as_bytes()).unwrap();
        let start = Instant::now();
        let said = rest(stream);
        assert!(start.elapsed() < Duration::from_secs(5), "{half:?}");
        assert!(!said.contains("200 OK"), "{half:?}: {said}");
        assert!(half != post || said.contains("408 "), "{said}");
    }
}

#[test]
fn health_and_metrics_answer_and_neither_listener_starves_the_other() {
    let roundel = impatient();
    // More than there are slots, again and again.
    let mut half: Vec<TcpStream> = Vec::new();
    for _ in 0..3 {
        for _ in 0..60 {
            let mut stream = connect(&roundel);
            stream.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
            half.push(stream);
        }
        let start = Instant::now();
        assert!(roundel.get("/healthz").contains("200 OK"));
        assert!(roundel.get("/metrics").contains("200 OK"));
        assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
        // The other listener keeps some slots.
        assert_eq!(Client::open(&roundel.socket()).say("PING"), "0 PONG\n");
    }
    drop(half);
    wait_until("their places to be free", || roundel.get("/api/v1/list").contains("200 OK"));
    let silent: Vec<Client> = (0..34).map(|_| Client::open(&roundel.socket())).collect();
    assert!(roundel.get("/api/v1/list").contains("200 OK"));
    drop(silent);
}

#[test]
fn an_unread_answer_is_counted_and_given_up() {
    let roundel = impatient();
    fill(&roundel);
    let mut stream = connect(&roundel);
    let get = "GET /api/v1/fetch/a.rrd?start=1000000000&end=1001000000 HTTP/1.1\r\nHost: x\r\n\r\n";
    stream.write_all(get.as_bytes()).unwrap();
    let memory = &roundel.service().memory;
    wait_until("the answer to be held", || memory.used() > 1_000_000);
    wait_until("the answer to be given up", || memory.used() == 0);
    assert!(rest(stream).contains("200 OK"));
    // One that is read is whole, however long it takes.
    let mut stream = connect(&roundel);
    stream.write_all(get.replace("x\r\n\r\n", "x\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
    let mut bytes = vec![0; 1 << 20];
    let mut count = 0;
    loop {
        match stream.read(&mut bytes).unwrap() {
            0 => break,
            read => count += read,
        }
        if count < 8 << 20 {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    assert!(bytes[..].contains(&b'}') && count > 10_000_000, "{count}");
}

/// Writes `piece` again and again until the daemon closes the connection; what it said, and how long that took.
fn trickle(mut stream: TcpStream, piece: &str) -> (String, Duration) {
    let start = Instant::now();
    while stream.write_all(piece.as_bytes()).is_ok() && start.elapsed() < Duration::from_secs(10) {
        thread::sleep(Duration::from_millis(20));
    }
    (rest(stream), start.elapsed())
}

#[test]
fn requests_that_come_slowly_have_a_time_in_sum() {
    let roundel = impatient();
    let post = "POST /graph HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n";
    let chunked = "POST /graph HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (head, piece) in [("GET /healthz HTTP/1.1\r\n", "X: y\r\n"), (post, "a"), (chunked, "1\r\na\r\n")] {
        let mut stream = connect(&roundel);
        stream.write_all(head.as_bytes()).unwrap();
        let (_, time) = trickle(stream, piece);
        assert!(time < Duration::from_secs(3), "{head}: {time:?}");
    }
    // One without end is refused before its time.
    let roundel = idle_after(Duration::from_secs(30));
    let mut stream = connect(&roundel);
    stream.write_all(chunked.as_bytes()).unwrap();
    let chunk = format!("10000\r\n{}\r\n", "a".repeat(0x10000));
    let (said, time) = trickle(stream, &chunk);
    assert!(time < Duration::from_secs(5), "{time:?}");
    assert!(said.is_empty() || said.contains("413 "), "{said}");
    assert_eq!(roundel.service().memory.used(), 0);
}

#[test]
fn an_answer_that_is_read_slowly_is_given_up() {
    let roundel = impatient();
    fill(&roundel);
    let mut stream = connect(&roundel);
    // The daemon can always write a little.
    rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 8192).unwrap();
    stream.write_all(FETCH.replace("1000300000", "1001900000").as_bytes()).unwrap();
    let memory = &roundel.service().memory;
    let start = Instant::now();
    let mut bytes = [0; 500];
    // 25 kB/s: the answer would take 20 minutes.
    while stream.read(&mut bytes).is_ok_and(|count| count > 0) && start.elapsed() < Duration::from_secs(10) {
        thread::sleep(Duration::from_millis(20));
        if start.elapsed() > Duration::from_secs(1) && memory.used() == 0 {
            return;
        }
    }
    panic!("{} bytes are held after {:?}", memory.used(), start.elapsed());
}

#[test]
fn what_is_read_holds_nothing_while_its_connection_stays() {
    let roundel = idle_after(Duration::from_secs(60));
    fill(&roundel);
    // Most of them wait for their turn.
    let mut streams: Vec<TcpStream> = (0..20).map(|_| connect(&roundel)).collect();
    for stream in &mut streams {
        stream.write_all(FETCH.as_bytes()).unwrap();
    }
    for stream in &mut streams {
        let (mut bytes, mut text) = (vec![0; 1 << 20], Vec::new());
        while !text.ends_with(b"0\r\n\r\n") {
            let count = stream.read(&mut bytes).unwrap();
            assert!(count > 0);
            text.extend_from_slice(&bytes[..count]);
            text.drain(..text.len().saturating_sub(10));
        }
    }
    wait_until("nothing to be held", || roundel.service().memory.used() == 0);
    for stream in &mut streams {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert!(stream.read(&mut [0; 1000]).unwrap() > 0);
    }
}

#[test]
fn pipelined_half_closed_and_bodyless_requests_leave_nothing_behind() {
    let roundel = impatient();
    fill(&roundel);
    let memory = &roundel.service().memory;
    let health = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut stream = connect(&roundel);
    stream.write_all(health.repeat(1000).as_bytes()).unwrap();
    assert_eq!(rest(stream).matches("200 OK").count(), 1000);

    // Many more than it reads answers to.
    let mut stream = connect(&roundel);
    stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    stream.write_all(FETCH.repeat(20_000).as_bytes()).ok();
    wait_until("unread answers to be given up", || memory.used() == 0);

    let mut stream = connect(&roundel);
    stream.write_all(FETCH.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    rest(stream);
    wait_until("the answer of a client that has gone to be given up", || memory.used() == 0);

    for get in [health, FETCH] {
        let mut stream = connect(&roundel);
        stream.write_all(get.replace("GET", "HEAD").as_bytes()).unwrap();
        let said = rest(stream);
        assert!(said.starts_with("HTTP/1.1 200 OK\r\n") && said.ends_with("\r\n\r\n"), "{said}");
        assert_eq!(memory.used(), 0);
    }
}

#[test]
fn no_client_keeps_the_connections_in_reserve() {
    let roundel = idle_after(Duration::from_secs(20));
    fill(&roundel);
    // All ordinary ones are busy, and those in reserve ask more than they read.
    let open = |text: &str| {
        let mut stream = connect(&roundel);
        stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        stream.write_all(text.as_bytes()).ok();
        stream
    };
    let answered = || {
        let stream = open(FETCH);
        // Before that, it would give way to the next client.
        assert_eq!(stream.peek(&mut [0]).unwrap(), 1, "its answer has begun");
        stream
    };
    let busy: Vec<TcpStream> = (0..40).map(|_| answered()).collect();
    let metrics = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".repeat(3000);
    let reserve: Vec<TcpStream> = (0..20).map(|_| open(&metrics)).collect();
    let start = Instant::now();
    for _ in 0..5 {
        assert!(roundel.get("/healthz").contains("200 OK"));
        assert!(roundel.get("/api/v1/list").contains("503 "));
    }
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    assert!(roundel.service().metrics.connections_refused.get() >= 5);
    drop((busy, reserve));
}

#[test]
fn an_answer_larger_than_the_memory_for_clients_names_the_key_that_raises_it() {
    let roundel = Roundel::stripes_with(LimitSettings { memory: 4 << 20, ..LimitSettings::default() });
    fill(&roundel);
    let target = "/api/v1/fetch/a.rrd?start=1000000000&end=1001900000";
    let picture = "/graph?arg=--width=1500&arg=--height=1500&arg=DEF:a=a.rrd:x:AVERAGE&arg=LINE:a%23f00";
    for target in [target, picture] {
        let said = roundel.get(target);
        assert!(said.starts_with("HTTP/1.1 413 ") && said.contains("raise [limits] memory"), "{said}");
    }
    assert!(roundel.get(&target.replace("1001900000", "1000000100")).contains("200 OK"));
}
