//! Frames (`docs/protocol/frames.md`): the same answers as in text, and an invalid frame ends only its own
//! connection.

use std::io::{BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::Roundel;
use crate::common::engine::Recorder;
use protocol::frames::answer::{Answer, ENDED};
use protocol::frames::request::{FETCH, Update, push_command, push_updates};
use protocol::frames::{ANSWER_BYTES_MAX, Frame, HEADER_BYTES, REQUEST_BYTES_MAX, push, scan};
use protocol::rrdcached::command::Permissions;
use roundel_server::limits::FRAMES_THREADS_MAX;
use roundel_server::service::CreatePolicy;
use rrd::fetch::FetchRows;
use testkit::random::Random;
use testkit::{Client, wait_until};

/// A client that speaks frames.
struct Framed {
    stream: BufReader<UnixStream>,
    number: u32,
}

impl Framed {
    fn connect(socket: &Path) -> Self {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(b"FRAMES 1\n").unwrap();
        let mut stream = BufReader::new(stream);
        let want = "0 Frames of version 1 from here on\n";
        let mut got = vec![0; want.len()];
        stream.read_exact(&mut got).unwrap();
        assert_eq!(String::from_utf8(got).unwrap(), want);
        Framed { stream, number: 7 }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// The next frame: kind, number and body.
    fn frame(&mut self) -> (u8, u32, Vec<u8>) {
        let mut bytes = vec![0; HEADER_BYTES];
        self.stream.read_exact(&mut bytes).unwrap();
        let length = u32::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
        bytes.resize(HEADER_BYTES + length, 0);
        self.stream.read_exact(&mut bytes[HEADER_BYTES..]).unwrap();
        let (frame, used) = scan(&bytes, ANSWER_BYTES_MAX).unwrap().unwrap();
        assert_eq!(used, bytes.len());
        (frame.kind, frame.number, frame.body.to_vec())
    }

    /// Sends updates; returns the refusals, as `index: text`.
    fn update(&mut self, updates: &[(&str, &str)]) -> Vec<String> {
        self.number += 1;
        let mut out = Vec::new();
        push_updates(&mut out, self.number, updates.iter().map(update));
        self.send(&out);
        self.updated(self.number)
    }

    fn updated(&mut self, number: u32) -> Vec<String> {
        let (kind, answered, body) = self.frame();
        assert_eq!(answered, number);
        match Answer::decode(Frame { kind, number, body: &body }, 1).unwrap() {
            Answer::Updated(refusals) => {
                let text = |text: &[u8]| String::from_utf8(text.to_vec()).unwrap();
                refusals.iter().map(|one| format!("{}: {}", one.index, text(one.text))).collect()
            }
            Answer::Refused(_, text) => vec![String::from_utf8_lossy(text).into_owned()],
            other => panic!("{other:?}"),
        }
    }

    /// Sends a command; returns the text of the answer.
    fn command(&mut self, line: &str) -> String {
        self.number += 1;
        let mut out = Vec::new();
        push_command(&mut out, self.number, line.as_bytes());
        self.send(&out);
        let (kind, number, body) = self.frame();
        assert_eq!((kind, number), (0x83, self.number));
        String::from_utf8(body).unwrap()
    }

    fn fetch(&mut self, name: &str, cf: &str, start: i64, end: i64, step: u64) -> Result<FetchRows, String> {
        self.number += 1;
        let mut out = Vec::new();
        push(&mut out, FETCH, self.number, |body| {
            body.extend_from_slice(&[start.to_le_bytes(), end.to_le_bytes(), step.to_le_bytes()].concat());
            body.extend_from_slice(&(cf.len() as u16).to_le_bytes());
            body.extend_from_slice(&[cf.as_bytes(), name.as_bytes()].concat());
        });
        self.send(&out);
        let (kind, number, body) = self.frame();
        assert_eq!(number, self.number);
        match Answer::decode(Frame { kind, number, body: &body }, 1).unwrap() {
            Answer::Rows(rows) => Ok(rows),
            Answer::Refused(_, text) => Err(String::from_utf8_lossy(text).into_owned()),
            other => panic!("{other:?}"),
        }
    }

    /// The daemon's reason for ending the connection, which it must do now.
    fn end(&mut self) -> String {
        let (kind, number, body) = self.frame();
        assert_eq!((kind, number), (ENDED, 0));
        assert_eq!(self.stream.read(&mut [0; 64]).unwrap(), 0, "the connection goes on");
        String::from_utf8(body).unwrap()
    }
}

fn update<'a>(&(name, values): &(&'a str, &'a str)) -> Update<'a> {
    Update { name: name.as_bytes(), values: values.as_bytes() }
}

/// Our daemon with a store and two RRDs.
fn start() -> Roundel {
    let roundel = Roundel::stripes(CreatePolicy::default(), Permissions::ALL);
    let mut client = Client::open(&roundel.socket());
    for name in ["a.rrd", "b.rrd"] {
        let words = "-b 1000000000 -s 10 DS:x:GAUGE:20:U:U DS:y:GAUGE:20:0:100 RRA:AVERAGE:0.5:1:20 RRA:AVERAGE:0.5:3:20";
        assert_eq!(client.say(format!("CREATE {name} {words}")), "0 RRD created OK\n");
    }
    roundel
}

#[test]
fn updates_are_refused_with_the_texts_of_the_text_protocol() {
    let roundel = start();
    let base = roundel.base().display().to_string();
    let absolute = format!("{base}/b.rrd");
    let updates = [
        ("a.rrd", "1000000010:1:2 1000000020:3:4"),
        ("none.rrd", "1000000010:1:2"),
        (&*absolute, "1000000010:5:6"),
        ("a.rrd", "1000000030:1:2 1000000005:1:2 1000000040:1:2"),
        ("a.rrd", "1000000040:1"),
        ("../a.rrd", "1000000040:1:2"),
        ("/etc/passwd", "1000000040:1:2"),
        ("", "1000000040:1:2"),
        ("a.rrd", ""),
        ("a.rrd", "foo"),
        ("a.rrd", "1000000050:1:2 bar:1"),
        ("b.rrd", "-5:1:2"),
        ("b.rrd", "1000000020:U:7"),
    ];
    // The answers of the text protocol with another store.
    let other = start();
    let mut text = Client::open(&other.socket());
    let other_base = other.base().display().to_string();
    let want: Vec<String> = (0..)
        .zip(updates)
        .filter_map(|(index, (name, values))| {
            let name = name.replace(&base, &other_base);
            let answer = text.say(format!("UPDATE {name} {values}").trim_end());
            let text = answer.strip_prefix("-1 ")?.trim_end().replace(&other_base, &base);
            // In text, a missing name is a missing argument.
            let text = if name.is_empty() { format!("No such file: {base}/") } else { text };
            Some(format!("{index}: {text}"))
        })
        .collect();
    let mut client = Framed::connect(&roundel.socket());
    assert_eq!(client.update(&updates), want);
    assert_eq!(want.len(), 10, "{want:#?}");
    for fetch in ["a.rrd AVERAGE 1000000000 1000000059", "b.rrd AVERAGE 1000000000 1000000059"] {
        assert_eq!(client.command(&format!("FETCH {fetch}")), text.say(format!("FETCH {fetch}")));
    }
}

#[test]
fn rows_equal_those_of_the_text_protocol_and_respect_the_step() {
    let roundel = start();
    let mut client = Framed::connect(&roundel.socket());
    let words: Vec<String> =
        (1..=12).map(|row| format!("{}:{row}:{}", 1_000_000_000 + row * 10, row * 2)).collect();
    assert!(client.update(&[("a.rrd", &words.join(" "))]).is_empty());
    let rows = client.fetch("a.rrd", "AVERAGE", 1_000_000_000, 1_000_000_049, 1).unwrap();
    assert_eq!((rows.start, rows.end, rows.step), (1_000_000_000, 1_000_000_050, 10));
    assert_eq!(rows.ds_names, ["x", "y"]);
    assert_eq!(rows.values, [1.0, 2.0, 2.0, 4.0, 3.0, 6.0, 4.0, 8.0, 5.0, 10.0]);
    let rows = client.fetch("a.rrd", "AVERAGE", 1_000_000_010, 1_000_000_070, 30).unwrap();
    assert_eq!((rows.step, rows.values.len() % 2), (30, 0));
    let refused = |answer: Result<FetchRows, String>| answer.unwrap_err();
    let none = refused(client.fetch("none.rrd", "AVERAGE", 1, 2, 1));
    let base = roundel.base().display().to_string();
    assert_eq!(none, format!("rrd_fetch_r failed: opening '{base}/none.rrd': No such file or directory"));
    let cf = refused(client.fetch("a.rrd", "SUM", 1, 2, 1));
    assert_eq!(cf, "rrd_fetch_r failed: unknown consolidation function 'SUM'");
    let out = refused(client.fetch("/etc/a.rrd", "AVERAGE", 1, 2, 1));
    assert_eq!(out, "/etc/a.rrd: Permission denied");
    assert_eq!(client.command("PING"), "0 PONG\n");
}

#[test]
fn commands_are_answered_in_text() {
    let roundel = start();
    let mut client = Framed::connect(&roundel.socket());
    let mut text = Client::open(&roundel.socket());
    for line in
        ["LAST a.rrd", "INFO a.rrd", "FIRST a.rrd 1", "HELP", "nonsense", "FLUSH none.rrd", "FETCH", ""]
    {
        assert_eq!(client.command(line), text.say(line), "{line}");
    }
    for line in ["UPDATE a.rrd 1:2", "BATCH", ".", "QUIT", "FRAMES 1"] {
        let name = line.split(' ').next().unwrap();
        assert_eq!(client.command(line), format!("-1 Can't use '{name}' here.\n"), "{line}");
    }
    let created = client.command("CREATE c.rrd -s 10 DS:x:GAUGE:20:U:U RRA:AVERAGE:0.5:1:20");
    assert_eq!(created, "0 RRD created OK\n");
    assert!(client.command("LAST c.rrd").starts_with("0 "));
}

#[test]
fn frames_respect_the_permissions_of_the_socket() {
    let permissions = Permissions::parse("FETCHBIN,LAST").unwrap();
    let roundel = Roundel::stripes(CreatePolicy::default(), permissions);
    let mut client = Framed::connect(&roundel.socket());
    assert_eq!(client.update(&[("a.rrd", "1:2")]), ["Permission denied."]);
    assert_eq!(client.command("INFO a.rrd"), "-1 Permission denied.\n");
    assert!(client.fetch("a.rrd", "AVERAGE", 1, 2, 1).unwrap_err().contains("No such file"));
    let permissions = Permissions::parse("UPDATE").unwrap();
    let roundel = Roundel::stripes(CreatePolicy::default(), permissions);
    let mut client = Framed::connect(&roundel.socket());
    assert_eq!(client.fetch("a.rrd", "AVERAGE", 1, 2, 1).unwrap_err(), "Permission denied.");
    assert!(client.update(&[("a.rrd", "1:2")])[0].contains("No such file"));
}

#[test]
fn an_unknown_version_is_refused_and_text_continues() {
    let (_, roundel) = recorder();
    let mut client = Client::open(&roundel.socket());
    for line in ["FRAMES", "FRAMES 0", "FRAMES 3", "frames x"] {
        assert_eq!(client.say(line), "-1 Only frames of versions 1 to 2 are spoken here.\n", "{line}");
    }
    assert_eq!(client.say("PING"), "0 PONG\n");
    client.write(b"BATCH\nFRAMES 1\n.\n");
    client.read();
    assert_eq!(client.read(), "1 errors\n1 Can't use 'FRAMES' here.\n");
}

/// Some connections have their own thread, the others share tokio's.
#[test]
fn more_connections_than_threads_are_served_and_end_with_the_daemon() {
    let roundel = start();
    let mut clients: Vec<_> =
        (0..FRAMES_THREADS_MAX + 10).map(|_| Framed::connect(&roundel.socket())).collect();
    for (time, client) in (1_000_000_001..).zip(&mut clients) {
        assert_eq!(client.update(&[("a.rrd", &format!("{time}:1:2"))]), [""; 0]);
        assert_eq!(client.command("LAST b.rrd"), "0 1000000000\n");
    }
    // A connection that ends makes room for another.
    clients.drain(..20);
    clients.extend((0..20).map(|_| Framed::connect(&roundel.socket())));
    for client in &mut clients {
        assert!(client.fetch("a.rrd", "AVERAGE", 1_000_000_000, 1_000_000_010, 10).is_ok());
    }
    // One of them in the middle of a frame.
    clients[0].send(&[9, 0, 0]);
    let service = Arc::clone(roundel.service());
    roundel.stop();
    assert_eq!(service.metrics.connections_open.get(), 0, "a connection had to be cut off");
    wait_until("the threads to end", || service.threads.available_permits() == FRAMES_THREADS_MAX);
    for client in &mut clients[1..] {
        assert_eq!(client.stream.read(&mut [0]).unwrap(), 0);
    }
}

/// Also on a thread of its own.
#[test]
fn a_panic_ends_one_connection() {
    let (_, roundel) = recorder();
    let [mut client, mut other] = [(); 2].map(|()| Framed::connect(&roundel.socket()));
    let mut out = Vec::new();
    push_command(&mut out, 1, b"INFO panic");
    client.send(&out);
    assert_eq!(client.stream.read(&mut [0]).unwrap(), 0);
    assert_eq!(other.command("PING"), "0 PONG\n");
    wait_until("the panic to be counted", || roundel.service().metrics.panics.get() > 0);
    assert_eq!(roundel.service().metrics.panics.get(), 1);
}

fn recorder() -> (Arc<Recorder>, Roundel) {
    let engine = Recorder::new(&["a.rrd", "b.rrd"]);
    (Arc::clone(&engine), Roundel::with_engine(engine))
}

#[test]
fn many_frames_go_out_before_the_first_answer_is_read() {
    let (engine, roundel) = recorder();
    let mut client = Framed::connect(&roundel.socket());
    let mut out = Vec::new();
    // Split anywhere.
    for number in 0..2_000 {
        let values = format!("{}:1", 1_000_000_000 + number);
        push_updates(&mut out, number, [("a.rrd", &*values), ("none.rrd", "1:1")].iter().map(update));
    }
    for piece in out.chunks(977) {
        client.send(piece);
    }
    for number in 0..2_000 {
        let refused = client.updated(number);
        assert!(refused.len() == 1 && refused[0].starts_with("1: No such file: "), "{refused:?}");
    }
    let updates = engine.updates("a.rrd");
    assert_eq!(updates.len(), 2_000);
    assert!(updates.is_sorted());
}

#[test]
fn an_invalid_frame_ends_the_connection_after_due_answers() {
    let (engine, roundel) = recorder();
    let mut good = Vec::new();
    push_updates(&mut good, 8, [("a.rrd", "1:2")].iter().map(update));
    let frame = |kind, body: &[u8]| {
        let mut out = Vec::new();
        push(&mut out, kind, 1, |out| out.extend_from_slice(body));
        out
    };
    let mut too_long = frame(3, b"");
    too_long[..4].copy_from_slice(&(REQUEST_BYTES_MAX as u32 + 1).to_le_bytes());
    let mut reserved = frame(3, b"PING");
    reserved[6] = 1;
    let cases = [
        (too_long, "1048577 bytes, 1048576 are the limit"),
        (reserved, "reserved bytes are not zero"),
        (frame(0, b""), "kind 0 is not known in version 2"),
        (frame(0x81, b"\0\0\0\0"), "kind 129 is not known in version 2"),
        (frame(1, b"\0\0\0\0"), "0 updates, 1 to 16384 are allowed"),
        (frame(1, b"\xff\xff\xff\xff"), "4294967295 updates, 1 to 16384 are allowed"),
        (frame(1, b"\x01\0\0\0\x05\0\x01\0\0\0a.rr"), "it ends within a name"),
        (frame(2, b"short"), "it ends within a start"),
        (frame(3, b"PING\nPING"), "a line feed in a command cannot be"),
    ];
    for (count, (bad, why)) in (1..).zip(cases) {
        let mut client = Framed::connect(&roundel.socket());
        client.send(&[&good[..], &bad, &good].concat());
        assert!(client.updated(8).is_empty());
        assert_eq!(client.end(), format!("bad frame: {why}"));
        // What came before is executed, what came after is not.
        assert_eq!(engine.updates("a.rrd").len(), count);
    }
    let mut client = Client::open(&roundel.socket());
    assert_eq!(client.say("PING"), "0 PONG\n");
}

#[test]
fn garbage_affects_no_other_connection() {
    let (_, roundel) = recorder();
    for seed in 1..=30 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let mut out = Vec::new();
        for number in 0..20 {
            push_updates(&mut out, number, [("a.rrd", "1:2"), ("b.rrd", "3:4")].iter().map(update));
            push_command(&mut out, number, b"LAST a.rrd");
        }
        for _ in 0..random.below(20) {
            let at = random.below(out.len() as u64) as usize;
            out[at] = random.next() as u8;
        }
        let mut client = Framed::connect(&roundel.socket());
        // The daemon may close the connection while this is sent.
        client.stream.get_mut().write_all(&out).ok();
        client.stream.get_mut().shutdown(std::net::Shutdown::Write).ok();
        client.stream.read_to_end(&mut Vec::new()).ok();
    }
    let mut client = Framed::connect(&roundel.socket());
    assert!(client.update(&[("a.rrd", "9:9")]).is_empty());
}
