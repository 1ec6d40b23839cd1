//! What others push: Graphite, InfluxDB's lines, statsd and OpenTelemetry, from plain sockets and from real senders.

#[path = "pushed/influx.rs"]
mod influx;
#[path = "pushed/senders.rs"]
mod senders;

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use testkit::{Client, Daemon, Kind, free_port, http_bytes, http_get, wait_for, wait_until};

/// A daemon with all ports.
struct Receiver {
    daemon: Daemon,
    client: Client,
    http: u16,
    graphite: u16,
    pickle: u16,
    statsd: u16,
    influx: u16,
    _directory: tempfile::TempDir,
}

impl Receiver {
    /// Whose InfluxDB lines over UDP have times in milliseconds, as collectd's; `more` are lines of its configuration.
    fn start(more: &str) -> Self {
        Receiver::with_precision("ms", more)
    }

    /// Whose InfluxDB lines over UDP have times of that precision.
    fn with_precision(precision: &str, more: &str) -> Self {
        let directory = tempfile::Builder::new().prefix("pushed-").tempdir().unwrap();
        let mut daemon = testkit::daemon!(Kind::Stripes, &directory.path().join("daemon"));
        let [http, graphite, pickle, statsd, influx] = [(); 5].map(|()| free_port());
        daemon.configure(&format!(
            "[http]\nlisten = [\"127.0.0.1:{http}\"]\n\
             [statsd]\nlisten = [\"udp://127.0.0.1:{statsd}\", \"tcp://127.0.0.1:{statsd}\"]\nflush = \"1s\"\n\
             [influx]\nlisten = [\"127.0.0.1:{influx}\"]\ndatabase = \"udp\"\nprecision = \"{precision}\"\n\
             [carbon]\nlisten = [\"tcp://127.0.0.1:{graphite}\", \"udp://127.0.0.1:{graphite}\"]\npickle = [\"127.0.0.1:{pickle}\"]\n{more}\n"
        ));
        let client = daemon.start();
        Receiver { daemon, client, http, graphite, pickle, statsd, influx, _directory: directory }
    }

    /// The last reading of an RRD, as LASTUPDATE of RRDtool would show it: time and value; waits for it.
    fn last(&mut self, name: &str) -> (u64, f64) {
        let (client, question) = (&mut self.client, format!("INFO {name}"));
        wait_for(name, || {
            let answer = client.ask(&question).ok()?;
            let line = |start: &str| answer.lines.iter().find_map(|line| line.strip_prefix(start));
            let time = line("last_update 1 ")?.parse().ok()?;
            let value = answer.lines.iter().find(|line| line.contains("].last_ds "))?;
            Some((time, value.split_whitespace().nth(2)?.trim_matches('"').parse().ok()?))
        })
    }

    /// The names of all RRDs, once `done` says that they are all there.
    fn names(&mut self, done: impl Fn(&str) -> bool) -> String {
        let client = &mut self.client;
        wait_for("names", || {
            let names = client.ask("LIST RECURSIVE /").ok()?.lines.join("\n");
            done(&names).then_some(names)
        })
    }

    /// A counter of `/metrics`.
    fn refused(&self, protocol: &str, reason: &str) -> u64 {
        let start = format!("roundel_ingest_refused_total{{protocol=\"{protocol}\",reason=\"{reason}\"}} ");
        let text = http_get(self.http, "/metrics").unwrap();
        text.lines().find_map(|line| line.strip_prefix(&start)).map_or(0, |count| count.parse().unwrap())
    }

