//! W1 from one client that behaves well, at rest and while clients that mean harm do all they can.
//!
//! Most attackers hold something: connections, unread answers, requests that never end. One thread works: it connects,
//! sends half a line, a broken frame or half an HTTP request, and disconnects, as fast as it can.

use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::Bench;
use super::subject::Subject;
use crate::Outcome;
use crate::builds::Program;
use crate::daemon::{Daemon, Kind};
use crate::figures::{Goal, Runs, Unit};
use crate::report::Row;
use crate::workload::Shape;

/// Connections that send nothing.
const IDLE: usize = 10_000;
/// Rounds of a run.
const ROUNDS: u64 = 90;
/// Longest wait for the daemon to take what an attacker sends.
const WRITE_LIMIT: Duration = Duration::from_millis(50);
/// The default of `[limits] memory` on a machine of 4 GB or more.
const MEMORY: f64 = 1e9;

/// What one build gave.
#[derive(Default)]
struct Measured {
    at_rest: Runs,
    attacked: Runs,
    /// Bytes of resident memory beyond those at rest.
    memory: Runs,
    /// Connections of the working attacker.
    storms: u64,
}

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Outcome<()> {
    raise_descriptor_limit();
    let mut measured = Vec::new();
    for program in bench.builds(Kind::Roundel) {
        measured.push(measure(bench, &program)?);
    }
    let Some(ours) = measured.pop() else { return Ok(()) };
    let (peer, peer_memory) = match measured.pop() {
        Some(before) => (before.attacked, before.memory),
        None => (ours.at_rest, Runs::default()),
    };
    bench.report.row(Row {
        figure: "W1, values/s of one client while others attack, against the same at rest".to_string(),
        peer,
        ours: ours.attacked,
        unit: Unit::PerSecond,
        goal: Goal::Times(0.3),
        aim: Goal::None,
    });
    bench.report.row(Row {
        figure: "W1, resident memory of the daemon while others attack, beyond that at rest".to_string(),
        peer: peer_memory,
        ours: ours.memory,
        unit: Unit::Bytes,
        goal: Goal::AtMost(1.2 * MEMORY, Unit::Bytes),
        aim: Goal::AtMost(MEMORY, Unit::Bytes),
    });
    bench.report.note(
        "Attack",
        format!(
            "One W1 client (BATCH, {ROUNDS} rounds a run) on the same two sockets as: {IDLE} idle connections; 200 each of FETCH, \
             FETCHBIN, DUMP, EXPORT of two million rows, HELP 50,000 times, and a FETCH in frames, all unread; 1,000 half \
             lines and 1,000 half frames of 250 kB; 60 BATCHes of 8,000 errors of 1 kB; 60 unread HTTP fetches and 500 half \
             HTTP requests; and a thread that connects, sends half a line, a broken frame or half an HTTP request and hangs up, \
             at full speed ({} connections in all). Memory is VmHWM, with the default budget (1 GB).",
            ours.storms,
        ),
    );
    Ok(())
}

fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // With fewer, there are fewer attackers.
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).ok();
}

fn measure(bench: &mut Bench, program: &Program) -> Outcome<Measured> {
    let (workload, count) = bench.workload(Shape::W1);
    let place = bench.place(&format!("attack-{}", program.title()));
    let mut daemon = Daemon::new(program, &place)?;
    let target = Target { http: daemon.set_http()?, socket: place.canonicalize()?.join("sock") };
    let mut subject = Subject::on(daemon, workload, count)?;
    subject.create(&bench.progress_of(count))?;
    let mut client = subject.client()?;
    client.ask("CREATE big.rrd -b 1000000000 -s 1 DS:a:GAUGE:20:U:U RRA:AVERAGE:0.5:1:2000000")?;
    client.ask("UPDATE big.rrd 1000000001:1")?;
    let mut measured = Measured::default();
    subject.run(30)?;
    for run in 1..=3 {
        bench.say(&format!("Attack: at rest, run {run} of 3"));
        measured.at_rest.push(subject.run(ROUNDS)?.accepted_rate());
    }
    let rest_bytes = subject.daemon.usage()?.rss_bytes;
    bench.say("Attack: the attackers take their places");
    let held = target.hold();
    let (stop, storms) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| -> Outcome<()> {
        scope.spawn(|| target.storm(&stop, &storms));
        let runs = (1..=3).try_for_each(|run| {
            bench.say(&format!("Attack: attacked, run {run} of 3"));
            measured.attacked.push(subject.run(ROUNDS)?.accepted_rate());
            Ok(())
        });
        stop.store(true, Ordering::Relaxed);
        runs
    })?;
    let usage = subject.daemon.usage()?;
    measured.memory = Runs::one(usage.rss_max_bytes.saturating_sub(rest_bytes) as f64);
    measured.storms = storms.load(Ordering::Relaxed);
    drop(held);
    subject.daemon.stop()?;
    std::fs::remove_dir_all(place).ok();
    Ok(measured)
}

