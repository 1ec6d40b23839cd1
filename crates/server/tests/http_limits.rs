//! Clients that leave HTTP requests half done or answers unread: they are closed, and others do not wait for them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use common::Roundel;
use oracle::{Client, wait_until};
use roundel_server::settings::LimitSettings;

fn impatient() -> Roundel {
    Roundel::stripes_with(LimitSettings {
        idle: Duration::from_millis(300),
        connections: 40,
        ..LimitSettings::default()
    })
}

fn connect(roundel: &Roundel) -> TcpStream {
    let stream = TcpStream::connect(std::fs::read_to_string(roundel.path("http")).unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
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
    let silent: Vec<Client> = (0..34).map(|_| Client::open(&roundel.socket())).collect();
    assert!(roundel.get("/api/v1/list").contains("200 OK"));
    drop(silent);
}

#[test]
fn an_answer_that_nobody_reads_is_counted_and_given_up() {
    let roundel = impatient();
    let mut client = Client::open(&roundel.socket());
    let create = "CREATE a.rrd -b 1000000000 -s 1 DS:x:GAUGE:20:0:U RRA:AVERAGE:0.5:1:2000000";
    assert_eq!(client.say(create), "0 RRD created OK\n");
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