    /// A request with these headers: the status and everything after it.
    fn request(&self, head: &str, headers: &[&str], body: &[u8]) -> (u16, String) {
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let (method, target) = head.split_once(' ').unwrap();
        let answer = http_bytes(self.http, method, target, &headers, body).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

#[test]
fn lines_come_over_tcp_and_udp() {
    let mut receiver = Receiver::start("");
    let time = now() - 100;
    let mut stream = TcpStream::connect(("127.0.0.1", receiver.graphite)).unwrap();
    write!(stream, "a.b 1.5 {time}\r\nbad\nno.number x {time}\n").unwrap();
    // A line in two pieces.
    write!(stream, "disk.used;host=web").unwrap();
    stream.flush().unwrap();
    assert_eq!(receiver.last("series/a/b.rrd"), (time, 1.5));
    write!(stream, "1;rack=r 42 {time}\na.c 7 {}.25\n", time + 1).unwrap();
    assert_eq!(receiver.last("hosts/web1/disk.used,rack=r.rrd"), (time, 42.0));
    assert_eq!(receiver.last("series/a/c.rrd"), (time + 1, 7.0));
    // Without a time it is now; half a line at the end is none.
    write!(stream, "n 3\ncut 1").unwrap();
    drop(stream);
    assert!(receiver.last("series/n.rrd").0 >= time + 100);
    wait_until("the cut line is counted", || receiver.refused("graphite", "cut_off") == 1);
    assert_eq!((receiver.refused("graphite", "no_value"), receiver.refused("graphite", "bad_value")), (1, 1));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let udp = format!("u.a 1 {time}\nu.b nan {time}\nu.c 2 {time}");
    socket.send_to(udp.as_bytes(), ("127.0.0.1", receiver.graphite)).unwrap();
    assert_eq!(receiver.last("series/u/c.rrd"), (time, 2.0));
    assert_eq!(receiver.refused("graphite", "not_finite"), 1);
    let influx = "weather,host=h temperature=20.5,text=\"x\"";
    socket.send_to(influx.as_bytes(), ("127.0.0.1", receiver.influx)).unwrap();
    assert_eq!(receiver.last("hosts/h/weather_temperature,db=udp.rrd").1, 20.5);
    assert_eq!(receiver.refused("influx", "text"), 1);
    // A line without an end costs itself.
    let mut stream = TcpStream::connect(("127.0.0.1", receiver.graphite)).unwrap();
    stream.write_all(&vec![b'x'; 3 << 20]).unwrap();
    write!(stream, "\nafter.it 1 {time}\n").unwrap();
    assert_eq!(receiver.last("series/after/it.rrd"), (time, 1.0));
    assert_eq!(receiver.refused("graphite", "too_long"), 1);
    assert!(receiver.client.ask("PING").is_ok());
}

#[test]
fn pickles_come_from_python() {
    let mut receiver = Receiver::start("");
    let script = r#"
import pickle, socket, struct, sys, time
port, when = int(sys.argv[1]), int(sys.argv[2])
s = socket.create_connection(("127.0.0.1", port))
for protocol in range(5):
    body = pickle.dumps([("p%d.x" % protocol, (when, 1.5 + protocol)), ("bad", (when, None)),
                         ("p%d.y;host=h" % protocol, (when, 10 ** protocol))], protocol=protocol)
    s.sendall(struct.pack("!L", len(body)) + body)
class Evil:
    def __reduce__(self):
        import os
        return (os.mkdir, (sys.argv[3],))
body = pickle.dumps([("evil", (when, Evil()))], protocol=2)
s.sendall(struct.pack("!L", len(body)) + body)
body = pickle.dumps([("last.one", (when, 9))], protocol=2)
s.sendall(struct.pack("!L", len(body)) + body)
"#;
    let time = now() - 100;
    let evil = receiver.daemon.directory().join("evil");
    let ports = [receiver.pickle.to_string(), time.to_string()];
    let status =
        Command::new("/usr/bin/python3").args(["-c", script]).args(&ports).arg(&evil).status().unwrap();
    assert!(status.success());
    assert_eq!(receiver.last("series/last/one.rrd"), (time, 9.0));
    for protocol in 0..5_i32 {
        assert_eq!(receiver.last(&format!("series/p{protocol}/x.rrd")), (time, 1.5 + f64::from(protocol)));
        assert_eq!(receiver.last(&format!("hosts/h/p{protocol}.y.rrd")).1, 10_f64.powi(protocol));
    }
    assert!(!evil.exists());
    assert_eq!(
        (receiver.refused("pickle", "bad_value"), receiver.refused("pickle", "pickle_forbidden")),
        (5, 1)
    );
    assert!(receiver.daemon.log().contains("the instruction GLOBAL"), "{}", receiver.daemon.log());
    // One that says it is longer than any is the end of its connection.
    let mut stream = TcpStream::connect(("127.0.0.1", receiver.pickle)).unwrap();
    stream.write_all(&[0xff; 8]).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
    assert_eq!(receiver.refused("pickle", "pickle_too_long"), 1);
}

#[test]
fn statsd_is_added_up() {
    let mut receiver = Receiver::start("");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let lines = "hits:3|c|#host:h\nload:2.5|g\nbad:x|c\n_sc|check|0\ntime:10:20:60|ms";
    socket.send_to(lines.as_bytes(), ("127.0.0.1", receiver.statsd)).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", receiver.statsd)).unwrap();
    stream.write_all(b"users:a|s\nusers:b|s\n").unwrap();
    assert_eq!(receiver.last("series/stats/gauges/load.rrd").1, 2.5);
    for name in [
        "hosts/h/stats.hits.rrd",
        "hosts/h/stats_counts.hits.rrd",
        "series/stats/sets/users/count.rrd",
        "series/stats/timers/time/upper_90.rrd",
    ] {
        receiver.last(name);
    }
    assert_eq!((receiver.refused("statsd", "bad_value"), receiver.refused("statsd", "event")), (1, 1));
}

/// Anyone can send to a port of UDP; what comes by another way finds its share of the RRDs that are made in a minute.
#[test]
fn a_flood_of_names_leaves_others_their_new_rrds() {
    let mut receiver = Receiver::start("[ingest]\nnew_per_minute = 40\n");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for number in 0..500 {
        let line = format!("flood{number}:1|g");
        socket.send_to(line.as_bytes(), ("127.0.0.1", receiver.statsd)).unwrap();
    }
    wait_until("the flood to be refused", || receiver.refused("statsd", "new_per_minute") > 0);
    let time = now() - 100;
    let line = format!("m,host=h v=1 {time}");
    let (status, answer) = receiver.request("POST /write?precision=s", &[], line.as_bytes());
    assert_eq!(status, 204, "{answer}");
    let mut stream = TcpStream::connect(("127.0.0.1", receiver.graphite)).unwrap();
    writeln!(stream, "a.b 1.5 {time}").unwrap();
    assert_eq!(receiver.last("series/a/b.rrd"), (time, 1.5));
    // Who is refused is told so.
    let lines: String = (0..50).map(|number| format!("m{number},host=h v=1 {time}\n")).collect();
    let (status, answer) = receiver.request("POST /write?precision=s", &[], lines.as_bytes());
    assert!(status == 503 && answer.contains("more than its share of 40 new RRDs a minute"), "{answer}");
    assert!(receiver.daemon.log().contains("more than its share of 40 new RRDs a minute"));
}

#[test]
fn carbon_files_say_which_rrds_are_made() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(
        path("s.conf"),
        "[fast]\npattern = ^fast\\.\nretentions = 10s:1h,1m:1d\n[all]\npattern = .*\nretentions = 1m:1d\n",
    )
    .unwrap();
    std::fs::write(
        path("a.conf"),
        "[max]\npattern = \\.max$\nxFilesFactor = 0.25\naggregationMethod = max\n",
    )
    .unwrap();
    let more = format!(
        "schemas = \"{}\"\naggregation = \"{}\"\npath = \"graphite/{{name/}}\"\n",
        path("s.conf").display(),
        path("a.conf").display()
    );
    let mut receiver = Receiver::start(&more);
    let time = now() / 60 * 60;
    let mut stream = TcpStream::connect(("127.0.0.1", receiver.graphite)).unwrap();
    write!(stream, "fast.cpu.max 1 {time}\nslow 2 {time}\n").unwrap();
    receiver.last("graphite/slow.rrd");
    let info = receiver.client.ask("INFO graphite/fast/cpu/max.rrd").unwrap();
    let text = format!("{info:?}");
    for want in
        ["step 1 10", "rra[0].cf 2 MAX", "rra[0].rows 1 360", "rra[1].pdp_per_row 1 6", "rra[1].xff 0 7.5"]
    {
        assert!(text.contains(want), "{want}: {text}");
    }
}

/// A page of any site can make a browser send this to a port on loopback, with lines of its own in the body.
#[test]
fn a_request_of_http_ends_the_connection_before_its_body_is_read() {
    let mut receiver = Receiver::start("");
    let time = now() - 100;
    let long = "x".repeat(40_000);
    for port in [receiver.graphite, receiver.statsd, receiver.pickle] {
        for first in ["POST / HTTP/1.1", "GET /x HTTP/1.0", &format!("POST /{long} HTTP/1.1")] {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let head = format!("{first}\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 50\r\n\r\n");
            // It may have been closed in the middle of that.
            let _ = write!(stream, "{head}evil.graphite 1 {time}\nevil.statsd:1|c\n");
            assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "{port}: the connection has ended");
        }
    }
    assert_eq!((receiver.refused("graphite", "http"), receiver.refused("statsd", "http")), (3, 3));
    assert_eq!(receiver.refused("pickle", "pickle_too_long"), 3);
    // What may be a name is not taken for it, nor is a line that follows others.
    let mut stream = TcpStream::connect(("127.0.0.1", receiver.graphite)).unwrap();
    write!(stream, "POST.HTTP/1.1 1 {time}\nGET / HTTP/1.1\nafter.it 1 {time}\n").unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", receiver.statsd)).unwrap();
    stream.write_all(b"good:1|c\n").unwrap();
    let names = receiver.names(|names| names.contains("after/it") && names.contains("good"));
    assert!(!names.contains("evil"), "{names}");
}

/// Lines are read some thousands at once; what is left when a connection ends is read, too.
#[test]
fn many_short_lines_at_once_all_count() {
    let mut receiver = Receiver::start("");
    let time = now() - 100;
    let mut stream = TcpStream::connect(("127.0.0.1", receiver.graphite)).unwrap();
    let lines = "x\n".repeat(100_000) + &"\n".repeat(100_000);
    write!(stream, "{lines}last 1 {time}\ncut 1").unwrap();
    drop(stream);
    assert_eq!(receiver.last("series/last.rrd"), (time, 1.0));
    wait_until("all lines are counted", || {
        (receiver.refused("graphite", "no_value"), receiver.refused("graphite", "cut_off")) == (100_000, 1)
    });
}