/// The sockets of the attacked daemon.
struct Target {
    socket: PathBuf,
    http: String,
}

/// Connections that stay open.
#[derive(Default)]
struct Held {
    _streams: Vec<UnixStream>,
    _http: Vec<TcpStream>,
}

impl Target {
    /// A connection that has sent what the daemon takes of `text`; the daemon may refuse or close it.
    fn unix(&self, text: &[u8]) -> Option<UnixStream> {
        let mut stream = UnixStream::connect(&self.socket).ok()?;
        stream.set_write_timeout(Some(WRITE_LIMIT)).ok()?;
        stream.write_all(text).ok();
        Some(stream)
    }

    fn http(&self, text: &str) -> Option<TcpStream> {
        let mut stream = TcpStream::connect(&self.http).ok()?;
        stream.write_all(text.as_bytes()).ok();
        Some(stream)
    }

    /// The attackers that only hold something.
    fn hold(&self) -> Held {
        let mut held = Held::default();
        let line = b"FETCH big.rrd AVERAGE 998000000 1000000001";
        let mut frames = b"FRAMES 2\n".to_vec();
        // A command in a frame: bytes of the body, kind, number.
        frames.extend_from_slice(&(line.len() as u32).to_le_bytes());
        frames.extend_from_slice(&[3, 0, 0, 0, 1, 0, 0, 0]);
        frames.extend_from_slice(line);
        let half_frame = [&b"FRAMES 2\n\xff\xff\x0f\0\x01\0\0\0\x01\0\0\0"[..], &[b'x'; 250_000]].concat();
        let errors = [&b"BATCH\n"[..], &[&[b'x'; 1000][..], b"\n"].concat().repeat(8000)].concat();
        let kinds: [(usize, Vec<u8>); 10] = [
            (200, [&line[..], b"\n"].concat()),
            (200, b"FETCHBIN big.rrd AVERAGE 998000000 1000000001\n".to_vec()),
            (200, b"DUMP big.rrd\n".to_vec()),
            (200, b"EXPORT big.rrd\n".to_vec()),
            (200, b"HELP\n".repeat(50_000)),
            (200, frames),
            (1000, vec![b'x'; 250_000]),
            (1000, half_frame),
            (60, errors),
            (IDLE, Vec::new()),
        ];
        for (count, text) in kinds {
            held._streams.extend((0..count).filter_map(|_| self.unix(&text)));
        }
        let fetch = "GET /api/v1/fetch/big.rrd?start=999700000&end=1000000001 HTTP/1.1\r\nHost: x\r\n\r\n";
        for (count, text) in [(60, fetch), (500, "GET /graph?x=y HTTP/1.1\r\nHost: x\r\nX-Half")] {
            held._http.extend((0..count).filter_map(|_| self.http(text)));
        }
        held
    }

    /// The attacker that works.
    fn storm(&self, stop: &AtomicBool, connections: &AtomicU64) {
        while !stop.load(Ordering::Relaxed) {
            self.unix(b"");
            self.unix(b"UPDATE big.rrd 1000");
            self.unix(b"FRAMES 2\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
            self.http("GET /healthz HTTP/1.1\r\nHos");
            connections.fetch_add(4, Ordering::Relaxed);
        }
    }
}
